//! Simulated file transfer: TCP segments per second on one core. Without a link service there must be at least 2
//! million; allocations must not grow with the number of segments.

use airlane_sim::{Scenario, run};
use divan::Bencher;
use divan::counter::ItemsCount;

#[global_allocator]
static ALLOC: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}

const SEGMENTS: u64 = 500_000;

fn wlan(segments: u64, errors: &str, services: &str) -> Scenario {
    let text = format!(
        r#"
        schema = 1
        name = "bulk transfer over WLAN, LAN1"
        duration = "1000000 s"
        until = "file"
        [nodes.server]
        [nodes.base]
        [nodes.mobile]
        [links.wired]
        ends = ["server", "base"]
        rate = "10 Mbit/s"
        delay = "1 ms"
        [links.radio]
        ends = ["base", "mobile"]
        rate = "2 Mbit/s"
        delay = "3 ms"
        frame = "1000 B"
        errors = {errors}
        header = "study"
        services = [{services}]
        [[flows]]
        name = "file"
        ends = ["server", "mobile"]
        transport = {{ kind = "tcp", profile = "ns2-1999" }}
        app = {{ kind = "bulk", size = "{segments} kB" }}
        "#
    );
    Scenario::from_toml(&text, "bench").expect("the benchmark's scenario is valid")
}

fn measure(bencher: Bencher, scenario: &Scenario, segments: u64) {
    bencher
        .counter(ItemsCount::new(segments))
        .bench(|| run(scenario, 1, 0).expect("a valid scenario runs"));
}

/// The required case: no link service.
#[divan::bench(args = [SEGMENTS / 10, SEGMENTS], sample_count = 10, sample_size = 1)]
fn without_link_service(bencher: Bencher, segments: u64) {
    measure(
        bencher,
        &wlan(segments, "{ kind = \"none\" }", ""),
        segments,
    );
}

/// Likewise, with the losses of error level 1, which TCP repairs.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn without_link_service_lossy(bencher: Bencher) {
    let errors = "{ kind = \"byte-exponential\", mean = \"131072 B\" }";
    measure(bencher, &wlan(SEGMENTS, errors, ""), SEGMENTS);
}

/// Likewise, with a service that repairs the losses.
#[divan::bench(args = ["default", "sr-m2", "rlp"], sample_count = 5, sample_size = 1)]
fn with_link_service(bencher: Bencher, scheme: &str) {
    let errors = "{ kind = \"byte-exponential\", mean = \"131072 B\" }";
    let service =
        format!("{{ number = 0, name = \"all\", rate = 1, scheme = {{ kind = \"{scheme}\" }} }}");
    measure(bencher, &wlan(SEGMENTS, errors, &service), SEGMENTS);
}

/// 2000 s of web pages over WLAN: draws and fresh state for some 100,000 connections.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn web(bencher: Bencher) {
    let errors = "{ kind = \"byte-exponential\", mean = \"131072 B\" }";
    let text = wlan(1, errors, "").to_toml();
    let changes = [
        "until=\"web\"",
        "duration=2000 s",
        "flows[0].name=web",
        "flows[0].app={ kind = \"web\", count = 1000000 }",
    ];
    let scenario = Scenario::from_toml_with(&text, "bench", &changes).expect("a valid scenario");
    bencher.bench(|| run(&scenario, 1, 0).expect("a valid scenario runs"));
}
