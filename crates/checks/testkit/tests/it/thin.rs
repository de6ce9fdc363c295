//! Thin flows: copies, keepalives that find lost tails, and budgets (docs/lab/thin-flows.md).

use std::collections::BTreeMap;

use crate::strategies::{cases, traffic};
use airlane_base::{Duration, Instant};
use airlane_link::FrameKind;
use airlane_link::HeaderProfile::Live;
use airlane_testkit::{Adversary, Fate, FrameDeparture, Pair, RandomAdversary, Setup, TestPacket};
use proptest::prelude::*;

const QUEUE: &str = "kind = \"drop-tail\", limit = \"100000 packets\"";
const MS: fn(u64) -> Duration = Duration::from_millis;

/// 20 Mbit/s and 25 ms, as in the live bench.
fn setup(scheme: &str) -> Setup {
    let mut setup = Setup::new(Live).rate("20 Mbit/s");
    setup.config.delay = MS(25);
    setup.service(1, 1.0, scheme, QUEUE)
}

fn offer<A: Adversary>(pair: &mut Pair<A>, ids: std::ops::Range<u64>, len: usize) {
    for id in ids {
        pair.offer(0, TestPacket::new(1, id, len));
    }
}

/// With known round trips, so that the timers based on them are in their steady state.
fn warm<A: Adversary>(scheme: &str, adversary: A) -> Pair<A> {
    let mut pair = Pair::new(&setup(scheme), adversary);
    for id in 0..20 {
        offer(&mut pair, id..id + 1, 500);
        pair.run_for(MS(100));
    }
    pair
}

/// Loses everything that leaves end 0, from 2 s on for this long.
fn fade(lasts: Duration) -> impl FnMut(FrameDeparture<'_>) -> Fate {
    let begins = Instant::ORIGIN + Duration::from_secs(2);
    move |departure| {
        let within = begins <= departure.now && departure.now < begins + lasts;
        if within && departure.from == 0 {
            Fate::Lose
        } else {
            Fate::ARRIVE
        }
    }
}

/// How long it takes to recover a burst that was lost completely, and the timeouts needed.
fn lost_burst(scheme: &str, packets: u64) -> (Duration, u64) {
    let mut pair = warm(scheme, fade(MS(10)));
    let from = pair.now();
    offer(&mut pair, 20..20 + packets, 1_000);
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.ids(1, 1), (0..20 + packets).collect::<Vec<_>>());
    let last = pair.delivered(1).last().expect("packets came").at;
    (last.saturating_since(from), pair.ledger(0, 1).timeouts)
}

#[test]
fn a_keepalive_finds_a_lost_tail_without_a_timeout() {
    for kind in ["sr", "sr-m1", "sr-m2"] {
        let (bare, timeouts) = lost_burst(&format!("kind = \"{kind}\""), 10);
        assert!(
            timeouts >= 10 && bare > MS(500),
            "{kind}: {bare}, {timeouts} timeouts"
        );
    }
    for kind in ["sr-m1", "sr-m2"] {
        let scheme = format!("kind = \"{kind}\", keepalives = 8");
        let (found, timeouts) = lost_burst(&scheme, 10);
        // Half a round trip until the keepalive leaves, and one and a half for it, the NAKs and the repairs. The
        // timer of the oldest frame may expire meanwhile.
        assert!(
            timeouts <= 1 && found < MS(120),
            "{kind}: {found}, {timeouts} timeouts"
        );
    }
}

/// The requests for one hole are lost for a while, although other frames arrive.
#[test]
fn a_lost_request_is_repeated() {
    let took = |more: &str| {
        let begins = Instant::ORIGIN + Duration::from_secs(2);
        let adversary = move |departure: FrameDeparture<'_>| {
            let since = departure.now.saturating_since(begins);
            let original = departure.from == 0 && (MS(1)..MS(20)).contains(&since);
            let request = departure.from == 1 && (MS(1)..MS(70)).contains(&since);
            if original || request {
                Fate::Lose
            } else {
                Fate::ARRIVE
            }
        };
        let mut pair = warm(&format!("kind = \"sr-m2\"{more}"), adversary);
        // Both ends send: both know the round trip.
        for id in 20..60 {
            offer(&mut pair, id..id + 1, 1_000);
            pair.offer(1, TestPacket::new(1, id, 100));
            pair.run_for(MS(2));
        }
        pair.run_for(Duration::from_secs(5));
        assert_eq!(pair.ids(1, 1), (0..60).collect::<Vec<_>>());
        pair.delivered(1)
            .last()
            .unwrap()
            .at
            .saturating_since(begins)
    };
    let (once, again) = (took(""), took(", repeat-naks = true"));
    assert!(once > MS(400), "{once} by the sender's timer alone");
    assert!(again < MS(260), "{again} when requests are repeated");
}

