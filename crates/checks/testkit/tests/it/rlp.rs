//! RLP and RLP/OOS: limited recovery (docs/spec/multi-service.md, sections 7.6, 7.7, 18.5 and 18.6).

use std::collections::{BTreeMap, BTreeSet};

use crate::strategies::{Offer, cases, fates, losses, play, traffic};
use airlane_base::{Duration, Instant};
use airlane_link::FrameKind;
use airlane_link::HeaderProfile::{Live, Study};
use airlane_testkit::{
    Adversary, Fate, FrameDeparture, Pair, RandomAdversary, Reordering, Scripted, Setup, Tally,
    TestPacket,
};
use proptest::prelude::*;

const QUEUE: &str = "kind = \"drop-tail\", limit = \"100000 packets\"";
const T_NAK: Duration = Duration::from_millis(40);
/// A NAK may have to wait for a frame on the link, one before it in the scheduler, and a window of other NAKs: 2 x
/// 0.82 ms and 127 x 10 us at 10 Mbit/s.
const NAK_WAITS: Duration = Duration::from_millis(3);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    InOrder,
    AsReceived,
}

fn order() -> impl Strategy<Value = Order> {
    prop::sample::select(vec![Order::InOrder, Order::AsReceived])
}

fn setup(base: Setup, order: Order, retries: u64, window: u64) -> Setup {
    let kind = match order {
        Order::InOrder => "rlp",
        Order::AsReceived => "rlp-oos",
    };
    let scheme = format!(
        "kind = \"{kind}\", retries = {retries}, window = {window}, multiplier = 1.0, timers = {{ \
         ack = \"1 s\", nak = \"{T_NAK}\", keepalive = \"100 ms\", rto = \"1 s\" }}, \
         keepalives = 3"
    );
    base.rate("10 Mbit/s").service(0, 1.0, &scheme, QUEUE)
}

/// Invariants under all conditions.
fn check<A: Adversary>(pair: &Pair<A>, order: Order, retries: u64) -> Result<(), TestCaseError> {
    // One more period while a missing frame may only have been overtaken.
    let bound = (T_NAK + NAK_WAITS) * retries + T_NAK;
    for end in 0..2 {
        let ids = pair.ids(end, 0);
        let distinct: BTreeSet<_> = ids.iter().collect();
        prop_assert_eq!(distinct.len(), ids.len(), "delivered twice: {:?}", ids);
        if order == Order::InOrder {
            prop_assert!(ids.is_sorted(), "out of order: {:?}", ids);
        }
        for delivery in pair.delivered(end) {
            let held = delivery.at.saturating_since(delivery.arrived);
            let allowed = if order == Order::InOrder {
                bound
            } else {
                Duration::ZERO
            };
            prop_assert!(held <= allowed, "held for {}: {:?}", held, delivery);
        }
    }
    Ok(())
}

/// Once everything arrives again: each packet sent was delivered or is known to be lost.
fn check_books<A: Adversary>(pair: &Pair<A>) -> Result<(), TestCaseError> {
    for end in 0..2 {
        let (sender, receiver) = (pair.ledger(1 - end, 0), pair.ledger(end, 0));
        prop_assert_eq!(
            receiver.packets_delivered + receiver.residual_lost,
            sender.packets_sent,
            "{:?}",
            receiver
        );
        prop_assert_eq!(receiver.packets_delivered, pair.delivered(end).len() as u64);
    }
    Ok(())
}

/// Everything arrives from now on, and one more packet in each direction reveals earlier losses.
fn finish(pair: &mut Pair<Scripted>, offered: [[u64; 16]; 2], retries: u64) {
    pair.run_for(Duration::from_secs(3));
    pair.adversary.end();
    for (end, offered) in offered.iter().enumerate() {
        pair.offer(end, TestPacket::new(0, offered[0], 100));
    }
    pair.run_for((T_NAK + NAK_WAITS) * (retries + 1) + Duration::from_secs(3));
    // Finally the senders forget frames that are no longer requested.
    assert!(pair.run_until_quiet(pair.now() + Duration::from_secs(16)));
}

/// How often each end requested each number.
fn naks<A: Adversary>(pair: &Pair<A>) -> BTreeMap<(usize, u32), u64> {
    let mut naks = BTreeMap::new();
    for (end, _, frame) in &pair.journal {
        if frame.header.kind == FrameKind::Nak {
            *naks.entry((*end, frame.header.seq)).or_insert(0) += 1;
        }
    }
    naks
}

