//! Two stations that hear the same access point but not each other.

use crate::common::load;
use airlane_sim::{RadioResult, RunResult, StationResult, run, summary};

const ANNOUNCED: &str = "media.air.rts-threshold=0 B";
const TOGETHER: &str = "media.air.sense-range-m=550";

fn play(settings: &[&str]) -> RunResult {
    run(&load("wifi-hidden", settings), 1, 0).unwrap()
}

fn air(result: &RunResult) -> &RadioResult {
    &result.radios[0]
}

fn sum(result: &RunResult, of: fn(&StationResult) -> u64) -> f64 {
    air(result).stations.iter().map(of).sum::<u64>() as f64
}

/// The share of the data frames that collided.
fn collided(result: &RunResult) -> f64 {
    sum(result, |s| s.counts.data_collided) / sum(result, |s| s.counts.data_frames)
}

fn mbps(result: &RunResult) -> f64 {
    let flows = result.flows.iter();
    flows.map(|f| f.throughput_bps.unwrap()).sum::<f64>() / 1e6
}

#[test]
fn hidden_stations_collide_unless_they_announce_their_frames() {
    let [hidden, announced, together, both] =
        [&[][..], &[ANNOUNCED], &[TOGETHER], &[ANNOUNCED, TOGETHER]].map(play);
    for (name, result) in [
        ("hidden", &hidden),
        ("announced", &announced),
        ("together", &together),
        ("both", &both),
    ] {
        println!("{name}: {:.4} {:.3}", collided(result), mbps(result));
    }
    // Two stations that hear each other: Bianchi 2000 gives 0.057, and 5.25 Mbit/s without a retry limit.
    assert!((0.05..0.065).contains(&collided(&together)));
    assert!((mbps(&together) / 5.25 - 1.0).abs() < 0.03);
    // A frame takes 47 slots, and a first attempt begins within 32 slots of an event that both have heard, so it
    // always collides. Only the longer backoff after collisions lets one through.
    assert!(collided(&hidden) > 0.3, "{}", collided(&hidden));
    assert!(mbps(&hidden) < 0.75 * mbps(&together));
    // With RTS and CTS, data is rarely lost, and hidden stations matter little. The cost of the handshake at 1 Mbit/s
    // is another matter: RTS, CTS and two SIFS add 676 us to each frame of 940 us.
    assert!(collided(&announced) < collided(&hidden) / 20.0 && collided(&both) < 0.001);
    assert!((0.8..1.0).contains(&(mbps(&announced) / mbps(&both))));
}

#[test]
fn a_wall_hides_stations_as_distance_does() {
    let wall = "media.air.signal={ noise-dbm = -94, changes = [{ between = [\"left\", \"right\"], trace = [[0, -40]] }] }";
    let [hidden, walled] = [&[][..], &[TOGETHER, wall]].map(play);
    let share = collided(&walled) / collided(&hidden);
    assert!((share - 1.0).abs() < 0.05, "{share}");
    // A wall that is removed at half time lets them hear each other from then on.
    let falls = wall.replace("[0, -40]", "[0, -40], [10, 0]");
    let fallen = play(&[TOGETHER, &falls]);
    let (first, second) = (collided(&walled), collided(&play(&[TOGETHER])));
    assert!(collided(&fallen) > 1.5 * second && collided(&fallen) < 0.75 * first);
}

#[test]
fn airtime_is_what_the_frames_took() {
    for settings in [&[][..], &[ANNOUNCED]] {
        let result = play(settings);
        // 1028 B at 11 Mbit/s, RTS of 20 B and CTS and acknowledgments of 14 B at 1 Mbit/s, each after a preamble of 192 us;
        // ns, rounded up.
        let [data, rts, answer] = [939_637, 352_000, 304_000];
        for station in &air(&result).stations {
            let counts = &station.counts;
            let expected = counts.data_frames * data
                + counts.rts_frames * rts
                + (counts.ack_frames + counts.cts_frames) * answer;
            // One frame may not have ended at the end of the run.
            assert!(
                (0..=data).contains(&(expected - counts.airtime_ns)),
                "{station:?}"
            );
            assert!(station.airtime_ratio > 0.0 && station.airtime_ratio <= 1.0);
            let until_the_end = counts.airtime_ns as f64 / 1e9 / result.stopped_s;
            assert!(station.airtime_ratio <= until_the_end);
        }
        // Each received RTS gets a CTS, each received frame an acknowledgment.
        let came = sum(&result, |s| s.counts.data_frames - s.counts.data_collided);
        assert_eq!(came, sum(&result, |s| s.counts.ack_frames));
        let came = sum(&result, |s| s.counts.rts_frames - s.counts.rts_collided);
        assert!(sum(&result, |s| s.counts.cts_frames) <= came);
    }
}

#[test]
fn repetitions_have_a_row_for_each_station() {
    let runs =
        airlane_sim::repeat(&load("wifi-hidden", &["duration=2 s"]), 1, 3, 1, |_, _| {}).unwrap();
    let summary = summary(&runs).unwrap();
    let [radio] = &summary.radios[..] else {
        panic!("{summary:?}")
    };
    let nodes: Vec<_> = radio.stations.iter().map(|s| s.node.as_str()).collect();
    assert_eq!(
        (radio.name.as_str(), &nodes[..]),
        ("air", &["ap", "left", "right"][..])
    );
    for (at, station) in radio.stations.iter().enumerate() {
        for metric in ["airtime_ratio", "collided_frames", "retries", "queue_drops"] {
            let of = |run: &RunResult| {
                let all = air(run).stations[at].scalars();
                all.into_iter().find(|(name, _)| *name == metric).unwrap().1
            };
            let mean = runs.iter().map(of).sum::<f64>() / 3.0;
            assert_eq!(station.get(metric).unwrap().mean, mean, "{metric}");
        }
    }
    assert!(radio.get("collisions").unwrap().mean <= radio.get("busy_periods").unwrap().mean);
}
