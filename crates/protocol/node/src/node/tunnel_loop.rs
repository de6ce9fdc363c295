//! Detects datagrams of this node that the kernel routes into the tunnel. If the outer path to a peer leads
//! into the tunnel itself, each datagram would be encapsulated again, without end.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const UDP: u8 = 17;
const V6_HEADER: usize = 40;

/// Destination of a packet from the kernel, if it is a UDP datagram from this port. For nearly all packets it
/// reads only two bytes.
pub(crate) fn from_port(packet: &[u8], port: u16) -> Option<SocketAddr> {
    let (at, ip): (usize, IpAddr) = match packet.first()? >> 4 {
        4 => {
            let (&[flags, offset], &protocol) = (packet.get(6..8)?.first_chunk()?, packet.get(9)?);
            // Later fragments have no ports, and are of no use without the first.
            if protocol != UDP || flags & 0x1f != 0 || offset != 0 {
                return None;
            }
            let to: [u8; 4] = *packet.get(16..20)?.first_chunk()?;
            (usize::from(packet[0] & 0xf) * 4, Ipv4Addr::from(to).into())
        }
        6 if *packet.get(6)? == UDP => {
            let to: [u8; 16] = *packet.get(24..40)?.first_chunk()?;
            (V6_HEADER, Ipv6Addr::from(to).into())
        }
        _ => return None,
    };
    let &[a, b, c, d] = packet.get(at..at + 4)?.first_chunk()?;
    let to = SocketAddr::new(ip, u16::from_be_bytes([c, d]));
    (u16::from_be_bytes([a, b]) == port).then_some(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_datagram_from_the_port_is_known_and_no_other(
            v4: bool, from: u16, to: u16, port in prop::option::of(any::<u16>()), is_udp: bool, cut: bool,
        ) {
            let port = port.unwrap_or(from);
            let mut packet = Vec::new();
            let payload = [7; 40];
            let end: IpAddr = match v4 {
                true => [192, 0, 2, 7].into(),
                false => [0x2001, 0xdb8, 0, 0, 0, 0, 0, 7].into(),
            };
            let builder = match end {
                IpAddr::V4(end) => etherparse::PacketBuilder::ipv4([10, 7, 0, 1], end.octets(), 64),
                IpAddr::V6(end) => etherparse::PacketBuilder::ipv6([1; 16], end.octets(), 64),
            };
            match is_udp {
                true => builder.udp(from, to).write(&mut packet, &payload).unwrap(),
                false => builder.tcp(from, to, 1, 1).write(&mut packet, &payload).unwrap(),
            }
            if cut && v4 {
                packet[7] = 1;
            }
            let own = is_udp && from == port && !(cut && v4);
            prop_assert_eq!(from_port(&packet, port), own.then(|| SocketAddr::new(end, to)));
        }

        #[test]
        fn any_packet_is_examined_without_panic(packet in prop::collection::vec(any::<u8>(), 0..60), port: u16) {
            let _no_panic = from_port(&packet, port);
        }
    }
}
