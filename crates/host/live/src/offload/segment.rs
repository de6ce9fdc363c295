//! Segments super-packets as a network card would.
//!
//! A kernel with segmentation offload passes up to 64 kB of TCP or UDP payload to the device as one packet.
//! On a lossy link the loss of one such "packet" would be the loss of 45. So every segment gets its own
//! headers, as the kernel's segmentation (`tcp_gso_segment`, `__udp_gso_segment`) writes them:
//!
//! | field | segment i of n |
//! |---|---|
//! | IPv4 total length, IPv6 payload length, UDP length | its own |
//! | IPv4 identification | + i (RFC 6864: no two may be equal) |
//! | TCP sequence number | + i x segment size |
//! | TCP CWR | first only (RFC 3168 6.1.2) |
//! | TCP FIN, PSH | last only |
//! | checksums | complete |
//!
//! Left out: tunnels and protocols other than TCP and UDP; such super-packets are refused.

use super::checksum;
use super::layout::{Network, PacketLayout, Transport};

/// The packet cannot be segmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotSegmentable;

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// A super-packet, with the bytes before its IP header: none, or the Ethernet header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SuperPacket<'a> {
    bytes: &'a [u8],
    layout: PacketLayout,
    size: usize,
}

impl<'a> SuperPacket<'a> {
    /// Parses the super-packet of `transport` whose IP header is at `ip`, to be cut into segments of `size`
    /// bytes of payload; the last may be shorter.
    ///
    /// # Errors
    /// If the bytes are something else, or need no segmentation.
    pub(crate) fn parse(
        bytes: &'a [u8],
        ip: usize,
        transport: Transport,
        size: usize,
    ) -> Result<Self, NotSegmentable> {
        let layout = PacketLayout::parse(bytes, ip).filter(|layout| layout.transport == transport);
        let layout = layout.ok_or(NotSegmentable)?;
        if size == 0 || layout.payload == layout.end {
            return Err(NotSegmentable);
        }
        Ok(Self {
            bytes,
            layout,
            size,
        })
    }

    /// Number of segments.
    pub(crate) fn segments(&self) -> usize {
        (self.layout.end - self.layout.payload).div_ceil(self.size)
    }

    /// Writes segment `i` with all headers to `out` and returns its length; `None` if `out` is too short, or
    /// there is no such segment.
    pub(crate) fn write(&self, i: usize, out: &mut [u8]) -> Option<usize> {
        let Self {
            bytes,
            layout,
            size,
        } = *self;
        let headers = &bytes[..layout.payload];
        let piece = bytes[layout.payload..layout.end].chunks(size).nth(i)?;
        let len = headers.len() + piece.len();
        let out = out.get_mut(..len)?;
        out[..headers.len()].copy_from_slice(headers);
        out[headers.len()..].copy_from_slice(piece);
        write_network(out, layout, i);
        match layout.transport {
            Transport::Tcp => {
                let last = i + 1 == self.segments();
                write_tcp(out, layout, i * size, i == 0, last);
            }
            Transport::Udp => put(out, layout.l4 + 4, (len - layout.l4) as u16),
        }
        layout.write_checksum(out);
        Some(len)
    }
}

