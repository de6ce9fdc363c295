//! IP fragments: only the first fragment of a packet has ports (RFC 791, RFC 8200 section 4.5); the later
//! ones belong to its flow.
//!
//! For the latest [`PACKETS`] fragmented packets the flow is remembered, for as long as hosts wait for
//! fragments. A fragment that arrives before its first one gets a flow without ports.

use std::net::IpAddr;

use airlane_base::{Duration, Instant};

use crate::flow::{FlowKey, IpFragment};

/// Packets whose first fragment is remembered.
const PACKETS: usize = 64;
/// Linux's reassembly timeout (`ipfrag_time`).
const REMEMBERED: Duration = Duration::from_secs(30);

/// What identifies the packet of a fragment. In IPv6 the protocol is not part of it, and may differ between
/// fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    src: IpAddr,
    dst: IpAddr,
    protocol: Option<u8>,
    id: u32,
}

impl Name {
    fn of(IpFragment { flow, id, .. }: &IpFragment) -> Self {
        Self {
            src: flow.src,
            dst: flow.dst,
            protocol: flow.src.is_ipv4().then_some(flow.protocol),
            id: *id,
        }
    }
}

/// The packets of one direction whose first fragment is remembered.
#[derive(Clone, Debug, Default)]
pub(super) struct IpFragments {
    /// A ring that is allocated with the first fragment.
    known: Vec<(Name, Instant, FlowKey)>,
    /// Index of the oldest entry, once the ring is full.
    oldest: usize,
}

impl IpFragments {
    /// The flow of a fragment.
    pub(super) fn flow(&mut self, now: Instant, fragment: &IpFragment) -> FlowKey {
        let (name, flow) = (Name::of(fragment), fragment.flow);
        if fragment.first {
            let entry = (name, now, flow);
            match self.known.len() < PACKETS {
                true => self.known.push(entry),
                false => {
                    self.known[self.oldest] = entry;
                    self.oldest = (self.oldest + 1) % PACKETS;
                }
            }
            return flow;
        }
        // Identifications are reused: the newest packet wins, and usually it is the latest entry.
        let (newer, older) = self.known.split_at(self.oldest);
        let newest_first = newer.iter().rev().chain(older.iter().rev());
        let found = newest_first
            .take_while(|(_, then, _)| now.saturating_since(*then) < REMEMBERED)
            .find(|(known, ..)| *known == name);
        found.map_or(flow, |(_, _, first)| FlowKey {
            dscp: flow.dscp,
            ..*first
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use proptest::prelude::*;

    use super::*;
    use crate::flow::UDP;
    use crate::sample;

    /// A fragment of a packet of this flow; only the first has ports.
    fn fragment(flow: FlowKey, id: u32, first: bool) -> IpFragment {
        let (src_port, dst_port) = if first {
            (flow.src_port, flow.dst_port)
        } else {
            (0, 0)
        };
        let flow = FlowKey {
            src_port,
            dst_port,
            ..flow
        };
        IpFragment { flow, id, first }
    }

    #[test]
    fn reused_fragment_numbers_replace_old_ones_and_expire() {
        let mut fragments = IpFragments::default();
        let [one, other] = [5004, 6000].map(|port| sample::flow(UDP, port, 9));
        let at = |seconds| Instant::ORIGIN + Duration::from_secs(seconds);
        let without = fragment(one, 7, false).flow;
        assert_eq!(fragments.flow(at(0), &fragment(one, 7, false)), without);
        fragments.flow(at(0), &fragment(one, 7, true));
        assert_eq!(fragments.flow(at(1), &fragment(one, 7, false)), one);
        fragments.flow(at(2), &fragment(other, 7, true));
        assert_eq!(fragments.flow(at(3), &fragment(one, 7, false)), other);
        assert_eq!(fragments.flow(at(31), &fragment(one, 7, false)), other);
        assert_eq!(fragments.flow(at(32), &fragment(one, 7, false)), without);
    }

    #[test]
    fn the_first_fragment_alone_tells_the_protocol_of_ipv6() {
        let mut fragments = IpFragments::default();
        let flow = FlowKey {
            src: Ipv6Addr::LOCALHOST.into(),
            dst: Ipv6Addr::LOCALHOST.into(),
            ..sample::flow(UDP, 5004, 9)
        };
        fragments.flow(Instant::ORIGIN, &fragment(flow, 7, true));
        let mut later = fragment(flow, 7, false);
        later.flow.protocol = 60;
        later.flow.dscp = 46;
        let joined = fragments.flow(Instant::ORIGIN, &later);
        assert_eq!(joined, FlowKey { dscp: 46, ..flow });
    }

    proptest! {
        /// In any order of fragments, none gets the flow of a packet with another name, a recent packet keeps
        /// the flow of its first fragment, and memory is bounded.
        #[test]
        fn each_packet_has_one_flow(
            order in prop::collection::vec((0..40_u32, 0..3_u16, any::<bool>()), 0..400),
        ) {
            let mut fragments = IpFragments::default();
            let mut firsts: Vec<(u32, u16, FlowKey)> = Vec::new();
            for (n, (id, host, first)) in order.iter().enumerate() {
                let mut flow = sample::flow(UDP, 1 + n as u16, 9);
                flow.dst = [10, 0, 1, *host as u8].into();
                let got = fragments.flow(Instant::ORIGIN, &fragment(flow, *id, *first));
                if *first {
                    prop_assert_eq!(got, flow);
                    firsts.push((*id, *host, flow));
                    continue;
                }
                let last = firsts.iter().rev().take(PACKETS);
                let expected = last.clone().find(|(known, to, _)| (known, to) == (id, host));
                let expected = expected.map_or(fragment(flow, *id, false).flow, |(.., flow)| *flow);
                prop_assert_eq!(got, expected);
            }
            prop_assert!(fragments.known.len() <= PACKETS);
        }
    }
}
