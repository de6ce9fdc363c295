//! Adaptive RSE: as many parities as needed, and no more.

use std::collections::BTreeMap;

use crate::strategies::{cases, check_whole, losses, play, traffic};
use airlane_base::{Duration, Instant};
use airlane_link::FrameKind;
use airlane_link::HeaderProfile::{Live, Study};
use airlane_testkit::{Fate, FrameDeparture, Pair, RandomAdversary, Scripted, Setup, TestPacket};
use proptest::prelude::*;

const ROOMY: &str = "kind = \"drop-tail\", limit = \"1000000 packets\"";
/// n, h0 and h.
const SHAPE: [usize; 3] = [5, 1, 4];
/// Relaxed timers: if the responses for many blocks queue, a tight timer requests twice.
pub(crate) const SCHEME: &str =
    "kind = \"rse-ad\", block = 5, initial = 1, parity = 4, timers = \"relaxed\", keepalives = 8";

proptest! {
    #![proptest_config(cases(300))]

    /// With a lossless return channel: a block is recovered if at most h of the frames sent without request are lost,
    /// and each such loss takes one parity.
    #[test]
    fn each_loss_beyond_the_first_costs_one_parity_more(
        header in prop::sample::select(vec![Study, Live]),
        lens in prop::collection::vec(1..1_000usize, 0..12)
            .prop_map(|lens| lens.into_iter().flat_map(|len| [len; SHAPE[0]]).collect::<Vec<_>>()),
        lost in prop::collection::vec(prop::bool::weighted(0.3), 100),
    ) {
        let [n, initial, all] = SHAPE;
        let mut blocks: BTreeMap<usize, Vec<bool>> = BTreeMap::new();
        let mut ordinal = 0;
        let setup = Setup::new(header).service(1, 1.0, SCHEME, ROOMY);
        let mut pair = Pair::new(&setup, |d: FrameDeparture<'_>| {
            let (block, place) = (d.frame.header.seq as usize / (n + all), d.frame.header.seq as usize % (n + all));
            let first = matches!(d.frame.header.kind, FrameKind::Data | FrameKind::Parity)
                && place < n + initial;
            if !first {
                return Fate::ARRIVE;
            }
            ordinal += 1;
            let arrives = !lost[ordinal % lost.len()];
            blocks.entry(block).or_default().push(arrives);
            if arrives { Fate::ARRIVE } else { Fate::Lose }
        });
        for (id, len) in lens.iter().enumerate() {
            pair.offer(0, TestPacket::new(1, id as u64, *len));
        }
        prop_assert!(pair.run_until_quiet(Instant::ORIGIN + Duration::from_secs(60)));
        let (delivered, [sender, receiver]) = (pair.delivered(1).to_vec(), [pair.ledger(0, 1), pair.ledger(1, 1)]);
        drop(pair);
        let (mut expected, mut parities) = (vec![], 0);
        for (block, arrived) in &blocks {
            prop_assert_eq!(arrived.len(), n + initial);
            let missing = arrived[..n].iter().filter(|a| !**a).count();
            let short = n.saturating_sub(arrived.iter().filter(|a| **a).count());
            let enough = short <= all - initial;
            parities += initial + if missing > 0 && enough { short } else { 0 };
            let ids = (0..n).filter(|place| enough || arrived[*place]);
            expected.extend(ids.map(|place| (n * block + place) as u64));
        }
        let mut ids: Vec<u64> = delivered.iter().map(|d| d.packet.id).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, expected);
        for delivery in delivered {
            let len = lens[delivery.packet.id as usize];
            prop_assert_eq!(delivery.packet.clone(), TestPacket::new(1, delivery.packet.id, len));
        }
        prop_assert_eq!(sender.repair_frames_sent, parities as u64);
        prop_assert_eq!((receiver.undecodable, receiver.late, receiver.duplicates), (0, 0, 0));
    }

    /// With loss of requests and parities as well: the exchange ends, and every packet is delivered at most once and
    /// intact.
    #[test]
    fn the_exchange_ends_under_any_loss(
        header in prop::sample::select(vec![Study, Live]),
        mut traffic in traffic(150, 1, 12),
        script in losses(400),
        initial in 0..3u32,
    ) {
        traffic.iter_mut().for_each(|offer| offer.service = 1);
        let scheme = SCHEME.replace("initial = 1", &format!("initial = {initial}"));
        let setup = Setup::new(header).service(1, 1.0, &scheme, ROOMY);
        let mut pair = Pair::new(&setup, Scripted::new(script));
        play(&mut pair, &traffic);
        let last = pair.now() + Duration::from_secs(60);
        prop_assert!(pair.run_until_quiet(last), "it goes on and on");
        check_whole(&pair, &traffic)?;
    }
}

/// The last block is requested although nothing follows it: a keepalive reveals its end.
#[test]
fn a_lost_tail_is_noticed() {
    for header in [Study, Live] {
        let scheme = SCHEME.replace("initial = 1", "initial = 0");
        let setup = Setup::new(header).service(1, 1.0, &scheme, ROOMY);
        let mut pair = Pair::new(&setup, |d: FrameDeparture<'_>| match d.frame.header.seq {
            3..=4 if d.frame.header.kind == FrameKind::Data => Fate::Lose,
            _ => Fate::ARRIVE,
        });
        (0..5).for_each(|id| pair.offer(0, TestPacket::new(1, id, 100)));
        assert!(pair.run_until_quiet(Instant::ORIGIN + Duration::from_secs(60)));
        let ledger = pair.ledger(0, 1);
        assert_eq!(pair.delivered(1).len(), 5, "{header:?}");
        assert_eq!(ledger.repair_frames_sent, 2, "{header:?}");
    }
}

/// On a link with little loss, most blocks need one parity; a lossless return channel would give the residual loss of
/// h parities (8 of 12 frames), so it stays below RSE's.
#[test]
fn adaptive_parity_repairs_more_with_fewer_parities() {
    let run = |scheme: &str| {
        let setup = Setup::new(Study)
            .rate("1 Mbit/s")
            .service(1, 1.0, scheme, ROOMY);
        let mut pair = Pair::new(&setup, RandomAdversary::losing(11, 0.03));
        let packets = 16_000u64;
        for id in 0..packets {
            pair.offer(0, TestPacket::new(1, id, 100));
            pair.run_for(Duration::from_millis(2));
        }
        pair.run_for(Duration::from_secs(5));
        let lost = packets - pair.delivered(1).len() as u64;
        (lost, pair.ledger(0, 1).repair_frames_sent)
    };
    let (fixed_lost, fixed_parities) = run("kind = \"rse\"");
    let (lost, parities) = run("kind = \"rse-ad\"");
    // For 2000 blocks: two each, against one each, and one more for each loss after the first in a block.
    assert_eq!(fixed_parities, 4_000);
    assert!((2_000..2_200).contains(&parities), "{parities} parities");
    assert!(lost < fixed_lost, "{lost} lost, {fixed_lost} with RSE");
}
