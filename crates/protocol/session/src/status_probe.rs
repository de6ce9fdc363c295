//! The body of a probe that asks the nodes along a path what their interfaces offer (Gopal 2007, section 3.3.3). Probes
//! travel in frames of the hello's kind.
//!
//! ```text
//!  0      version, as a hello's
//!  1      flags: 32 this is a status probe, 64 it goes back to where it began, 128 the end of its path has had it
//!  2      hops that it may still take
//!  3      number of values
//!  4..8   session
//!  8..10  the flow, by the number that the source gave it
//! 10      protocol of the flow
//! 11      zero
//! 12..16  number of the probe: the newest counts
//! 16..32  source address, 32..48 destination address; those of IPv4 as of IPv6 (RFC 4291, section 2.5.5.2)
//! 48..52  ports of both
//! then    values: parameter (2), the node by its place on the path, from 0 (1), value (4)
//! ```
//!
//! Who passes a probe on puts its own value where that is less, and knows nothing of parameters that it does not supply.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::hello::{HelloError, VERSION};

const FLAG_STATUS: u8 = 32;
const FLAG_BACK: u8 = 64;
const FLAG_COMPLETE: u8 = 128;
const FIXED: usize = 52;
const VALUE: usize = 7;
/// Nodes that a probe passes at most.
const HOPS: u8 = 16;

/// What a node offers, or the least that those on a path do. All of it is of an interval of
/// [`INTERVAL_NS`](Offer::INTERVAL_NS).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Offer {
    /// Packets that the interface took to send them.
    pub out_packets: u32,
    /// Bytes of them.
    pub out_bytes: u32,
    /// How often it could send and nothing waited.
    pub underflows: u32,
    /// Bytes that find room in its queue.
    pub room_bytes: u32,
}

impl Offer {
    /// Status is read, and asked for along paths, so often (CLAP-P1).
    pub const INTERVAL_NS: u64 = 100_000_000;
}

/// Which value: the interface's number would be in the high byte, and a path has one for each node.
const OUT_PACKETS: u16 = 1;
const OUT_BYTES: u16 = 2;
const UNDERFLOWS: u16 = 3;
const ROOM_BYTES: u16 = 4;
const IDS: [u16; 4] = [OUT_PACKETS, OUT_BYTES, UNDERFLOWS, ROOM_BYTES];

/// A probe of what a path offers, on its way there or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusProbe {
    /// The session that its sender is in.
    pub session: u32,
    /// Whether it goes back.
    pub back: bool,
    /// Whether it has been to the node that has the flow's destination.
    pub complete: bool,
    /// Nodes that may still pass it on.
    pub hops: u8,
    /// The flow, by the number that its source gave it.
    pub flow: u16,
    /// What the flow carries behind IP.
    pub protocol: u8,
    /// Number of the probe.
    pub number: u32,
    /// Both ends of the flow.
    pub ends: [SocketAddr; 2],
    /// The least so far: the underflows go with the bytes that it took, and its room counts for itself.
    pub least: Offer,
    /// Which node of the path has the least of each: by what it took, and by its room.
    pub nodes: [u8; 2],
}

impl StatusProbe {
    /// A probe that leaves its source, which offers this.
    pub const fn new(
        flow: u16,
        protocol: u8,
        ends: [SocketAddr; 2],
        number: u32,
        own: Offer,
    ) -> Self {
        Self {
            session: 0,
            back: false,
            complete: false,
            hops: HOPS,
            flow,
            protocol,
            number,
            ends,
            least: own,
            nodes: [0; 2],
        }
    }

    /// The node that passes it on offers this; none if it may go no further. Of equal nodes the earlier one stays.
    #[must_use]
    pub fn passed_on(self, own: Offer) -> Option<Self> {
        let hops = self.hops.checked_sub(1)?;
        let node = HOPS - hops;
        let mut probe = Self { hops, ..self };
        if own.out_bytes < probe.least.out_bytes {
            probe.least = Offer {
                room_bytes: probe.least.room_bytes,
                ..own
            };
            probe.nodes[0] = node;
        }
        if own.room_bytes < probe.least.room_bytes {
            probe.least.room_bytes = own.room_bytes;
            probe.nodes[1] = node;
        }
        Some(probe)
    }