proptest! {
    #![proptest_config(cases(1_000))]

    /// Live: any loss, any duplication, any reordering.
    #[test]
    fn live(
        order in order(),
        retries in 1u64..=4,
        window in prop::sample::select(vec![1u64, 3, 16, 127]),
        traffic in traffic(100, 1, 20),
        fates in fates(300, 2_000),
    ) {
        let setup = setup(Setup::new(Live), order, retries, window);
        let mut pair = Pair::new(&setup, Scripted::new(fates));
        pair.keeps_journal = true;
        let offered = play(&mut pair, &traffic);
        finish(&mut pair, offered, retries);
        check(&pair, order, retries)?;
        check_books(&pair)?;
        for ((end, seq), times) in naks(&pair) {
            prop_assert!(times <= retries, "end {} asked {} times for {}", end, times, seq);
        }
        prop_assert!((0..2).all(|end| pair.ledger(end, 0).resyncs == 0));
    }

    /// Study: original frames arrive in order, as on a radio link; repairs, NAKs and keepalives are lost, duplicated
    /// and reordered.
    #[test]
    fn study(
        order in order(),
        retries in 1u64..=4,
        window in prop::sample::select(vec![1u64, 3, 16, 127]),
        traffic in traffic(120, 1, 20),
        fates in fates(300, 100),
    ) {
        let setup = setup(Setup::new(Study), order, retries, window);
        let mut pair = Pair::new(&setup, Scripted::new(fates));
        pair.originals_in_order = true;
        pair.reordering = Reordering::Within(256 - 2 * window);
        let offered = play(&mut pair, &traffic);
        finish(&mut pair, offered, retries);
        check(&pair, order, retries)?;
        check_books(&pair)?;
    }

    /// Small sequence number spaces, used as fast as the buffer constraint of section 7.6 allows: a number must not
    /// be reused while it is still requested.
    #[test]
    fn few_numbers(
        modulus in 8u64..=10,
        order in order(),
        retries in 1u64..=2,
        traffic in traffic(60, 1, 0),
        gaps in prop::collection::vec(30u64..80, 60),
        fates in fates(200, 15),
    ) {
        let setup = setup(Setup::new(Study).modulus(modulus), order, retries, 3);
        let mut pair = Pair::new(&setup, Scripted::new(fates));
        pair.originals_in_order = true;
        pair.reordering = Reordering::Within(2);
        let paced: Vec<_> = traffic
            .iter()
            .zip(gaps)
            .map(|(offer, gap)| Offer { gap: Duration::from_millis(gap), ..*offer })
            .collect();
        let offered = play(&mut pair, &paced);
        finish(&mut pair, offered, retries);
        check(&pair, order, retries)?;
    }

    /// Fades of any length on a radio link.
    #[test]
    fn fades(
        order in order(),
        retries in 1u64..=4,
        traffic in traffic(120, 1, 20),
        fates in losses(300),
    ) {
        let setup = setup(Setup::new(Study), order, retries, 127);
        let mut pair = Pair::new(&setup, Scripted::new(fates));
        pair.reordering = Reordering::None;
        let offered = play(&mut pair, &traffic);
        finish(&mut pair, offered, retries);
        check(&pair, order, retries)?;
        check_books(&pair)?;
    }
}

/// Thousands of frames and many wraps, with both profiles.
#[test]
fn around_the_ring_many_times() {
    for (profile, order) in [
        (Study, Order::InOrder),
        (Study, Order::AsReceived),
        (Live, Order::InOrder),
        (Live, Order::AsReceived),
    ] {
        for seed in 0..4 {
            let setup = setup(Setup::new(profile), order, 3, 127);
            let mut adversary = RandomAdversary::losing(seed, 0.1);
            if profile == Live {
                adversary = adversary.confusing(0.1, Duration::from_millis(30));
            }
            let mut pair = Pair::new(&setup, adversary);
            let traffic: Vec<Offer> = (0..6_000)
                .map(|n| Offer {
                    end: n % 2,
                    service: 0,
                    len: 100 + n * 7 % 900,
                    // 2 ms between packets of one end: 127 of them outlast three NAKs.
                    gap: Duration::from_millis(1),
                })
                .collect();
            play(&mut pair, &traffic);
            pair.run_for(Duration::from_secs(2));
            check(&pair, order, 3).unwrap();
            let lost: u64 = (0..2).map(|end| pair.ledger(end, 0).residual_lost).sum();
            // p (1 - (1-p)^2)^3 = 0.07 % of 6,000 is 4; late repairs count as lost, too.
            assert!(lost < 60, "{profile:?} {order:?} {seed}: {lost}");
        }
    }
}

