//! Proptest strategies: traffic and fates.

use airlane_base::Duration;
use proptest::prelude::*;

use airlane_testkit::{Adversary, Fate, Pair, TestPacket};

/// The number of cases, which `PROPTEST_CASES` overrides: the nightly run tests more.
pub(crate) fn cases(n: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok();
    ProptestConfig::with_cases(asked.and_then(|n| n.parse().ok()).unwrap_or(n))
}

/// Fates of up to `n` frames, delayed by up to `late_ms`.
pub(crate) fn fates(n: usize, late_ms: u64) -> impl Strategy<Value = Vec<Fate>> {
    let late = move || (0..=late_ms).prop_map(Duration::from_millis);
    let fate = prop_oneof![
        4 => Just(Fate::ARRIVE),
        3 => Just(Fate::Lose),
        2 => late().prop_map(Fate::Deliver),
        1 => (late(), late()).prop_map(|(a, b)| Fate::Twice(a, b)),
    ];
    prop::collection::vec(fate, 0..n)
}

/// Fates of up to `n` frames, lost or on time, in runs as in fades.
pub(crate) fn losses(n: usize) -> impl Strategy<Value = Vec<Fate>> {
    let run = (any::<bool>(), 1..12usize).prop_map(|(lost, n)| {
        let fate = if lost { Fate::Lose } else { Fate::ARRIVE };
        vec![fate; n]
    });
    prop::collection::vec(run, 0..n / 6).prop_map(|runs| runs.concat())
}

/// A packet to offer, and how long to wait before the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    /// Which end sends it.
    pub(crate) end: usize,
    /// For which service.
    pub(crate) service: u8,
    /// Its length, bytes.
    pub(crate) len: usize,
    /// Time until the next packet.
    pub(crate) gap: Duration,
}

/// Up to `n` packets for services `0..services`, from both ends, at most `gap_ms` apart; half of them come in bursts.
pub(crate) fn traffic(n: usize, services: u8, gap_ms: u64) -> impl Strategy<Value = Vec<Offer>> {
    let gap = prop_oneof![
        Just(Duration::ZERO),
        (0..=gap_ms).prop_map(Duration::from_millis)
    ];
    let offer =
        (0..2usize, 0..services, 1..=1_000usize, gap).prop_map(|(end, service, len, gap)| Offer {
            end,
            service,
            len,
            gap,
        });
    prop::collection::vec(offer, 0..n)
}

/// Offers all traffic at its times. Packets of each end and service are numbered from zero; returns how many there
/// are.
pub(crate) fn play<A: Adversary>(pair: &mut Pair<A>, traffic: &[Offer]) -> [[u64; 16]; 2] {
    let mut offered = [[0; 16]; 2];
    for offer in traffic {
        let id = &mut offered[offer.end][usize::from(offer.service)];
        pair.offer(offer.end, TestPacket::new(offer.service, *id, offer.len));
        *id += 1;
        pair.run_for(offer.gap);
    }
    offered
}

/// Checks that service 1 has delivered nothing twice, and everything as it was sent.
pub(crate) fn check_whole<A: Adversary>(
    pair: &Pair<A>,
    traffic: &[Offer],
) -> Result<(), TestCaseError> {
    for end in 0..2 {
        let sent: Vec<_> = traffic.iter().filter(|offer| offer.end != end).collect();
        let mut seen = vec![false; sent.len()];
        for delivery in pair.delivered(end) {
            let id = delivery.packet.id as usize;
            prop_assert!(
                !std::mem::replace(&mut seen[id], true),
                "{} went up twice",
                id
            );
            let whole = TestPacket::new(1, id as u64, sent[id].len);
            prop_assert_eq!(&delivery.packet, &whole);
        }
    }
    Ok(())
}
