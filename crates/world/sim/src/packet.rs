//! The packets of the simulator.

use std::net::Ipv4Addr;

use airlane_base::random::fnv1a;
use airlane_base::{Instant, Payload};
use airlane_link::{FlowKey, TcpView};
use airlane_transport::tcp::MOST_BLOCKS;

/// The role of a packet in its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Role {
    /// A datagram, which no transport retransmits.
    Datagram,
    /// A segment in the flow's main direction.
    Data,
    /// An acknowledgment of `Data`.
    Ack,
    /// A segment against the main direction.
    Request,
    /// An acknowledgment of `Request`.
    RequestAck,
    /// Not a packet: a value that coded bytes may have here.
    Coded5,
    /// As `Coded5`.
    Coded6,
    /// As `Coded5`.
    Coded7,
}

impl Role {
    /// Whether its numbers count what its end sends, and not what it acknowledges. Of these packets, those that
    /// [ask](Packet::asks) carry no user bytes.
    pub(crate) const fn is_data(self) -> bool {
        matches!(self, Self::Datagram | Self::Data | Self::Request)
    }

    const fn from_code(code: u8) -> Self {
        match code & 0b111 {
            0 => Self::Datagram,
            1 => Self::Data,
            2 => Self::Ack,
            3 => Self::Request,
            4 => Self::RequestAck,
            5 => Self::Coded5,
            6 => Self::Coded6,
            _ => Self::Coded7,
        }
    }
}

/// A packet: sizes and identities, no bytes. Small and `Copy`, because a copy for retransmission must cost nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// When the application or the transport sent it.
    pub(crate) created: Instant,
    /// Segment number or cumulative acknowledgment; a datagram's number.
    pub(crate) seq: u64,
    /// Length without link headers, bytes.
    pub(crate) len: u32,
    /// The timestamp that it echoes; 0 if none. Its own timestamp is `created`.
    pub(crate) echoed: u32,
    /// Which connection of the flow; packets of older ones are ignored.
    pub(crate) connection: u32,
    /// Index of the flow.
    pub(crate) flow: u16,
    /// Index of the pair of endpoints within the flow; an application with several reuses them.
    pub(crate) endpoints: u8,
    /// Destination node.
    pub(crate) to: u16,
    /// See [`Packet::role`]. With a [`Role`] here, `Option<Packet>` would use a niche in the middle of the packet,
    /// and packets would be moved in pieces around it.
    pub(crate) role_code: u8,
    pub(crate) marks: Marks,
    /// The closed part of an acknowledgment's window, in the units of its [`End`](crate::app::end::End).
    pub(crate) closed: u16,
    /// SACK blocks of an acknowledgment (RFC 2018), in segments: the offset of each from the acknowledgment number,
    /// and its length; 0 for unused ones.
    pub(crate) blocks: [[u16; 2]; MOST_BLOCKS],
    /// The header fields that a classifier may read.
    pub(crate) header: Header,
}

/// One-bit flags of a packet; its image has room for five.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(u8);

impl Marks {
    /// Data: the segment is a retransmission.
    pub(crate) const AGAIN: Self = Self(1);
    /// Acknowledgment: a SYN-ACK.
    pub(crate) const AGREES: Self = Self(1);
    /// Acknowledgment: the next expected segment was corrupted on a link (explicit loss notification).
    pub(crate) const ELN: Self = Self(2);
    /// Data: it [asks](Packet::asks) its peer for something and carries nothing that the receiver keeps.
    pub(crate) const ASKS: Self = Self(2);
    /// Acknowledgment: it reports a mark (ECN-Echo). Data: the window was reduced because of one (CWR), or,
    /// over CLAP, it asks for a report.
    pub(crate) const ECHO: Self = Self(4);
    /// A queue may mark it (ECT).
    pub(crate) const MARKABLE: Self = Self(8);
    /// A queue has marked it (CE).
    pub(crate) const MARKED: Self = Self(16);
    /// Acknowledgment, which queues never mark: its first block is a duplicate segment, at that distance below its
    /// number (RFC 2883).
    pub(crate) const REPEATED: Self = Self(16);
    /// Whether it has this mark.
    #[inline]
    pub(crate) const fn has(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }

    /// Adds this mark if `marked`.
    #[inline]
    #[must_use]
    pub(crate) const fn with(self, mark: Self, marked: bool) -> Self {
        Self(if marked { self.0 | mark.0 } else { self.0 })
    }

