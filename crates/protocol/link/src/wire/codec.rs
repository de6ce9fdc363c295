//! Encodes and decodes headers of any layout.

use std::convert::Infallible;

use airlane_base::{Seq, SeqSpace};

use super::kind::FrameKind;
use super::layout::{Field, Layout};
use super::profile::HeaderProfile;
use super::{Bitmap, Body, Frame, Header};

/// Why bytes are not a valid frame. Counted, never fatal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// Shorter than its header.
    #[error("truncated frame: need {need} B, got {got} B")]
    Truncated {
        /// Bytes that the header needs.
        need: usize,
        /// Bytes present.
        got: usize,
    },
    /// The type code is not assigned.
    #[error("unknown frame type {code}")]
    UnknownType {
        /// The code found.
        code: u8,
    },
    /// The service does not exist here.
    #[error("unknown service {service}")]
    UnknownService {
        /// The number found.
        service: u8,
    },
    /// The bitmap is too long, or its last byte is empty.
    #[error(
        "a bitmap of {got} B has up to {} B and ends with a bit",
        Bitmap::MAX_LEN
    )]
    Bitmap {
        /// Bytes found.
        got: usize,
    },
    /// The number is outside of the sequence space.
    #[error("sequence number {seq} is outside the sequence space of {modulus}")]
    Number {
        /// The number found.
        seq: Seq,
        /// Size of the space.
        modulus: u64,
    },
}

/// Number of block numbers in the study layout.
pub(crate) const STUDY_BLOCKS: u32 = 8;
/// Room for a live frame without its packet: the longer profile, the longest fields and a full bitmap.
pub const LIVE_HEADER_ROOM: usize = 19 + Bitmap::MAX_LEN;

/// A decoded frame, with its payload still in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The header.
    pub header: Header,
    /// The session it belongs to; zero where the profile has no session field.
    pub session: u32,
    /// Offset of the payload, which extends to the end of the buffer.
    pub payload_at: usize,
    /// The contents of fields that the header does not hold.
    trailer: Body<Infallible>,
}

impl Decoded {
    /// The frame, with the packet that followed it in the buffer.
    pub fn frame<P>(&self, packet: Option<P>) -> Frame<P> {
        let header = self.header;
        let body = match self.trailer {
            Body::Bitmap(bits) => Body::Bitmap(bits),
            Body::Report(report) => Body::Report(report),
            Body::Empty | Body::Packet(_) => return Frame::new(header, packet),
        };
        Frame { header, body }
    }
}

/// Encodes and decodes the headers of one profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Codec {
    profile: HeaderProfile,
    /// Upper bound of the services' sequence space, apart from the width of the fields.
    numbers: u64,
}

/// The layout of a frame: that of its service, if it belongs to one.
fn layout_for(kind: FrameKind, service: &Layout) -> &Layout {
    match kind.is_of_services() {
        true => service,
        false => &Layout::PORTS,
    }
}

impl Codec {
    /// The codec of a profile.
    pub const fn new(profile: HeaderProfile) -> Self {
        Self {
            profile,
            numbers: 1 << 32,
        }
    }

    /// This codec with sequence numbers modulo `numbers`, as far as the header fields allow.
    #[must_use]
    pub const fn with_modulus(self, numbers: u64) -> Self {
        Self { numbers, ..self }
    }

    /// The profile.
    pub const fn profile(self) -> HeaderProfile {
        self.profile
    }

    /// The sequence space of services with this layout.
    pub const fn space(self, layout: &Layout) -> SeqSpace {
        let room = 1 << (layout.number_len(self.profile) * 8);
        SeqSpace::new(if self.numbers < room {
            self.numbers
        } else {
            room
        })
    }

    /// Header length of a frame with a packet, for a service with this layout.
    pub const fn header_len(self, layout: &Layout) -> usize {
        self.fields_at() + layout.fields_len(FrameKind::Data, self.profile)
    }

    /// The longest header of a frame with a packet.
    pub fn header_max(self) -> usize {
        let all = Layout::ALL.iter().map(|layout| self.header_len(layout));
        all.max().unwrap_or(0)
    }

    /// Offset of a layout's fields, after byte 0 and the session.
    const fn fields_at(self) -> usize {
        1 + self.profile.session_len()
    }

    /// Length of a frame without its packet.
    pub fn len_without_packet<P>(self, frame: &Frame<P>, layout: &Layout) -> usize {
        let kind = frame.header.kind;
        let fields = layout_for(kind, layout).fields_len(kind, self.profile);
        self.fields_at() + fields + frame.bits().wire_len()
    }