/// The repairs of a fade leave one after the other, so that the last ones arrive long after a round trip.
#[test]
fn no_request_is_repeated_while_its_answer_is_in_flight() {
    for lasts in [20, 60, 120] {
        let scheme = "kind = \"sr-m2\", window = 4096, repeat-naks = true";
        let mut pair = warm(scheme, fade(MS(lasts)));
        for ms in 0..600 {
            offer(&mut pair, 20 + 2 * ms..22 + 2 * ms, 1_000);
            pair.run_for(MS(1));
        }
        pair.run_for(Duration::from_secs(2));
        assert_eq!(pair.ids(1, 1), (0..1_220).collect::<Vec<_>>());
        let (recovered, late) = (pair.ledger(1, 1).packets_recovered, pair.ledger(1, 1).late);
        assert!(
            recovered > lasts && late * 20 < recovered,
            "{lasts} ms: {late} of {recovered} came twice"
        );
    }
}

#[test]
fn keepalives_end_when_nobody_answers() {
    let mut pair = warm(
        "kind = \"sr-m2\", keepalives = 3",
        fade(Duration::from_secs(60)),
    );
    pair.keeps_journal = true;
    offer(&mut pair, 20..25, 100);
    pair.run_for(Duration::from_secs(5));
    let keepalives = pair
        .journal
        .iter()
        .filter(|(_, _, frame)| frame.header.kind == FrameKind::Keepalive);
    assert_eq!(keepalives.count(), 3);
}

#[test]
fn a_copy_survives_a_fade_without_a_request() {
    // Packets every 20 ms and a fade of 30 ms: it hits one or two originals, and no copy after 40 ms.
    let scheme = "kind = \"rlp-oos\", copies = { after = \"40 ms\" }";
    let mut pair = warm(scheme, fade(MS(30)));
    for id in 20..40 {
        offer(&mut pair, id..id + 1, 160);
        pair.run_for(MS(20));
    }
    pair.run_for(Duration::from_secs(1));
    let mut ids = pair.ids(1, 1);
    ids.sort_unstable();
    assert_eq!(ids, (0..40).collect::<Vec<_>>());
    let (sender, receiver) = (pair.ledger(0, 1), pair.ledger(1, 1));
    let lost = receiver.packets_recovered;
    assert!((1..=2).contains(&lost), "{receiver:?}");
    // Every copy arrived: the others as duplicates, and repairs that followed a copy as late.
    assert_eq!(sender.copy_frames_sent, 40);
    assert_eq!(receiver.duplicates, 40 - lost);
    assert_eq!(
        (receiver.residual_lost, receiver.packets_delivered),
        (0, 40)
    );
}

#[test]
fn copies_of_a_bulk_flow_are_few() {
    for share in [0.01, 0.1] {
        let scheme = format!("kind = \"sr-m2\", copies = {{ number = 4, share = {share:?} }}");
        let mut pair = Pair::new(&setup(&scheme), RandomAdversary::losing(1, 0.0));
        // Half of the link's capacity, with pauses in which every copy could be sent.
        for id in 0..2_500u64 {
            offer(&mut pair, id..id + 1, 1_000);
            pair.run_for(Duration::from_micros(800));
        }
        let ledger = pair.ledger(0, 1);
        let seconds = 2.0 + 0.25;
        let bound = 20e6 / 8.0 * share * seconds + 2_100.0;
        let spent = ledger.repair_frame_bytes as f64;
        assert!(
            spent <= bound && spent > 0.8 * bound,
            "{spent} of {bound} B"
        );
        // A queue that is never empty leaves no room for copies.
        let before = ledger.copy_frames_sent;
        offer(&mut pair, 2_500..4_000, 1_000);
        pair.run_for(MS(200));
        let during = pair.ledger(0, 1).copy_frames_sent - before;
        assert!(during <= 1, "{during} copies while packets waited");
    }
}

/// A page as TCP sends it: a request, ten segments, five, each after the previous ones arrived.
fn page(pair: &mut Pair<RandomAdversary>, from: u64) -> Duration {
    let begun = pair.now();
    for (end, ids) in [
        (1, from..from + 1),
        (0, from..from + 10),
        (0, from + 10..from + 15),
    ] {
        let all = pair.delivered(1 - end).len() + (ids.end - ids.start) as usize;
        for id in ids {
            pair.offer(end, TestPacket::new(1, id, 1_000));
        }
        while pair.delivered(1 - end).len() < all {
            pair.step();
        }
    }
    let took = pair.now().saturating_since(begun);
    pair.run_for(MS(100));
    took
}

