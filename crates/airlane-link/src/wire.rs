//! Frames and their headers: two profiles from one codec.
//!
//! **`study`** is the dissertation's layout (Xylomenos 1999, figure 6.2 and section 6 of the
//! specification). Byte 0 is the service number (high nibble) and the frame type (low nibble);
//! what follows depends on the scheme of the service:
//!
//! ```text
//! bare      | service:4 type:4 |                       Default, Snoop
//! seq       | service:4 type:4 | seq:8 |               RLP, RLP/OOS
//! seq-ack   | service:4 type:4 | seq:8 | ack:8 |       go back N, SR and its variants
//! coded     | service:4 type:4 | seq:8 |               XOR
//! block     | service:4 block:3 parity:1 | index:8 |   XOR/Ad
//! bitmap    | service:4 type:4 | seq:8 |               SR/bitmap; in its BITMAP frames seq is the
//!           | service:4 type:4 | seq:8 | bits ... |    next number expected, the bits follow it
//! symbols   | service:4 type:4 | seq:8 | index:8 | check:16 |    hybrid ARQ; CRC-16 of what is
//!                                                   before it, as such frames may arrive damaged
//! ```
//!
//! The coded length of a parity frame is not in it (with symbols the frame's length says it): the dissertation does not count framing, and
//! its packets are all equally long. The simulator passes it on beside the bytes.
//!
//! **`live`** travels inside datagrams, one frame each, where an old frame can turn up at any time and
//! nobody vouches for it. So every frame names its session, and numbers have 32 bits. **`sealed`** is the
//! same inside messages of a secure session, which are bound to the session that they were sealed in:
//! frames of another cannot be opened, so they name none. Which of the two it is follows from whether a
//! link has keys, on which both ends agree or never meet.
//!
//! ```text
//!            live      sealed
//!            0         0         service:4 type:4
//!            1..5      -         session
//!            5..9      1..5      seq                (Default numbers its frames too: loss can be measured)
//! then       2         2         coded length                        (coded, block and symbols)
//!            1         1         index in the block (block, where seq is the number of the block), or
//!                                of the first repair symbol (symbols)
//!            2         2         CRC-16 of what is before            (symbols)
//! or
//!            5..9      1..4      seq                (seq-ack, bitmap)
//! then       4         3         ack                                                (seq-ack only)
//!            2         2         low 16 bits of the newest original frame received  (seq-ack only)
//!            2         2         how long ago that was, in units of 16 us, 0xffff: never or too long
//!                                ago                                                (seq-ack only)
//! ```
//! Frames with the bitmap layout end behind `seq`, but BITMAP frames have the fields of seq-ack; the
//! bits follow the header and begin at the number `seq`. The layout is the service's, on which both ends
//! have agreed, and the datagram says where the frame ends. A hello, type 9, is bare with all fields 0; its
//! version is in its body.
//!
//! **Why 24 bits are enough** where frames are acknowledged and sealed: a sender is never further ahead of
//! its oldest unacknowledged frame than its window, and the secure session opens nothing twice and nothing
//! that some thousand others have overtaken. Half of the numbers must hold both: 8.4 million frames, where
//! eight bandwidth-delay products of 10 Gbit/s x 100 ms in frames of 256 bytes are 3.9 million. Without
//! acknowledgments a sender goes on through an outage, however long, and the receiver must still see that
//! what comes then is new; without keys an old frame may be as old as it likes: 32 bits.
//!
//! All numbers are big-endian. Decoding never panics and never reads past the buffer.

mod bitmap;
#[cfg(test)]
mod tests;

