//! Lowers the maximum segment size in a TCP SYN (RFC 9293, section 3.7.1) to what fits the link, so that
//! hosts behind the two routers never depend on ICMP to learn the path MTU.
//!
//! The checksum is updated incrementally (RFC 1624), so a SYN that was damaged stays damaged.

use super::headers::Headers;

const IPV4_AND_TCP: usize = 40;
const IPV6_AND_TCP: usize = 60;
const FLAG_SYN: u8 = 0x02;
const CHECKSUM: usize = 16;
const FIXED: usize = 20;

/// Start of the TCP header, offset of the MSS value, and the limit that `mtu` sets, if a SYN exceeds it.
fn excessive_mss(packet: &[u8], mtu: usize) -> Option<(usize, usize, u16)> {
    let headers = Headers::parse(packet)?;
    let (start, end) = headers.tcp()?;
    let tcp = &packet[start..end];
    let fixed: &[u8; FIXED] = tcp.first_chunk()?;
    if fixed[13] & FLAG_SYN == 0 {
        return None;
    }
    let overhead = if headers.is_v4() {
        IPV4_AND_TCP
    } else {
        IPV6_AND_TCP
    };
    let limit = u16::try_from(mtu.saturating_sub(overhead)).unwrap_or(u16::MAX);
    let options = tcp.get(..usize::from(fixed[12] >> 4) * 4)?;
    let mut at = FIXED;
    loop {
        match *options.get(at..)? {
            [] | [0, ..] => return None,
            [1, ..] => at += 1,
            [2, 4, high, low, ..] => {
                let mss = u16::from_be_bytes([high, low]);
                return (mss > limit).then_some((start, start + at + 2, limit));
            }
            [_, length, ..] if length >= 2 => at += usize::from(length),
            _ => return None,
        }
    }
}

/// Whether the packet is a SYN whose MSS option exceeds what `mtu` allows.
pub fn needs_clamping(packet: &[u8], mtu: usize) -> bool {
    excessive_mss(packet, mtu).is_some()
}

/// Lowers the MSS option of a SYN to what `mtu` allows. Returns whether it changed.
pub fn clamp_mss(packet: &mut [u8], mtu: usize) -> bool {
    let Some((tcp, value, limit)) = excessive_mss(packet, mtu) else {
        return false;
    };
    let old = [packet[value], packet[value + 1]];
    let new = limit.to_be_bytes();
    packet[value..value + 2].copy_from_slice(&new);
    // RFC 1624, equation 3. An option may start at an odd offset; its bytes then have swapped places in the
    // sum.
    let word = |bytes: [u8; 2]| match (value - tcp).is_multiple_of(2) {
        true => u32::from(u16::from_be_bytes(bytes)),
        false => u32::from(u16::from_le_bytes(bytes)),
    };
    let field = tcp + CHECKSUM;
    let checksum = u16::from_be_bytes([packet[field], packet[field + 1]]);
    let mut sum = u32::from(!checksum) + (0xffff - word(old)) + word(new);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    packet[field..field + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{PacketBuilder, SlicedPacket, TcpOptionElement, TransportSlice};
    use proptest::prelude::*;

    fn syn(v4: bool, ack: bool, options: &[TcpOptionElement]) -> Vec<u8> {
        let builder = if v4 {
            PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        } else {
            PacketBuilder::ipv6([1; 16], [2; 16], 64)
        };
        let mut tcp = builder.tcp(1000, 80, 12345, 64240).syn();
        if ack {
            tcp = tcp.ack(777);
        }
        let mut packet = Vec::new();
        tcp.options(options)
            .unwrap()
            .write(&mut packet, &[])
            .unwrap();
        packet
    }

    fn mss_of(packet: &[u8]) -> Option<u16> {
        let sliced = SlicedPacket::from_ip(packet).unwrap();
        let Some(TransportSlice::Tcp(tcp)) = sliced.transport else {
            panic!("not TCP");
        };
        tcp.options_iterator().find_map(|option| match option {
            Ok(TcpOptionElement::MaximumSegmentSize(mss)) => Some(mss),
            _ => None,
        })
    }

    /// Whether the TCP checksum over pseudo-header, header and data is valid.
    fn checksum_holds(packet: &[u8]) -> bool {
        let sliced = SlicedPacket::from_ip(packet).unwrap();
        let Some(TransportSlice::Tcp(tcp)) = sliced.transport else {
            panic!("not TCP");
        };
        let right = match sliced.net.unwrap() {
            etherparse::NetSlice::Ipv4(ip) => {
                tcp.calc_checksum_ipv4(ip.header().source(), ip.header().destination())
            }
            etherparse::NetSlice::Ipv6(ip) => {
                tcp.calc_checksum_ipv6(ip.header().source(), ip.header().destination())
            }
            _ => panic!("not IP"),
        };
        right.unwrap() == tcp.checksum()
    }

    #[test]
    fn syn_and_syn_ack_are_clamped_in_both_versions() {
        use TcpOptionElement::{
            MaximumSegmentSize, SelectiveAcknowledgementPermitted, WindowScale,
        };
        let options = [
            SelectiveAcknowledgementPermitted,
            WindowScale(7),
            MaximumSegmentSize(1460),
        ];
        for (v4, limit) in [(true, 1360), (false, 1340)] {
            for ack in [false, true] {
                let mut packet = syn(v4, ack, &options);
                assert!(needs_clamping(&packet, 1400));
                assert!(clamp_mss(&mut packet, 1400));
                assert_eq!(mss_of(&packet), Some(limit));
                assert!(checksum_holds(&packet));
                assert!(!clamp_mss(&mut packet, 1400), "already low enough");
            }
        }
    }

    #[test]
    fn what_needs_no_clamping_is_left_alone() {
        let mut small = syn(true, false, &[TcpOptionElement::MaximumSegmentSize(536)]);
        assert!(!clamp_mss(&mut small, 1400));
        let mut none = syn(true, false, &[]);
        assert!(!clamp_mss(&mut none, 1400));
        let mut data = Vec::new();
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .tcp(1, 2, 3, 4)
            .options(&[TcpOptionElement::MaximumSegmentSize(1460)])
            .unwrap()
            .write(&mut data, &[1, 2, 3])
            .unwrap();
        assert!(!clamp_mss(&mut data, 1400), "not a SYN");
    }

    proptest! {
        /// Options before the MSS shift it to even and odd offsets; the checksum is valid at each.
        #[test]
        fn the_checksum_holds_at_any_offset(
            v4: bool,
            noops in 0usize..8,
            mss in 1381u16..,
            mtu in 576usize..1400,
        ) {
            let mut options = vec![TcpOptionElement::Noop; noops];
            options.push(TcpOptionElement::MaximumSegmentSize(mss));
            let mut packet = syn(v4, false, &options);
            prop_assert!(checksum_holds(&packet));
            prop_assert!(clamp_mss(&mut packet, mtu));
            let overhead = if v4 { 40 } else { 60 };
            prop_assert_eq!(mss_of(&packet), Some((mtu - overhead) as u16));
            prop_assert!(checksum_holds(&packet));
        }

        #[test]
        fn no_options_panic(garbage in prop::collection::vec(any::<u8>(), 40), mtu in 0usize..2000) {
            let mut packet = syn(true, false, &[const { TcpOptionElement::Noop }; 40]);
            let options = packet.len() - 40;
            packet[options..].copy_from_slice(&garbage);
            let before = packet.clone();
            if !clamp_mss(&mut packet, mtu) {
                prop_assert_eq!(packet, before);
            }
        }
    }
}
