//! PPP in HDLC-like framing (RFC 1662): packets in an octet stream without boundaries.
//!
//! A packet costs 7 octets: a flag shared with its neighbour, address, control, protocol and a check sequence of two.
//! Octets that equal a flag or an escape are escaped, and so are octets below 32 that the character map names. A
//! packet that loses octets therefore damages only itself and the packet that it then runs into.

use crate::fcs;

const FLAG: u8 = 0x7E;
const ESCAPE: u8 = 0x7D;
const FLIP: u8 = 0x20;
/// Address, control and protocol: IPv4 (RFC 1332) and IPv6 (RFC 5072).
const HEADS: [[u8; 4]; 2] = [[0xFF, 0x03, 0x00, 0x21], [0xFF, 0x03, 0x00, 0x57]];
/// Octets that a packet costs, escapes not included.
pub const OVERHEAD: usize = 7;

/// Appends a packet to a stream that is empty or ends with a flag.
pub fn push(packet: &[u8], map: u32, stream: &mut Vec<u8>) {
    if stream.last() != Some(&FLAG) {
        stream.push(FLAG);
    }
    let v6 = packet.first().is_some_and(|first| first >> 4 == 6);
    let mut whole = Vec::with_capacity(packet.len() + HEADS[0].len());
    whole.extend(HEADS[usize::from(v6)]);
    whole.extend(packet);
    let check = fcs::ppp(&whole);
    for octet in whole.into_iter().chain(check) {
        let named = octet < 32 && map >> octet & 1 == 1;
        if named || octet == FLAG || octet == ESCAPE {
            stream.extend([ESCAPE, octet ^ FLIP]);
        } else {
            stream.push(octet);
        }
    }
    stream.push(FLAG);
}

/// Finds packets in a stream.
#[derive(Clone, Debug)]
pub struct Reader {
    octets: Vec<u8>,
    escaped: bool,
    /// The longest packet that it takes.
    most: usize,
    /// Octets between two flags that were not a valid packet.
    refused: u64,
}

impl Reader {
    /// A reader of a stream whose packets have at most `most` bytes.
    pub fn new(most: usize) -> Self {
        Self {
            octets: Vec::new(),
            escaped: false,
            most,
            refused: 0,
        }
    }

    /// How often the octets between two flags were not a valid packet.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Octets are missing here: the part of a packet received so far does not belong to what follows.
    pub fn skip(&mut self) {
        self.refused += u64::from(!self.octets.is_empty());
        self.octets.clear();
        self.escaped = false;
    }

    /// Reads more of the stream; calls `each` for every packet that ends in it.
    pub fn read(&mut self, stream: &[u8], mut each: impl FnMut(&[u8])) {
        for octet in stream {
            match *octet {
                FLAG => {
                    let escaped = std::mem::take(&mut self.escaped);
                    if let Some(packet) = self.packet().filter(|_| !escaped) {
                        each(packet);
                    } else if !self.octets.is_empty() || escaped {
                        self.refused += 1;
                    }
                    self.octets.clear();
                }
                ESCAPE => self.escaped = true,
                octet => {
                    let flip = if std::mem::take(&mut self.escaped) {
                        FLIP
                    } else {
                        0
                    };
                    // One octet beyond the limit is kept, which shows that the packet is too long.
                    if self.octets.len() <= self.most + HEADS[0].len() + 2 {
                        self.octets.push(octet ^ flip);
                    }
                }
            }
        }
    }

    fn packet(&self) -> Option<&[u8]> {
        let end = self.octets.len().checked_sub(2)?;
        let (whole, check) = self.octets.split_at(end);
        let packet = HEADS.iter().find_map(|head| whole.strip_prefix(head))?;
        (packet.len() <= self.most && fcs::ppp(whole) == *check).then_some(packet)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(reader: &mut Reader, stream: &[u8]) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        reader.read(stream, |packet| packets.push(packet.to_vec()));
        packets
    }

    #[test]
    fn neighbours_share_a_flag() {
        let mut stream = Vec::new();
        for _ in 0..10 {
            push(&[0x45; 100], 0, &mut stream);
        }
        assert_eq!(stream.len(), 10 * (100 + OVERHEAD) + 1);
    }

    proptest! {
        #[test]
        fn packets_round_trip_and_a_hole_spoils_only_its_own(
            packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..60), 1..8),
            map: u32, from: prop::sample::Index, len in 0_usize..40,
        ) {
            let (mut stream, mut ends) = (Vec::new(), vec![0]);
            for packet in &packets {
                push(packet, map, &mut stream);
                ends.push(stream.len());
            }
            prop_assert_eq!(&found(&mut Reader::new(60), &stream), &packets);
            let from = from.index(stream.len());
            let to = (from + len).min(stream.len());
            stream.drain(from..to);
            let back = found(&mut Reader::new(60), &stream);
            for (index, packet) in packets.iter().enumerate() {
                // The flag before a packet belongs to it, too.
                let touched = from < ends[index + 1] && to > ends[index].saturating_sub(1);
                prop_assert!(touched || back.contains(packet), "packet {}", index);
            }
            prop_assert!(back.iter().all(|packet| packets.contains(packet)));
        }

        #[test]
        fn any_stream_is_read_within_bounds(stream in prop::collection::vec(any::<u8>(), 0..500)) {
            let mut reader = Reader::new(50);
            let packets = found(&mut reader, &stream);
            prop_assert!(packets.iter().all(|packet| packet.len() <= 50));
            prop_assert!(reader.octets.len() <= 50 + 7);
        }
    }
}