    /// Takes this mark away.
    #[must_use]
    pub(crate) const fn without(self, mark: Self) -> Self {
        Self(self.0 & !mark.0)
    }
}

/// The IP protocol number of encrypted packets (RFC 4303).
pub(crate) const ESP: u8 = 50;
/// CLAP has no protocol number of its own: the first one for experiments (RFC 3692).
pub(crate) const CLAP: u8 = 253;

/// The header fields that classifiers match, as they would be in the packet. The ends of a flow also know the ports
/// of encrypted packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) src: Ipv4Addr,
    pub(crate) dst: Ipv4Addr,
    pub(crate) src_port: u16,
    pub(crate) dst_port: u16,
    pub(crate) dscp: u8,
    pub(crate) protocol: u8,
}

impl Header {
    /// The header of packets in the other direction.
    pub(crate) fn reversed(self) -> Self {
        Self {
            src: self.dst,
            dst: self.src,
            src_port: self.dst_port,
            dst_port: self.src_port,
            ..self
        }
    }
}

impl From<Header> for FlowKey {
    fn from(header: Header) -> Self {
        let shown = |port: u16| if header.protocol == ESP { 0 } else { port };
        Self {
            dscp: header.dscp,
            protocol: header.protocol,
            src: header.src.into(),
            dst: header.dst.into(),
            src_port: shown(header.src_port),
            dst_port: shown(header.dst_port),
        }
    }
}

/// What a packet asks its peer for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// A connection (SYN).
    Connection,
    /// The window, with one byte that the receiver discards.
    Window,
}

/// Bytes of an image with neither blocks nor a closed window, and of one with either. Even, because codes work on
/// pairs of bytes.
const SHORT_IMAGE: usize = 44;
const IMAGE: usize = SHORT_IMAGE + 4 * MOST_BLOCKS + 2;
/// Bits of a segment number; the bits above hold a check in the image.
const SEQ_BITS: u32 = 40;

impl Packet {
    /// Its role in the flow.
    #[inline]
    pub(crate) const fn role(&self) -> Role {
        Role::from_code(self.role_code)
    }

    /// What it asks for, if it carries no user bytes.
    #[inline]
    pub(crate) fn asks(&self) -> Option<Asks> {
        let asks = self.marks.has(Marks::ASKS) && matches!(self.role(), Role::Data | Role::Request);
        // A window can only close after segment 0 has been received.
        asks.then_some(match self.seq {
            0 => Asks::Connection,
            _ => Asks::Window,
        })
    }

    /// A placeholder.
    pub(crate) const BLANK: Self = Self {
        created: Instant::ORIGIN,
        seq: 0,
        len: 0,
        echoed: 0,
        connection: 0,
        flow: 0,
        endpoints: 0,
        to: 0,
        role_code: Role::Datagram as u8,
        marks: Marks(0),
        closed: 0,
        blocks: NO_BLOCKS,
        header: Header {
            src: Ipv4Addr::UNSPECIFIED,
            dst: Ipv4Addr::UNSPECIFIED,
            src_port: 0,
            dst_port: 0,
            dscp: 0,
            protocol: 0,
        },
    };

    /// Replaces the packet with another, if there is one.
    pub(crate) fn replace_by(&mut self, other: Option<Self>) -> bool {
        if let Some(other) = other {
            *self = other;
        }
        other.is_some()
    }

    /// The packet with the CE mark of a queue.
    pub(crate) const fn marked(&self) -> Self {
        Self {
            marks: self.marks.with(Marks::MARKED, true),
            ..*self
        }
    }

    /// The fields in a fixed order: a bijection of everything but the length, valid for coded bytes too.
    fn fields(&self) -> [u8; IMAGE] {
        let mut image = [0; IMAGE];
        let mut rest = &mut image[..];
        let mut put = |bytes: &[u8]| {
            let (here, tail) = std::mem::take(&mut rest).split_at_mut(bytes.len());
            here.copy_from_slice(bytes);
            rest = tail;
        };
        put(&self.seq.to_le_bytes());
        put(&self.created.as_nanos().to_le_bytes());
        put(&self.flow.to_le_bytes());
        put(&self.echoed.to_le_bytes());
        put(&self.connection.to_le_bytes());
        put(&self.to.to_le_bytes());
        put(&self.tag().to_le_bytes());
        put(&self.header.src.octets());
        put(&self.header.dst.octets());
        put(&self.header.src_port.to_le_bytes());
        put(&self.header.dst_port.to_le_bytes());
        put(&[self.header.dscp, self.header.protocol]);
        for number in self.blocks.as_flattened() {
            put(&number.to_le_bytes());
        }
        put(&self.closed.to_le_bytes());
        image
    }