#[test]
fn a_page_does_not_wait_for_repairs() {
    let mean = |scheme: &str, loss: f64| {
        let mut pair = Pair::new(&setup(scheme), RandomAdversary::losing(7, loss));
        let pages = 300;
        let all = (0..pages).map(|n| page(&mut pair, n * 15).as_millis_f64());
        all.sum::<f64>() / pages as f64
    };
    let clean = mean("kind = \"sr-m2\"", 0.0);
    for (loss, bare, thin) in [(0.05, 1.4, 1.1), (0.1, 1.8, 1.25)] {
        let waits = mean("kind = \"sr-m2\"", loss) / clean;
        let copied = mean("kind = \"sr-m2\", keepalives = 8, copies = {}", loss) / clean;
        assert!(waits > bare, "at {loss}: {waits} times as long without");
        assert!(
            copied < thin,
            "at {loss}: {copied} times as long with copies"
        );
    }
}

/// Delays of packets sent once per millisecond, in ascending order.
fn delays(scheme: &str, loss: f64, packets: u64) -> Vec<Duration> {
    let mut pair = Pair::new(&setup(scheme), RandomAdversary::losing(3, loss));
    let mut came = Vec::new();
    for id in 0..packets {
        came.push(pair.now());
        offer(&mut pair, id..id + 1, 1_000);
        pair.run_for(MS(1));
    }
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.ids(1, 1), (0..packets).collect::<Vec<_>>());
    let delay =
        |d: &airlane_testkit::PairDelivery| d.at.saturating_since(came[d.packet.id as usize]);
    let mut delays: Vec<_> = pair.delivered(1).iter().map(delay).collect();
    delays.sort_unstable();
    delays
}

/// TCP's minimum round trip must be close to that of most packets.
#[test]
fn a_dejitter_buffer_smooths_repair_jitter() {
    let scheme = "kind = \"sr-m2\", repeat-naks = true, dejitter = true";
    let plain = "kind = \"sr-m2\", repeat-naks = true";
    let packets = 5_000;
    let part = |delays: &[Duration], percent: usize| delays[delays.len() * percent / 100];
    // At 10 % half of the packets wait for a repair whose first attempt was lost, too.
    for (loss, percent) in [(0.02, 80), (0.1, 40)] {
        let (uneven, even) = (delays(plain, loss, packets), delays(scheme, loss, packets));
        // Without the buffer a few packets take only the link's delay, and most wait for a repair.
        assert!(uneven[0] < MS(27), "{}", uneven[0]);
        let spread = |delays: &[Duration]| part(delays, percent).saturating_sub(part(delays, 1));
        let most = part(&uneven, percent).saturating_sub(uneven[0]);
        assert!(most > MS(40), "{most}");
        assert!(spread(&even) < MS(30), "at {loss}: {}", spread(&even));
        // And no packet waits for much longer than a repair takes anyway.
        let (most, held) = (part(&uneven, percent), part(&even, percent));
        assert!(held < most + MS(15), "at {loss}: {held}, without {most}");
    }
}

#[test]
fn a_clean_link_is_soon_not_dejittered() {
    let scheme = "kind = \"sr-m2\", dejitter = true";
    let delays = delays(scheme, 0.0, 2_000);
    // The first packets are held, because the link is unknown.
    assert!(delays[delays.len() - 1] > MS(60));
    assert!(
        delays[delays.len() * 8 / 10] < MS(27),
        "{}",
        delays[delays.len() * 8 / 10]
    );
}

/// The ages of the packets that a service with a budget delivers, in descending order.
fn ages<A: Adversary>(pair: &mut Pair<A>, offers: &[(usize, Duration)]) -> Vec<Duration> {
    let mut came = BTreeMap::new();
    for (id, (len, gap)) in (0..).zip(offers) {
        came.insert(id, pair.now());
        pair.offer(0, TestPacket::new(1, id, *len));
        pair.run_for(*gap);
    }
    pair.run_for(Duration::from_secs(5));
    let age = |d: &airlane_testkit::PairDelivery| d.at.saturating_since(came[&d.packet.id]);
    let mut ages: Vec<_> = pair.delivered(1).iter().map(age).collect();
    ages.sort_unstable_by(|a, b| b.cmp(a));
    ages
}

