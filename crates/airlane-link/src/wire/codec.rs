//! Writes and reads the headers of `wire`.

use std::convert::Infallible;

use airlane_base::{Duration, Seq, SeqSpace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Bitmap, Body, Echo, Frame, FrameKind, Header, Layout, Report};

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
            (Self::Sealed, Layout::SeqAck | Layout::Lanes | Layout::Bitmap) => 3,
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
    /// A number that the sequence space does not have.
    #[error("sequence number {seq} is outside the sequence space of {modulus}")]
    Number {
        /// The number found.
        seq: Seq,
        /// Size of the space.
        modulus: u64,
    },
}

/// Numbers of the study layout's blocks.
pub(crate) const STUDY_BLOCKS: u32 = 8;
/// Room for everything of a live frame but its packet: of the longer profile, the longest fields and
/// all bits.
pub const LIVE_HEADER_ROOM: usize = 19 + Bitmap::MAX_LEN;

pub(super) const HELD_UNIT: Duration = Duration::from_micros(16);

/// A decoded frame, with its payload still in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The header.
    pub header: Header,
    /// The session it belongs to; zero where the profile has none.
    pub session: u32,
    /// Where the payload begins; it reaches to the end of the buffer.
    pub payload_at: usize,
    /// What BITMAP frames and REPORTs say behind the fields.
    behind: Body<Infallible>,
}

impl Decoded {
    /// The frame, with the packet that was in the buffer behind it.
    pub fn frame<P>(&self, packet: Option<P>) -> Frame<P> {
        let header = self.header;
        let body = match self.behind {
            Body::Bitmap(bits) => Body::Bitmap(bits),
            Body::Report(report) => Body::Report(report),
            Body::Empty | Body::Packet(_) => return Frame::new(header, packet),
        };
        Frame { header, body }
    }
}

/// Writes and reads headers of one profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Codec {
    profile: HeaderProfile,
    /// Services have no more numbers than this, whatever there is room for.
    numbers: u64,
}

impl Codec {
    /// The codec of a profile.
    pub const fn new(profile: HeaderProfile) -> Self {
        Self {
            profile,
            numbers: 1 << 32,
        }
    }

    /// Gives this codec with sequence numbers modulo `numbers`, as far as the headers have room for them.
    #[must_use]
    pub const fn with_modulus(self, numbers: u64) -> Self {
        Self { numbers, ..self }
    }

    /// The profile.
    pub const fn profile(self) -> HeaderProfile {
        self.profile
    }

    /// The sequence space of services with this layout.
    pub const fn space(self, layout: Layout) -> SeqSpace {
        let room = 1 << (self.profile.number_len(layout) * 8);
        SeqSpace::new(if self.numbers < room {
            self.numbers
        } else {
            room
        })
    }

    /// Bytes of the header of a frame with a packet of a service with this layout.
    pub const fn header_len(self, layout: Layout) -> usize {
        if let HeaderProfile::Study = self.profile {
            return match layout {
                Layout::Bare => 1,
                Layout::Seq | Layout::Coded | Layout::Block | Layout::Bitmap => 2,
                Layout::SeqAck | Layout::Lanes => 3,
            };
        }
        let behind_seq = match layout {
            Layout::Bare | Layout::Seq | Layout::Bitmap => 0,
            Layout::Coded => 2,
            Layout::Block => 3,
            Layout::SeqAck => self.profile.number_len(layout) + 4,
            Layout::Lanes => self.profile.number_len(layout) + 6,
        };
        self.behind_seq(layout) + behind_seq
    }

