//! What the two ends say to each other, in bytes: inside sealed datagrams, each with everything needed to understand it.
//!
//! ```text
//!  0      1         3
//!  | kind | session | body                                    network order
//!    0     a packet of CLAP, whose ports are the number of its round
//!    1     a mark of the rate finder: number (4)
//!    2     a report of a mark: number (4), bytes received (4), when it came in us (4)
//!    3     hello: version (1), when the sender was started (8), and as many zeros as make it as long as is tried
//!    4     reached: the length of a hello that came (2), and which start of the receiver it is (2)
//!    5     a part of a message: its turn (2), number (4) and count (4) of parts, and its bytes
//!    6     got: turn (2), the lowest part that is missing (4), which of the 64 behind it came (8)
//!    7     later: when the sender was started that the receiver is with (8), to one that was started before it
//! ```

use airlane_link::wire::Report;
use airlane_transport::clap::wire;
use serde::{Deserialize, Serialize};

use crate::manifest::Manifest;
use crate::ranges::Ranges;

/// What both must speak.
pub(crate) const VERSION: u8 = 1;
/// Kind and session.
pub(crate) const HEAD: usize = 3;
/// Bytes of a datagram with a piece of a file that are not the piece.
pub const OVERHEAD: usize = HEAD + wire::HEADER;
/// No datagram's contents are longer: jumbo frames carry so much.
pub const LONGEST_DATAGRAM: usize = 8_900;
/// Bytes of a part's datagram in front of its contents.
pub(crate) const PART_HEAD: usize = HEAD + 10;

const CLAP: u8 = 0;
const MARK: u8 = 1;
const REPORT: u8 = 2;
const HELLO: u8 = 3;
const REACHED: u8 = 4;
const PART: u8 = 5;
const GOT: u8 = 6;
const LATER: u8 = 7;

/// One datagram's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    /// A packet of CLAP, and the round that it belongs to.
    Clap(u16, wire::Packet<'a>),
    Mark(u32),
    Report(u32, Report),
    /// When the sender was started, and how long the whole message is.
    Hello(u64, usize),
    /// The length of a hello that came, and which start of the receiver it is.
    Reached(u16, u16),
    Part(Part<'a>),
    Got(Got),
    /// When the sender was started that the receiver is with: later than the one that it says so to.
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

/// Which parts of a turn came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) turn: u16,
    /// All below came.
    pub(crate) next: u32,
    /// Bit i: part `next + 1 + i` came.
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
    /// Writes it into a buffer that has room for the longest datagram; how long it is.
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

/// Reads a datagram's contents with the session that it belongs to; none if it is no message.
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

/// What a sender has to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToTaker {
    /// What there is, and how long datagrams are to be.
    Manifest { size: u16, list: Manifest },
    /// One for each file, in the order of the manifest.
    Digests(Vec<Digest>),
}

/// What a receiver has to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToShipper {
    /// These bytes are to come.
    Missing(Ranges),
    Refused(String),
    /// All is here as it was sent.
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
            let data = Data { seq: number, stamp: Stamp::of(Instant::ORIGIN), echo: None, again: false };
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
