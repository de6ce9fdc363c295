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
//! **`live`** travels inside datagrams, where an old frame can turn up at any time, so every frame
//! names its session, and numbers are wide enough never to repeat within one:
//!
//! ```text
//! byte  0        version:4 layout:4
//!       1        service:4 type:4
//!       2..6     session
//!       6..8     length of what follows the header
//!       8..12    seq                        (Default numbers its frames too: loss can be measured)
//!      12..16    ack                        (seq-ack only)
//!      16..18    low 16 bits of the newest original frame received   (seq-ack only)
//!      18..20    how long ago that was, in units of 16 us, 0xffff: never or too long ago
//!      12..14    coded length              (coded, block and symbols)
//!      14        index in the block        (block, where seq is the number of the block), or of the
//!                                          first repair symbol (symbols)
//!      15..17    CRC-16 of what is before  (symbols)
//! ```
//! Frames with the bitmap layout end behind `seq`, but BITMAP frames have the fields of seq-ack; the
//! bits follow the header, begin at the number `seq` and count into the length.
//!
//! All numbers are big-endian. Decoding never panics and never reads past the buffer.

mod bitmap;
#[cfg(test)]
mod tests;

use airlane_base::{Duration, Payload, Seq, SeqSpace};
use crc::{CRC_16_IBM_3740, Crc};
use serde::{Deserialize, Serialize};

pub use bitmap::Bitmap;

/// What a frame is for. The codes are ours where the dissertation is silent (XYL-S-9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
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
#[repr(u8)]
pub enum Layout {
    /// Nothing (in the live profile: a number that only measures loss).
    Bare = 0,
    /// A sequence number.
    Seq = 1,
    /// A sequence number and an acknowledgment.
    SeqAck = 2,
    /// A sequence number, and the coded length of the packets that a parity frame combines.
    Coded = 3,
    /// The number of a block, the place in it, and the coded length.
    Block = 4,
    /// A sequence number; BITMAP frames an acknowledgment and a bitmap too.
    Bitmap = 5,
    /// A sequence number, an index or a number of symbols, and a check of the header.
    Symbols = 6,
}

impl Layout {
    const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Bare,
            1 => Self::Seq,
            2 => Self::SeqAck,
            3 => Self::Coded,
            4 => Self::Block,
            5 => Self::Bitmap,
            6 => Self::Symbols,
            _ => return None,
        })
    }

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeaderProfile {
    /// The dissertation's 1 to 3 bytes, numbers modulo 256.
    #[default]
    Study,
    /// Session, length and 32-bit numbers, for real links.
    Live,
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
    /// Not our version.
    #[error("frame of version {got}, this is version {LIVE_VERSION}")]
    Version {
        /// The version found.
        got: u8,
    },
    /// A type code without meaning.
    #[error("unknown frame type {code}")]
    UnknownType {
        /// The code found.
        code: u8,
    },
    /// A layout code without meaning.
    #[error("unknown header layout {code}")]
    UnknownLayout {
        /// The code found.
        code: u8,
    },
    /// No such service here.
    #[error("unknown service {service}")]
    UnknownService {
        /// The number found.
        service: u8,
    },
    /// The length field and the bytes disagree.
    #[error("bad frame length: the header says {stated} B of payload, there are {got} B")]
    Length {
        /// What the header says.
        stated: usize,
        /// Bytes behind the header.
        got: usize,
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
/// Version of the live layout.
pub const LIVE_VERSION: u8 = 1;
/// The largest live header in front of a packet.
pub const LIVE_HEADER_MAX: usize = 20;
/// Room for everything of a live frame but its packet.
pub const LIVE_HEADER_ROOM: usize = LIVE_HEADER_MAX + Bitmap::MAX_LEN;

const HEADER_CHECK: Crc<u16> = Crc::<u16>::new(&CRC_16_IBM_3740);
const HEADER_CHECK_LEN: usize = 2;

const HELD_UNIT: Duration = Duration::from_micros(16);

/// A decoded frame, with its payload still in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The header.
    pub header: Header,
    /// The session it belongs to; zero in the study profile.
    pub session: u32,
    /// Where the payload begins; it reaches to the end of the buffer.
    pub payload_at: usize,
}

/// Writes and reads headers of one profile with one sequence space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Codec {
    profile: HeaderProfile,
    space: SeqSpace,
}

