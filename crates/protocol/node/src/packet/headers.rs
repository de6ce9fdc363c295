//! A checked view of the headers that classification and MSS clamping need: IPv4 (RFC 791), IPv6 and its
//! extension headers (RFC 8200), the ports of TCP, UDP, UDP-Lite, DCCP and SCTP.
//!
//! Later fragments of a packet carry no ports, so all fragments have the same flow key with ports of zero.
//! [`Headers::ip_fragment`] lets a caller that remembers the first fragment find the ports of the others.
//! Left out: headers inside tunnels and encrypted payloads.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use airlane_link::{FlowKey, IpFragment};

pub(super) const TCP: u8 = 6;
const UDP: u8 = 17;
const UDP_HEADER: usize = 8;
const DCCP: u8 = 33;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;
const HIP: u8 = 139;
const SHIM6: u8 = 140;
/// Mask of "more fragments" and the offset; mask of the offset.
const CUT_V4: u16 = 0x3fff;
const OFFSET_V4: u16 = 0x1fff;
/// A legal packet has fewer extension headers.
const MAX_EXTENSIONS: usize = 10;

/// The IP headers of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    src: IpAddr,
    dst: IpAddr,
    dscp: u8,
    protocol: u8,
    ports: (u16, u16),
    /// Start of the transport header and end of the packet; `None` in a fragment.
    transport: Option<(usize, usize)>,
    /// Identification of the fragmented packet, and whether this is its first fragment.
    fragment: Option<(u32, bool)>,
}

impl Headers {
    /// Parses the headers. Returns `None` unless the bytes are an IPv4 or IPv6 packet of at least the length
    /// that its header states.
    pub fn parse(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Self::parse_v4(packet),
            6 => Self::parse_v6(packet),
            _ => None,
        }
    }

    fn parse_v4(packet: &[u8]) -> Option<Self> {
        let fixed: &[u8; 20] = packet.first_chunk()?;
        let header_len = usize::from(fixed[0] & 0x0f) * 4;
        let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        if header_len < 20 || total < header_len || total > packet.len() {
            return None;
        }
        let cut = u16::from_be_bytes([fixed[6], fixed[7]]) & CUT_V4;
        let number = u32::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        let address = |at: usize| {
            Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]).into()
        };
        let mut headers = Self {
            src: address(12),
            dst: address(16),
            dscp: fixed[1] >> 2,
            protocol: fixed[9],
            ports: (0, 0),
            transport: None,
            fragment: (cut != 0).then_some((number, cut & OFFSET_V4 == 0)),
        };
        headers.read_ports(packet, header_len, total);
        Some(headers)
    }

    fn parse_v6(packet: &[u8]) -> Option<Self> {
        let fixed: &[u8; 40] = packet.first_chunk()?;
        let total = 40 + usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        if total > packet.len() {
            return None;
        }
        let address = |at: usize| {
            let mut octets = [0; 16];
            octets.copy_from_slice(&fixed[at..at + 16]);
            Ipv6Addr::from(octets).into()
        };
        let mut headers = Self {
            src: address(8),
            dst: address(24),
            dscp: (fixed[0] & 0x0f) << 2 | fixed[1] >> 6,
            protocol: fixed[6],
            ports: (0, 0),
            transport: None,
            fragment: None,
        };
        let mut at = 40;
        for _ in 0..MAX_EXTENSIONS {
            let Some(&[next, length, high, low]) = packet[..total].get(at..at + 4) else {
                // No bytes are left for ports.
                return Some(headers);
            };
            at += match headers.protocol {
                HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY | HIP | SHIM6 => {
                    (usize::from(length) + 1) * 8
                }
                AUTHENTICATION => (usize::from(length) + 2) * 4,
                FRAGMENT => {
                    // Offset and "more fragments" flag; both are zero in an atomic fragment (RFC 6946).
                    let cut = u16::from_be_bytes([high, low]) & 0xfff9;
                    if cut != 0 {
                        let number = packet[..total].get(at + 4..).and_then(<[u8]>::first_chunk);
                        let number = number.copied().map(u32::from_be_bytes);
                        let is_first = cut & 0xfff8 == 0;
                        headers.fragment = number.map(|number| (number, is_first));
                        if !is_first || number.is_none() {
                            headers.protocol = next;
                            return Some(headers);
                        }
                    }
                    8
                }
                _ => {
                    headers.read_ports(packet, at, total);
                    return Some(headers);
                }
            };
            headers.protocol = next;
        }
        Some(headers)
    }

    fn read_ports(&mut self, packet: &[u8], at: usize, end: usize) {
        let Some(transport) = packet.get(at..end) else {
            return;
        };
        match self.fragment {
            None => self.transport = Some((at, end)),
            Some((_, true)) => {}
            Some((_, false)) => return,
        }
        if let (TCP | UDP | DCCP | SCTP | UDP_LITE, Some(&[a, b, c, d])) =
            (self.protocol, transport.first_chunk())
        {
            self.ports = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        }
    }

    /// The flow key for the classifier. Ports are zero in fragments and in protocols without ports.
    pub fn flow(&self) -> FlowKey {
        self.flow_with(match self.fragment {
            None => self.ports,
            Some(_) => (0, 0),
        })
    }

    /// The fragment's identity, if the packet is an IP fragment.
    pub fn ip_fragment(&self) -> Option<IpFragment> {
        let (id, first) = self.fragment?;
        let flow = self.flow_with(self.ports);
        Some(IpFragment { flow, id, first })
    }

    fn flow_with(&self, (src_port, dst_port): (u16, u16)) -> FlowKey {
        FlowKey {
            dscp: self.dscp,
            protocol: self.protocol,
            src: self.src,
            dst: self.dst,
            src_port,
            dst_port,
        }
    }

    /// Start of the TCP header and end of the data, if this is TCP and not a fragment.
    pub fn tcp(&self) -> Option<(usize, usize)> {
        self.transport.filter(|_| self.protocol == TCP)
    }

    /// Bounds of the UDP payload, if this is UDP and not a fragment.
    pub fn datagram(&self) -> Option<(usize, usize)> {
        let transport = self.transport.filter(|_| self.protocol == UDP);
        transport.map(|(start, end)| (start + UDP_HEADER, end))
    }

    /// Whether this is IPv4.
    pub const fn is_v4(&self) -> bool {
        self.src.is_ipv4()
    }
}