    /// The blocks that report out-of-order data.
    pub(crate) fn news(&self) -> &[[u16; 2]] {
        let repeated = self.marks.has(Marks::REPEATED);
        &self.blocks[usize::from(repeated)..]
    }

    fn image_len(&self) -> usize {
        match (self.blocks, self.closed) {
            (NO_BLOCKS, 0) => SHORT_IMAGE,
            _ => IMAGE,
        }
    }

    const fn tag(&self) -> u16 {
        let Marks(marks) = self.marks;
        let marks = (marks as u16 & !1) << 3 | marks as u16 & 1;
        (self.endpoints as u16) << 8 | marks | (self.role() as u16) << 1
    }

    /// Takes the place of the checksums of real headers: a hash of everything after the segment number, in the bits
    /// that segment numbers leave free.
    fn check(fields: &[u8; IMAGE]) -> u64 {
        let blocks = &fields[SHORT_IMAGE..];
        let len = if blocks.iter().all(|byte| *byte == 0) {
            SHORT_IMAGE
        } else {
            IMAGE
        };
        fnv1a(&fields[size_of::<u64>()..len]) << SEQ_BITS
    }

    fn from_image(image: &[u8; IMAGE], len: u32) -> Self {
        let mut rest = &image[..];
        let tag = u16::from_le_bytes([image[28], image[29]]);
        Self {
            seq: u64::from_le_bytes(take(&mut rest)) ^ Self::check(image),
            created: Instant::from_nanos(u64::from_le_bytes(take(&mut rest))),
            len,
            flow: u16::from_le_bytes(take(&mut rest)),
            echoed: u32::from_le_bytes(take(&mut rest)),
            connection: u32::from_le_bytes(take(&mut rest)),
            endpoints: (tag >> 8) as u8,
            to: u16::from_le_bytes(take(&mut rest)),
            role_code: (tag >> 1) as u8 & 0b111,
            marks: Marks((tag >> 3) as u8 & 0b1_1110 | tag as u8 & 1),
            header: {
                let _tag: [u8; 2] = take(&mut rest);
                Header {
                    src: take(&mut rest).into(),
                    dst: take(&mut rest).into(),
                    src_port: u16::from_le_bytes(take(&mut rest)),
                    dst_port: u16::from_le_bytes(take(&mut rest)),
                    dscp: u8::from_le_bytes(take(&mut rest)),
                    protocol: u8::from_le_bytes(take(&mut rest)),
                }
            },
            blocks: [[(); 2]; MOST_BLOCKS]
                .map(|block| block.map(|()| u16::from_le_bytes(take(&mut rest)))),
            closed: u16::from_le_bytes(take(&mut rest)),
        }
    }
}

/// A packet without blocks.
pub(crate) const NO_BLOCKS: [[u16; 2]; MOST_BLOCKS] = [[0; 2]; MOST_BLOCKS];

/// As long as the packet's fields need.
struct Image {
    bytes: [u8; IMAGE],
    len: usize,
}

impl AsRef<[u8]> for Image {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The first bytes of an image, which is long enough by its type.
fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (bytes, tail) = rest.split_first_chunk().expect("an image has all fields");
    *rest = tail;
    *bytes
}

impl Payload for Packet {
    fn len(&self) -> usize {
        self.len as usize
    }

    fn image(&self) -> impl AsRef<[u8]> {
        let mut bytes = self.fields();
        let seq = self.seq ^ Self::check(&bytes);
        bytes[..size_of::<u64>()].copy_from_slice(&seq.to_le_bytes());
        let len = self.image_len();
        Image { bytes, len }
    }

    fn coded(&self, image: &[u8], len: usize) -> Self {
        let mut whole = [0; IMAGE];
        let known = image.len().min(IMAGE);
        whole[..known].copy_from_slice(&image[..known]);
        Self::from_image(&whole, len as u32)
    }

    fn recovered(&self, image: &[u8], len: usize) -> Option<Self> {
        let packet = self.coded(image, len);
        let is_packet = !matches!(packet.role(), Role::Coded5 | Role::Coded6 | Role::Coded7);
        (is_packet && packet.seq >> SEQ_BITS == 0).then_some(packet)
    }
}

