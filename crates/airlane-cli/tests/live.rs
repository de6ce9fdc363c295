//! Real traffic of the Linux kernel over an emulated lossy link: what Airlane promises.
//!
//! The topology is drawn in `airlane_testkit::live`; the files are the demo's, which users read and
//! copy. A file over kernel TCP (cubic), pages and two-way voice, all at once, 60 s after 5 s of
//! warm-up, over 20 Mbit/s, 25 ms, 125 kB of queue and 5 % loss per Ethernet frame each way.
//!
//! Run by `make live`, in a release build and alone: this is the one test that looks at rates, and
//! it is bounded by the emulated link.

use std::path::{Path, PathBuf};
use std::time::Duration;

use airlane_testkit::live::{Experiment, run};
use airlane_testkit::netns;

fn demo(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../demo")
        .join(file)
}

#[test]
fn three_applications_get_what_they_need_over_a_lossy_link() {
    if !netns::can_run("three_applications_get_what_they_need_over_a_lossy_link") {
        return;
    }
    let (air, left, right) = (demo("air.toml"), demo("left.toml"), demo("right.toml"));
    let mut misses = Vec::new();
    for seed in 1..=3 {
        let outcome = run(&Experiment {
            airlane: Path::new(env!("CARGO_BIN_EXE_airlane")),
            air: &air,
            seed,
            ends: Some([&left, &right]),
            warmup: Duration::from_secs(5),
            measure: Duration::from_secs(60),
        })
        .expect("the experiment runs");
        let traffic = &outcome.traffic;
        println!("seed {seed}\n{traffic}\n{}", outcome.air);
        let file = traffic.file.as_ref().expect("a file was carried");
        let pages = traffic.pages.as_ref().expect("pages were fetched");
        let voice_loss = traffic.voice_loss().expect("voice was sent");
        let mut demand = |holds: bool, what: String| {
            if !holds {
                misses.push(format!("seed {seed}: {what}"));
            }
        };
        let mbps = file.goodput_bps / 1e6;
        demand(mbps >= 15.0, format!("the file got {mbps:.2} of 15 Mbit/s"));
        demand(
            file.error.is_none(),
            format!("the file ended: {:?}", file.error),
        );
        let ms = pages.mean_ns / 1e6;
        demand(ms <= 240.0, format!("pages took {ms:.0}, not 240 ms"));
        demand(
            pages.failed == 0 && pages.completed >= 100,
            format!("{} pages, {} failed", pages.completed, pages.failed),
        );
        let percent = voice_loss * 100.0;
        demand(percent < 0.3, format!("voice lost {percent:.2}, not 0.3 %"));
        for (way, voice) in [("down", &traffic.voice_down), ("up", &traffic.voice_up)] {
            let voice = voice.as_ref().expect("voice was sent both ways");
            let ms = voice.delay_p50_ns as f64 / 1e6;
            demand(ms < 40.0, format!("voice {way} took {ms:.1}, not 40 ms"));
        }
    }
    assert!(misses.is_empty(), "{}", misses.join("; "));
}