/// Source and destination of a packet; `None` if it is not an IP packet.
pub fn addresses(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    fn at<const N: usize>(packet: &[u8], from: usize) -> Option<[u8; N]> {
        packet.get(from..)?.first_chunk().copied()
    }
    match packet.first()? >> 4 {
        4 => Some((at::<4>(packet, 12)?.into(), at::<4>(packet, 16)?.into())),
        6 => Some((at::<16>(packet, 8)?.into(), at::<16>(packet, 24)?.into())),
        _ => None,
    }
}

/// Quickly rules out nearly all packets that are not fragments.
pub(super) fn may_be_fragment(packet: &[u8]) -> bool {
    let Some(fixed) = packet.first_chunk::<8>() else {
        return false;
    };
    match fixed[0] >> 4 {
        4 => u16::from_be_bytes([fixed[6], fixed[7]]) & CUT_V4 != 0,
        _ => matches!(
            fixed[6],
            HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION | MOBILITY | HIP | SHIM6
        ),
    }
}

/// The flow key of bytes that are not an IP packet.
pub(super) fn no_flow() -> FlowKey {
    FlowKey {
        dscp: 0,
        protocol: 0,
        src: Ipv4Addr::UNSPECIFIED.into(),
        dst: Ipv4Addr::UNSPECIFIED.into(),
        src_port: 0,
        dst_port: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{IpFragOffset, IpNumber, PacketBuilder};
    use proptest::prelude::*;

    fn udp_v4() -> Vec<u8> {
        let mut packet = Vec::new();
        PacketBuilder::ipv4([10, 7, 0, 1], [10, 7, 0, 2], 64)
            .udp(5004, 5005)
            .write(&mut packet, &[0; 160])
            .unwrap();
        packet[1] = 46 << 2; // EF
        packet
    }

    #[test]
    fn an_ipv4_packet_has_its_flow() {
        let flow = Headers::parse(&udp_v4()).unwrap().flow();
        assert_eq!((flow.dscp, flow.protocol), (46, 17));
        assert_eq!((flow.src_port, flow.dst_port), (5004, 5005));
        assert_eq!(flow.src, IpAddr::from([10, 7, 0, 1]));
        assert_eq!(flow.dst, IpAddr::from([10, 7, 0, 2]));
    }

    #[test]
    fn every_fragment_of_a_packet_has_the_same_flow() {
        let mut first = udp_v4();
        first[6] = 0x20; // more fragments
        let mut later = udp_v4();
        later[6..8].copy_from_slice(&(185u16).to_be_bytes());
        let first = Headers::parse(&first).unwrap();
        let later = Headers::parse(&later).unwrap();
        assert_eq!(first.flow(), later.flow());
        assert_eq!(first.flow().src_port, 0);
        assert_eq!((first.tcp(), first.datagram()), (None, None));
        // The fields that join fragments.
        let [first, later] = [first, later].map(|headers| headers.ip_fragment().unwrap());
        assert_eq!((first.flow.src_port, first.flow.dst_port), (5004, 5005));
        assert_eq!((first.first, later.first), (true, false));
        assert_eq!((first.id, later.flow.src_port), (later.id, 0));
        // A packet with only "don't fragment" set is not a fragment.
        let mut whole = udp_v4();
        whole[6] = 0x40;
        let whole = Headers::parse(&whole).unwrap();
        assert_eq!((whole.flow().src_port, whole.ip_fragment()), (5004, None));
    }

    /// IPv6 with hop-by-hop, destination options and a fragment header before TCP.
    fn tcp_v6(offset: u16, more: bool) -> Vec<u8> {
        let extensions = etherparse::Ipv6Extensions {
            hop_by_hop_options: Some(
                etherparse::Ipv6RawExtHeader::new_raw(IpNumber(0), &[1; 14]).unwrap(),
            ),
            destination_options: Some(
                etherparse::Ipv6RawExtHeader::new_raw(IpNumber(0), &[1; 6]).unwrap(),
            ),
            fragment: Some(etherparse::Ipv6FragmentHeader::new(
                IpNumber(0),
                IpFragOffset::try_new(offset).unwrap(),
                more,
                7,
            )),
            ..Default::default()
        };
        let header = etherparse::Ipv6Header {
            source: [0xfd; 16],
            destination: [0xfc; 16],
            traffic_class: 34 << 2, // AF41
            ..Default::default()
        };
        let mut packet = Vec::new();
        PacketBuilder::ip(etherparse::IpHeaders::Ipv6(header, extensions))
            .tcp(443, 50_000, 1, 1000)
            .write(&mut packet, b"data")
            .unwrap();
        packet
    }

    #[test]
    fn ipv6_extension_headers_are_walked() {
        let packet = tcp_v6(0, false);
        let headers = Headers::parse(&packet).unwrap();
        let flow = headers.flow();
        assert_eq!((flow.dscp, flow.protocol), (34, 6));
        assert_eq!((flow.src_port, flow.dst_port), (443, 50_000));
        let (at, end) = headers.tcp().unwrap();
        assert_eq!((at, end), (40 + 16 + 8 + 8, packet.len()));
        for fragment in [tcp_v6(0, true), tcp_v6(100, false)] {
            let headers = Headers::parse(&fragment).unwrap();
            assert_eq!((headers.flow().protocol, headers.flow().src_port), (6, 0));
            assert_eq!(headers.tcp(), None);
            let part = headers.ip_fragment().unwrap();
            assert_eq!(part.flow.src_port, if part.first { 443 } else { 0 });
            assert_eq!(part.id, 7);
        }
        assert_eq!(Headers::parse(&packet).unwrap().ip_fragment(), None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(mut packet in prop::collection::vec(any::<u8>(), 0..200), version in 0u8..3) {
            if let (Some(first), 4 | 6) = (packet.first_mut(), version * 2 + 2) {
                *first = *first & 0x0f | (version * 2 + 2) << 4;
            }
            let addresses = addresses(&packet);
            if let Some(headers) = Headers::parse(&packet) {
                let flow = headers.flow();
                prop_assert_eq!(addresses, Some((flow.src, flow.dst)));
                if headers.ip_fragment().is_some() {
                    prop_assert!(may_be_fragment(&packet));
                }
                if let Some((at, end)) = headers.tcp() {
                    prop_assert!(at <= end && end <= packet.len());
                }
            }
        }

        /// A truncated packet is refused, or has no ports beyond its end.
        #[test]
        fn truncation_never_invents_ports(cut in 0usize..200) {
            for whole in [udp_v4(), tcp_v6(0, false)] {
                let cut = cut.min(whole.len() - 1);
                prop_assert_eq!(Headers::parse(&whole[..cut]), None);
            }
        }
    }
}