/// Packets of the simulator are neither aggregated nor fragmented.
impl airlane_link::pack::Divisible for Packet {}

impl airlane_link::Packet for Packet {
    fn flow(&self) -> FlowKey {
        self.header.into()
    }

    fn mark_lost(&mut self) {
        if matches!(self.role(), Role::Ack | Role::RequestAck) {
            self.marks = self.marks.with(Marks::ELN, true);
        }
    }

    /// Its numbers count segments.
    fn tcp(&self) -> Option<TcpView> {
        let (seq, end, ack) = match self.role() {
            Role::Datagram | Role::Coded5 | Role::Coded6 | Role::Coded7 => return None,
            _ if matches!(self.header.protocol, ESP | CLAP) => return None,
            // A probe asks the other end for its window, and is no data.
            Role::Data | Role::Request if self.asks().is_some() => return None,
            Role::Ack | Role::RequestAck if self.marks.has(Marks::AGREES) => return None,
            Role::Data | Role::Request => {
                (self.seq as u32, (self.seq as u32).wrapping_add(1), None)
            }
            Role::Ack | Role::RequestAck => (0, 0, Some(self.seq as u32)),
        };
        Some(TcpView {
            connection: self.connection,
            endpoints: u32::from(self.flow) << 8 | u32::from(self.endpoints),
            seq,
            end,
            ack,
            // Only changes of this value matter.
            window: self.closed,
            block: ack
                .zip(self.news().first())
                .and_then(|(ack, [ahead, len])| {
                    let start = ack.wrapping_add(u32::from(*ahead));
                    (*len > 0).then(|| [start, start.wrapping_add(u32::from(*len))])
                }),
            syn: false,
            rst: false,
        })
    }
}

const _: () = assert!(size_of::<Packet>() <= 64, "packets are copied at every hop");

#[cfg(test)]
mod tests {
    use super::*;
    use airlane_base::{Rng, Streams};

    fn any_packet(rng: &mut Rng) -> Packet {
        let word = rng.next_u64();
        Packet {
            created: Instant::from_nanos(rng.next_u64() >> 4),
            seq: rng.next_u64() >> (64 - SEQ_BITS),
            len: (word >> 48) as u32,
            flow: word as u16,
            echoed: rng.next_u64() as u32,
            connection: rng.next_u64() as u32,
            endpoints: rng.next_u64() as u8,
            to: word as u16,
            role_code: (word % 5) as u8,
            marks: Marks(rng.next_u64() as u8 & 0b1_1111),
            closed: (word >> 20) as u16 * u16::from(word & 512 != 0),
            blocks: match word & 128 {
                0 => NO_BLOCKS,
                _ => [[(); 2]; MOST_BLOCKS].map(|block| block.map(|()| rng.next_u64() as u16)),
            },
            header: Header {
                src: Ipv4Addr::from_bits(rng.next_u64() as u32),
                dst: Ipv4Addr::from_bits(rng.next_u64() as u32),
                src_port: word as u16,
                dst_port: (word >> 16) as u16,
                dscp: (word >> 32) as u8,
                protocol: 6,
            },
        }
    }

    #[test]
    fn images_are_lossless_for_packets_and_for_coded_bytes() {
        let mut rng = Streams::new(1, 0).stream("images");
        let lender = any_packet(&mut rng);
        for _ in 0..1_000 {
            let packet = any_packet(&mut rng);
            let image = packet.image();
            let back = lender.recovered(image.as_ref(), packet.len()).unwrap();
            assert_eq!(format!("{back:?}"), format!("{packet:?}"));
            for len in [SHORT_IMAGE, IMAGE] {
                let bytes: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
                let coded = lender.coded(&bytes, 50);
                assert_eq!((coded.image().as_ref(), coded.len()), (&bytes[..], 50));
            }
        }
    }

    #[test]
    fn a_wrong_combination_is_not_a_valid_packet() {
        // The XOR of three packets is not one of them: the check is not linear.
        let mut rng = Streams::new(2, 0).stream("images");
        for _ in 0..1_000 {
            let mut sum = vec![0; IMAGE];
            for _ in 0..3 {
                let image = any_packet(&mut rng).image().as_ref().to_vec();
                sum.iter_mut().zip(image).for_each(|(s, byte)| *s ^= byte);
            }
            assert!(any_packet(&mut rng).recovered(&sum, 50).is_none());
        }
    }
}
