//! The retransmission storm of figures 5.2 and 5.3 of Xylomenos 1999, and its remedy.
//!
//! Section 12.3 of docs/spec/multi-service.md has a small model: SR/M2 of 7.5 with timers from hand-over loses
//! nothing at 1 and 2 % and nearly everything at 10 %, with delays of 10 to 700 s; with timers from departure it
//! loses nothing at any level.

use crate::common::{load, runs};
use airlane_link::ServiceLedger;
use airlane_sim::{FlowResult, RunResult};

const RTO: &str = "links.radio.services[all].scheme.timers.rto";
const ORIGIN: &str = "links.radio.services[all].scheme.timer-origin";

/// One run per seed: the speech, and the sender's ledger of its service.
fn storm(errors: f64, rto: &str, origin: &str) -> Vec<(FlowResult, ServiceLedger)> {
    let assignments = [
        format!("links.radio.errors.rate={errors}"),
        format!("{RTO}={rto}"),
        format!("{ORIGIN}={origin}"),
    ];
    let assignments: Vec<&str> = assignments.iter().map(String::as_str).collect();
    let scenario = load("conferencing-cellular-lan1-sr-m2-storm", &assignments);
    let results = runs(&scenario, 3);
    let of_run = |result: RunResult| {
        let radio = result.links.into_iter().find(|link| link.name == "radio");
        let services = radio.map(|link| link.down.services).unwrap_or_default();
        let [talk] = <[FlowResult; 1]>::try_from(result.flows).expect("one flow");
        (talk, services[0].sender)
    };
    results.into_iter().map(of_run).collect()
}

fn dropped(ledger: &ServiceLedger) -> f64 {
    assert_eq!(ledger.packets_dropped(), ledger.dropped_window_full);
    ledger.dropped_window_full as f64 / ledger.packets_offered as f64
}

fn delay(talk: &FlowResult) -> f64 {
    talk.delay_mean_plus_2sd_s.expect("some packets arrive")
}

/// Table of section 12.3, T_rto 0.55 and 0.7 s: 0 at 1 and 2 %, 94 % and 625 s at 10 %.
#[test]
fn timers_started_at_handover_storm_under_heavy_loss() {
    for rto in ["0.55 s", "0.7 s"] {
        for errors in [0.01, 0.02] {
            for (talk, ledger) in storm(errors, rto, "hand-over") {
                assert_eq!(dropped(&ledger), 0.0, "{errors}, {rto}");
                assert!(delay(&talk) < 1.0, "{errors}, {rto}: {} s", delay(&talk));
            }
        }
        for (talk, ledger) in storm(0.1, rto, "hand-over") {
            let (share, delay) = (dropped(&ledger), delay(&talk));
            assert!(share > 0.5, "{rto}: {share} dropped at the full window");
            assert!((10.0..1_000.0).contains(&delay), "{rto}: {delay} s");
            // Repairs, not losses, fill the link.
            assert!(
                ledger.repair_frames_sent > 2 * ledger.packets_sent,
                "{ledger:?}"
            );
        }
    }
}

/// Rows "relaxed" and "backlog guard": at most 0.1 % and 4.1 s, and nothing and 1.5 s. A run of long talk periods may
/// fill the window for a moment; a storm fills it for good.
#[test]
fn long_timers_or_timers_from_departure_do_not_storm() {
    for (rto, origin) in [("4.59 s", "hand-over"), ("0.479 s", "departure")] {
        for (talk, ledger) in storm(0.1, rto, origin) {
            let (share, delay) = (dropped(&ledger), delay(&talk));
            assert!(share < 0.02, "{rto} from {origin}: {share} dropped");
            assert!(delay < 10.0, "{rto} from {origin}: {delay} s");
            let repairs = ledger.repair_frames_sent;
            assert!(
                repairs < ledger.packets_sent / 2,
                "{rto} from {origin}: {ledger:?}"
            );
        }
    }
}