use airlane_base::{Duration, Payload, Seq, SeqSpace};
use crc::{CRC_16_IBM_3740, Crc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use bitmap::Bitmap;

/// What a frame is for. The codes are ours where the dissertation is silent (XYL-S-9).
// As wide as its neighbours in the header: a narrow one makes `Option<Frame>` tell by a byte in its
// midst whether there is a frame, and frames are then moved in pieces around that byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum FrameKind {
    /// A packet, sent for the first time.
    Data = 0,
    /// An acknowledgment alone.
    Ack = 1,
    /// A request for one frame.
    Nak = 2,
    /// Names the highest number sent while there is nothing new to send.
    Keepalive = 3,
    /// Redundancy: what packets of a block combine to.
    Parity = 4,
    /// A packet, sent again before anybody could ask for it; live profile only.
    Copy = 5,
    /// A packet, sent again.
    Retransmission = 7,
    /// Says which frames have been received.
    Bitmap = 8,
    /// Session control; never reaches a service.
    Hello = 9,
}

impl FrameKind {
    const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Data,
            1 => Self::Ack,
            2 => Self::Nak,
            3 => Self::Keepalive,
            4 => Self::Parity,
            5 => Self::Copy,
            7 => Self::Retransmission,
            8 => Self::Bitmap,
            9 => Self::Hello,
            _ => return None,
        })
    }

    /// Whether what it carries is one whole packet.
    pub const fn is_packet(self) -> bool {
        matches!(self, Self::Data | Self::Copy | Self::Retransmission)
    }

    /// Whether it repeats a packet, or carries redundancy of packets.
    pub const fn repairs(self) -> bool {
        matches!(self, Self::Parity | Self::Copy | Self::Retransmission)
    }

    /// Whether a packet travels in it, or redundancy of packets.
    pub const fn carries_packet(self) -> bool {
        matches!(
            self,
            Self::Data | Self::Parity | Self::Copy | Self::Retransmission
        )
    }
}

/// Which fields the frames of a service carry after the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Nothing (in the live profile: a number that only measures loss).
    Bare,
    /// A sequence number.
    Seq,
    /// A sequence number and an acknowledgment.
    SeqAck,
    /// A sequence number, and the coded length of the packets that a parity frame combines.
    Coded,
    /// The number of a block, the place in it, and the coded length.
    Block,
    /// A sequence number; BITMAP frames an acknowledgment and a bitmap too.
    Bitmap,
    /// A sequence number, an index or a number of symbols, and a check of the header.
    Symbols,
}

impl Layout {
    /// Whether frames of this kind say what has been received.
    pub const fn acknowledges(self, kind: FrameKind) -> bool {
        match self {
            Self::SeqAck => true,
            Self::Bitmap => matches!(kind, FrameKind::Bitmap),
            _ => false,
        }
    }
}

/// Which original frame the peer saw last, for round trip measurement without ambiguity:
/// retransmissions have their own type and are never echoed (Karn's rule for links).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Echo {
    /// Low 16 bits of the newest original frame received.
    pub seq_low: u16,
    /// How long the peer held it before this frame was made.
    pub held: Duration,
}

/// The header of a frame. Fields that a layout does not carry are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// Service number, 0 to 15.
    pub service: u8,
    /// What the frame is for.
    pub kind: FrameKind,
    /// Place in the block; of hybrid ARQ, in a parity frame the place of its first symbol among the
    /// repair symbols, in a request how many symbols are short, 0: all.
    pub index: u8,
    /// In a parity frame: what the lengths of the packets combine to; of hybrid ARQ, how many symbols
    /// it has.
    pub coded_len: u16,
    /// Sequence number, or number of the block.
    pub seq: Seq,
    /// The next number that the sender of this frame expects.
    pub ack: Seq,
    /// Round trip measurement, live profile only.
    pub echo: Option<Echo>,
    /// In a BITMAP frame: what has been received from `seq` on.
    pub bits: Bitmap,
}

impl Header {
    /// A header without acknowledgment.
    pub const fn new(kind: FrameKind, seq: Seq) -> Self {
        Self {
            service: 0,
            kind,
            index: 0,
            coded_len: 0,
            seq,
            ack: 0,
            echo: None,
            bits: Bitmap::EMPTY,
        }
    }
}