    /// On its way back a node leaves it as it is; none if it may go no further.
    #[must_use]
    pub fn brought_back(self) -> Option<Self> {
        let hops = self.hops.checked_sub(1)?;
        Some(Self { hops, ..self })
    }

    /// It turns round, at the end of the path or where nobody knows the way on.
    #[must_use]
    pub const fn turned(self, complete: bool) -> Self {
        Self {
            back: true,
            complete,
            // As many as brought it here, and where the way back is another, more.
            hops: HOPS,
            ..self
        }
    }

    /// The body.
    pub fn encode(&self) -> Vec<u8> {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags = FLAG_STATUS | flag(self.back, FLAG_BACK) | flag(self.complete, FLAG_COMPLETE);
        let mut body = Vec::with_capacity(FIXED + IDS.len() * VALUE);
        body.extend_from_slice(&[VERSION, flags, self.hops, IDS.len() as u8]);
        body.extend_from_slice(&self.session.to_be_bytes());
        body.extend_from_slice(&self.flow.to_be_bytes());
        body.extend_from_slice(&[self.protocol, 0]);
        body.extend_from_slice(&self.number.to_be_bytes());
        for end in self.ends {
            body.extend_from_slice(&wide(end.ip()).octets());
        }
        for end in self.ends {
            body.extend_from_slice(&end.port().to_be_bytes());
        }
        let [by_out, by_room] = self.nodes;
        let least = self.least;
        for (id, node, value) in [
            (OUT_PACKETS, by_out, least.out_packets),
            (OUT_BYTES, by_out, least.out_bytes),
            (UNDERFLOWS, by_out, least.underflows),
            (ROOM_BYTES, by_room, least.room_bytes),
        ] {
            body.extend_from_slice(&id.to_be_bytes());
            body.push(node);
            body.extend_from_slice(&value.to_be_bytes());
        }
        body
    }

    /// Reads the body of a frame of the hello's kind: none if it is no status probe.
    ///
    /// # Errors
    /// If it says that it is one, and none can be like it.
    pub fn decode(body: &[u8]) -> Result<Option<Self>, HelloError> {
        let flags = match body {
            [VERSION, flags, ..] if flags & FLAG_STATUS != 0 => *flags,
            _ => return Ok(None),
        };
        let got = body.len();
        let truncated = |need| HelloError::Truncated { need, got };
        let (fixed, mut values) = body.split_at_checked(FIXED).ok_or(truncated(FIXED))?;
        let known = FLAG_STATUS | FLAG_BACK | FLAG_COMPLETE;
        if flags & !known != 0
            || fixed[11] != 0
            || flags & (FLAG_BACK | FLAG_COMPLETE) == FLAG_COMPLETE
        {
            return Err(HelloError::Probe);
        }
        let need = FIXED + usize::from(fixed[3]) * VALUE;
        match got.cmp(&need) {
            std::cmp::Ordering::Less => return Err(truncated(need)),
            std::cmp::Ordering::Greater => return Err(HelloError::TooLong { extra: got - need }),
            std::cmp::Ordering::Equal => {}
        }
        let mut found = [None; IDS.len()];
        while let Some((&[a, b, node, value @ ..], rest)) = values.split_first_chunk::<VALUE>() {
            values = rest;
            let id = u16::from_be_bytes([a, b]);
            // Others supply what is unknown here, and it is nobody's business.
            if let Some(at) = IDS.iter().position(|known| *known == id) {
                found[at] = Some((node, u32::from_be_bytes(value)));
            }
        }
        let [
            Some((by_out, out_packets)),
            Some((_, out_bytes)),
            Some((_, underflows)),
            Some((by_room, room_bytes)),
        ] = found
        else {
            return Err(HelloError::Probe);
        };
        let u16_at = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let u32_at = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|i| fixed[at + i]));
        let address = |at: usize| {
            let mut octets = [0; 16];
            octets.copy_from_slice(&fixed[at..at + 16]);
            Ipv6Addr::from(octets).to_canonical()
        };
        Ok(Some(Self {
            session: u32_at(4),
            back: flags & FLAG_BACK != 0,
            complete: flags & FLAG_COMPLETE != 0,
            hops: fixed[2].min(HOPS),
            flow: u16_at(8),
            protocol: fixed[10],
            number: u32_at(12),
            ends: [
                SocketAddr::new(address(16), u16_at(48)),
                SocketAddr::new(address(32), u16_at(50)),
            ],
            least: Offer {
                out_packets,
                out_bytes,
                underflows,
                room_bytes,
            },
            nodes: [by_out, by_room],
        }))
    }
}

