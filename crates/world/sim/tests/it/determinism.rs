//! The same scenario, seed and run give the same bytes, wherever and however they are computed.

use crate::common::{Air, Link, load, runs, talk};
use airlane_base::random::fnv1a;
use airlane_sim::{Scenario, repeat, run};

fn json(scenario: &Scenario, runs: u64, threads: usize) -> String {
    let results = repeat(scenario, 7, runs, threads, |_, _| {}).unwrap();
    serde_json::to_string(&results).unwrap()
}

fn mixed() -> Scenario {
    load("three-applications", &["duration=120 s"])
}

#[test]
fn one_and_two_threads_give_the_same_bytes() {
    assert_eq!(json(&mixed(), 5, 1), json(&mixed(), 5, 2));
}

#[test]
fn progress_counts_every_run_once() {
    let counted = std::sync::Mutex::new(vec![]);
    repeat(&mixed(), 7, 4, 2, |done, total| {
        counted.lock().unwrap().push((done, total));
    })
    .unwrap();
    let mut counted = counted.into_inner().unwrap();
    counted.sort_unstable();
    assert_eq!(counted, [(1, 4), (2, 4), (3, 4), (4, 4)]);
}

/// The metrics of flows and channels, without the services' ledgers and without metrics added since the values below
/// were pinned: a new metric does not change a result.
fn digest(scenario: &Scenario) -> String {
    let mut results = repeat(scenario, 7, 2, 0, |_, _| {}).unwrap();
    let mut text = String::new();
    for result in &mut results {
        for flow in &mut result.flows {
            flow.services.clear();
            (flow.delay_p95_s, flow.pause_max_s, flow.jitter_mean_s) = (None, None, None);
            flow.page_time_p95_s = None;
            flow.delay_mean_s = flow.delay_mean_s.filter(|_| flow.app != "bulk");
        }
        text += &serde_json::to_string(&(result.events, &result.flows)).unwrap();
        for link in &result.links {
            for direction in [&link.down, &link.up] {
                text += &serde_json::to_string(&direction.channel).unwrap();
            }
        }
    }
    format!("{:016x}", fnv1a(text.as_bytes()))
}

/// Debug and release builds must agree, now and in future versions. A change here means that published results
/// change: give the reason in the commit.
#[test]
fn golden_results() {
    let found = [
        mixed(),
        load("three-applications-wlan-raw", &["duration=10 s"]),
        load(
            "wlan-lan1-rlp",
            &[
                "flows[file].app.size=2 MB",
                "links.radio.errors.mean=16384 B",
            ],
        ),
        load("pcs-lan1", &["flows[file].app.size=500 kB"]),
    ];
    assert_eq!(found.each_ref().map(digest), GOLDEN);
}
const GOLDEN: [&str; 4] = [
    "ea12ee481ee07700",
    "0e5ee76a50e97f4d",
    "d308733a2194c091",
    "84a797c15ecd3ede",
];

#[test]
fn repetitions_change_the_errors_and_not_the_talk() {
    let air = Air {
        errors: Some("{ kind = \"uniform\", rate = 0.1 }"),
        ..Air::default()
    };
    let all = runs(&talk(Link::Cellular, "LAN1", air, 200), 5);
    let sent: Vec<u64> = all.iter().map(|r| r.flows[0].packets_sent).collect();
    let mut received: Vec<u64> = all.iter().map(|r| r.flows[0].packets_received).collect();
    assert!(sent.iter().all(|n| *n == sent[0]), "{sent:?}");
    received.dedup();
    assert!(received.len() > 1, "{received:?}");
    // Another seed gives another conversation.
    let other = run(&talk(Link::Cellular, "LAN1", air, 200), 2000, 0).unwrap();
    assert_ne!(other.flows[0].packets_sent, sent[0]);
}

#[test]
fn a_new_component_disturbs_no_other_stream() {
    let air = Air {
        errors: Some("{ kind = \"uniform\", rate = 0.1 }"),
        ..Air::default()
    };
    let alone = talk(Link::Cellular, "LAN1", air, 200);
    let text = alone.to_toml()
        + "[nodes.other]\n[links.other]\nends = [\"a\", \"other\"]\nrate = \"1 Mbit/s\"\n\
           delay = \"5 ms\"\nframe = \"500 B\"\nerrors = { kind = \"uniform\", rate = 0.3 }\n\
           [[flows]]\nname = \"more\"\nends = [\"a\", \"other\"]\ntransport = { kind = \"udp\" }\n\
           app = { kind = \"conferencing\", rate = \"64 kbit/s\", talk = \"2 s\", silence = \"1 s\" }\n";
    let both = Scenario::from_toml(&text, "both").unwrap();
    let (alone, both) = (&runs(&alone, 1)[0], &runs(&both, 1)[0]);
    assert_eq!(alone.flows[0], both.flows[0]);
    assert!(both.flows[1].packets_sent > 0);
}

/// Fades advance with time, whatever is sent: in each repetition, two schemes with different headers, repairs and
/// keepalives lose frames to the same fades.
#[test]
fn schemes_meet_the_same_fades() {
    let lost = |scheme: &str| -> Vec<f64> {
        let air = Air {
            errors: Some(
                "{ kind = \"two-state\", good = \"10 s\", bad = \"1 s\", \
                 ber_good = 0, ber_bad = 0.01 }",
            ),
            scheme: Some(scheme),
            ..Air::default()
        };
        let all = runs(&talk(Link::Pcs, "LAN1", air, 100), 30);
        let radio = |r: &airlane_sim::RunResult| r.links[0].down.channel.lost_air.frames as f64;
        all.iter().map(radio).collect()
    };
    let (a, b) = (
        lost("{ kind = \"default\" }"),
        lost("{ kind = \"rlp-oos\", retries = 1 }"),
    );
    let paired = correlation(&a, &b);
    let mut shifted = b.clone();
    shifted.rotate_left(1);
    let unpaired = correlation(&a, &shifted);
    // Independent fades would give a correlation of 0 +- 0.18.
    assert!(paired > 0.95, "{paired}");
    assert!(unpaired < 0.7, "{unpaired}");
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (ma, mb) = (mean(a), mean(b));
    let product = |x: &[f64], mx: f64, y: &[f64], my: f64| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum()
    };
    product(a, ma, b, mb) / (product(a, ma, a, ma) * product(b, mb, b, mb)).sqrt()
}
