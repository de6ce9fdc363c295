//! The encoding of CLAP's packets (CLAP-Z1: the text of Gopal 2007, section 3.2.3, lacks the drawing of the format).
//!
//! ```text
//!  0        2        4                 8        10       12                16                20
//!  | source | dest.  | sequence number | length | flags  | timestamp (us)  | timestamp echo  | payload
//! ```
//! Network byte order. Flags: 1 SYN, 2 FIN, 4 ACK, 8 NACK. In a NACK 16 and 32 give the reason that it was sent for,
//! which traces read, and 64, 128 and 256 the number of unused bits at the end of its bitmap, because a 0 there would
//! mean a packet that has arrived. In data 512 asks for a report.
//!
//! Invariant: anything that is not exactly one of the six packets is refused, with the first reason that applies.

use std::fmt;

use super::packet::{Data, Feedback, Forward, Nack, NackKind, Stamp};

/// Bytes in front of the payload.
pub const HEADER: usize = 20;

const SYN: u16 = 1;
const FIN: u16 = 2;
const ACK: u16 = 4;
const NACK: u16 = 8;
const KIND_SHIFT: u16 = 4;
const PADDING_SHIFT: u16 = 6;
const SOLICITS: u16 = 512;
const SYN_ACK: u16 = SYN | ACK;
const FIN_ACK: u16 = FIN | ACK;

/// A packet with its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// From the sender. Only data carries bytes of the file.
    Forward(Forward, &'a [u8]),
    /// From the receiver.
    Feedback(Feedback<'a>),
}

/// Why bytes are not a CLAP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than a header.
    Short(usize),
    /// The length in the header differs from that of the payload.
    Length {
        /// The length in the header.
        says: usize,
        /// The length of the payload.
        has: usize,
    },
    /// No packet has this combination of flags.
    Flags(u16),
    /// The timestamp is missing; every packet carries one.
    NoTime,
    /// The payload of a SYN is not a four-byte number.
    SynPayload(usize),
    /// Data without bytes, or a report without packets.
    Empty,
    /// A payload in a packet that carries none; only data, a NACK and a SYN do.
    Payload(usize),
    /// A bit after the last packet of a NACK is set.
    Padding,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(has) => write!(f, "{has} bytes, and the header alone has {HEADER}"),
            Self::Length { says, has } => {
                write!(f, "the header says {says} bytes of payload, and {has} came")
            }
            Self::Flags(flags) => write!(f, "no packet has the flags {flags:#06x}"),
            Self::NoTime => f.write_str("the timestamp is 0, which is no time"),
            Self::SynPayload(has) => write!(f, "a SYN has 4 bytes of payload, not {has}"),
            Self::Empty => f.write_str("data or a NACK without payload"),
            Self::Payload(has) => write!(f, "{has} bytes of payload where there is none"),
            Self::Padding => f.write_str("bits are set after the last packet of a NACK"),
        }
    }
}

impl std::error::Error for Malformed {}

/// The packet does not fit: the bytes that it needs, or its payload is longer than the length field can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom(pub usize);

/// Encodes a packet; returns its length, bytes. `now` is the timestamp of packets that do not carry a time of their
/// own.
///
/// # Errors
/// If the packet does not fit.
pub fn encode(
    ports: [u16; 2],
    packet: &Packet<'_>,
    now: Stamp,
    out: &mut [u8],
) -> Result<usize, NoRoom> {
    let mut number = [0; 4];
    let (seq, flags, stamp, echo, payload) = match packet {
        Packet::Forward(Forward::Syn { first, count }, _) => {
            number = count.to_be_bytes();
            (*first, SYN, now, None, &number[..])
        }
        Packet::Forward(Forward::Data(data), payload) => {
            let flags = if data.solicits { SOLICITS } else { 0 };
            (data.seq, flags, data.stamp, data.echo, *payload)
        }
        Packet::Forward(Forward::FinAck { first }, _) => (*first, FIN_ACK, now, None, &number[..0]),
        Packet::Feedback(Feedback::SynAck { first }) => (*first, SYN_ACK, now, None, &number[..0]),
        Packet::Feedback(Feedback::Fin { first }) => (*first, FIN, now, None, &number[..0]),
        Packet::Feedback(Feedback::Nack(nack)) => {
            (nack.seq, nack_flags(nack), nack.stamp, None, nack.bitmap)
        }
    };
    let len = HEADER + payload.len();
    let Ok(payload_len) = u16::try_from(payload.len()) else {
        return Err(NoRoom(len));
    };
    let out = out.get_mut(..len).ok_or(NoRoom(len))?;
    let (header, rest) = out.split_at_mut(HEADER);
    header[..2].copy_from_slice(&ports[0].to_be_bytes());
    header[2..4].copy_from_slice(&ports[1].to_be_bytes());
    header[4..8].copy_from_slice(&seq.to_be_bytes());
    header[8..10].copy_from_slice(&payload_len.to_be_bytes());
    header[10..12].copy_from_slice(&flags.to_be_bytes());
    header[12..16].copy_from_slice(&stamp.number().to_be_bytes());
    header[16..].copy_from_slice(&echo.map_or(0, Stamp::number).to_be_bytes());
    rest.copy_from_slice(payload);
    Ok(len)
}