impl Codec {
    /// The codec of a profile, with the profile's usual sequence space.
    pub const fn new(profile: HeaderProfile) -> Self {
        let bits = match profile {
            HeaderProfile::Study => 8,
            HeaderProfile::Live => 32,
        };
        Self {
            profile,
            space: SeqSpace::new(bits),
        }
    }

    /// The same with numbers of `bits` bits; the study layout has room for 8.
    #[must_use]
    pub const fn with_bits(self, bits: u32) -> Self {
        assert!(
            bits <= 8 || matches!(self.profile, HeaderProfile::Live),
            "the study header has 8-bit numbers"
        );
        Self {
            profile: self.profile,
            space: SeqSpace::new(bits),
        }
    }

    /// The profile.
    pub const fn profile(self) -> HeaderProfile {
        self.profile
    }

    /// The sequence space.
    pub const fn space(self) -> SeqSpace {
        self.space
    }

    /// Bytes of the header of a frame with a packet of a service with this layout.
    pub const fn header_len(self, layout: Layout) -> usize {
        match (self.profile, layout) {
            (HeaderProfile::Study, Layout::Bare) => 1,
            (
                HeaderProfile::Study,
                Layout::Seq | Layout::Coded | Layout::Block | Layout::Bitmap,
            ) => 2,
            (HeaderProfile::Study, Layout::SeqAck) => 3,
            (HeaderProfile::Study, Layout::Symbols) => 3 + HEADER_CHECK_LEN,
            (HeaderProfile::Live, Layout::Bare | Layout::Seq | Layout::Bitmap) => 12,
            (HeaderProfile::Live, Layout::Coded) => 14,
            (HeaderProfile::Live, Layout::Block) => 15,
            (HeaderProfile::Live, Layout::Symbols) => 15 + HEADER_CHECK_LEN,
            (HeaderProfile::Live, Layout::SeqAck) => LIVE_HEADER_MAX,
        }
    }

    /// Bytes of the fields of a frame, in front of its bitmap or packet.
    const fn fields_len(self, kind: FrameKind, layout: Layout) -> usize {
        match (self.profile, layout, kind) {
            (HeaderProfile::Live, Layout::Bitmap, FrameKind::Bitmap) => LIVE_HEADER_MAX,
            _ => self.header_len(layout),
        }
    }

    /// Bytes of everything of a frame but its packet.
    pub fn len_without_packet(self, header: &Header, layout: Layout) -> usize {
        self.fields_len(header.kind, layout) + bits_of(header, layout).wire_len()
    }

