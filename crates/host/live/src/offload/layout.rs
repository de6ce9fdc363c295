//! Positions of the headers in a TCP or UDP packet, for segmenting super-packets and joining packets.

use super::checksum;

/// A transport protocol whose packets can be segmented or joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// RFC 9293.
    Tcp,
    /// RFC 768.
    Udp,
}

/// The version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// RFC 791.
    V4,
    /// RFC 8200.
    V6,
}

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Offsets within a packet, checked against its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketLayout {
    pub(crate) network: Network,
    pub(crate) transport: Transport,
    /// The IP header.
    pub(crate) ip: usize,
    /// The transport header.
    pub(crate) l4: usize,
    pub(crate) payload: usize,
    /// End of the IP packet; Ethernet padding may follow.
    pub(crate) end: usize,
}

impl PacketLayout {
    /// Parses the packet whose IP header is at `ip`. `None` for fragments, tunnels, protocols other than TCP
    /// and UDP, and truncated headers.
    pub(crate) fn parse(bytes: &[u8], ip: usize) -> Option<Self> {
        let byte = |at: usize| bytes.get(at).copied();
        let word = |at: usize| Some(u16::from_be_bytes([byte(at)?, byte(at + 1)?]));
        let (network, protocol, l4, end) = match byte(ip)? >> 4 {
            4 => {
                let header = usize::from(byte(ip)? & 0x0f) * 4;
                let fragmented = word(ip + 6)? & 0x3fff != 0;
                if header < 20 || fragmented {
                    return None;
                }
                let end = ip + usize::from(word(ip + 2)?);
                (Network::V4, byte(ip + 9)?, ip + header, end)
            }
            6 => {
                let (mut protocol, mut l4) = (byte(ip + 6)?, ip + 40);
                // Hop-by-hop options, routing header, destination options.
                while matches!(protocol, 0 | 43 | 60) {
                    (protocol, l4) = (byte(l4)?, l4 + 8 + usize::from(byte(l4 + 1)?) * 8);
                }
                let end = ip + 40 + usize::from(word(ip + 4)?);
                (Network::V6, protocol, l4, end)
            }
            _ => return None,
        };
        let (transport, header) = match protocol {
            TCP => (Transport::Tcp, usize::from(byte(l4 + 12)? >> 4) * 4),
            UDP => (Transport::Udp, 8),
            _ => return None,
        };
        let payload = l4 + header;
        let too_short = transport == Transport::Tcp && header < 20;
        if too_short || payload > end || end > bytes.len() {
            return None;
        }
        Some(Self {
            network,
            transport,
            ip,
            l4,
            payload,
            end,
        })
    }

    /// Position of the transport checksum.
    pub(crate) const fn checksum_at(&self) -> usize {
        self.l4 + self.checksum_offset()
    }

    /// Offset of the checksum in the transport header.
    pub(crate) const fn checksum_offset(&self) -> usize {
        match self.transport {
            Transport::Tcp => 16,
            Transport::Udp => 6,
        }
    }

    /// The sum of the pseudo-header for `len` bytes of header and payload.
    pub(crate) fn pseudo_header(&self, bytes: &[u8], len: usize) -> u64 {
        let (addresses, protocol) = match (self.network, self.transport) {
            (Network::V4, transport) => (self.ip + 12..self.ip + 20, transport),
            // A routing header may name another final destination, but the kernel does not leave the
            // segmentation of such packets to a device.
            (Network::V6, transport) => (self.ip + 8..self.ip + 40, transport),
        };
        let protocol = match protocol {
            Transport::Tcp => TCP,
            Transport::Udp => UDP,
        };
        checksum::sum(&bytes[addresses]) + u64::from(protocol) + len as u64
    }

    /// Writes the transport checksum over the rest of `bytes`.
    pub(crate) fn write_checksum(&self, bytes: &mut [u8]) {
        let at = self.checksum_at();
        bytes[at..at + 2].fill(0);
        let len = bytes.len() - self.l4;
        let sum = self.pseudo_header(bytes, len) + checksum::sum(&bytes[self.l4..]);
        bytes[at..at + 2].copy_from_slice(&checksum::finish_transport(sum).to_be_bytes());
    }

    /// Whether the transport checksum is valid.
    pub(crate) fn checksum_holds(&self, bytes: &[u8]) -> bool {
        let covered = &bytes[self.l4..self.end];
        let sum = self.pseudo_header(bytes, covered.len()) + checksum::sum(covered);
        checksum::finish(sum) == 0
    }
}

/// Position of the IP header in an Ethernet II frame, after any 802.1Q and 802.1ad tags.
pub(crate) fn ethernet_payload(frame: &[u8]) -> Option<usize> {
    let mut at = 12;
    loop {
        match *frame.get(at..at + 2)? {
            [0x81, 0x00] | [0x88, 0xa8] => at += 4,
            [0x08, 0x00] | [0x86, 0xdd] => return Some(at + 2),
            _ => return None,
        }
    }
}
