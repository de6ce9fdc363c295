//! XOR and XOR/Ad: what they recover, when, and what remains lost.

use std::collections::BTreeMap;

use crate::strategies::{cases, check_whole, fates, losses, play, traffic};
use airlane_base::{Duration, Instant};
use airlane_link::FrameKind;
use airlane_link::HeaderProfile::{self, Live, Study};
use airlane_testkit::{
    Fate, FrameDeparture, Pair, RandomAdversary, Reordering, Scripted, Setup, TestPacket,
};
use proptest::prelude::*;

const ROOMY: &str = "kind = \"drop-tail\", limit = \"1000000 packets\"";
const SCHEMES: [&str; 2] = [
    "kind = \"xor\", block = 4",
    "kind = \"xor-ad\", block = 4, silence = \"30 ms\"",
];

fn setup(header: HeaderProfile, scheme: &str) -> Setup {
    Setup::new(header).service(1, 1.0, scheme, ROOMY)
}

/// The expected deliveries, from the frames sent and their fates: a block consists of the packets before a parity
/// frame, and is recovered if only one of them is missing and the parity arrived.
#[derive(Default)]
struct Oracle {
    /// Packets of the open block, and whether they arrived.
    block: Vec<(TestPacket, bool)>,
    expected: BTreeMap<u64, TestPacket>,
    recovered: u64,
    parities: u64,
}

impl Oracle {
    fn see(&mut self, departure: &FrameDeparture<'_>, arrives: bool) {
        let frame = departure.frame;
        let packet = frame
            .packet()
            .cloned()
            .expect("these schemes have no other frames");
        if frame.header.kind == FrameKind::Data {
            if arrives {
                self.expected.insert(packet.id, packet.clone());
            }
            self.block.push((packet, arrives));
            return;
        }
        self.parities += 1;
        let longest = self.block.iter().map(|(packet, _)| packet.len).max();
        assert_eq!(
            Some(packet.len),
            longest,
            "a parity frame is as long as its longest packet"
        );
        let mut missing = self.block.drain(..).filter(|(_, arrived)| !arrived);
        if let (Some((packet, _)), None, true) = (missing.next(), missing.next(), arrives) {
            self.expected.insert(packet.id, packet);
            self.recovered += 1;
        }
    }
}

proptest! {
    #![proptest_config(cases(300))]

    /// Section 18, item 7 of docs/spec/multi-service.md: exactly the blocks with one missing packet and their parity
    /// are recovered, each packet intact and once.
    #[test]
    fn exactly_the_blocks_with_one_hole_are_repaired(
        which in 0..2usize,
        header in prop::sample::select(vec![Study, Live]),
        traffic in traffic(200, 1, 25),
        script in losses(200),
    ) {
        // The study's numbers repeat after 8 blocks: longer fades are another test.
        let mut fade = 0;
        let script: Vec<bool> = script.iter().map(|fate| {
            fade = if *fate == Fate::Lose { fade + 1 } else { 0 };
            *fate != Fate::Lose && fade == 0 || fade > 12
        }).collect();
        let mut oracle = Oracle::default();
        let mut ordinal = 0;
        let mut pair = Pair::new(&setup(header, SCHEMES[which]), |departure: FrameDeparture<'_>| {
            let arrives = script.get(ordinal).copied().unwrap_or(true);
            ordinal += 1;
            oracle.see(&departure, arrives);
            if arrives { Fate::ARRIVE } else { Fate::Lose }
        });
        for (id, offer) in traffic.iter().enumerate() {
            pair.offer(0, TestPacket::new(1, id as u64, offer.len));
            pair.run_for(offer.gap);
        }
        pair.run_for(Duration::from_secs(5));
        let ledgers = [0, 1].map(|end| pair.ledger(end, 1));
        let delivered = pair.delivered(1).to_vec();
        drop(pair);
        prop_assert_eq!(delivered.len(), oracle.expected.len(), "something went up twice, or not");
        for delivery in delivered {
            prop_assert_eq!(oracle.expected.get(&delivery.packet.id), Some(&delivery.packet));
        }
        prop_assert_eq!(ledgers[1].packets_recovered, oracle.recovered);
        prop_assert_eq!(ledgers[0].repair_frames_sent, oracle.parities);
        prop_assert_eq!(ledgers[1].undecodable, 0);
    }

    /// On a path that loses, reorders and duplicates: no packet is delivered twice, none that was never sent, and no
    /// block is ever mistaken for another, whatever the code.
    #[test]
    fn live_blocks_are_never_confused(
        mut traffic in traffic(200, 1, 12),
        script in fates(400, 100),
    ) {
        traffic.iter_mut().for_each(|offer| offer.service = 1);
        for scheme in [SCHEMES[0], SCHEMES[1], crate::rse::SCHEME, crate::rse_ad::SCHEME] {
            let mut pair = Pair::new(&setup(Live, scheme), Scripted::new(script.clone()));
            pair.reordering = Reordering::Any;
            play(&mut pair, &traffic);
            pair.run_for(Duration::from_secs(5));
            check_whole(&pair, &traffic)?;
            for end in 0..2 {
                let ledger = pair.ledger(end, 1);
                prop_assert_eq!(ledger.undecodable, 0, "{}", scheme);
                prop_assert!(ledger.residual_lost <= traffic.len() as u64, "{}", scheme);
            }
        }
    }
}

