//! The cost of reading a file: memory and time grow with its length, however many mistakes it has.
//!
//! The whole test is one function, because the counters are global to the process.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use airlane_base::config::{Document, Problems, Validate};
use peak_alloc::PeakAlloc;
use schemars::JsonSchema;
use serde::Deserialize;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct World {
    flows: Vec<Flow>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Flow {
    name: String,
    ends: [String; 2],
    app: App,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "kebab-case")]
enum App {
    Bulk { packet: u32 },
}

impl Validate for World {
    fn validate(&self, problems: &mut Problems) {
        for (i, flow) in self.flows.iter().enumerate() {
            let App::Bulk { packet } = flow.app;
            if packet == 0 {
                let path = format!("flows[{i}].app.packet");
                problems.add(&path, "a packet of nothing", "write 1 or more");
            }
        }
    }
}

/// A world with `flows` flows.
fn world(flows: usize, packet: u32) -> String {
    let mut text = String::new();
    for n in 0..flows {
        write!(
            text,
            "[[flows]]\nname = \"flow-{n}\"\nends = [\"station-{n}\", \"access-point\"]\n\
             app = {{ kind = \"bulk\", packet = {packet} }}\n\n"
        )
        .unwrap();
    }
    text
}

/// The peak memory of `work`.
fn most<R>(work: impl FnOnce() -> R) -> (usize, R) {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let result = work();
    (MEMORY.peak_usage() - before, result)
}

/// CPU time of this thread: neighbours of the machine do not count.
fn spent() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    spent.try_into().unwrap()
}

/// Ten times the input must take about ten times as long, not a hundred times.
fn grows_with_its_length(took: impl Fn(usize) -> Duration) {
    took(100);
    let (some, many) = (took(4_000), took(40_000));
    let bound = some * 40 + Duration::from_millis(200);
    assert!(many < bound, "{some:?}, {many:?}");
}

#[test]
fn a_file_costs_by_its_length() {
    let text = world(20_000, 1_000);
    let read = |sets: usize| {
        let mut document = Document::parse(&text, "world.toml").unwrap();
        for n in 0..sets {
            let set = format!("flows[{n}].app.packet=7");
            document.set(&set).unwrap();
        }
        document.read::<World>().unwrap()
    };
    for sets in [0, 3] {
        let (bytes, world) = most(|| read(sets));
        let names: usize = world
            .flows
            .iter()
            .map(|f| f.name.len() + f.ends[0].len())
            .sum();
        assert!(world.flows.len() == 20_000 && names > 0);
        let each = bytes as f64 / text.len() as f64;
        println!(
            "{sets} assignments: {each:.1} bytes for each of {}",
            text.len()
        );
        assert!(each < 40.0, "{each}");
    }
    // The densest values that a text can have; most of the memory is what the parser keeps per word. While a buffer
    // grows, both copies count.
    let dense = format!("a = [{}]\n", "1,".repeat(1_000_000));
    let (bytes, read) = most(|| {
        let document = Document::parse(&dense, "dense.toml").unwrap();
        document.read::<BTreeMap<String, Vec<u8>>>().unwrap()
    });
    assert_eq!(read["a"].len(), 1_000_000);
    let each = bytes as f64 / dense.len() as f64;
    println!("dense: {each:.1} bytes for each of {}", dense.len());
    assert!(each < 130.0, "{each}");

    grows_with_its_length(|flows| {
        let text = world(flows, 0);
        let began = spent();
        let document = Document::parse(&text, "world.toml").unwrap();
        let refused = document.read::<World>().unwrap_err();
        let lines: Vec<usize> = refused.problems().iter().map(|p| p.line).collect();
        assert_eq!(lines, (0..10).map(|n| 5 * n + 4).collect::<Vec<_>>());
        spent() - began
    });
    grows_with_its_length(|lines| {
        let text = "a = = 1\n".repeat(lines);
        let began = spent();
        let refused = Document::parse(&text, "broken.toml").unwrap_err();
        assert_eq!(refused.problems().len(), 10);
        assert_eq!(refused.problems()[9].line, 10);
        spent() - began
    });
}