/// A frame: what one port gives and the other takes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame<P> {
    /// Its header.
    pub header: Header,
    /// The packet, in DATA, PARITY, COPY and RETRANSMISSION frames.
    pub payload: Option<P>,
}

impl<P: Payload> Frame<P> {
    pub(crate) fn control(kind: FrameKind, seq: Seq) -> Self {
        Self {
            header: Header::new(kind, seq),
            payload: None,
        }
    }

    pub(crate) fn with_packet(kind: FrameKind, seq: Seq, packet: P) -> Self {
        Self {
            header: Header::new(kind, seq),
            payload: Some(packet),
        }
    }

    /// Bytes of the packet, zero without one.
    pub fn payload_len(&self) -> usize {
        self.payload.as_ref().map_or(0, Payload::len)
    }
}

/// The two header profiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HeaderProfile {
    /// The dissertation's 1 to 3 bytes, numbers modulo 256.
    #[default]
    Study,
    /// A session and 32-bit numbers, for real links.
    Live,
    /// No session and shorter numbers, for real links whose frames a secure session binds to theirs.
    Sealed,
}

impl HeaderProfile {
    /// For real links, where frames may be late, and not for reproductions.
    pub const fn is_live(self) -> bool {
        !matches!(self, Self::Study)
    }

    /// Bytes of the session.
    const fn session_len(self) -> usize {
        match self {
            Self::Live => 4,
            Self::Study | Self::Sealed => 0,
        }
    }

    /// Bytes of the numbers in frames of this layout.
    const fn number_len(self, layout: Layout) -> usize {
        match (self, layout) {
            (Self::Study, _) => 1,
            (Self::Sealed, Layout::SeqAck | Layout::Bitmap) => 3,
            (Self::Live | Self::Sealed, _) => 4,
        }
    }
}

/// Why bytes were not a frame. Counted, never fatal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// Shorter than its header.
    #[error("truncated frame: need {need} B, got {got} B")]
    Truncated {
        /// Bytes that the header needs.
        need: usize,
        /// Bytes that there were.
        got: usize,
    },
    /// A type code without meaning.
    #[error("unknown frame type {code}")]
    UnknownType {
        /// The code found.
        code: u8,
    },
    /// No such service here.
    #[error("unknown service {service}")]
    UnknownService {
        /// The number found.
        service: u8,
    },
    /// More bits than there are numbers, or none in the last byte.
    #[error(
        "a bitmap of {got} B has up to {} B and ends with a bit",
        Bitmap::MAX_LEN
    )]
    Bitmap {
        /// Bytes found.
        got: usize,
    },
    /// The header's own check failed.
    #[error("the header's check is {stated:#06x}, its bytes have {got:#06x}")]
    Check {
        /// What the header says.
        stated: u16,
        /// What its bytes give.
        got: u16,
    },
    /// A number that the sequence space does not have.
    #[error("sequence number {seq} is outside the sequence space of {modulus}")]
    Number {
        /// The number found.
        seq: Seq,
        /// Size of the space.
        modulus: u64,
    },
}

/// What a frame says that it has received; nothing but BITMAP frames do.
fn bits_of(header: &Header, layout: Layout) -> Bitmap {
    if layout == Layout::Bitmap && header.kind == FrameKind::Bitmap {
        header.bits
    } else {
        Bitmap::EMPTY
    }
}

/// Numbers of the study layout's blocks.
pub(crate) const STUDY_BLOCKS: u32 = 8;
/// Room for everything of a live frame but its packet: of the longer profile, the longest fields and
/// all bits.
pub const LIVE_HEADER_ROOM: usize = 17 + Bitmap::MAX_LEN;

const HEADER_CHECK: Crc<u16> = Crc::<u16>::new(&CRC_16_IBM_3740);
const HEADER_CHECK_LEN: usize = 2;

const HELD_UNIT: Duration = Duration::from_micros(16);

/// A decoded frame, with its payload still in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The header.
    pub header: Header,
    /// The session it belongs to; zero where the profile has none.
    pub session: u32,
    /// Where the payload begins; it reaches to the end of the buffer.
    pub payload_at: usize,
}