fn get(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

fn put(frame: &mut [u8], at: usize, value: u16) {
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn write_network(frame: &mut [u8], layout: PacketLayout, i: usize) {
    let ip = layout.ip;
    match layout.network {
        Network::V4 => {
            put(frame, ip + 2, (frame.len() - ip) as u16);
            let id = get(frame, ip + 4).wrapping_add(i as u16);
            put(frame, ip + 4, id);
            put(frame, ip + 10, 0);
            let header = checksum::finish(checksum::sum(&frame[ip..layout.l4]));
            put(frame, ip + 10, header);
        }
        Network::V6 => put(frame, ip + 4, (frame.len() - ip - 40) as u16),
    }
}

fn write_tcp(frame: &mut [u8], layout: PacketLayout, offset: usize, first: bool, last: bool) {
    let at = layout.l4 + 4;
    let seq = u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
    let seq = seq.wrapping_add(offset as u32);
    frame[at..at + 4].copy_from_slice(&seq.to_be_bytes());
    let flags = &mut frame[layout.l4 + 13];
    if !first {
        *flags &= !CWR;
    }
    if !last {
        *flags &= !(FIN | PSH);
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::ethernet_payload;
    use super::*;
    use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TcpHeader, TransportSlice};
    use proptest::prelude::*;

    fn cut(
        frame: &[u8],
        transport: Transport,
        size: usize,
    ) -> Result<Vec<Vec<u8>>, NotSegmentable> {
        let Some(ip) = ethernet_payload(frame) else {
            return Err(NotSegmentable);
        };
        let whole = SuperPacket::parse(frame, ip, transport, size)?;
        let segments = (0..whole.segments()).map(|i| {
            let mut segment = vec![0xee; frame.len()];
            let len = whole.write(i, &mut segment).unwrap();
            assert!(whole.write(i, &mut vec![0; len - 1]).is_none());
            segment.truncate(len);
            segment
        });
        Ok(segments.collect())
    }

    /// A super-packet with the L4 payload `payload`, as the kernel passes it to a device.
    fn super_packet(v6: bool, vlan: bool, tcp: Option<TcpHeader>, payload: &[u8]) -> Vec<u8> {
        let link = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let mut bytes = Vec::new();
        macro_rules! rest {
            ($link:expr) => {{
                let ip = if v6 {
                    $link.ipv6([1; 16], [2; 16], 64)
                } else {
                    $link.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
                };
                match tcp {
                    Some(tcp) => ip.tcp_header(tcp).write(&mut bytes, payload),
                    None => ip.udp(4000, 4001).write(&mut bytes, payload),
                }
                .unwrap();
            }};
        }
        if vlan {
            let link = link.single_vlan(5u16.try_into().unwrap());
            rest!(link);
        } else {
            rest!(link);
        }
        bytes
    }

    fn tcp(seq: u32) -> TcpHeader {
        let mut tcp = TcpHeader::new(1000, 5001, seq, 65_000);
        (tcp.ack, tcp.psh, tcp.fin, tcp.cwr) = (true, true, true, true);
        tcp.set_options_raw(&[1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8])
            .unwrap();
        tcp
    }

    proptest! {
        #[test]
        fn segments_say_what_the_super_packet_said(
            v6: bool,
            vlan: bool,
            is_tcp: bool,
            seq: u32,
            payload in prop::collection::vec(any::<u8>(), 1..20_000),
            size in 1usize..3_000,
        ) {
            let header = is_tcp.then(|| tcp(seq));
            let frame = super_packet(v6, vlan, header, &payload);
            let transport = if is_tcp { Transport::Tcp } else { Transport::Udp };
            let frames = cut(&frame, transport, size).unwrap();
            prop_assert_eq!(frames.len(), payload.len().div_ceil(size));

            let whole = SlicedPacket::from_ethernet(&frame).unwrap();
            let mut carried = Vec::new();
            for (i, bytes) in frames.iter().enumerate() {
                let (first, last) = (i == 0, i == frames.len() - 1);
                // The parser checks the lengths.
                let packet = SlicedPacket::from_ethernet(bytes).unwrap();
                match (packet.net.as_ref().unwrap(), whole.net.as_ref().unwrap()) {
                    (NetSlice::Ipv4(ip), NetSlice::Ipv4(original)) => {
                        let (ip, original) = (ip.header().to_header(), original.header().to_header());
                        prop_assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                        let id = original.identification.wrapping_add(i as u16);
                        prop_assert_eq!(ip.identification, id);
                        prop_assert_eq!((ip.source, ip.destination), (original.source, original.destination));
                    }
                    (NetSlice::Ipv6(ip), NetSlice::Ipv6(original)) => {
                        let (ip, original) = (ip.header(), original.header());
                        prop_assert_eq!(ip.source(), original.source());
                        prop_assert_eq!(ip.destination(), original.destination());
                    }
                    _ => prop_assert!(false, "the network layer changed"),
                }
                match packet.transport.unwrap() {
                    TransportSlice::Tcp(slice) => {
                        let got = slice.to_header();
                        let mut want = tcp(seq.wrapping_add((i * size) as u32));
                        (want.cwr, want.psh, want.fin) = (first, last, last);
                        want.checksum = match packet.net.unwrap() {
                            NetSlice::Ipv4(ip) => slice.calc_checksum_ipv4(ip.header().source(), ip.header().destination()),
                            NetSlice::Ipv6(ip) => slice.calc_checksum_ipv6(ip.header().source(), ip.header().destination()),
                            NetSlice::Arp(_) => unreachable!(),
                        }.unwrap();
                        // All ones and zero are equivalent in TCP.
                        let zero = want.checksum == 0 && got.checksum == 0xffff;
                        want.checksum = if zero { 0xffff } else { want.checksum };
                        prop_assert_eq!(got, want);
                        carried.extend_from_slice(slice.payload());
                    }
                    TransportSlice::Udp(slice) => {
                        let header = slice.to_header();
                        let want = match packet.net.unwrap() {
                            NetSlice::Ipv4(ip) => header.calc_checksum_ipv4_raw(ip.header().source(), ip.header().destination(), slice.payload()),
                            NetSlice::Ipv6(ip) => header.calc_checksum_ipv6_raw(ip.header().source(), ip.header().destination(), slice.payload()),
                            NetSlice::Arp(_) => unreachable!(),
                        }.unwrap();
                        prop_assert_eq!(header.checksum, want);
                        carried.extend_from_slice(slice.payload());
                    }
                    other => prop_assert!(false, "{other:?}"),
                }
                let tag = if vlan { 4 } else { 0 };
                prop_assert_eq!(&bytes[..14 + tag], &frame[..14 + tag]);
            }
            prop_assert_eq!(carried, payload);
        }

        #[test]
        fn no_bytes_make_it_panic(
            frame in prop::collection::vec(any::<u8>(), 0..200),
            head in prop::sample::select(vec![&[0x08u8, 0x00, 0x45][..], &[0x86, 0xdd, 0x60], &[]]),
            is_tcp: bool,
            size in 0usize..100,
        ) {
            let mut frame = frame;
            if frame.len() > 12 + head.len() {
                frame[12..12 + head.len()].copy_from_slice(head);
            }
            let transport = if is_tcp { Transport::Tcp } else { Transport::Udp };
            let _ = cut(&frame, transport, size);
        }

        #[test]
        fn no_damaged_super_packet_makes_it_panic(
            v6: bool, is_tcp: bool, at in 12usize..80, value: u8, keep in 0usize..3000,
        ) {
            let mut frame = super_packet(v6, false, is_tcp.then(|| tcp(1)), &[7; 2900]);
            frame[at] = value;
            frame.truncate(keep);
            let transport = if is_tcp { Transport::Tcp } else { Transport::Udp };
            if let Ok(frames) = cut(&frame, transport, 1448) {
                prop_assert!(frames.iter().all(|f| f.len() <= frame.len()));
            }
        }
    }

    #[test]
    fn padding_after_the_ip_packet_is_not_payload() {
        let mut frame = super_packet(false, false, None, &[7; 100]);
        frame.extend_from_slice(&[0; 6]);
        let frames = cut(&frame, Transport::Udp, 60).unwrap();
        assert_eq!(frames[1].len(), 14 + 20 + 8 + 40);
    }

    #[test]
    fn another_protocol_than_announced_is_refused() {
        let frame = super_packet(false, false, None, &[7; 100]);
        assert_eq!(cut(&frame, Transport::Tcp, 50), Err(NotSegmentable));
        assert_eq!(cut(&frame, Transport::Udp, 0), Err(NotSegmentable));
    }
}
