//! A frame as symbols with checks, some of which can stand in for others.
//!
//! ```text
//! source   packet, CRC-32 of number, length and packet, zeros up to k symbols of s bytes
//! body     DATA, RETRANSMISSION   k x | symbol | CRC-8 |, the last without its zeros
//!                                 r x | repair symbol | CRC-8 |
//!          PARITY                 coded length x | repair symbol | CRC-8 |, from `index` on
//! ```
//!
//! A symbol whose check fails is missing, and any k symbols of a frame, source or repair, give its
//! source back: Reed-Solomon for erasures, as in the block codes. (A code that corrects errors needs
//! no checks, but no well-kept implementation was found.) A check of 8 bits lets one symbol in 256
//! of those that are damaged in several bytes pass; then the CRC-32 fails, and the frame with it.
//!
//! A simulated frame is its packet, not its bytes, until the link damages it. This module alone
//! makes the bytes that left, lets the damage happen to them, and gives on what a receiver can read.
//! Images that are longer than their packets, as small simulated ones are, are not hit beyond them.

use airlane_base::{Damage, Payload, Seq};
use crc::{CRC_8_SMBUS, CRC_32_ISO_HDLC, Crc};

use super::reed_solomon::ReedSolomon;
use crate::wire::{Frame, FrameKind, Header};

const SYMBOL_CHECK: Crc<u8> = Crc::<u8>::new(&CRC_8_SMBUS);
const FRAME_CHECK: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);
/// Bytes of the CRC-32.
const FRAME_CHECK_LEN: usize = 4;
/// Bytes of the CRC-8.
const SYMBOL_CHECK_LEN: usize = 1;

/// How frames are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// s: bytes of a symbol, even.
    pub(crate) symbol: usize,
    /// r: repair symbols in each frame with a packet.
    pub(crate) inside: usize,
    /// Repair symbols that a frame can have in all.
    pub(crate) most: usize,
}

impl Shape {
    /// Bytes on the air of what follows a frame's header.
    pub(crate) fn body_len(self, header: &Header, packet_len: usize) -> usize {
        let checked = self.symbol + SYMBOL_CHECK_LEN;
        match header.kind {
            FrameKind::Data | FrameKind::Retransmission => {
                let source = packet_len + FRAME_CHECK_LEN;
                let checks = source.div_ceil(self.symbol) * SYMBOL_CHECK_LEN;
                source + checks + self.inside * checked
            }
            FrameKind::Parity => usize::from(header.coded_len) * checked,
            _ => 0,
        }
    }

    /// What a frame with the longest packet has beyond it and its header.
    pub(crate) fn overhead(self, packet_len: usize) -> usize {
        self.body_len(&Header::new(FrameKind::Data, 0), packet_len) - packet_len
    }
}

/// What is there of a frame.
#[derive(Clone, Debug)]
pub(crate) struct Pieces {
    /// Length of its packet, which the length of the frame tells.
    len: usize,
    /// Bytes of its image.
    width: usize,
    source: Vec<Option<Box<[u8]>>>,
    /// By index.
    repair: Vec<(u8, Box<[u8]>)>,
}

impl Pieces {
    /// How many symbols more are needed.
    pub(crate) fn short(&self) -> usize {
        let missing = self.source.iter().filter(|s| s.is_none()).count();
        missing.saturating_sub(self.repair.len())
    }

    /// Adds what another frame of the same number brought.
    pub(crate) fn add(&mut self, other: Self) {
        if other.len == self.len {
            for (mine, new) in self.source.iter_mut().zip(other.source) {
                *mine = mine.take().or(new);
            }
            for (index, symbol) in other.repair {
                if self.repair.iter().all(|(known, _)| *known != index) {
                    self.repair.push((index, symbol));
                }
            }
        }
    }
}

/// Cuts frames and puts them together.
#[derive(Clone, Debug)]
pub(crate) struct Symbols {
    shape: Shape,
}

impl Symbols {
    pub(crate) const fn new(shape: Shape) -> Self {
        Self { shape }
    }