/// Writes and reads headers of one profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Codec {
    profile: HeaderProfile,
    /// Numbers have no more bits than this, whatever they have room for.
    bits: u32,
}

impl Codec {
    /// The codec of a profile.
    pub const fn new(profile: HeaderProfile) -> Self {
        Self { profile, bits: 32 }
    }

    /// The same with numbers of `bits` bits at most.
    #[must_use]
    pub const fn with_bits(self, bits: u32) -> Self {
        Self { bits, ..self }
    }

    /// The profile.
    pub const fn profile(self) -> HeaderProfile {
        self.profile
    }

    /// The sequence space of services with this layout.
    pub const fn space(self, layout: Layout) -> SeqSpace {
        let room = self.profile.number_len(layout) as u32 * 8;
        SeqSpace::new(if self.bits < room { self.bits } else { room })
    }

    /// Bytes of the header of a frame with a packet of a service with this layout.
    pub const fn header_len(self, layout: Layout) -> usize {
        if let HeaderProfile::Study = self.profile {
            return match layout {
                Layout::Bare => 1,
                Layout::Seq | Layout::Coded | Layout::Block | Layout::Bitmap => 2,
                Layout::SeqAck => 3,
                Layout::Symbols => 3 + HEADER_CHECK_LEN,
            };
        }
        let behind_seq = match layout {
            Layout::Bare | Layout::Seq | Layout::Bitmap => 0,
            Layout::Coded => 2,
            Layout::Block => 3,
            Layout::Symbols => 3 + HEADER_CHECK_LEN,
            Layout::SeqAck => self.profile.number_len(layout) + 4,
        };
        self.behind_seq(layout) + behind_seq
    }

    /// The longest header in front of a packet.
    pub const fn header_max(self) -> usize {
        match self.profile {
            HeaderProfile::Study => self.header_len(Layout::Symbols),
            HeaderProfile::Live | HeaderProfile::Sealed => self.header_len(Layout::SeqAck),
        }
    }

    /// Where what follows the number begins, in the live profiles.
    const fn behind_seq(self, layout: Layout) -> usize {
        1 + self.profile.session_len() + self.profile.number_len(layout)
    }

    /// Bytes of the fields of a frame, in front of its bitmap or packet.
    const fn fields_len(self, kind: FrameKind, layout: Layout) -> usize {
        match (layout, kind) {
            (Layout::Bitmap, FrameKind::Bitmap) if self.profile.is_live() => {
                self.header_len(Layout::SeqAck)
            }
            _ => self.header_len(layout),
        }
    }

    /// Bytes of everything of a frame but its packet.
    pub fn len_without_packet(self, header: &Header, layout: Layout) -> usize {
        self.fields_len(header.kind, layout) + bits_of(header, layout).wire_len()
    }

