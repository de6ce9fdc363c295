//! Links for traffic that nothing names, with services by goal, classes by behaviour and a found rate: for no kind of TCP
//! is a file worse than over the raw link.

use airlane_sim::Summary;

use crate::common;

fn summed(name: &str, congestion: &str, round_trip_ms: u32, loss: f64) -> Summary {
    let scenario = common::load(
        name,
        &[
            &format!("links.radio.delay={} ms", round_trip_ms / 2),
            &format!("links.radio.errors.rate={loss}"),
            &format!("flows[0].transport.congestion={congestion}"),
            &format!("flows[0].transport.pacing={}", congestion == "bbr"),
        ],
    );
    common::sums(&scenario, 2)
}

fn mean(summary: &Summary, flow: &str, metric: &str) -> f64 {
    let flow = summary.flows.iter().find(|f| f.name == flow).unwrap();
    flow.get(metric).unwrap().mean
}

#[test]
fn a_file_is_no_worse_whatever_controls_it() {
    // What keys, numbers and marks take of a frame, and what chance leaves of two runs.
    let least = 0.9;
    for (congestion, round_trip_ms, loss) in [
        ("bbr", 50, 0.05),
        ("bbr", 150, 0.1),
        ("bbr", 150, 0.01),
        ("cubic", 50, 0.05),
        ("cubic", 150, 0.1),
    ] {
        let [raw, served] = ["unlabelled-raw", "unlabelled"].map(|name| {
            mean(
                &summed(name, congestion, round_trip_ms, loss),
                "file",
                "throughput_bps",
            )
        });
        let case = format!("{congestion}, {round_trip_ms} ms, {loss}: {raw} and {served}");
        assert!(served > least * raw, "{case}");
        // CUBIC takes losses for congestion, and has the link nearly to itself when they are repaired.
        assert!(congestion == "bbr" || served > 5.0 * raw, "{case}");
    }
}

#[test]
fn pages_and_calls_are_better() {
    let [raw, served] =
        ["unlabelled-raw", "unlabelled"].map(|name| summed(name, "cubic", 50, 0.05));
    let page = |summary: &Summary| mean(summary, "pages", "page_time_mean_s");
    assert!(
        page(&served) < 0.7 * page(&raw),
        "{} and {}",
        page(&raw),
        page(&served)
    );
    for call in ["call-down", "call-up"] {
        let lost = |summary: &Summary| mean(summary, call, "loss_ratio");
        assert!(
            lost(&raw) > 0.03 && lost(&served) < 0.003,
            "{call}: {}",
            lost(&served)
        );
    }
}
