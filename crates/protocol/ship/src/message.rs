//! The encoding of the messages between the two ends, in sealed datagrams. Each datagram can be decoded independently.
//!
//! ```text
//!  0      1         3
//!  | kind | session | body                                    network order
//!    0     a packet of CLAP, whose ports are the number of its round
//!    1     a mark of the rate estimator: number (4)
//!    2     a report of a mark: number (4), bytes received (4), arrival time in us (4)
//!    3     hello: version (1), start time of the sender (8), and zeros up to the length under test
//!    4     reached: the length of a hello received (2), and the receiver's instance (2)
//!    5     a part of a message: its turn (2), number (4) and count (4) of parts, and its bytes
//!    6     got: turn (2), the lowest missing part (4), which of the 64 after it have arrived (8)
//!    7     later: start time of the receiver's current sender (8), to a sender that was started before it
//! ```

use airlane_link::wire::Report;
use airlane_transport::clap::wire;
use serde::{Deserialize, Serialize};

use crate::manifest::Manifest;
use crate::ranges::Ranges;

/// The protocol version that both ends must use.
pub(crate) const VERSION: u8 = 1;
/// Length of kind and session, bytes.
pub(crate) const HEAD: usize = 3;
/// Overhead of a datagram with a piece of a file, bytes.
pub const OVERHEAD: usize = HEAD + wire::HEADER;
/// Longest payload of a datagram, bytes: that of a jumbo frame.
pub const LONGEST_DATAGRAM: usize = 8_900;
/// Length of the header of a datagram with a part, bytes.
pub(crate) const PART_HEAD: usize = HEAD + 10;

const CLAP: u8 = 0;
const MARK: u8 = 1;
const REPORT: u8 = 2;
const HELLO: u8 = 3;
const REACHED: u8 = 4;
const PART: u8 = 5;
const GOT: u8 = 6;
const LATER: u8 = 7;

/// The payload of one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    /// A packet of CLAP, and its round.
    Clap(u16, wire::Packet<'a>),
    Mark(u32),
    Report(u32, Report),
    /// When the sender was started, and the length of the whole message.
    Hello(u64, usize),
    /// The length of a hello received, and the receiver's instance.
    Reached(u16, u16),
    Part(Part<'a>),
    Got(Got),
    /// The start time of the receiver's current sender, which is later than that of the addressed one.
    Later(u64),
}

/// A part of a longer message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    pub(crate) turn: u16,
    pub(crate) number: u32,
    pub(crate) count: u32,
    pub(crate) bytes: &'a [u8],
}

/// An acknowledgment: which parts of a turn have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) turn: u16,
    /// All parts below have arrived.
    pub(crate) next: u32,
    /// Bit i: part `next + 1 + i` has arrived.
    pub(crate) later: u64,
}

fn put<'a>(out: &mut [u8], fields: impl IntoIterator<Item = &'a [u8]>) -> usize {
    let mut at = 0;
    for field in fields {
        out[at..at + field.len()].copy_from_slice(field);
        at += field.len();
    }
    at
}

impl Message<'_> {
    /// Encodes the message into a buffer with room for the longest datagram; returns its length.
    pub(crate) fn encode(&self, session: u16, now: airlane_base::Instant, out: &mut [u8]) -> usize {
        let session = session.to_be_bytes();
        let mut write = |kind: u8, fields: &[&[u8]]| {
            let head = [kind];
            put(
                out,
                [&head[..], &session[..]]
                    .into_iter()
                    .chain(fields.iter().copied()),
            )
        };
        match self {
            Message::Clap(round, packet) => {
                let len = write(CLAP, &[]);
                let stamp = airlane_transport::clap::Stamp::of(now);
                let written = wire::encode([*round; 2], packet, stamp, &mut out[len..]);
                len + written.expect("the buffer has room for the longest datagram")
            }
            Message::Mark(number) => write(MARK, &[&number.to_be_bytes()]),
            Message::Report(number, report) => write(
                REPORT,
                &[
                    &number.to_be_bytes(),
                    &report.received.to_be_bytes(),
                    &report.at_us.to_be_bytes(),
                ],
            ),
            Message::Hello(started, len) => {
                let written = write(HELLO, &[&[VERSION], &started.to_be_bytes()]);
                out[written..(*len).max(written)].fill(0);
                (*len).max(written)
            }
            Message::Reached(len, turn) => {
                write(REACHED, &[&len.to_be_bytes(), &turn.to_be_bytes()])
            }
            Message::Part(part) => write(
                PART,
                &[
                    &part.turn.to_be_bytes(),
                    &part.number.to_be_bytes(),
                    &part.count.to_be_bytes(),
                    part.bytes,
                ],
            ),
            Message::Later(started) => write(LATER, &[&started.to_be_bytes()]),
            Message::Got(got) => write(
                GOT,
                &[
                    &got.turn.to_be_bytes(),
                    &got.next.to_be_bytes(),
                    &got.later.to_be_bytes(),
                ],
            ),
        }
    }
}

