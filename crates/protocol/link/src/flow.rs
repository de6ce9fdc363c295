//! What the link layer may know of a packet: its flow, and the treatment its header asks for.
//!
//! The driver parses the headers. The classifier and the fair queues see only this key, so they cannot tell a
//! simulated packet from a real one; the services do not even see the key.

use std::net::IpAddr;

use crate::pack::Divisible;

/// IANA number of ICMP.
pub const ICMP: u8 = 1;
/// IANA number of TCP.
pub const TCP: u8 = 6;
/// IANA number of UDP.
pub const UDP: u8 = 17;
/// IANA number of ICMPv6.
pub const ICMPV6: u8 = 58;

/// The 5-tuple of a packet and its DS code point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// DS code point, 0 to 63.
    pub dscp: u8,
    /// IANA protocol number after the IP header and its extensions.
    pub protocol: u8,
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Source port; 0 where there is none.
    pub src_port: u16,
    /// Destination port; 0 where there is none.
    pub dst_port: u16,
}

impl FlowKey {
    /// The flow of packets in the opposite direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            src: self.dst,
            dst: self.src,
            src_port: self.dst_port,
            dst_port: self.src_port,
            ..self
        }
    }

    /// 64 well-mixed bits of the 5-tuple, the same on every machine and in every build.
    ///
    /// The code point is left out: a flow that changes its marking must stay in one queue, or its packets
    /// would be reordered. The salt keeps outsiders from choosing addresses that share a queue with a victim.
    pub fn hash(&self, salt: u64) -> u64 {
        let (src, dst) = (bits(self.src), bits(self.dst));
        let ports = u64::from(self.src_port) << 16 | u64::from(self.dst_port);
        [
            (src >> 64) as u64,
            src as u64,
            (dst >> 64) as u64,
            dst as u64,
            u64::from(self.protocol) << 32 | ports,
        ]
        .into_iter()
        .fold(mix(salt), |hash, word| mix(hash ^ word))
    }

    /// 64 well-mixed bits of the 5-tuple, the same in both directions.
    pub(crate) fn hash_both_ways(&self, salt: u64) -> u64 {
        let end = |address, port| {
            let bits = bits(address);
            mix(mix(salt ^ bits as u64) ^ (bits >> 64) as u64 ^ u64::from(port))
        };
        let ends = end(self.src, self.src_port).wrapping_add(end(self.dst, self.dst_port));
        mix(ends ^ u64::from(self.protocol))
    }
}

/// The address as IPv6; IPv4 is mapped (RFC 4291 2.5.5.2).
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// A bijection of 64 bits in which each input bit affects every output bit (SplitMix64's finaliser).
const fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Number of lanes that flows are hashed to.
pub(crate) const LANES: usize = 1024;

/// Which packets a packet must not overtake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lane {
    /// Earlier packets of this lane.
    pub(crate) number: u16,
    /// Earlier packets of all lanes.
    pub(crate) behind_all: bool,
}

impl Lane {
    /// The lane of a flow, by a hash of it.
    pub(crate) const fn of(hash: u64) -> Self {
        Self {
            number: (hash % LANES as u64) as u16,
            behind_all: false,
        }
    }
}

/// Whether a packet stays useful at any age: TCP would retransmit it.
#[inline]
pub(crate) fn endures<P: Packet>(packet: &P) -> bool {
    packet.flow().protocol == TCP
}

/// What Snoop reads of a TCP segment besides its flow. Sequence numbers are modulo 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpView {
    /// Distinguishes connections of one flow, which occur only in the simulator; else 0.
    pub connection: u32,
    /// Distinguishes pairs of endpoints that are reused by one connection after the other, which occur only
    /// in the simulator; else 0.
    pub endpoints: u32,
    /// Sequence number of the first byte.
    pub seq: u32,
    /// The sequence number after the last byte; SYN and FIN count as one each. Equal to `seq` in a pure
    /// acknowledgment.
    pub end: u32,
    /// The next number expected, if the segment acknowledges.
    pub ack: Option<u32>,
    /// The receive window as the header states it.
    pub window: u16,
    /// Received out of order, as a half-open range of sequence numbers: the first block of a selective
    /// acknowledgment (RFC 2018), or the one segment that a SMART receiver names.
    pub block: Option<[u32; 2]>,
    /// SYN flag.
    pub syn: bool,
    /// RST flag.
    pub rst: bool,
}