    /// The source bytes of a packet, whole symbols.
    fn source<P: Payload>(&self, seq: Seq, packet: &P) -> Vec<u8> {
        let image = packet.image();
        let image = image.as_ref();
        let width = packet.len().max(image.len());
        let mut source = Vec::with_capacity(width + FRAME_CHECK_LEN + self.shape.symbol);
        source.extend_from_slice(image);
        source.resize(width, 0);
        let check = frame_check(seq, packet.len(), &source);
        source.extend_from_slice(&check.to_be_bytes());
        source.resize(source.len().next_multiple_of(self.shape.symbol), 0);
        source
    }

    /// What the receiver has of a frame that left as `sent`, with its header at the front of `at`
    /// bytes, and met this damage.
    pub(crate) fn received<P: Payload>(
        &self,
        sent: &Frame<P>,
        at: usize,
        damage: Option<&Damage>,
    ) -> Option<Pieces> {
        let Shape {
            symbol: size,
            inside,
            most,
        } = self.shape;
        let packet = sent.packet()?;
        let bytes = self.source(sent.header.seq, packet);
        let on_air = packet.len() + FRAME_CHECK_LEN;
        let mut pieces = Pieces {
            len: packet.len(),
            width: packet.len().max(packet.image().as_ref().len()),
            source: vec![None; bytes.len() / size],
            repair: Vec::new(),
        };
        let mut at = at;
        let repair = if sent.header.kind == FrameKind::Parity {
            let first = usize::from(sent.header.index);
            first..(first + usize::from(sent.header.coded_len)).min(most)
        } else {
            for (i, symbol) in bytes.chunks_exact(size).enumerate() {
                // The last leaves without its zeros; none behind the end of the packet leave at all.
                let len = on_air.saturating_sub(i * size).min(size);
                pieces.source[i] = read(symbol, len, at, damage);
                at += len + if len > 0 { SYMBOL_CHECK_LEN } else { 0 };
            }
            0..inside
        };
        if !repair.is_empty() {
            let mut index = 0;
            let mut made = |symbol: &[u8]| {
                if repair.contains(&index) {
                    if let Some(symbol) = read(symbol, size, at, damage) {
                        pieces.repair.push((index as u8, symbol));
                    }
                    at += size + SYMBOL_CHECK_LEN;
                }
                index += 1;
            };
            ReedSolomon::repair(&bytes, size, most, &mut made).ok()?;
        }
        Some(pieces)
    }

    /// The packet whose frame has this number, if the pieces are enough and fit together. `lender`
    /// is any payload of the link.
    pub(crate) fn join<P: Payload>(&self, seq: Seq, pieces: &Pieces, lender: &P) -> Option<P> {
        let mut bytes = vec![0; pieces.source.len() * self.shape.symbol];
        let mut known = pieces.source.iter();
        for symbol in bytes.chunks_exact_mut(self.shape.symbol) {
            if let Some(known) = known.next()?.as_deref() {
                symbol.copy_from_slice(known);
            }
        }
        if pieces.source.iter().any(Option::is_none) {
            let here = |at: usize| pieces.source[at].is_some();
            let repair = pieces.repair.iter().map(|(at, s)| (usize::from(*at), &**s));
            let (size, most) = (self.shape.symbol, self.shape.most);
            ReedSolomon::restore(&mut bytes, size, most, here, repair).ok()?;
        }
        let (packet, behind) = bytes.split_at_checked(pieces.width)?;
        let (check, _) = behind.split_first_chunk()?;
        let right = frame_check(seq, pieces.len, packet) == u32::from_be_bytes(*check);
        right.then(|| lender.recovered(packet, pieces.len))?
    }
}

fn frame_check(seq: Seq, len: usize, packet: &[u8]) -> u32 {
    let mut digest = FRAME_CHECK.digest();
    digest.update(&seq.to_be_bytes());
    digest.update(&(len as u32).to_be_bytes());
    digest.update(packet);
    digest.finalize()
}

