use std::collections::{BTreeMap, BTreeSet};

use airlane_base::Rate;
use proptest::prelude::*;

use super::*;
use crate::context::Output;
use crate::flow::Lane;
use crate::ledger::ServiceLedger;
use crate::service::{sr::OneNak, sr_m1::NakForEach, sr_m2::NaksForEach};
use crate::wire::{Codec, HeaderProfile, Layout};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    Sr,
    SrM1,
    SrM2,
}

/// The receivers of sections 7.3 to 7.5, transcribed from the pseudo-code, with numbers that never wrap.
#[derive(Default)]
struct Reference {
    expected: u64,
    high: u64,
    held: BTreeSet<u64>,
    count: BTreeMap<u64, u32>,
    nak_sent: bool,
}

impl Reference {
    fn on_data(&mut self, rule: Rule, s: u64, window: u64) -> Vec<u64> {
        let mut naks = vec![];
        if s < self.expected || s >= self.expected + window {
            return naks;
        }
        let mut ask = |m: u64, count: &mut BTreeMap<u64, u32>| {
            *count.entry(m).or_default() += 1;
            naks.push(m);
        };
        let missing: Vec<u64> = (self.expected..s)
            .filter(|m| !self.held.contains(m))
            .collect();
        if rule != Rule::Sr && s >= self.high {
            for m in self.high..s {
                ask(m, &mut self.count);
            }
        } else if rule == Rule::SrM2 && !self.held.contains(&s) {
            let k = self.count[&s];
            for m in missing {
                if self.count[&m] <= k {
                    ask(m, &mut self.count);
                }
            }
        }
        self.high = self.high.max(s + 1);
        self.held.insert(s);
        if s == self.expected {
            while self.held.remove(&self.expected) {
                self.expected += 1;
            }
            self.nak_sent = false;
        } else if rule == Rule::Sr && !self.nak_sent {
            ask(self.expected, &mut self.count);
            self.nak_sent = true;
        }
        naks
    }
}

/// Feeds frames to a receiver on a link that is never busy, and compares each NAK and each delivered packet.
fn follows<A: Asking>(
    rule: Rule,
    modulus: u64,
    window: u32,
    arrivals: &[(i64, bool)],
) -> Result<u32, TestCaseError> {
    let facts = PortFacts {
        codec: Codec::new(HeaderProfile::Study).with_modulus(modulus),
        rate: Rate::from_bps(1_000_000).unwrap(),
        delay: Duration::ZERO,
        max_payload: 1,
        frame_overhead: 0,
    };
    let config = SrConfig {
        window: Some(window),
        ..SrConfig::default()
    };
    let mut receiver = SelectiveRepeat::<Vec<u8>, A>::new(&config, &facts);
    let mut reference = Reference::default();
    let (mut out, mut ledger) = (Output::default(), ServiceLedger::default());
    let mut cx = Context::new(Instant::ORIGIN, &mut out, &mut ledger);
    for (ahead, original) in arrivals {
        let Some(s) = reference.expected.checked_add_signed(*ahead) else {
            continue;
        };
        let kind = match original {
            true => FrameKind::Data,
            false => FrameKind::Retransmission,
        };
        let seq = facts.space(&Layout::SEQ_ACK).reduce(s as u32);
        receiver.handle_frame(
            &mut cx,
            Frame::with_packet(kind, seq, s.to_be_bytes().to_vec()),
        );
        let naks = std::iter::from_fn(|| receiver.poll_any(&mut cx, &mut None, Lane::default()));
        let naks: Vec<Seq> = naks.map(|frame| frame.header.seq).collect();
        let expected = reference.on_data(rule, s, window.into());
        let expected: Vec<Seq> = expected
            .into_iter()
            .map(|m| facts.space(&Layout::SEQ_ACK).add(m as u32, 0))
            .collect();
        prop_assert_eq!(naks, expected, "{:?}: {} arrives", rule, s);
        prop_assert_eq!(cx.out.payloads.len() as u64, reference.expected);
    }
    let ids = (0..reference.expected).map(|id| id.to_be_bytes().to_vec());
    prop_assert!(ids.eq(out.payloads.into_iter().map(|delivered| delivered.payload)));
    let asked = reference.count.values().copied().max();
    Ok(asked.unwrap_or(0))
}

proptest! {
    /// Every NAK of SR, SR/M1 and SR/M2 is one that the rule requires, at once and in order: at most one per
    /// window for SR, one per frame for SR/M1, as many as the count demands for SR/M2 (section 18.6).
    #[test]
    fn naks_follow_the_rule(
        (modulus, window) in prop::sample::select(vec![(8, 2), (8, 4), (62, 31), (63, 31), (256, 5), (256, 127)]),
        arrivals in prop::collection::vec((-2i64..6, any::<bool>()), 0..200),
    ) {
        let sr = follows::<OneNak>(Rule::Sr, modulus, window, &arrivals)?;
        prop_assert!(sr <= 1);
        let m1 = follows::<NakForEach>(Rule::SrM1, modulus, window, &arrivals)?;
        prop_assert!(m1 <= 1);
        follows::<NaksForEach>(Rule::SrM2, modulus, window, &arrivals)?;
    }
}