    /// Writes a frame without its packet to the start of `buf` and returns the length; the packet follows
    /// directly. None if `buf` is too short.
    pub fn encode<P>(
        self,
        frame: &Frame<P>,
        layout: &Layout,
        session: u32,
        buf: &mut [u8],
    ) -> Option<usize> {
        let header = &frame.header;
        let layout = layout_for(header.kind, layout);
        let len = self.len_without_packet(frame, layout);
        let (head, mut rest) = buf.get_mut(..len)?.split_at_mut(self.fields_at());
        let fields = layout.fields(header.kind, self.profile);
        let code = match fields.first() {
            Some(Field::Block) => {
                let block = (header.seq % STUDY_BLOCKS) as u8;
                block << 1 | u8::from(header.kind == FrameKind::Parity)
            }
            _ => header.kind as u8,
        };
        head[0] = header.service << 4 | code;
        let session = session.to_be_bytes();
        head[1..].copy_from_slice(&session[..self.profile.session_len()]);
        let number = layout.number_len(self.profile);
        for field in fields {
            let (place, tail) = rest.split_at_mut(field.width(number));
            let value = field.get(frame).to_be_bytes();
            place.copy_from_slice(&value[value.len() - place.len()..]);
            rest = tail;
        }
        frame.bits().write(rest);
        Some(len)
    }

    /// Parses a header. `layout_of` returns the layout of a service, none for an unknown one.
    ///
    /// # Errors
    /// A [`FrameError`] for bytes that are not a frame of this profile and these services.
    pub fn decode(
        self,
        bytes: &[u8],
        layout_of: impl Fn(u8) -> Option<&'static Layout>,
    ) -> Result<Decoded, FrameError> {
        let need = |need| FrameError::Truncated {
            need,
            got: bytes.len(),
        };
        let byte0 = *bytes.first().ok_or(need(1))?;
        let (service, code) = (byte0 >> 4, byte0 & 0xf);
        let of_service = || layout_of(service).ok_or(FrameError::UnknownService { service });
        let unknown = FrameError::UnknownType { code };
        let (kind, layout) = match (FrameKind::from_code(code), self.profile.is_live()) {
            (kind, false) => {
                let layout = of_service()?;
                let kind = match (
                    layout.fields(FrameKind::Data, self.profile).first(),
                    code & 1,
                ) {
                    (Some(Field::Block), 0) => Some(FrameKind::Data),
                    (Some(Field::Block), _) => Some(FrameKind::Parity),
                    _ => kind.filter(|kind| kind.is_of_services()),
                };
                (kind.ok_or(unknown)?, layout)
            }
            (None, true) => return Err(unknown),
            (Some(kind), true) if kind.is_of_services() => (kind, of_service()?),
            (Some(kind), true) => (kind, &Layout::PORTS),
        };
        let mut payload_at = self.fields_at() + layout.fields_len(kind, self.profile);
        let head = bytes.get(..payload_at).ok_or(need(payload_at))?;
        let (session, mut fields) = head[1..].split_at(self.profile.session_len());
        let mut header = Header {
            service,
            ..Header::new(kind, 0)
        };
        let mut trailer = Body::Empty;
        let number = layout.number_len(self.profile);
        for field in layout.fields(kind, self.profile) {
            let (place, rest) = fields.split_at(field.width(number));
            let value = place.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
            if field.is_number() {
                self.check(value as Seq, layout)?;
            }
            match field {
                Field::Block => header.seq = Seq::from(code >> 1),
                Field::Bits => {
                    let rest = &bytes[payload_at..];
                    let bits = Bitmap::read(rest).ok_or(FrameError::Bitmap { got: rest.len() })?;
                    trailer = Body::Bitmap(bits);
                    payload_at = bytes.len();
                }
                _ => field.set(&mut header, &mut trailer, value),
            }
            fields = rest;
        }
        Ok(Decoded {
            header,
            session: session.try_into().map_or(0, u32::from_be_bytes),
            payload_at,
            trailer,
        })
    }

    fn check(self, seq: Seq, layout: &Layout) -> Result<(), FrameError> {
        let space = self.space(layout);
        let modulus = space.modulus();
        match space.contains(seq) {
            true => Ok(()),
            false => Err(FrameError::Number { seq, modulus }),
        }
    }
}