/// Decodes the payload of a datagram and its session; `None` if it is not a message.
pub(crate) fn decode(bytes: &[u8]) -> Option<(u16, Message<'_>)> {
    let (&[kind, high, low], body) = bytes.split_first_chunk::<HEAD>()?;
    let mut fields = Fields(body);
    let message = match kind {
        CLAP => {
            let ([round, again], packet) = wire::decode(fields.rest()).ok()?;
            Message::Clap(Some(round).filter(|round| *round == again)?, packet)
        }
        MARK => Message::Mark(fields.four()?),
        REPORT => Message::Report(
            fields.four()?,
            Report {
                received: fields.four()?,
                at_us: fields.four()?,
            },
        ),
        HELLO => {
            fields.take::<1>().filter(|version| *version == [VERSION])?;
            let started = fields.eight()?;
            fields.rest();
            Message::Hello(started, bytes.len())
        }
        REACHED => Message::Reached(fields.two()?, fields.two()?),
        PART => Message::Part(Part {
            turn: fields.two()?,
            number: fields.four()?,
            count: fields.four()?,
            bytes: fields.rest(),
        }),
        GOT => Message::Got(Got {
            turn: fields.two()?,
            next: fields.four()?,
            later: fields.eight()?,
        }),
        LATER => Message::Later(fields.eight()?),
        _ => return None,
    };
    fields
        .0
        .is_empty()
        .then_some((u16::from_be_bytes([high, low]), message))
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    fn two(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn four(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn eight(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

/// BLAKE3 of a file, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(pub String);

/// A message of the sender.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToReceiver {
    /// The list of files, and the length of the datagrams to follow.
    Manifest { size: u16, list: Manifest },
    /// One for each file, in the order of the manifest.
    Digests(Vec<Digest>),
}

/// A message of the receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToShipper {
    /// The bytes to be sent.
    Missing(Ranges),
    Refused(String),
    /// Everything has arrived as it was sent.
    Done,
}

#[cfg(test)]
mod tests {
    use airlane_base::Instant;
    use airlane_transport::clap::{Data, Forward, Stamp};
    use proptest::prelude::*;

    use super::*;

    fn messages() -> impl Strategy<Value = (u8, Vec<u8>, u64, u32)> {
        (
            0_u8..8,
            prop::collection::vec(any::<u8>(), 1..1_200),
            any::<u64>(),
            any::<u32>(),
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read((kind, bytes, long, number) in messages()) {
            let data = Data { seq: number, stamp: Stamp::of(Instant::ORIGIN), echo: None, again: false, solicits: false };
            let turn = long as u16;
            let message = match kind {
                0 => Message::Clap(turn, wire::Packet::Forward(Forward::Data(data), &bytes)),
                1 => Message::Mark(number),
                2 => Message::Report(number, Report { received: long as u32, at_us: !number }),
                3 => Message::Hello(long, 12 + bytes.len()),
                4 => Message::Reached(turn, !turn),
                5 => Message::Part(Part { turn, number, count: !number, bytes: &bytes }),
                6 => Message::Later(long),
                _ => Message::Got(Got { turn, next: number, later: long }),
            };
            let mut out = [7; 2_000];
            let len = message.encode(!turn, Instant::ORIGIN, &mut out);
            prop_assert_eq!(decode(&out[..len]), Some((!turn, message)));
            prop_assert_eq!(decode(&out[..2]), None);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Some((session, message)) = decode(&bytes)
                && !matches!(message, Message::Clap(..) | Message::Hello(..))
            {
                let mut out = [0; 2_000];
                let len = message.encode(session, Instant::ORIGIN, &mut out);
                prop_assert_eq!(&out[..len], &bytes[..]);
            }
        }
    }
}
