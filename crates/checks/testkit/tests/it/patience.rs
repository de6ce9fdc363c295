//! Packets delayed by an outage beyond their useful life are discarded.

use airlane_base::{Duration, Instant};
use airlane_link::HeaderProfile::Live;
use airlane_testkit::{Pair, RandomAdversary, Setup, TestPacket};

const QUEUE: &str = "kind = \"drop-tail\", limit = \"1000 packets\"";
const S: fn(u64) -> Duration = Duration::from_secs;

/// Five packets a second for 40 s; the channel loses everything from the time when both ends have a session up to
/// 25 s. Returns the age of each packet delivered.
fn ages(setup: &Setup) -> (Vec<Duration>, [airlane_link::ServiceLedger; 2]) {
    let over = Instant::ORIGIN + S(25);
    let mut pair = Pair::new(setup, RandomAdversary::losing(1, 1.0).until(over));
    let mut came = vec![];
    for id in 0..200 {
        came.push(pair.now());
        pair.offer(0, TestPacket::new(1, id, 100));
        pair.run_for(Duration::from_millis(200));
    }
    pair.run_for(S(10));
    let all = pair.delivered(1).iter();
    let ages = all.map(|d| d.at.saturating_since(came[d.packet.id as usize]));
    (ages.collect(), [pair.ledger(0, 1), pair.ledger(1, 1)])
}

fn setup(scheme: &str, patience: Option<&str>) -> Setup {
    let mut setup = Setup::new(Live).rate("20 Mbit/s");
    setup.config.delay = Duration::from_millis(25);
    let mut setup = setup.service(1, 1.0, scheme, QUEUE);
    let service = setup.config.services.last_mut().expect("one was added");
    service.patience = patience.map(|patience| patience.parse().expect("a duration"));
    setup
}

#[test]
fn losses_of_an_outage_are_repaired_only_within_the_patience() {
    let scheme = "kind = \"rlp-oos\", retries = 5";
    for (patience, most) in [("5 s", S(5)), ("1 s", S(1))] {
        let (ages, [sender, _]) = ages(&setup(scheme, Some(patience)));
        let oldest = ages.iter().max().unwrap();
        let round_trip = Duration::from_millis(100);
        assert!(*oldest < most + round_trip, "{patience}: {oldest}");
        assert!(*oldest + S(1) > most, "{patience}: {oldest}");
        // All packets sent before and after arrived.
        assert!(ages.len() >= 75, "{}", ages.len());
        assert!(sender.too_old_naks > 50, "{sender:?}");
    }
}

#[test]
fn packets_queued_beyond_the_patience_are_dropped_by_name() {
    // 200 kB take 16 s at 100 kbit/s.
    for scheme in ["kind = \"rlp-oos\"", "kind = \"sr-m2\""] {
        let slow = setup(scheme, Some("3 s")).rate("100 kbit/s");
        let mut pair = Pair::new(&slow, RandomAdversary::losing(1, 0.0));
        for id in 0..200 {
            pair.offer(0, TestPacket::new(1, id, 1_000));
        }
        pair.run_for(S(20));
        let ledger = pair.ledger(0, 1);
        let last = pair.delivered(1).last().unwrap().at;
        assert!(last < Instant::ORIGIN + S(4), "{last:?}");
        assert!(ledger.dropped_too_old > 100, "{ledger:?}");
        assert_eq!(ledger.packets_sent + ledger.dropped_too_old, 200);
    }
}