fn nack_flags(nack: &Nack<'_>) -> u16 {
    let kind = match nack.kind {
        NackKind::Periodic => 0,
        NackKind::Pivot => 1,
        NackKind::Sweep => 2,
        NackKind::Milestone => 3,
    };
    let padding = (nack.count.wrapping_neg() % 8) as u16;
    NACK | kind << KIND_SHIFT | padding << PADDING_SHIFT
}

/// Decodes a packet: its ports, source first, and its content.
///
/// # Errors
/// If the bytes are not a CLAP packet.
pub fn decode(bytes: &[u8]) -> Result<([u16; 2], Packet<'_>), Malformed> {
    let short = Malformed::Short(bytes.len());
    let (header, payload) = bytes.split_first_chunk::<HEADER>().ok_or(short)?;
    let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let whole = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
    let (says, has) = (usize::from(half(8)), payload.len());
    if says != has {
        return Err(Malformed::Length { says, has });
    }
    let flags = half(10);
    let first = whole(4);
    let stamp = Stamp::from_number(whole(12)).ok_or(Malformed::NoTime)?;
    let bare = |packet| match has {
        0 => Ok(packet),
        has => Err(Malformed::Payload(has)),
    };
    let packet = match flags {
        0 | SOLICITS if has == 0 => return Err(Malformed::Empty),
        0 | SOLICITS => {
            let data = Data {
                seq: first,
                stamp,
                echo: Stamp::from_number(whole(16)),
                again: false,
                solicits: flags == SOLICITS,
            };
            Packet::Forward(Forward::Data(data), payload)
        }
        SYN => {
            let count = payload.try_into().map(u32::from_be_bytes);
            let count = count.map_err(|_| Malformed::SynPayload(has))?;
            Packet::Forward(Forward::Syn { first, count }, &[])
        }
        SYN_ACK => bare(Packet::Feedback(Feedback::SynAck { first }))?,
        FIN => bare(Packet::Feedback(Feedback::Fin { first }))?,
        FIN_ACK => bare(Packet::Forward(Forward::FinAck { first }, &[]))?,
        flags => Packet::Feedback(Feedback::Nack(nack(flags, first, stamp, payload)?)),
    };
    Ok(([half(0), half(2)], packet))
}

fn nack(flags: u16, seq: u32, stamp: Stamp, bitmap: &[u8]) -> Result<Nack<'_>, Malformed> {
    if flags & (NACK | SYN | FIN | ACK) != NACK || flags >> (PADDING_SHIFT + 3) != 0 {
        return Err(Malformed::Flags(flags));
    }
    let Some(last) = bitmap.last() else {
        return Err(Malformed::Empty);
    };
    let padding = flags >> PADDING_SHIFT;
    if last & ((1_u16 << padding) - 1) as u8 != 0 {
        return Err(Malformed::Padding);
    }
    let kind = match flags >> KIND_SHIFT & 3 {
        0 => NackKind::Periodic,
        1 => NackKind::Pivot,
        2 => NackKind::Sweep,
        _ => NackKind::Milestone,
    };
    Ok(Nack {
        kind,
        seq,
        count: bitmap.len() as u32 * 8 - u32::from(padding),
        bitmap,
        stamp,
    })
}

#[cfg(test)]
mod tests;
