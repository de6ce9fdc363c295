//! Hybrid ARQ: what damage leaves of a frame is put to use, and nothing wrong goes up.

use airlane_base::{Duration, Instant};
use airlane_link::FrameKind;
use airlane_link::HeaderProfile::{Live, Study};
use airlane_testkit::strategies::{Offer, cases, damages, fates, play, traffic};
use airlane_testkit::{Departure, Fate, Pair, Reordering, Scripted, Setup, Tally, TestPacket};
use proptest::prelude::*;

const ROOMY: &str = "kind = \"drop-tail\", limit = \"1000000 packets\"";
const TYPES: [&str; 2] = ["hybrid-1", "hybrid-2"];

fn scheme(kind: &str, more: &str) -> String {
    format!("kind = \"{kind}\", timers = \"tight\", keepalives = 8{more}")
}

fn check_whole(pair: &Pair<Scripted>, traffic: &[Offer]) -> Result<(), TestCaseError> {
    for end in 0..2 {
        let sent: Vec<_> = traffic.iter().filter(|offer| offer.end != end).collect();
        let ids = pair.ids(end, 1);
        prop_assert!(
            ids.windows(2).all(|w| w[0] < w[1]),
            "in order, once: {ids:?}"
        );
        for delivery in pair.delivered(end) {
            let id = delivery.packet.id;
            let whole = TestPacket::new(1, id, sent[id as usize].len);
            prop_assert_eq!(&delivery.packet, &whole);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(200))]

    /// Data, requests, answers and keepalives are damaged and lost: it ends, with every packet at most
    /// once, in order and whole.
    #[test]
    fn nothing_wrong_goes_up(
        kind in prop::sample::select(&TYPES[..]),
        header in prop::sample::select(vec![Study, Live]),
        mut traffic in traffic(120, 1, 12),
        script in damages(500, 40),
    ) {
        traffic.iter_mut().for_each(|offer| offer.service = 1);
        let setup = Setup::new(header).service(1, 1.0, &scheme(kind, ""), ROOMY);
        let mut pair = Pair::new(&setup, Scripted::new(script));
        play(&mut pair, &traffic);
        let last = pair.now() + Duration::from_secs(60);
        prop_assert!(pair.run_until_quiet(last), "it goes on and on");
        check_whole(&pair, &traffic)?;
        for end in 0..2 {
            let (sender, receiver) = (pair.ledger(1 - end, 1), pair.ledger(end, 1));
            // The end of a burst and all its keepalives may be lost: then nobody knows of it.
            let known = receiver.packets_delivered + receiver.residual_lost;
            prop_assert!(sender.packets_sent >= known, "{:?}", receiver);
            let arrived = receiver.frames_received + receiver.corrupted;
            prop_assert!(sender.frames_sent >= arrived, "{:?}", receiver);
        }
    }

    /// Live, frames also come late and twice.
    #[test]
    fn nothing_wrong_goes_up_in_any_order(
        kind in prop::sample::select(&TYPES[..]),
        mut traffic in traffic(100, 1, 12),
        damaged in damages(300, 30),
        late in fates(300, 50),
    ) {
        traffic.iter_mut().for_each(|offer| offer.service = 1);
        let script = damaged.into_iter().zip(late).flat_map(|(a, b)| [a, b]).collect();
        let setup = Setup::new(Live).service(1, 1.0, &scheme(kind, ""), ROOMY);
        let mut pair = Pair::new(&setup, Scripted::new(script));
        pair.reordering = Reordering::Any;
        play(&mut pair, &traffic);
        pair.run_for(Duration::from_secs(10));
        check_whole(&pair, &traffic)?;
    }

    /// What is hit in as many bytes as there are repair symbols needs no other frame (type I), or just
    /// as many symbols as were hit (type II); requests arrive, and no timer asks again for an answer
    /// that stands behind many others.
    #[test]
    fn little_damage_costs_little(
        header in prop::sample::select(vec![Study, Live]),
        lens in prop::collection::vec(1..1_000usize, 1..40),
        seeds in prop::collection::vec(any::<u64>(), 40),
    ) {
        for kind in TYPES {
            let patient = "{ ack = \"1 s\", nak = \"10 s\", keepalive = \"1 s\", rto = \"10 s\" }";
            let scheme = format!("kind = \"{kind}\", timers = {patient}, keepalives = 8, retries = 20");
            let setup = Setup::new(header).service(1, 1.0, &scheme, ROOMY);
            let mut seeds = seeds.iter().cycle();
            let mut pair = Pair::new(&setup, |d: Departure<'_>| match d.frame.header.kind {
                FrameKind::Data => Fate::Damage { hits: 2, seed: *seeds.next().expect("they go on") },
                _ => Fate::ARRIVE,
            });
            for (id, len) in lens.iter().enumerate() {
                pair.offer(0, TestPacket::new(1, id as u64, *len));
            }
            prop_assert!(pair.run_until_quiet(Instant::ORIGIN + Duration::from_secs(60)));
            let all: Vec<u64> = (0..lens.len() as u64).collect();
            prop_assert_eq!(pair.ids(1, 1), all);
            let (sender, receiver) = (pair.ledger(0, 1), pair.ledger(1, 1));
            // Of a header that is hit nothing can be known: 5 or 17 bytes of each frame.
            let unreadable = receiver.corrupted;
            prop_assert!(unreadable <= lens.len() as u64);
            if kind == "hybrid-1" {
                prop_assert!(sender.repair_frames_sent <= unreadable, "{:?}", sender);
            } else {
                let (checked, header) = (17, pair.port(0).codec().header_len(airlane_link::Layout::Symbols));
                // Two symbols for each frame that arrived, the whole frame for each that did not.
                let whole = unreadable * (1_000 + 4 + 63 + header as u64);
                let most = lens.len() as u64 * (2 * checked + header as u64) + whole;
                prop_assert!(sender.repair_frame_bytes <= most, "{:?}", sender);
            }
        }
    }

    /// Copies of damaged frames are no packets that a tally sees; what is kept is the window.
    #[test]
    fn buffers_stay_bounded(
        kind in prop::sample::select(&TYPES[..]),
        traffic in traffic(300, 1, 3),
        script in damages(600, 60),
    ) {
        const WINDOW: usize = 8;
        let tally = Tally::default();
        let queue = "kind = \"drop-tail\", limit = \"5 packets\"";
        let scheme = scheme(kind, &format!(", window = {WINDOW}"));
        let setup = Setup::new(Study).service(1, 1.0, &scheme, queue);
        let mut pair = Pair::new(&setup, Scripted::new(script));
        for (id, offer) in traffic.iter().enumerate() {
            pair.offer(offer.end, TestPacket::new(1, id as u64, offer.len).counted(&tally));
            pair.run_for(offer.gap);
            let outside = pair.delivered(0).len() + pair.delivered(1).len() + pair.packets_in_flight();
            prop_assert!(tally.copies() - outside <= 2 * (2 * WINDOW + WINDOW + 5 + 3));
        }
    }
}

