//! Reed-Solomon erasure coding of packets: any n of n packets and h parities restore all packets.
//!
//! A packet is coded as its length (two bytes) and its image, padded to the longest of its block and to an
//! even number of bytes, because the code works on pairs. The coded length of a parity frame is the first two
//! bytes of its row; the rest is its payload.

use std::fmt;

use airlane_base::Payload;
use reed_solomon_simd::{Error, ReedSolomonDecoder, ReedSolomonEncoder};

/// Coder for blocks of one shape. The work space is allocated for the first block and kept; a clone allocates
/// its own.
pub(crate) struct ReedSolomon {
    packets: usize,
    parities: usize,
    encoder: Option<Box<ReedSolomonEncoder>>,
    decoder: Option<Box<ReedSolomonDecoder>>,
    row: Vec<u8>,
}

/// Bytes of the length before each image.
const LEN: usize = 2;

impl ReedSolomon {
    pub(crate) fn new(packets: u32, parities: u32) -> Self {
        Self {
            packets: packets as usize,
            parities: parities as usize,
            encoder: None,
            decoder: None,
            row: Vec::new(),
        }
    }

    /// Packets of a block.
    pub(crate) fn packets(&self) -> u32 {
        self.packets as u32
    }

    /// Whether a block can have this shape.
    pub(crate) fn supports(packets: u32, parities: u32) -> bool {
        ReedSolomonEncoder::supports(packets as usize, parities as usize)
    }

    fn fill(row: &mut Vec<u8>, len: u16, image: &[u8], width: usize) {
        row.clear();
        row.extend_from_slice(&len.to_be_bytes());
        row.extend_from_slice(image);
        row.resize(width, 0);
    }

    /// The parities of a full block with their coded lengths, in order.
    pub(crate) fn encode<P: Payload>(
        &mut self,
        packets: &[P],
        mut each: impl FnMut(u16, P),
    ) -> Result<(), Error> {
        let longest = |len: fn(&P) -> usize| {
            let longest = packets.iter().map(len).max().unwrap_or(0);
            longest.next_multiple_of(2)
        };
        let width = LEN + longest(|p| p.image().as_ref().len());
        let wire = longest(P::len);
        let (n, h) = (self.packets, self.parities);
        let encoder = match &mut self.encoder {
            Some(encoder) => {
                encoder.reset(n, h, width)?;
                encoder
            }
            none => none.insert(Box::new(ReedSolomonEncoder::new(n, h, width)?)),
        };
        for packet in packets {
            let image = packet.image();
            Self::fill(&mut self.row, packet.len() as u16, image.as_ref(), width);
            encoder.add_original_shard(&self.row)?;
        }
        for row in encoder.encode()?.recovery_iter() {
            if let (Some(([a, b], image)), Some(lender)) =
                (row.split_first_chunk(), packets.first())
            {
                each(u16::from_be_bytes([*a, *b]), lender.coded(image, wire));
            }
        }
        Ok(())
    }

    /// The packets that are missing from `frames` (position, payload, coded length if it is a parity), by
    /// position; none at a position whose bytes are not a packet.
    pub(crate) fn decode<P: Payload>(
        &mut self,
        frames: &[(u32, P, u16)],
        mut each: impl FnMut(u32, Option<P>),
    ) -> Result<(), Error> {
        let (n, h) = (self.packets, self.parities);
        let parity = frames.iter().find(|(place, ..)| *place as usize >= n);
        let Some((_, lender, _)) = parity else {
            return Ok(());
        };
        let width = LEN + lender.image().as_ref().len();
        let decoder = match &mut self.decoder {
            Some(decoder) => {
                decoder.reset(n, h, width)?;
                decoder
            }
            none => none.insert(Box::new(ReedSolomonDecoder::new(n, h, width)?)),
        };
        for (place, payload, len) in frames {
            let image = payload.image();
            let image = image.as_ref();
            let place = *place as usize;
            if place >= n {
                // Parities of a block are equally long, so none is padded.
                Self::fill(&mut self.row, *len, image, LEN + image.len());
                decoder.add_recovery_shard(place - n, &self.row)?;
            } else {
                Self::fill(&mut self.row, *len, image, width.max(LEN + image.len()));
                decoder.add_original_shard(place, &self.row)?;
            }
        }
        for (place, row) in decoder.decode()?.restored_original_iter() {
            let packet = row.split_first_chunk().and_then(|([a, b], image)| {
                lender.recovered(image, usize::from(u16::from_be_bytes([*a, *b])))
            });
            each(place as u32, packet);
        }
        Ok(())
    }
}

impl Clone for ReedSolomon {
    fn clone(&self) -> Self {
        Self::new(self.packets as u32, self.parities as u32)
    }
}

impl fmt::Debug for ReedSolomon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReedSolomon({}, {})", self.packets, self.parities)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_n_frames_give_all_packets_back(
            packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..12),
            h in 1..6u32,
            lost in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
        ) {
            let n = packets.len() as u32;
            let mut code = ReedSolomon::new(n, h);
            for _round in 0..2 {
                let mut frames: Vec<(u32, Vec<u8>, u16)> = (0..n)
                    .zip(&packets)
                    .map(|(place, p)| (place, p.clone(), p.len() as u16))
                    .collect();
                let mut place = n;
                code.encode(&packets, |len, parity| {
                    frames.push((place, parity, len));
                    place += 1;
                }).unwrap();
                prop_assert_eq!(frames.len() as u32, n + h);
                for index in lost.iter().take(h as usize) {
                    frames.remove(index.index(frames.len()));
                }
                let mut restored = std::collections::BTreeMap::new();
                code.decode(&frames, |place, packet| {
                    restored.insert(place, packet);
                }).unwrap();
                for (place, packet) in (0..n).zip(&packets) {
                    let here = frames.iter().any(|f| f.0 == place);
                    let back = restored.get(&place).and_then(Option::as_ref);
                    prop_assert!(here || back == Some(packet), "place {}", place);
                }
            }
        }

        /// Arbitrary frames from a peer yield an error or packets, never a panic.
        #[test]
        fn any_frames_decode_without_panic(
            frames in prop::collection::vec(
                (0..6u32, prop::collection::vec(any::<u8>(), 0..9), any::<u16>()), 0..8),
        ) {
            let mut code = ReedSolomon::new(4, 2);
            let _error = code.decode(&frames, |place, _| assert!(place < 4));
        }
    }
}