    /// Writes the header of a frame to the start of `buf` and returns its length; the payload goes right
    /// behind it. None if `buf` is too short.
    pub fn encode(
        self,
        header: &Header,
        layout: Layout,
        session: u32,
        buf: &mut [u8],
    ) -> Option<usize> {
        let len = self.len_without_packet(header, layout);
        let fields_len = self.fields_len(header.kind, layout);
        let (buf, bits) = buf.get_mut(..len)?.split_at_mut(fields_len);
        bits_of(header, layout).write(bits);
        buf[0] = header.service << 4 | header.kind as u8;
        if self.profile == HeaderProfile::Study {
            let fields = match layout {
                Layout::Block => {
                    let block = (header.seq % STUDY_BLOCKS) as u8;
                    let parity = u8::from(header.kind == FrameKind::Parity);
                    [header.service << 4 | block << 1 | parity, header.index, 0]
                }
                Layout::Symbols => [buf[0], header.seq as u8, header.index],
                _ => [buf[0], header.seq as u8, header.ack as u8],
            };
            let len = fields_len.min(fields.len());
            buf[..len].copy_from_slice(&fields[..len]);
        } else {
            let (session_len, at) = (self.profile.session_len(), self.behind_seq(layout));
            buf[1..=session_len].copy_from_slice(&session.to_be_bytes()[..session_len]);
            self.write_number(header.seq, layout, &mut buf[1 + session_len..]);
            if matches!(layout, Layout::Coded | Layout::Block | Layout::Symbols) {
                buf[at..at + 2].copy_from_slice(&header.coded_len.to_be_bytes());
            }
            if matches!(layout, Layout::Block | Layout::Symbols) {
                buf[at + 2] = header.index;
            }
            if layout.acknowledges(header.kind) {
                let (low, held) = header.echo.map_or((0, u16::MAX), |echo| {
                    let units = echo.held.as_nanos() / HELD_UNIT.as_nanos();
                    (echo.seq_low, units.min(u64::from(u16::MAX)) as u16)
                });
                let echo = at + self.write_number(header.ack, layout, &mut buf[at..]);
                buf[echo..echo + 2].copy_from_slice(&low.to_be_bytes());
                buf[echo + 2..echo + 4].copy_from_slice(&held.to_be_bytes());
            }
        }
        if layout == Layout::Symbols {
            let (fields, check) = buf.split_at_mut(fields_len - HEADER_CHECK_LEN);
            check.copy_from_slice(&HEADER_CHECK.checksum(fields).to_be_bytes());
        }
        Some(len)
    }

    /// Writes a number to the start of `buf` and gives its length.
    fn write_number(self, number: Seq, layout: Layout, buf: &mut [u8]) -> usize {
        let len = self.profile.number_len(layout);
        buf[..len].copy_from_slice(&number.to_be_bytes()[4 - len..]);
        len
    }

    /// Reads a header. `layout_of` gives the layout of a service, none for an unknown one.
    ///
    /// # Errors
    /// A [`FrameError`] for bytes that are not a frame of this profile and these services.
    pub fn decode(
        self,
        bytes: &[u8],
        layout_of: impl Fn(u8) -> Option<Layout>,
    ) -> Result<Decoded, FrameError> {
        match self.profile {
            HeaderProfile::Study => self.decode_study(bytes, layout_of),
            HeaderProfile::Live | HeaderProfile::Sealed => self.decode_live(bytes, layout_of),
        }
    }

    fn decode_study(
        self,
        bytes: &[u8],
        layout_of: impl Fn(u8) -> Option<Layout>,
    ) -> Result<Decoded, FrameError> {
        let need = |need| FrameError::Truncated {
            need,
            got: bytes.len(),
        };
        let byte0 = *bytes.first().ok_or(need(1))?;
        let service = byte0 >> 4;
        let layout = layout_of(service).ok_or(FrameError::UnknownService { service })?;
        let len = self.header_len(layout);
        let fields = bytes.get(..len).ok_or(need(len))?;
        let field = |at: usize| fields.get(at).copied().map_or(0, Seq::from);
        let mut header = if layout == Layout::Symbols {
            check_header(fields)?;
            let (_, kind) = split_byte0(byte0)?;
            Header {
                index: fields[2],
                ..Header::new(kind, self.number(layout, field(1))?)
            }
        } else if layout == Layout::Block {
            let kind = match byte0 & 1 {
                0 => FrameKind::Data,
                _ => FrameKind::Parity,
            };
            Header {
                index: fields[1],
                ..Header::new(kind, Seq::from(byte0 >> 1 & 7))
            }
        } else {
            let (_, kind) = split_byte0(byte0)?;
            let seq = self.number(layout, field(1))?;
            // Section 8.1: the bitmap begins where everything before has arrived.
            let says_it_twice = layout == Layout::Bitmap && kind == FrameKind::Bitmap;
            Header {
                ack: if says_it_twice {
                    seq
                } else {
                    self.number(layout, field(2))?
                },
                ..Header::new(kind, seq)
            }
        };
        header.service = service;
        Self::with_bits_behind(header, layout, 0, bytes, len)
    }