    /// The longest header in front of a packet.
    pub const fn header_max(self) -> usize {
        self.header_len(Layout::Lanes)
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
            (_, FrameKind::Mark | FrameKind::Report) => self.header_len(Layout::Bare),
            _ => self.header_len(layout),
        }
    }

    /// Bytes of everything of a frame but its packet.
    pub fn len_without_packet<P>(self, frame: &Frame<P>, layout: Layout) -> usize {
        let report = frame.report().map_or(0, |_| Report::LEN);
        self.fields_len(frame.header.kind, layout) + frame.bits().wire_len() + report
    }

    /// Writes everything of a frame but its packet to the start of `buf` and returns its length; the packet
    /// goes right behind it. None if `buf` is too short.
    pub fn encode<P>(
        self,
        frame: &Frame<P>,
        layout: Layout,
        session: u32,
        buf: &mut [u8],
    ) -> Option<usize> {
        let header = &frame.header;
        let layout = match header.kind.is_of_ports() {
            true => Layout::Bare,
            false => layout,
        };
        let len = self.len_without_packet(frame, layout);
        let fields_len = self.fields_len(header.kind, layout);
        let (buf, behind) = buf.get_mut(..len)?.split_at_mut(fields_len);
        match frame.report() {
            Some(Report { received, at_us }) => {
                behind[..4].copy_from_slice(&received.to_be_bytes());
                behind[4..].copy_from_slice(&at_us.to_be_bytes());
            }
            None => frame.bits().write(behind),
        }
        buf[0] = header.service << 4 | header.kind as u8;
        if self.profile == HeaderProfile::Study {
            let fields = match layout {
                Layout::Block => {
                    let block = (header.seq % STUDY_BLOCKS) as u8;
                    let parity = u8::from(header.kind == FrameKind::Parity);
                    [header.service << 4 | block << 1 | parity, header.index, 0]
                }
                _ => [buf[0], header.seq as u8, header.ack as u8],
            };
            let len = fields_len.min(fields.len());
            buf[..len].copy_from_slice(&fields[..len]);
        } else {
            let (session_len, at) = (self.profile.session_len(), self.behind_seq(layout));
            buf[1..=session_len].copy_from_slice(&session.to_be_bytes()[..session_len]);
            self.write_number(header.seq, layout, &mut buf[1 + session_len..]);
            if matches!(layout, Layout::Coded | Layout::Block) {
                buf[at..at + 2].copy_from_slice(&header.coded_len.to_be_bytes());
            }
            if layout == Layout::Block {
                buf[at + 2] = header.index;
            }
            if layout.acknowledges(header.kind) {
                let (low, held) = header.echo.map_or((0, u16::MAX), |echo| {
                    let units = echo.held().as_nanos() / HELD_UNIT.as_nanos();
                    (echo.seq_low, units.min(u64::from(u16::MAX)) as u16)
                });
                let echo = at + self.write_number(header.ack, layout, &mut buf[at..]);
                buf[echo..echo + 2].copy_from_slice(&low.to_be_bytes());
                buf[echo + 2..echo + 4].copy_from_slice(&held.to_be_bytes());
            }
            if layout == Layout::Lanes {
                buf[fields_len - 2..].copy_from_slice(&header.back.to_be_bytes());
            }
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
        let mut header = if layout == Layout::Block {
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
            if kind.is_of_ports() {
                let code = kind as u8;
                return Err(FrameError::UnknownType { code });
            }
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
        Self::with_what_follows(header, layout, 0, bytes, len)
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
        // Session control belongs to no service, nor does what ports say to each other.
        let layout = match kind {
            FrameKind::Hello | FrameKind::Mark | FrameKind::Report => Layout::Bare,
            _ => layout_of(service).ok_or(FrameError::UnknownService { service })?,
        };
        let len = self.fields_len(kind, layout);
        let fields = bytes.get(..len).ok_or(need(len))?;
        let u16_at = |at: usize| u16::from_be_bytes([fields[at], fields[at + 1]]);
        let (session_len, at) = (self.profile.session_len(), self.behind_seq(layout));
        let session = fields[1..=session_len]
            .try_into()
            .map_or(0, u32::from_be_bytes);
        let (mut ack, mut echo, mut coded_len, mut index) = (0, None, 0, 0);
        if matches!(layout, Layout::Coded | Layout::Block) {
            coded_len = u16_at(at);
        }
        if layout == Layout::Block {
            index = fields[at + 2];
        }
        if layout.acknowledges(kind) {
            ack = self.read_number(layout, &fields[at..])?;
            let at = at + self.profile.number_len(layout);
            let held = u16_at(at + 2);
            echo = (held != u16::MAX)
                .then(|| Echo::new(u16_at(at), HELD_UNIT * u64::from(held)))
                .flatten();
        }
        let header = Header {
            service,
            kind,
            index,
            coded_len,
            seq: self.read_number(layout, &fields[1 + session_len..])?,
            ack,
            echo,
            back: match layout {
                Layout::Lanes => u16_at(len - 2),
                _ => 0,
            },
        };
        Self::with_what_follows(header, layout, session, bytes, len)
    }

    /// Reads the number at the start of `bytes`, which has room for one.
    fn read_number(self, layout: Layout, bytes: &[u8]) -> Result<Seq, FrameError> {
        let digits = &bytes[..self.profile.number_len(layout)];
        self.number(
            layout,
            digits.iter().fold(0, |n, byte| n << 8 | Seq::from(*byte)),
        )
    }

    /// Adds what follows the fields in BITMAP frames and REPORTs.
    fn with_what_follows(
        header: Header,
        layout: Layout,
        session: u32,
        bytes: &[u8],
        mut payload_at: usize,
    ) -> Result<Decoded, FrameError> {
        let mut behind = Body::Empty;
        let rest = &bytes[payload_at..];
        if layout == Layout::Bitmap && header.kind == FrameKind::Bitmap {
            let bits = Bitmap::read(rest).ok_or(FrameError::Bitmap { got: rest.len() })?;
            behind = Body::Bitmap(bits);
            payload_at = bytes.len();
        }
        if header.kind == FrameKind::Report {
            let [Some(received), Some(at_us)] = [0, 4].map(|at| {
                let field = rest.get(at..at + 4)?.try_into().ok()?;
                Some(u32::from_be_bytes(field))
            }) else {
                return Err(FrameError::Truncated {
                    need: payload_at + Report::LEN,
                    got: bytes.len(),
                });
            };
            behind = Body::Report(Report { received, at_us });
            payload_at += Report::LEN;
        }
        Ok(Decoded {
            header,
            session,
            payload_at,
            behind,
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

fn split_byte0(byte: u8) -> Result<(u8, FrameKind), FrameError> {
    let code = byte & 0xf;
    let kind = FrameKind::from_code(code).ok_or(FrameError::UnknownType { code })?;
    Ok((byte >> 4, kind))
}
