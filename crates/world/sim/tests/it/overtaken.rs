//! Overtaken frames are late, and not lost.

use airlane_link::ServiceLedger;
use airlane_sim::{RunResult, run};

use crate::found_rates::{bits, file, stream, world};

/// A sum over the services of the radio link, at the sender or at the receiver of its packets.
fn sum(result: &RunResult, of: impl Fn([&ServiceLedger; 2]) -> u64) -> u64 {
    let radio = result.links.iter().find(|link| link.name == "radio");
    let services = radio.unwrap().down.services.iter();
    services.map(|s| of([&s.sender, &s.receiver])).sum()
}

#[test]
fn overtaken_frames_are_neither_lost_nor_repaired() {
    let link = |more: &str| {
        format!("rate = \"20 Mbit/s\"\ndelay = \"25 ms\"\nqueue = \"125 kB\"\n{more}\n")
    };
    for congestion in ["cubic", "bbr"] {
        for (late_ms, loss) in [(5, 0.0), (20, 0.0), (20, 0.02)] {
            let lossy = format!("errors = {{ kind = \"uniform\", rate = {loss} }}\n");
            let jitter = format!("{lossy}jitter = {{ late = \"{late_ms} ms\", share = 0.1 }}");
            let flows = [file(congestion, ""), stream("call", 200, 80)];
            let [even, late] = [&lossy, &jitter]
                .map(|more| run(&world(20, &link(more), true, &flows), 1, 0).unwrap());
            let has = bits(&late, "file") / bits(&even, "file");
            let sent = sum(&late, |[s, _]| s.packets_sent);
            let repairs = sum(&late, |[s, _]| s.repair_frames_sent - s.copy_frames_sent);
            let recovered = sum(&late, |[_, r]| r.packets_recovered);
            let overtaken = sum(&late, |[_, r]| r.overtaken);
            let cell = format!(
                "{congestion}, {late_ms} ms, {loss}: {has:.3} of the file, {sent} sent, {repairs} repairs, \
                 {recovered} recovered, {overtaken} overtaken"
            );
            println!("{cell}");
            // Lost frames are repaired, some twice; a call's copies arrive before frames that are 20 ms late.
            let most = (1.1 * loss + 0.005) * sent as f64;
            assert!(
                (repairs as f64) < most && (recovered as f64) < most,
                "{cell}"
            );
            assert!(overtaken as f64 > 0.08 * sent as f64, "{cell}");
            // BBR's own retransmissions of out-of-order segments are another matter.
            assert!(congestion == "bbr" || has > 0.97, "{cell}");
        }
    }
}
