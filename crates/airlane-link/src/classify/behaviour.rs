//! What a flow does, where neither a port nor a code point says what it is.
//!
//! ```text
//! call       small packets: speech, games, names, keystrokes
//! transfer   large ones: whatever moves much and repairs itself, as QUIC does
//!
//! first packet     up to 600 B: call; longer: transfer (QUIC begins with 1200 B, RFC 9000, section 14.1)
//! from then on     mean length, weight 1/16: above 900 B transfer, below 500 B call, in between as before
//! ```
//! A packet that goes another way may overtake those before it, so a flow changes only after a pause of [`PAUSE`],
//! or when its mean has said so for [`PATIENCE`] packets. A flow is its addresses, protocol and ports; of what has
//! none or hides them, such as IPsec, the addresses. Each direction is judged for itself.
//!
//! It knows at most [`FLOWS`] flows: the one of [`WAYS`] places that was silent longest gives way. What it cannot
//! know: what several flows do that travel as one, in a tunnel; and large packets of which nobody wants a late one,
//! such as video, which are taken for a transfer.

use airlane_base::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::flow::FlowKey;

/// Flows that are known.
const FLOWS: usize = 1024;
/// Places that a flow may have.
const WAYS: usize = 4;
/// What is on its way has come after so long, as a rule.
const PAUSE: Duration = Duration::from_millis(100);
/// Packets for which a mean has to last.
const PATIENCE: u8 = 64;
/// Lengths, bytes: of a first packet, and of means.
const SMALL: u32 = 600;
const MEANS: [u32; 2] = [500, 900];

/// What a flow behaves like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Behaviour {
    /// It sends small packets.
    Call,
    /// It sends large ones.
    Transfer,
}

/// A flow that is known.
#[derive(Clone, Copy, Debug)]
struct Known {
    hash: u64,
    /// When its last packet came.
    last: Instant,
    /// Mean length, bytes times 16.
    mean: u32,
    behaviour: Behaviour,
    /// Packets in a row whose mean says something else.
    against: u8,
}

/// What is known of flows.
#[derive(Clone, Debug)]
pub(super) struct Behaviours {
    sets: Box<[[Option<Known>; WAYS]]>,
}

impl Default for Behaviours {
    fn default() -> Self {
        Self {
            sets: vec![[None; WAYS]; FLOWS / WAYS].into(),
        }
    }
}

impl Behaviours {
    /// A flow sends a packet of `len` bytes.
    pub(super) fn judge(&mut self, now: Instant, flow: &FlowKey, len: usize) -> Behaviour {
        let (hash, len) = (flow.hash(0), len.min(1 << 16) as u32);
        let set = &mut self.sets[hash as usize % (FLOWS / WAYS)];
        let own = |place: &Option<Known>| place.is_some_and(|known| known.hash == hash);
        let Some(known) = set
            .iter_mut()
            .find(|place| own(place))
            .and_then(Option::as_mut)
        else {
            let behaviour = match len <= SMALL {
                true => Behaviour::Call,
                false => Behaviour::Transfer,
            };
            let oldest = set
                .iter_mut()
                .min_by_key(|place| place.map(|known| known.last));
            if let Some(place) = oldest {
                *place = Some(Known {
                    hash,
                    last: now,
                    mean: len * 16,
                    behaviour,
                    against: 0,
                });
            }
            return behaviour;
        };
        known.add(now, len);
        known.behaviour
    }
}

impl Known {
    fn add(&mut self, now: Instant, len: u32) {
        self.mean = self.mean - self.mean / 16 + len;
        let paused = now.saturating_since(self.last) >= PAUSE;
        self.last = now;
        let mean = self.mean / 16;
        let says = match self.behaviour {
            Behaviour::Call if mean > MEANS[1] => Behaviour::Transfer,
            Behaviour::Transfer if mean < MEANS[0] => Behaviour::Call,
            same => same,
        };
        if says == self.behaviour {
            self.against = 0;
        } else {
            self.against += 1;
            if paused || self.against >= PATIENCE {
                (self.behaviour, self.against) = (says, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::Behaviour::{Call, Transfer};
    use super::*;
    use crate::flow::UDP;

    fn flow(port: u16) -> FlowKey {
        FlowKey {
            dscp: 0,
            protocol: UDP,
            src: Ipv4Addr::new(10, 0, 0, 1).into(),
            dst: Ipv4Addr::new(10, 0, 0, 2).into(),
            src_port: port,
            dst_port: 40_000,
        }
    }

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + Duration::from_millis(ms)
    }

    /// What packets of these lengths are judged to be, so many milliseconds apart.
    fn judged(gap: u64, lens: impl IntoIterator<Item = usize>) -> Vec<Behaviour> {
        let mut flows = Behaviours::default();
        let all = lens.into_iter().enumerate();
        all.map(|(n, len)| flows.judge(at(1_000 + gap * n as u64), &flow(1), len))
            .collect()
    }

    #[test]
    fn speech_is_a_call_from_its_first_packet_on() {
        assert!(judged(20, [200; 500]).iter().all(|b| *b == Call));
        // Variable rate, and now and then a picture of the screen.
        let lens = (0..500).map(|n| if n % 20 == 19 { 1_200 } else { 80 + n % 90 });
        assert!(judged(20, lens).iter().all(|b| *b == Call));
    }

    #[test]
    fn quic_is_a_transfer_from_its_first_packet_on() {
        let lens = (0..2_000).map(|n| if n % 7 == 3 { 60 } else { 1_350 });
        assert!(judged(1, lens).iter().all(|b| *b == Transfer));
    }

    #[test]
    fn a_flow_changes_behind_a_pause_or_when_it_is_sure() {
        // A tunnel: a handshake, and data without a pause.
        let tunnel: Vec<_> = judged(1, [148].into_iter().chain([1_400; 300]));
        let first = tunnel.iter().position(|b| *b == Transfer).unwrap();
        assert!((64..100).contains(&first), "{first}");
        let mut flows = Behaviours::default();
        let mut now = 0;
        let mut send = |len, gap| {
            now += gap;
            flows.judge(at(now), &flow(1), len)
        };
        assert!((0..30).all(|_| send(1_200, 1) == Transfer));
        assert!((0..40).all(|_| send(100, 1) == Transfer), "not sure yet");
        assert_eq!(send(100, 200), Call, "nothing can be overtaken");
    }

    #[test]
    fn no_flow_is_judged_by_another_and_many_are_no_harm() {
        let mut flows = Behaviours::default();
        for n in 0..20_000u32 {
            let port = (n % 5_000) as u16;
            let (len, is) = match port % 2 {
                0 => (100, Call),
                _ => (1_300, Transfer),
            };
            assert_eq!(flows.judge(at(n.into()), &flow(port), len), is);
        }
        assert_eq!(flows.sets.len() * WAYS, FLOWS);
    }
}
