//! The offload header that precedes each packet: `struct virtio_net_hdr` of the virtio specification 1.2, section
//! 5.1.6, as `AF_PACKET` sockets (`PACKET_VNET_HDR`) and TUN devices (`IFF_VNET_HDR`) use it, in native byte order.

use super::layout::{Network, Transport};

/// Bytes of a [`VnetHeader`].
pub(crate) const VNET_HEADER_LEN: usize = 10;

const NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// Operations that the sender left to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VnetHeader {
    /// The checksum at `csum_start + csum_offset` does not cover the bytes from `csum_start` on yet.
    pub(crate) needs_checksum: bool,
    pub(crate) gso_type: u8,
    /// Bytes of headers before the first segment's payload; a hint.
    pub(crate) header_len: u16,
    /// Payload of each segment, bytes.
    pub(crate) gso_size: u16,
    pub(crate) csum_start: u16,
    pub(crate) csum_offset: u16,
}

/// How to segment a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It is a single packet.
    Whole,
    /// Into segments of this transport.
    Segments(Transport),
    /// The type is not supported here.
    Unknown,
}

impl VnetHeader {
    /// Parses the header of a packet; `None` if it is truncated.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; VNET_HEADER_LEN] = bytes.first_chunk()?;
        let word = |at| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Some(Self {
            needs_checksum: bytes[0] & NEEDS_CSUM != 0,
            gso_type: bytes[1],
            header_len: word(2),
            gso_size: word(4),
            csum_start: word(6),
            csum_offset: word(8),
        })
    }

    /// The header's bytes.
    pub(crate) fn bytes(&self) -> [u8; VNET_HEADER_LEN] {
        let mut bytes = [0; VNET_HEADER_LEN];
        bytes[0] = if self.needs_checksum { NEEDS_CSUM } else { 0 };
        bytes[1] = self.gso_type;
        let words = [
            self.header_len,
            self.gso_size,
            self.csum_start,
            self.csum_offset,
        ];
        for (to, word) in bytes[2..].chunks_exact_mut(2).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// How to segment the packet that follows.
    pub(crate) const fn cut(&self) -> Cut {
        match self.gso_type & !GSO_ECN {
            GSO_NONE => Cut::Whole,
            GSO_TCPV4 | GSO_TCPV6 => Cut::Segments(Transport::Tcp),
            GSO_UDP_L4 => Cut::Segments(Transport::Udp),
            _ => Cut::Unknown,
        }
    }

    /// The `gso_type` of a super-packet.
    pub(crate) const fn type_of(network: Network, transport: Transport) -> u8 {
        match (transport, network) {
            (Transport::Tcp, Network::V4) => GSO_TCPV4,
            (Transport::Tcp, Network::V6) => GSO_TCPV6,
            (Transport::Udp, _) => GSO_UDP_L4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_fields_stand_in_the_order_of_virtio() {
        let mut bytes = vec![1, 4];
        for word in [54u16, 1448, 34, 16] {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        let header = VnetHeader {
            needs_checksum: true,
            gso_type: 4,
            header_len: 54,
            gso_size: 1448,
            csum_start: 34,
            csum_offset: 16,
        };
        assert_eq!(VnetHeader::read(&bytes), Some(header));
        assert_eq!(header.bytes(), *bytes);
        assert_eq!(header.cut(), Cut::Segments(Transport::Tcp));
        assert_eq!(VnetHeader::read(&bytes[..9]), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(bytes: [u8; VNET_HEADER_LEN]) {
            let header = VnetHeader::read(&bytes).unwrap();
            prop_assert_eq!(VnetHeader::read(&header.bytes()), Some(header));
        }
    }
}