/// A fragment of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpFragment {
    /// The flow that its headers show; only the first fragment has ports.
    pub flow: FlowKey,
    /// The identification of the packet, equal in all of its fragments.
    pub id: u32,
    /// Whether it is the first fragment.
    pub first: bool,
}

/// A payload whose flow the classifier and the queues can read.
pub trait Packet: Divisible {
    /// Its flow.
    fn flow(&self) -> FlowKey;

    /// What it is a fragment of, if IP has cut it. Its flow has no ports until [`Packet::set_flow`] supplies
    /// them.
    fn ip_fragment(&self) -> Option<IpFragment> {
        None
    }

    /// Assigns a flow that its own headers do not show.
    fn set_flow(&mut self, _flow: FlowKey) {}

    /// Its traffic class (or TOS) byte, where it has one.
    fn traffic_class(&self) -> u8 {
        0
    }

    /// Its UDP payload; empty where there is none, or where the contents cannot be read.
    fn datagram(&self) -> &[u8] {
        &[]
    }

    /// Marks an acknowledgment: a link lost what it asks for. Only simulated packets have a place for that.
    fn mark_lost(&mut self) {}

    /// Its TCP segment; none for other packets and for fragments.
    fn tcp(&self) -> Option<TcpView> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn key() -> FlowKey {
        FlowKey {
            dscp: 0,
            protocol: TCP,
            src: Ipv4Addr::new(10, 7, 0, 1).into(),
            dst: Ipv4Addr::new(10, 7, 0, 2).into(),
            src_port: 40_000,
            dst_port: 443,
        }
    }

    #[test]
    fn hash_depends_on_each_part_but_the_code_point() {
        let base = key().hash(1);
        assert_eq!(FlowKey { dscp: 46, ..key() }.hash(1), base);
        let v6 = IpAddr::from(Ipv6Addr::LOCALHOST);
        for other in [
            FlowKey {
                protocol: UDP,
                ..key()
            },
            FlowKey { src: v6, ..key() },
            FlowKey { dst: v6, ..key() },
            FlowKey {
                src_port: 40_001,
                ..key()
            },
            FlowKey {
                dst_port: 444,
                ..key()
            },
            FlowKey {
                src: key().dst,
                dst: key().src,
                ..key()
            },
            FlowKey {
                src_port: 443,
                dst_port: 40_000,
                ..key()
            },
        ] {
            assert_ne!(other.hash(1), base, "{other:?}");
        }
        assert_ne!(key().hash(2), base);
    }

    #[test]
    fn answers_have_the_hash_of_what_they_answer() {
        let (base, other) = (key().hash_both_ways(1), key().reversed());
        assert_eq!(other.hash_both_ways(1), base);
        let swapped = FlowKey {
            src_port: key().dst_port,
            dst_port: key().src_port,
            ..key()
        };
        assert_ne!(swapped.hash_both_ways(1), base);
        assert_ne!(key().hash_both_ways(2), base);
    }

    #[test]
    fn hash_is_the_same_for_ever() {
        // Simulation results depend on which flows share a queue.
        assert_eq!(key().hash(0), GOLDEN, "{:#x}", key().hash(0));
    }
    const GOLDEN: u64 = 0xf93a_2153_2b57_f75b;

    #[test]
    fn ports_spread_evenly() {
        // 64 * 256 flows over 64 queues: mean 256, standard deviation 15.9; the bound is five of them.
        let mut queues = [0u32; 64];
        for port in 0..64 * 256u16 {
            let flow = FlowKey {
                src_port: port,
                ..key()
            };
            queues[(flow.hash(3) % 64) as usize] += 1;
        }
        assert!(queues.iter().all(|n| (176..=336).contains(n)), "{queues:?}");
    }
}