/// Loses `n` consecutive original frames of end 0, beginning with number `first`.
fn losing_run(first: u64, n: u64) -> impl FnMut(FrameDeparture<'_>) -> Fate {
    let mut originals = 0;
    move |departure| {
        if departure.from == 0 && departure.frame.header.kind == FrameKind::Data {
            originals += 1;
            if (first..first + n).contains(&(originals - 1)) {
                return Fate::Lose;
            }
        }
        if departure.from == 1 {
            Fate::Lose
        } else {
            Fate::ARRIVE
        }
    }
}

/// Sends packets from end 0 with all NAKs lost, so that only the loss of originals counts.
fn lose_in_a_row(
    profile: airlane_link::HeaderProfile,
    order: Order,
    run: u64,
) -> Pair<impl FnMut(FrameDeparture<'_>) -> Fate + use<>> {
    let setup = setup(Setup::new(profile), order, 1, 127);
    // 9 is lost alone, so that 10..20 are held after a hole when the fade begins.
    let mut inner = losing_run(20, run);
    let mut originals = 0;
    let adversary = move |departure: FrameDeparture<'_>| {
        let data = departure.from == 0 && departure.frame.header.kind == FrameKind::Data;
        originals += u64::from(data);
        let fate = inner(departure);
        if data && originals == 10 {
            Fate::Lose
        } else {
            fate
        }
    };
    let mut pair = Pair::new(&setup, adversary);
    for id in 0..20 + run + 30 {
        pair.offer(0, TestPacket::new(0, id, 10));
    }
    pair.run_for(Duration::from_secs(5));
    pair
}

/// Section 7.6: an original frame half a number space ahead means a loss of synchronisation. The receiver recovers
/// alone: it delivers what it holds in order, and restarts numbering at that frame.
#[test]
fn study_resynchronises_after_half_a_ring() {
    for order in [Order::InOrder, Order::AsReceived] {
        for (run, resyncs) in [(1, 0), (126, 0), (127, 0), (128, 1), (200, 1), (255, 1)] {
            let pair = lose_in_a_row(Study, order, run);
            let ledger = pair.ledger(1, 0);
            assert_eq!(ledger.resyncs, resyncs, "{order:?}, {run} lost");
            let expected: Vec<u64> = (0..9).chain(10..20).chain(20 + run..50 + run).collect();
            assert_eq!(pair.ids(1, 0), expected, "{order:?}, {run} lost");
        }
        // The loss of a whole number space cannot be detected (docs/spec/multi-service.md, 7.6, fades and numbers).
        let pair = lose_in_a_row(Study, order, 256);
        assert_eq!(pair.ledger(1, 0).resyncs, 0);
    }
}

/// Live numbers are wide: however many frames are lost, nothing is reset and all losses are counted.
#[test]
fn live_never_resynchronises() {
    for order in [Order::InOrder, Order::AsReceived] {
        for run in [1, 127, 128, 256, 5_000] {
            let pair = lose_in_a_row(Live, order, run);
            let ledger = pair.ledger(1, 0);
            assert_eq!(ledger.resyncs, 0);
            assert_eq!(ledger.residual_lost, run + 1, "{order:?}, {run} lost");
            let expected: Vec<u64> = (0..9).chain(10..20).chain(20 + run..50 + run).collect();
            assert_eq!(pair.ids(1, 0), expected, "{order:?}, {run} lost");
        }
    }
}