/// Section 12.1 of docs/spec/multi-service.md: with independent losses, p (1 - (1 - p)^n) of the packets remain lost.
#[test]
fn the_residual_loss_is_the_closed_form() {
    const BLOCKS: u64 = 20_000;
    for (n, p) in [(8, 0.05), (8, 0.1), (12, 0.0593)] {
        for scheme in [
            format!("kind = \"xor\", block = {n}"),
            format!("kind = \"xor-ad\", block = {n}, silence = \"10 s\""),
        ] {
            let setup = setup(Study, &scheme).rate("100 Mbit/s");
            let mut pair = Pair::new(&setup, RandomAdversary::losing(7, p));
            let packets = BLOCKS * n;
            for id in 0..packets {
                pair.offer(0, TestPacket::new(1, id, 100));
            }
            pair.run_for(Duration::from_secs(60));
            let lost = packets - pair.delivered(1).len() as u64;
            let (n, packets) = (n as f64, packets as f64);
            let expected = p * (1.0 - (1.0 - p).powf(n));
            // Losses of one block are correlated, so blocks are the independent samples. The variance of a block is
            // at most n times the mean.
            let sigma = (expected * n / packets).sqrt();
            let found = lost as f64 / packets;
            assert!(
                (found - expected).abs() < 4.0 * sigma,
                "{scheme}, p = {p}: {found} remain lost, not {expected} +- {sigma}"
            );
            let known = pair.ledger(1, 1).residual_lost;
            // After the last frame received, the length of an adaptive block is unknown.
            let unknown = if scheme.contains("-ad") {
                lost / 10
            } else {
                2 * n as u64
            };
            assert!(lost - known <= unknown, "{known} of {lost} losses known");
        }
    }
}

/// A link of table 5.2: rate, delay, and payload.
fn table(scheme: &str, (rate, delay, payload): (&str, &str, usize)) -> Setup {
    let mut setup = setup(Study, scheme).rate(rate);
    setup.config.delay = delay.parse().expect("a duration");
    setup.config.max_payload = payload;
    setup
}

