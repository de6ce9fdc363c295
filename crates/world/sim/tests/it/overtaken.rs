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

/// Of one seed, repairs vary by a fifth.
const SEEDS: [u64; 3] = [1, 2, 3];

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
            let (mut has, mut sent, mut repairs, mut recovered, mut overtaken) = (0.0, 0, 0, 0, 0);
            for seed in SEEDS {
                let [even, late] = [&lossy, &jitter]
                    .map(|more| run(&world(20, &link(more), true, &flows), seed, 0).unwrap());
                has += bits(&late, "file") / bits(&even, "file") / SEEDS.len() as f64;
                sent += sum(&late, |[s, _]| s.packets_sent);
                repairs += sum(&late, |[s, _]| s.repair_frames_sent - s.copy_frames_sent);
                recovered += sum(&late, |[_, r]| r.packets_recovered);
                overtaken += sum(&late, |[_, r]| r.overtaken);
            }
            let cell = format!(
                "{congestion}, {late_ms} ms, {loss}: {has:.3} of the file, {sent} sent, {repairs} repairs, \
                 {recovered} recovered, {overtaken} overtaken"
            );
            println!("{cell}");
            // Lost frames are repaired, some twice; a call's copies arrive before frames that are 20 ms late. Beside
            // losses, a tenth of the late frames are taken for lost.
            let needless = if loss > 0.0 { 0.01 } else { 0.005 };
            let most = (1.1 * loss + needless) * sent as f64;
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