/// Keepalives alone reveal the loss of the last frames.
#[test]
fn a_lost_tail_is_recovered() {
    for profile in [Study, Live] {
        let setup = setup(Setup::new(profile), Order::InOrder, 3, 127);
        let mut pair = Pair::new(&setup, |departure: FrameDeparture<'_>| {
            let tail = departure.from == 0 && (5..10).contains(&departure.ordinal);
            if tail { Fate::Lose } else { Fate::ARRIVE }
        });
        for id in 0..10 {
            pair.offer(0, TestPacket::new(0, id, 100));
        }
        pair.run_for(Duration::from_secs(1));
        assert_eq!(pair.ids(1, 0), (0..10).collect::<Vec<_>>());
        assert_eq!(pair.ledger(1, 0).packets_recovered, 5);
        let last = pair.delivered(1).last().unwrap().at;
        // Keepalive after 100 ms, then one NAK and the repair.
        let expected = Instant::from_nanos(120_000_000);
        assert!(last < expected, "{profile:?}: {last:?}");
    }
}

/// A sender keeps a window of packets while it sends, and nothing long afterwards.
#[test]
fn acknowledged_packets_are_not_kept() {
    let scheme = "kind = \"rlp\", window = 100, keepalives = 2";
    let setup = Setup::new(Live).service(1, 1.0, scheme, QUEUE);
    let mut pair = Pair::new(&setup, |_: FrameDeparture<'_>| Fate::ARRIVE);
    let tally = Tally::default();
    for id in 0..1_000 {
        pair.offer(0, TestPacket::new(1, id, 100).counted(&tally));
        pair.run_for(Duration::from_millis(1));
    }
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.delivered(1).len(), 1_000);
    let kept = |pair: &Pair<_>| tally.copies() - pair.delivered(1).len();
    assert_eq!(kept(&pair), 100);
    pair.run_for(Duration::from_secs(20));
    assert_eq!(kept(&pair), 0);
}

#[test]
fn the_strategies_reach_the_hard_cases() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let (mut given_up, mut recovered, mut late, mut duplicates, mut stale) = (0, 0, 0, 0, 0);
    for _ in 0..200 {
        let fates = fates(300, 2_000).new_tree(&mut runner).unwrap().current();
        let drawn = traffic(100, 1, 20).new_tree(&mut runner).unwrap().current();
        let setup = setup(Setup::new(Live), Order::InOrder, 2, 16);
        let mut pair = Pair::new(&setup, Scripted::new(fates));
        let offered = play(&mut pair, &drawn);
        finish(&mut pair, offered, 2);
        for end in 0..2 {
            let ledger = pair.ledger(end, 0);
            given_up += ledger.given_up;
            recovered += ledger.packets_recovered;
            late += ledger.late;
            duplicates += ledger.duplicates;
            stale += ledger.stale_naks;
        }
    }
    let seen = [given_up, recovered, late, duplicates, stale];
    assert!(seen.iter().all(|n| *n > 20), "{seen:?}");
}

/// The residual loss at the receiver: 10 s at one loss rate and 10 s at another, which also apply to requests and
/// repairs.
fn lost_for_good(scheme: &str, losses: [f64; 2]) -> f64 {
    let setup = Setup::new(Live)
        .rate("10 Mbit/s")
        .service(0, 1.0, scheme, QUEUE);
    let mut by_turns = [1, 2].map(|seed| RandomAdversary::losing(seed, losses[seed as usize - 1]));
    let mut pair = Pair::new(&setup, move |frame: FrameDeparture<'_>| {
        let turn = frame.now.as_nanos() / 10_000_000_000 % 2;
        by_turns[turn as usize].fate(frame)
    });
    for id in 0..80_000 {
        pair.offer(0, TestPacket::new(0, id, 500));
        pair.run_for(Duration::from_millis(1));
    }
    assert!(pair.run_until_quiet(pair.now() + Duration::from_secs(60)));
    let books = pair.ledger(1, 0);
    books.residual_lost as f64 / (books.residual_lost + books.packets_delivered) as f64
}

/// A receiver with a target for the residual loss repeats requests as often as that takes, whatever the link loses.
#[test]
fn residual_loss_stays_within_its_target() {
    for kind in ["rlp", "rlp-oos"] {
        for losses in [[0.02; 2], [0.2; 2], [0.01, 0.3]] {
            let scheme = format!("kind = \"{kind}\", residual = 0.002");
            let lost = lost_for_good(&scheme, losses);
            // But it does not repeat them without limit.
            assert!(
                (0.0001..=0.002).contains(&lost),
                "{kind} {losses:?}: {lost}"
            );
        }
    }
    let three = lost_for_good("kind = \"rlp-oos\", retries = 3", [0.01, 0.3]);
    assert!(three > 0.005, "{three}");
}