/// A frame that is lost whole is asked for whole, and its damaged answers join.
#[test]
fn damaged_answers_join_as_well() {
    let setup = Setup::new(Study).service(
        1,
        1.0,
        &scheme("hybrid-2", ", retries = 9, parity = 200"),
        ROOMY,
    );
    let mut frames = 0;
    let mut pair = Pair::new(&setup, |d: Departure<'_>| {
        let packet = d.frame.packet().is_some();
        frames += u32::from(packet);
        match (packet, frames) {
            (true, 1) => Fate::Lose,
            // Half of the symbols of a copy, then some of each increment.
            (true, 3) => Fate::Damage { hits: 40, seed: 3 },
            (true, 4..=6) => Fate::Damage { hits: 3, seed: 9 },
            _ => Fate::ARRIVE,
        }
    });
    pair.keeps_journal = true;
    (0..2).for_each(|id| pair.offer(0, TestPacket::new(1, id, 1_000)));
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.ids(1, 1), [0, 1]);
    let sent = pair.journal.iter().filter(|(end, ..)| *end == 0);
    let kinds: Vec<FrameKind> = sent.map(|(_, _, frame)| frame.header.kind).collect();
    let count = |kind| kinds.iter().filter(|k| **k == kind).count();
    assert_eq!(count(FrameKind::Retransmission), 1, "{kinds:?}");
    assert!(count(FrameKind::Parity) >= 2, "{kinds:?}");
}
