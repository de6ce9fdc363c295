//! The body of a probe that collects what the interfaces of the nodes along a path offer (Gopal 2007, section 3.3.3).
//! Probes travel in frames of the hello type.
//!
//! ```text
//!  0      version, as a hello's
//!  1      flags: 32 this is a status probe, 64 it is returning, 128 it has reached the end of its path
//!  2      remaining hops
//!  3      number of values
//!  4..8   session
//!  8..10  number of the flow, assigned by its source
//! 10      protocol of the flow
//! 11      zero
//! 12..16  number of the probe: the newest one is valid
//! 16..32  source address, 32..48 destination address; IPv4 as mapped IPv6 (RFC 4291, section 2.5.5.2)
//! 48..52  ports of both
//! then    values: parameter (2), index of the node on the path, from 0 (1), value (4)
//! ```
//!
//! A node that forwards a probe replaces values by its own smaller ones, and ignores parameters that it does not supply.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::hello::{HelloError, VERSION};

const FLAG_STATUS: u8 = 32;
const FLAG_BACK: u8 = 64;
const FLAG_COMPLETE: u8 = 128;
const FIXED: usize = 52;
const VALUE: usize = 7;
/// Maximum number of hops of a probe.
const HOPS: u8 = 16;

/// What a node offers, or the least that the nodes of a path offer, measured over an interval of
/// [`INTERVAL_NS`](Offer::INTERVAL_NS).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Offer {
    /// Packets that the interface accepted for transmission.
    pub out_packets: u32,
    /// Bytes of these packets.
    pub out_bytes: u32,
    /// How often the interface could send while nothing waited.
    pub underflows: u32,
    /// Free bytes in its queue.
    pub room_bytes: u32,
}

impl Offer {
    /// Interval at which status is read and paths are probed (CLAP-P1).
    pub const INTERVAL_NS: u64 = 100_000_000;
}

/// Identifiers of the values. The high byte would hold an interface's number; a path has one interface per node, so it
/// is 0.
const OUT_PACKETS: u16 = 1;
const OUT_BYTES: u16 = 2;
const UNDERFLOWS: u16 = 3;
const ROOM_BYTES: u16 = 4;
const IDS: [u16; 4] = [OUT_PACKETS, OUT_BYTES, UNDERFLOWS, ROOM_BYTES];

/// A probe of what a path offers, in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusProbe {
    /// The sender's session.
    pub session: u32,
    /// Whether it is returning.
    pub back: bool,
    /// Whether it has reached the node with the flow's destination.
    pub complete: bool,
    /// Remaining hops.
    pub hops: u8,
    /// Number of the flow, assigned by its source.
    pub flow: u16,
    /// IP protocol of the flow.
    pub protocol: u8,
    /// Number of the probe.
    pub number: u32,
    /// Both ends of the flow.
    pub ends: [SocketAddr; 2],
    /// The least values so far: packets and underflows belong to the node with the fewest bytes, the room is a minimum
    /// of its own.
    pub least: Offer,
    /// The nodes with the least values: by bytes accepted, and by room.
    pub nodes: [u8; 2],
}

impl StatusProbe {
    /// A probe that leaves its source, which offers `own`.
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

    /// Forwards the probe through a node that offers `own`; `None` if no hops remain. Among equal nodes the earlier one
    /// counts.
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

    /// Forwards a returning probe unchanged; `None` if no hops remain.
    #[must_use]
    pub fn brought_back(self) -> Option<Self> {
        let hops = self.hops.checked_sub(1)?;
        Some(Self { hops, ..self })
    }

    /// Turns the probe round, at the end of the path or where no further route is known.
    #[must_use]
    pub const fn turned(self, complete: bool) -> Self {
        Self {
            back: true,
            complete,
            // As many hops as on the way here, and some more in case the way back is longer.
            hops: HOPS,
            ..self
        }
    }

    /// Encodes the body.
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

    /// Decodes the body of a frame of the hello type; `None` if it is not a status probe.
    ///
    /// # Errors
    /// If it is marked as a status probe and is malformed.
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
            // Ignore unknown values, which other nodes may supply.
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
        fn any_bytes_are_read_or_refused(mut body in prop::collection::vec(any::<u8>(), 0..120)) {
            body.splice(..body.len().min(1), [VERSION]);
            if let Ok(Some(probe)) = StatusProbe::decode(&body) {
                prop_assert_eq!(StatusProbe::decode(&probe.encode()), Ok(Some(probe)));
            }
        }

        #[test]
        fn a_path_carries_the_least_offer_of_its_nodes(
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
    fn a_looping_probe_ends() {
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