fn wide(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn offer() -> impl Strategy<Value = Offer> {
        any::<[u32; 4]>().prop_map(|[out_packets, out_bytes, underflows, room_bytes]| Offer {
            out_packets,
            out_bytes,
            underflows,
            room_bytes,
        })
    }

    fn probe() -> impl Strategy<Value = StatusProbe> {
        let end = || (any::<IpAddr>(), any::<u16>());
        (any::<(u16, u8, u32, u32)>(), end(), end(), offer()).prop_map(
            |((flow, protocol, number, session), from, to, own)| {
                let ends = [from, to].map(|(ip, port)| SocketAddr::new(ip.to_canonical(), port));
                StatusProbe {
                    session,
                    ..StatusProbe::new(flow, protocol, ends, number, own)
                }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(probe in probe(), back: bool, complete: bool) {
            let probe = if back { probe.turned(complete) } else { probe };
            let mut body = probe.encode();
            prop_assert_eq!(StatusProbe::decode(&body), Ok(Some(probe)));
            for cut in 2..body.len() {
                let refused = matches!(StatusProbe::decode(&body[..cut]), Err(HelloError::Truncated { .. }));
                prop_assert!(refused, "{}", cut);
            }
            body.push(0);
            prop_assert_eq!(StatusProbe::decode(&body), Err(HelloError::TooLong { extra: 1 }));
        }

        #[test]
        fn whatever_comes_is_read_or_refused(mut body in prop::collection::vec(any::<u8>(), 0..120)) {
            body.splice(..body.len().min(1), [VERSION]);
            if let Ok(Some(probe)) = StatusProbe::decode(&body) {
                prop_assert_eq!(StatusProbe::decode(&probe.encode()), Ok(Some(probe)));
            }
        }

        #[test]
        fn a_path_says_the_least_that_one_of_its_nodes_offers(
            probe in probe(),
            nodes in prop::collection::vec(offer(), 0..16),
        ) {
            let mut at_end = probe;
            for own in &nodes {
                at_end = at_end.passed_on(*own).unwrap();
            }
            let all = || std::iter::once(&probe.least).chain(&nodes);
            prop_assert_eq!(at_end.least.out_bytes, all().map(|o| o.out_bytes).min().unwrap());
            prop_assert_eq!(at_end.least.room_bytes, all().map(|o| o.room_bytes).min().unwrap());
            let by_out = all().nth(at_end.nodes[0].into()).unwrap();
            prop_assert_eq!(at_end.least.underflows, by_out.underflows);
            let by_room = all().nth(at_end.nodes[1].into()).unwrap();
            prop_assert_eq!(at_end.least.room_bytes, by_room.room_bytes);
        }
    }

    #[test]
    fn a_probe_that_goes_round_ends() {
        let own = Offer {
            out_packets: 1,
            out_bytes: 1,
            underflows: 0,
            room_bytes: 1,
        };
        let ends = ["10.7.0.1:1".parse().unwrap(), "10.7.0.2:2".parse().unwrap()];
        let mut probe = StatusProbe::new(1, 17, ends, 1, own);
        let mut passed = 0;
        while let Some(next) = probe.passed_on(own) {
            (probe, passed) = (next, passed + 1);
        }
        assert_eq!(passed, HOPS);
    }
}