const CELLULAR: (&str, &str, usize) = ("14.4 kbit/s", "100 ms", 50);
const PCS: (&str, &str, usize) = ("64 kbit/s", "50 ms", 250);
const WLAN: (&str, &str, usize) = ("2 Mbit/s", "3 ms", 1000);

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// XYL-T5.2, FEC: a single loss at each position of a block of back-to-back frames delays its packet by 4.5 frame
/// times on average, the parity's own position included.
#[test]
fn table_5_2_parity_repairs_after_half_a_block() {
    for (link, published) in [(CELLULAR, 130.0), (PCS, 141.8), (WLAN, 18.0)] {
        for scheme in [
            "kind = \"xor\", block = 9",
            "kind = \"xor-ad\", block = 9, silence = \"10 s\"",
        ] {
            let arrivals = |lost: Option<u64>| {
                let fate = move |d: FrameDeparture<'_>| match lost {
                    Some(n) if d.ordinal == n => Fate::Lose,
                    _ => Fate::ARRIVE,
                };
                let mut pair = Pair::new(&table(scheme, link), fate);
                (0..9).for_each(|id| pair.offer(0, TestPacket::new(1, id, link.2)));
                pair.run_for(Duration::from_secs(5));
                let at = |d: &airlane_testkit::PairDelivery| (d.packet.id, d.at);
                pair.delivered(1)
                    .iter()
                    .map(at)
                    .collect::<BTreeMap<u64, Instant>>()
            };
            let usual = arrivals(None);
            let delay = |lost| {
                let late = arrivals(Some(lost));
                // A lost parity delays no packet.
                late.get(&lost)
                    .map_or(0.0, |at| millis(at.saturating_since(usual[&lost])))
            };
            let mean = (0..10).map(delay).sum::<f64>() / 10.0;
            assert!(
                (mean - published).abs() < 1.0,
                "{scheme}: {mean} ms, not {published}"
            );
        }
    }
}

/// XYL-T5.2, ARQ: the next frame reveals the loss, the NAK goes back, the repair follows.
#[test]
fn table_5_2_a_request_repairs_after_a_round_trip() {
    for (link, published) in [(CELLULAR, 258.9), (PCS, 163.3), (WLAN, 14.0)] {
        let fate = |d: FrameDeparture<'_>| match (d.from, d.ordinal) {
            (0, 0) => Fate::Lose,
            _ => Fate::ARRIVE,
        };
        let mut pair = Pair::new(&table("kind = \"rlp-oos\", retries = 1", link), fate);
        // Two frames back to back: a third would delay the repair.
        (0..2).for_each(|id| pair.offer(0, TestPacket::new(1, id, link.2)));
        pair.run_for(Duration::from_secs(5));
        let at = |id| {
            pair.delivered(1)
                .iter()
                .find(|d| d.packet.id == id)
                .unwrap()
                .at
        };
        // Packet 0 would have arrived one frame time before packet 1.
        let frame = pair.port(0).codec().header_len(&airlane_link::Layout::SEQ) + link.2;
        let frame = link
            .0
            .parse::<airlane_base::Rate>()
            .unwrap()
            .transmission_time(frame);
        let delay = millis(at(0).saturating_since(at(1)) + frame);
        assert!(
            (delay - published).abs() < 1.0,
            "{delay} ms, not {published}"
        );
    }
}

/// With XOR/Ad a pause closes the block; XOR waits for the block to be full.
#[test]
fn silence_ends_an_adaptive_block() {
    let run = |scheme: &str| {
        let fate = |d: FrameDeparture<'_>| match d.ordinal {
            1 => Fate::Lose,
            _ => Fate::ARRIVE,
        };
        let mut pair = Pair::new(&setup(Study, scheme), fate);
        (0..3).for_each(|id| pair.offer(0, TestPacket::new(1, id, 500)));
        pair.run_for(Duration::from_millis(200));
        pair
    };
    let pair = run("kind = \"xor\", block = 8");
    assert_eq!(pair.ids(1, 1), [0, 2]);
    let pair = run("kind = \"xor-ad\", block = 8, silence = \"40 ms\"");
    assert_eq!(pair.ids(1, 1), [0, 2, 1]);
    // 40 ms after the last bit of the third frame, and the parity's own time: 502 B at 1 Mbit/s.
    let (third, recovered) = (pair.delivered(1)[1].at, pair.delivered(1)[2].at);
    assert_eq!(
        recovered.saturating_since(third),
        Duration::from_micros(40_000 + 4_016)
    );
    assert_eq!(pair.ledger(0, 1).repair_frames_sent, 1);
}
