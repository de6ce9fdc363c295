//! RSE: any n frames of a block recover all of its packets.

use std::collections::BTreeMap;

use crate::strategies::cases;
use airlane_base::Duration;
use airlane_link::FrameKind;
use airlane_link::HeaderProfile::{Live, Study};
use airlane_testkit::{Fate, FrameDeparture, Pair, RandomAdversary, Setup, TestPacket};
use proptest::prelude::*;

const ROOMY: &str = "kind = \"drop-tail\", limit = \"1000000 packets\"";
pub(crate) const SCHEME: &str = "kind = \"rse\", block = 5, parity = 3";

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_block_is_decoded_if_n_of_its_frames_arrive(
        header in prop::sample::select(vec![Study, Live]),
        lens in prop::collection::vec(1..1_000usize, 0..60),
        lost in prop::collection::vec(prop::bool::weighted(0.35), 100),
    ) {
        // Frames leave block by block: 5 packets and 3 parities.
        let (mut expected, mut block) = (BTreeMap::new(), vec![]);
        let mut recovered = 0;
        let mut ordinal = 0;
        let setup = Setup::new(header).service(1, 1.0, SCHEME, ROOMY);
        let mut pair = Pair::new(&setup, |d: FrameDeparture<'_>| {
            let packet = d.frame.packet().cloned().expect("there are no other frames");
            let arrives = !lost[ordinal % lost.len()];
            ordinal += 1;
            block.push((packet, arrives));
            assert_eq!(d.frame.header.kind == FrameKind::Parity, block.len() > 5);
            if block.len() == 8 {
                let enough = block.iter().filter(|(_, arrives)| *arrives).count() >= 5;
                for (packet, arrives) in block.drain(..).take(5) {
                    recovered += u64::from(enough && !arrives);
                    if enough || arrives {
                        expected.insert(packet.id, packet);
                    }
                }
            }
            if arrives { Fate::ARRIVE } else { Fate::Lose }
        });
        for (id, len) in lens.iter().enumerate() {
            pair.offer(0, TestPacket::new(1, id as u64, *len));
        }
        pair.run_for(Duration::from_secs(5));
        let (delivered, ledger) = (pair.delivered(1).to_vec(), pair.ledger(1, 1));
        drop(pair);
        // The received packets of an open block have been delivered.
        expected.extend(block.into_iter().filter(|(_, a)| *a).map(|(p, _)| (p.id, p)));
        prop_assert_eq!(delivered.len(), expected.len());
        for delivery in delivered {
            prop_assert_eq!(expected.get(&delivery.packet.id), Some(&delivery.packet));
        }
        prop_assert_eq!((ledger.packets_recovered, ledger.undecodable), (recovered, 0));
    }
}

/// A packet cannot be recovered if it and more than h - 1 of the other n + h - 1 frames of its block are lost.
#[test]
fn the_residual_loss_is_the_closed_form() {
    let (n, h, p) = (8i32, 2i32, 0.1f64);
    let setup = Setup::new(Study)
        .rate("100 Mbit/s")
        .service(1, 1.0, "kind = \"rse\"", ROOMY);
    let mut pair = Pair::new(&setup, RandomAdversary::losing(7, p));
    let packets = 160_000u64;
    (0..packets).for_each(|id| pair.offer(0, TestPacket::new(1, id, 100)));
    pair.run_for(Duration::from_secs(60));
    let lost = (packets - pair.delivered(1).len() as u64) as f64 / packets as f64;
    let others = n + h - 1;
    let choose = |k: i32| (0..k).fold(1.0, |c, i| c * f64::from(others - i) / f64::from(i + 1));
    let few: f64 = (0..h)
        .map(|k| choose(k) * p.powi(k) * (1.0 - p).powi(others - k))
        .sum();
    let expected = p * (1.0 - few);
    // Losses of one block are correlated: the variance is at most n times the mean.
    let sigma = (expected * f64::from(n) / packets as f64).sqrt();
    assert!(
        (lost - expected).abs() < 4.0 * sigma,
        "{lost}, not {expected} +- {sigma}"
    );
}