    fn decode_live(
        self,
        bytes: &[u8],
        layout_of: impl Fn(u8) -> Option<Layout>,
    ) -> Result<Decoded, FrameError> {
        let need = |need| FrameError::Truncated {
            need,
            got: bytes.len(),
        };
        let (service, kind) = split_byte0(*bytes.first().ok_or(need(1))?)?;
        // Session control belongs to no service.
        let layout = match kind {
            FrameKind::Hello => Layout::Bare,
            _ => layout_of(service).ok_or(FrameError::UnknownService { service })?,
        };
        let len = self.fields_len(kind, layout);
        let fields = bytes.get(..len).ok_or(need(len))?;
        if layout == Layout::Symbols {
            check_header(fields)?;
        }
        let u16_at = |at: usize| u16::from_be_bytes([fields[at], fields[at + 1]]);
        let (session_len, at) = (self.profile.session_len(), self.behind_seq(layout));
        let session = fields[1..=session_len]
            .try_into()
            .map_or(0, u32::from_be_bytes);
        let (mut ack, mut echo, mut coded_len, mut index) = (0, None, 0, 0);
        if matches!(layout, Layout::Coded | Layout::Block | Layout::Symbols) {
            coded_len = u16_at(at);
        }
        if matches!(layout, Layout::Block | Layout::Symbols) {
            index = fields[at + 2];
        }
        if layout.acknowledges(kind) {
            ack = self.read_number(layout, &fields[at..])?;
            let at = at + self.profile.number_len(layout);
            let held = u16_at(at + 2);
            echo = (held != u16::MAX).then(|| Echo {
                seq_low: u16_at(at),
                held: HELD_UNIT * u64::from(held),
            });
        }
        let header = Header {
            service,
            kind,
            index,
            coded_len,
            seq: self.read_number(layout, &fields[1 + session_len..])?,
            ack,
            echo,
            bits: Bitmap::EMPTY,
        };
        Self::with_bits_behind(header, layout, session, bytes, len)
    }

    /// Reads the number at the start of `bytes`, which has room for one.
    fn read_number(self, layout: Layout, bytes: &[u8]) -> Result<Seq, FrameError> {
        let digits = &bytes[..self.profile.number_len(layout)];
        self.number(
            layout,
            digits.iter().fold(0, |n, byte| n << 8 | Seq::from(*byte)),
        )
    }

    /// Adds the bitmap of a BITMAP frame, which is all that follows the fields.
    fn with_bits_behind(
        mut header: Header,
        layout: Layout,
        session: u32,
        bytes: &[u8],
        mut payload_at: usize,
    ) -> Result<Decoded, FrameError> {
        if layout == Layout::Bitmap && header.kind == FrameKind::Bitmap {
            let behind = &bytes[payload_at..];
            header.bits = Bitmap::read(behind).ok_or(FrameError::Bitmap { got: behind.len() })?;
            payload_at = bytes.len();
        }
        Ok(Decoded {
            header,
            session,
            payload_at,
        })
    }

    fn number(self, layout: Layout, seq: Seq) -> Result<Seq, FrameError> {
        let space = self.space(layout);
        if space.contains(seq) {
            Ok(seq)
        } else {
            Err(FrameError::Number {
                seq,
                modulus: space.modulus(),
            })
        }
    }
}

fn check_header(fields: &[u8]) -> Result<(), FrameError> {
    if let Some((bytes, check)) = fields.split_last_chunk::<HEADER_CHECK_LEN>() {
        let (stated, got) = (u16::from_be_bytes(*check), HEADER_CHECK.checksum(bytes));
        if stated != got {
            return Err(FrameError::Check { stated, got });
        }
    }
    Ok(())
}

fn split_byte0(byte: u8) -> Result<(u8, FrameKind), FrameError> {
    let code = byte & 0xf;
    let kind = FrameKind::from_code(code).ok_or(FrameError::UnknownType { code })?;
    Ok((byte >> 4, kind))
}