    /// Writes the header of a frame with `payload_len` bytes of payload to the start of `buf` and
    /// returns its length; the payload goes right behind it. None if `buf` is too short.
    pub fn encode(
        self,
        header: &Header,
        layout: Layout,
        session: u32,
        payload_len: usize,
        buf: &mut [u8],
    ) -> Option<usize> {
        let len = self.len_without_packet(header, layout);
        let fields_len = self.fields_len(header.kind, layout);
        let (buf, bits) = buf.get_mut(..len)?.split_at_mut(fields_len);
        bits_of(header, layout).write(bits);
        let byte0 = header.service << 4 | header.kind as u8;
        match self.profile {
            HeaderProfile::Study => {
                let fields = match layout {
                    Layout::Block => {
                        let block = (header.seq % STUDY_BLOCKS) as u8;
                        let parity = u8::from(header.kind == FrameKind::Parity);
                        [header.service << 4 | block << 1 | parity, header.index, 0]
                    }
                    Layout::Symbols => [byte0, header.seq as u8, header.index],
                    _ => [byte0, header.seq as u8, header.ack as u8],
                };
                let len = fields_len.min(fields.len());
                buf[..len].copy_from_slice(&fields[..len]);
            }
            HeaderProfile::Live => {
                buf[0] = LIVE_VERSION << 4 | layout as u8;
                buf[1] = byte0;
                buf[2..6].copy_from_slice(&session.to_be_bytes());
                let behind = u16::try_from(payload_len + bits.len()).ok()?;
                buf[6..8].copy_from_slice(&behind.to_be_bytes());
                buf[8..12].copy_from_slice(&header.seq.to_be_bytes());
                if matches!(layout, Layout::Coded | Layout::Block | Layout::Symbols) {
                    buf[12..14].copy_from_slice(&header.coded_len.to_be_bytes());
                }
                if matches!(layout, Layout::Block | Layout::Symbols) {
                    buf[14] = header.index;
                }
                if layout.acknowledges(header.kind) {
                    let (low, held) = header.echo.map_or((0, u16::MAX), |echo| {
                        let units = echo.held.as_nanos() / HELD_UNIT.as_nanos();
                        (echo.seq_low, units.min(u64::from(u16::MAX)) as u16)
                    });
                    buf[12..16].copy_from_slice(&header.ack.to_be_bytes());
                    buf[16..18].copy_from_slice(&low.to_be_bytes());
                    buf[18..20].copy_from_slice(&held.to_be_bytes());
                }
            }
        }
        if layout == Layout::Symbols {
            let (fields, check) = buf.split_at_mut(fields_len - HEADER_CHECK_LEN);
            check.copy_from_slice(&HEADER_CHECK.checksum(fields).to_be_bytes());
        }
        Some(len)
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
            HeaderProfile::Live => self.decode_live(bytes, layout_of),
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
                ..Header::new(kind, self.number(field(1))?)
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
            let seq = self.number(field(1))?;
            // Section 8.1: the bitmap begins where everything before has arrived.
            let says_it_twice = layout == Layout::Bitmap && kind == FrameKind::Bitmap;
            Header {
                ack: if says_it_twice {
                    seq
                } else {
                    self.number(field(2))?
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
        let first = *bytes.first().ok_or(need(1))?;
        if first >> 4 != LIVE_VERSION {
            return Err(FrameError::Version { got: first >> 4 });
        }
        let code = first & 0xf;
        let layout = Layout::from_code(code).ok_or(FrameError::UnknownLayout { code })?;
        let (service, kind) = split_byte0(*bytes.get(1).ok_or(need(2))?)?;
        let len = self.fields_len(kind, layout);
        let fields = bytes.get(..len).ok_or(need(len))?;
        // Session control has a layout of its own and belongs to no service.
        if kind != FrameKind::Hello {
            let known = layout_of(service).ok_or(FrameError::UnknownService { service })?;
            if known != layout {
                return Err(FrameError::UnknownLayout { code });
            }
        }
        let u16_at = |at: usize| u16::from_be_bytes([fields[at], fields[at + 1]]);
        let u32_at = |at: usize| {
            u32::from_be_bytes([fields[at], fields[at + 1], fields[at + 2], fields[at + 3]])
        };
        let (stated, got) = (usize::from(u16_at(6)), bytes.len() - len);
        if stated != got {
            return Err(FrameError::Length { stated, got });
        }
        let (mut ack, mut echo, mut coded_len, mut index) = (0, None, 0, 0);
        if layout == Layout::Symbols {
            check_header(fields)?;
        }
        if matches!(layout, Layout::Coded | Layout::Block | Layout::Symbols) {
            coded_len = u16_at(12);
            index = fields.get(14).copied().unwrap_or(0);
        }
        if layout.acknowledges(kind) {
            ack = self.number(u32_at(12))?;
            let held = u16_at(18);
            echo = (held != u16::MAX).then(|| Echo {
                seq_low: u16_at(16),
                held: HELD_UNIT * u64::from(held),
            });
        }
        let header = Header {
            service,
            kind,
            index,
            coded_len,
            seq: self.number(u32_at(8))?,
            ack,
            echo,
            bits: Bitmap::EMPTY,
        };
        Self::with_bits_behind(header, layout, u32_at(2), bytes, len)
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

    fn number(self, seq: Seq) -> Result<Seq, FrameError> {
        if self.space.contains(seq) {
            Ok(seq)
        } else {
            Err(FrameError::Number {
                seq,
                modulus: self.space.modulus(),
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