fn with_budget(kind: &str, budget: &str) -> Setup {
    let mut setup = setup(&format!("kind = \"{kind}\", retries = 9"));
    let service = setup.config.services.last_mut().expect("one was added");
    service.budget = Some(budget.parse().expect("a duration"));
    setup
}

#[test]
fn packets_queued_past_their_budget_are_dropped_and_counted() {
    let mut pair = Pair::new(
        &with_budget("rlp-oos", "60 ms"),
        RandomAdversary::losing(1, 0.0),
    );
    // 400 kB at once take 160 ms; 35 ms are left for waiting.
    let ages = ages(&mut pair, &[(1_000, Duration::ZERO); 400]);
    let ledger = pair.ledger(0, 1);
    assert!((80..=90).contains(&ages.len()), "{} came", ages.len());
    assert!(ages[0] <= MS(62), "{}", ages[0]);
    assert_eq!(
        ledger.packets_offered,
        ledger.packets_sent + ledger.dropped_too_old
    );
    assert_eq!(ledger.dropped_bytes, 1_000 * ledger.dropped_too_old);
    assert_eq!(ages.len() as u64, ledger.packets_sent);
}

#[test]
fn a_request_for_a_packet_past_its_budget_is_not_answered() {
    // The first repair arrives after at least 25 + 20 + 25 + 25 ms: within 150 ms, but not within 90.
    for (budget, answered) in [("150 ms", true), ("90 ms", false)] {
        let mut pair = Pair::new(&with_budget("rlp", budget), fade(MS(5)));
        let offers = [(160, MS(20)); 200];
        ages(&mut pair, &offers);
        let (sender, receiver) = (pair.ledger(0, 1), pair.ledger(1, 1));
        let lost = receiver.residual_lost;
        assert_eq!(lost == 0, answered, "{receiver:?}");
        assert_eq!(receiver.packets_delivered + lost, 200);
        assert_eq!(sender.too_old_naks > 0, !answered, "{sender:?}");
        assert_eq!(receiver.given_up_too_old, lost);
        assert_eq!(receiver.given_up, lost);
    }
}

/// An outage of 500 packets causes 500 requests, which take 2.4 s on this link: most are outdated before they leave.
#[test]
fn a_call_resumes_after_an_outage_without_outdated_requests() {
    let over = Instant::ORIGIN + Duration::from_secs(10);
    let mut setup = with_budget("rlp-oos", "300 ms").rate("128 kbit/s");
    setup.config.frame_overhead = 66;
    let mut pair = Pair::new(&setup, RandomAdversary::losing(1, 1.0).until(over));
    for id in 0..600 {
        for end in [0, 1] {
            pair.offer(end, TestPacket::new(1, id, 160));
        }
        pair.run_for(MS(20));
    }
    for end in [0, 1] {
        let came = pair.delivered(end).iter();
        let soon = came
            .filter(|d| d.at < over + Duration::from_secs(1))
            .count();
        assert!(soon >= 30, "of 50 packets of the first second came {soon}");
    }
}

proptest! {
    #![proptest_config(cases(100))]

    /// No packet is delivered later than its budget, except for the time of a frame or two being sent, and every
    /// packet is accounted for.
    #[test]
    fn no_packet_is_delivered_past_its_budget(
        kind in prop::sample::select(vec!["rlp", "rlp-oos"]),
        budget_ms in 40u64..200,
        offers in traffic(150, 2, 10),
        seed: u64,
        loss in 0.0..0.3,
    ) {
        let budget = format!("{budget_ms} ms");
        let until = Instant::ORIGIN + Duration::from_secs(3);
        let lossy = RandomAdversary::losing(seed, loss).until(until);
        let mut pair = Pair::new(&with_budget(kind, &budget), lossy);
        let offers: Vec<_> = offers.iter().map(|offer| (offer.len, offer.gap)).collect();
        let ages = ages(&mut pair, &offers);
        let (sender, receiver) = (pair.ledger(0, 1), pair.ledger(1, 1));
        let held = match kind {
            // After a hole, packets wait until it is given up, which the receiver times with its own clock: it waits
            // for a request in flight when the budget ends.
            "rlp" => MS(160),
            _ => MS(3),
        };
        let oldest = ages.first().copied().unwrap_or_default();
        prop_assert!(oldest <= MS(budget_ms) + held, "{}: {:?}", oldest, receiver);
        prop_assert_eq!(sender.packets_offered, sender.packets_sent + sender.packets_dropped());
        prop_assert_eq!(
            sender.packets_sent,
            receiver.packets_delivered + receiver.residual_lost,
            "{:?} {:?}", sender, receiver
        );
    }
}
