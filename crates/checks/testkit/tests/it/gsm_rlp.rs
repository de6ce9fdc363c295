//! GSM's radio link protocol over links: nothing is lost unless an end gives up, and then both ends reset.

use crate::strategies::{cases, fates, play, traffic};
use airlane_base::{Duration, Instant};
use airlane_link::HeaderProfile::{Live, Study};
use airlane_testkit::Fate;
use airlane_testkit::{Adversary, FrameDeparture, Pair, Reordering, Scripted, Setup, TestPacket};
use proptest::prelude::*;

const QUEUE: &str = "kind = \"drop-tail\", limit = \"100000 packets\"";

fn setup(header: airlane_link::HeaderProfile, options: &str) -> Setup {
    let scheme = format!(
        "kind = \"gsm-rlp\", multiplier = 1.0, {options}, \
         timers = {{ ack = \"5 ms\", nak = \"1 s\", keepalive = \"1 s\", rto = \"80 ms\" }}"
    );
    Setup::new(header).service(0, 1.0, &scheme, QUEUE)
}

/// Deliveries are in order and unique; undelivered packets were in flight when their sender reset.
fn check<A: Adversary>(pair: &Pair<A>, offered: [u64; 2]) -> Result<(), TestCaseError> {
    let books = [0, 1].map(|end| pair.ledger(end, 0));
    for end in 0..2 {
        let ids = pair.ids(end, 0);
        prop_assert!(ids.is_sorted_by(|a, b| a < b), "end {}: {:?}", end, ids);
        let missing = offered[1 - end] - ids.len() as u64;
        let lost = books[1 - end].epoch_lost;
        prop_assert!(missing <= lost, "end {}: {} of {}", end, missing, lost);
        prop_assert!(lost == 0 || books[1 - end].resets > 0);
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(600))]

    /// Both ends send, and either may give up at any time.
    #[test]
    fn nothing_is_lost_unless_an_end_gives_up(
        live: bool,
        window in 1..=31u32,
        polls in 0..4u32,
        go_back: bool,
        traffic in traffic(120, 1, 20),
        script in fates(400, 300),
    ) {
        let repair = if go_back { "go-back" } else { "selective" };
        let options = format!("window = {window}, repair = \"{repair}\", persistence = {{ polls = {polls} }}");
        let header = if live { Live } else { Study };
        let mut pair = Pair::new(&setup(header, &options), Scripted::new(script));
        if !live {
            (pair.reordering, pair.originals_in_order) = (Reordering::None, true);
        }
        let offered = play(&mut pair, &traffic).map(|by_service| by_service[0]);
        pair.run_for(Duration::from_secs(1));
        pair.adversary.end();
        let quiet = pair.run_until_quiet(pair.now() + Duration::from_secs(30));
        prop_assert!(quiet, "still busy: {:?}", pair.port(0));
        check(&pair, offered)?;
    }
}

/// The link fails for a while, under load in both directions.
fn through_an_outage(persistence: &str, outage: Duration) -> Pair<impl Adversary + use<>> {
    let from = Instant::from_nanos(2_000_000_000);
    let fails = move |frame: FrameDeparture<'_>| match (from..from + outage).contains(&frame.now) {
        true => Fate::Lose,
        false => Fate::ARRIVE,
    };
    let setup = setup(Live, &format!("persistence = {{ {persistence} }}"));
    let mut pair = Pair::new(&setup, fails);
    for id in 0..1_000 {
        for end in 0..2 {
            pair.offer(end, TestPacket::new(0, id, 500));
        }
        pair.run_for(Duration::from_millis(5));
    }
    assert!(pair.run_until_quiet(Instant::from_nanos(60_000_000_000)));
    check(&pair, [1_000; 2]).unwrap();
    pair
}

#[test]
fn an_outage_is_survived_as_long_as_the_service_persists() {
    // 31 frames leave within 130 ms, then T1 and its polls.
    for (persistence, survived, fatal) in [
        ("polls = 6", 450, 800),
        ("polls = 20", 1_500, 2_000),
        ("frames = 6", 450, 800),
        ("time = \"2 s\"", 1_800, 2_100),
    ] {
        let resets = |outage| {
            let pair = through_an_outage(persistence, Duration::from_millis(outage));
            [0, 1].map(|end| {
                let books = pair.ledger(end, 0);
                assert_eq!(
                    books.resets > 0,
                    books.epoch_lost > 0,
                    "{persistence}: {books:?}"
                );
                assert!(books.epoch_lost <= 31 * books.resets);
                books.resets
            })
        };
        assert_eq!(resets(survived), [0; 2], "{persistence}");
        assert!(
            resets(fatal).iter().all(|resets| *resets > 0),
            "{persistence}"
        );
    }
}

#[test]
fn both_ends_report_which_end_gave_up() {
    let quiet = |frame: FrameDeparture<'_>| match frame.now < Instant::from_nanos(1_000_000_000) {
        true => Fate::Lose,
        false => Fate::ARRIVE,
    };
    let mut pair = Pair::new(&setup(Live, "persistence = { polls = 2 }"), quiet);
    for id in 0..3 {
        pair.offer(0, TestPacket::new(0, id, 500));
    }
    pair.run_for(Duration::from_secs(3));
    pair.offer(0, TestPacket::new(0, 3, 500));
    pair.offer(1, TestPacket::new(0, 0, 500));
    pair.run_for(Duration::from_secs(3));
    assert_eq!((pair.ids(0, 0), pair.ids(1, 0)), (vec![0], vec![3]));
    let told = |end: usize| {
        let status = pair.port(end).services().next().unwrap();
        let told = status.events.into_iter();
        told.map(|event| (event.name, event.count))
            .collect::<Vec<_>>()
    };
    assert_eq!(told(0), [("gave-up", 1)]);
    assert_eq!(told(1), [("begun-anew", 1)]);
}