/// A symbol of which the first `len` bytes and their check leave at byte `at` of the frame, as it
/// arrives; none if the check fails.
fn read(symbol: &[u8], len: usize, at: usize, damage: Option<&Damage>) -> Option<Box<[u8]>> {
    let mut arrived: Box<[u8]> = symbol.into();
    if let Some(damage) = damage {
        let mut check = [SYMBOL_CHECK.checksum(&symbol[..len])];
        damage.apply(at, &mut arrived[..len]);
        damage.apply(at + len, &mut check);
        if len > 0 && SYMBOL_CHECK.checksum(&arrived[..len]) != check[0] {
            return None;
        }
    }
    Some(arrived)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    const HEADER: usize = 5;

    fn damage(places: &BTreeMap<usize, u8>, len: usize) -> Damage {
        let mut damage = Damage::default();
        for (place, change) in places.range(..len) {
            damage.hit(*place, *change);
        }
        damage
    }

    fn places() -> impl Strategy<Value = BTreeMap<usize, u8>> {
        prop::collection::btree_map(HEADER..500usize, 1..=255u8, 1..12)
    }

    proptest! {
        /// With no more symbols hit than there are repair symbols, checks that find every error give
        /// the packet back; with any damage it is this packet or none.
        #[test]
        fn what_comes_back_is_what_was_sent(
            packet in prop::collection::vec(any::<u8>(), 0..400),
            half in 2..20usize,
            inside in 1..6usize,
            seq: u8,
            places in places(),
        ) {
            let shape = Shape { symbol: 2 * half, inside, most: inside };
            let symbols = Symbols::new(shape);
            let frame = Frame::with_packet(FrameKind::Data, seq.into(), packet.clone());
            let body = shape.body_len(&frame.header, packet.len());
            let damage = damage(&places, HEADER + body);
            let pieces = symbols.received(&frame, HEADER, Some(&damage)).unwrap();
            let back = symbols.join(seq.into(), &pieces, &packet);
            prop_assert!(back.is_none() || back.as_ref() == Some(&packet));
            // Which symbol each byte belongs to.
            let (source, step) = (packet.len() + 4, shape.symbol + 1);
            let on_air = source + source.div_ceil(shape.symbol);
            let mut hit = BTreeMap::<usize, usize>::new();
            for (place, _) in damage.bytes() {
                let at = place - HEADER;
                let which = if at < on_air {
                    at / step
                } else {
                    source.div_ceil(shape.symbol) + (at - on_air) / step
                };
                *hit.entry(which).or_default() += 1;
            }
            // A CRC-8 finds every change of one byte.
            if hit.len() <= inside && hit.values().all(|bytes| *bytes == 1) {
                prop_assert_eq!(back.as_ref(), Some(&packet));
            }
            let other = symbols.join(Seq::from(seq) ^ 1, &pieces, &packet);
            prop_assert_eq!(other, None, "the number is part of the check");
        }

        /// Increments complete a copy when together they are as many as it is short.
        #[test]
        fn increments_complete_a_copy(
            packet in prop::collection::vec(any::<u8>(), 20..400),
            places in places(),
            step in 1..4u16,
        ) {
            let shape = Shape { symbol: 8, inside: 0, most: 60 };
            let symbols = Symbols::new(shape);
            let frame = Frame::with_packet(FrameKind::Data, 7, packet.clone());
            let len = HEADER + shape.body_len(&frame.header, packet.len());
            let mut copy = symbols.received(&frame, HEADER, Some(&damage(&places, len))).unwrap();
            let mut index = 0;
            while copy.short() > 0 {
                let before = copy.short();
                let mut parity = Frame::with_packet(FrameKind::Parity, 7, packet.clone());
                (parity.header.index, parity.header.coded_len) = (index, step);
                copy.add(symbols.received(&parity, HEADER, None).unwrap());
                prop_assert_eq!(copy.short(), before.saturating_sub(step.into()));
                index += step as u8;
            }
            // What a CRC-8 lets pass the CRC-32 finds.
            let back = symbols.join(7, &copy, &packet);
            prop_assert!(back.is_none() || back.as_ref() == Some(&packet));
            let hit_once = places.keys().collect::<Vec<_>>().windows(2).all(|w| w[1] - w[0] > 9);
            prop_assert!(!hit_once || back.is_some());
        }
    }
}
