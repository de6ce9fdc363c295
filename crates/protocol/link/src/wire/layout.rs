//! The header layouts: each lists its fields once, for encoding and decoding, and each field defines its
//! width and contents once.

use std::convert::Infallible;

use airlane_base::{Duration, Seq};

use super::kind::FrameKind;
use super::profile::HeaderProfile;
use super::{Body, Echo, Frame, Header, Report};

/// A field after byte 0 and the session. All are big-endian numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// The sequence number, or the block number.
    Seq,
    /// The next number that the sender of the frame expects.
    Ack,
    /// A sequence number that is also the next number expected.
    SeqAndAck,
    /// Low 16 bits of the newest original frame received, and its age in units of 16 us; 0xffff: none, or too
    /// old.
    Echo,
    /// The combined lengths of the packets of a block.
    CodedLen,
    /// The position in the block.
    Index,
    /// Three bits of the block number and the parity flag. It takes the place of the type in byte 0.
    Block,
    /// Distance back to the frame that must be delivered before this one.
    Back,
    /// The octets of GSM's radio link protocol.
    Octets,
    /// The report on a mark: a byte count and a time in microseconds, 4 bytes each.
    Report,
    /// A bitmap of the frames received from the sequence number on; it fills the rest of the frame.
    Bits,
}

pub(super) const HELD_UNIT: Duration = Duration::from_micros(16);

impl Field {
    /// Its width, given that of sequence numbers; a bitmap's depends on the frame.
    pub(super) const fn width(self, number: usize) -> usize {
        match self {
            Self::Seq | Self::Ack | Self::SeqAndAck => number,
            Self::Echo => 4,
            Self::CodedLen | Self::Back | Self::Octets => 2,
            Self::Index => 1,
            Self::Report => 8,
            Self::Block | Self::Bits => 0,
        }
    }

    /// Whether it holds a sequence number.
    pub(super) const fn is_number(self) -> bool {
        matches!(self, Self::Seq | Self::Ack | Self::SeqAndAck)
    }

    pub(super) fn get<P>(self, frame: &Frame<P>) -> u64 {
        let header = &frame.header;
        match self {
            Self::Seq | Self::SeqAndAck => header.seq.into(),
            Self::Ack => header.ack.into(),
            Self::Echo => {
                let (low, held) = header.echo.map_or((0, u64::MAX), |echo| {
                    (echo.seq_low, echo.held().as_nanos() / HELD_UNIT.as_nanos())
                });
                u64::from(low) << 16 | held.min(u16::MAX.into())
            }
            Self::CodedLen => header.coded_len.into(),
            Self::Index => header.index.into(),
            Self::Back => header.back.into(),
            Self::Octets => u16::from_be_bytes(header.octets).into(),
            Self::Report => frame.report().map_or(0, |report| {
                u64::from(report.received) << 32 | u64::from(report.at_us)
            }),
            Self::Block | Self::Bits => 0,
        }
    }

    pub(super) fn set(self, header: &mut Header, body: &mut Body<Infallible>, value: u64) {
        let (high, low) = ((value >> 16) as u16, value as u16);
        match self {
            Self::Seq => header.seq = value as Seq,
            Self::Ack => header.ack = value as Seq,
            Self::SeqAndAck => (header.seq, header.ack) = (value as Seq, value as Seq),
            Self::Echo => {
                let held = HELD_UNIT * u64::from(low);
                let echo = (low != u16::MAX).then(|| Echo::new(high, held));
                header.echo = echo.flatten();
            }
            Self::CodedLen => header.coded_len = low,
            Self::Index => header.index = value as u8,
            Self::Back => header.back = low,
            Self::Octets => header.octets = low.to_be_bytes(),
            Self::Report => {
                let (received, at_us) = ((value >> 32) as u32, value as u32);
                *body = Body::Report(Report { received, at_us });
            }
            Self::Block | Self::Bits => {}
        }
    }
}

/// The fields of a frame by header profile; live and sealed frames have the same fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fields {
    study: &'static [Field],
    live: &'static [Field],
}

/// The header fields of a service's frames after byte 0.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    name: &'static str,
    fields: Fields,
    /// The fields of the one kind of frame that differs, if there is one.
    except: Option<(FrameKind, Fields)>,
    /// Width of sequence numbers in sealed frames, bytes.
    sealed: usize,
}

macro_rules! layouts {
    ($($(#[doc = $doc:literal])+ $layout:ident = $name:literal, sealed: $sealed:literal,
        study: $study:tt, live: $live:tt $(, $kind:ident: study: $other_study:tt, live: $other_live:tt)?;)+) => {
        impl Layout {
            $(
                $(#[doc = $doc])+
                pub const $layout: Self = Self {
                    name: $name,
                    fields: fields!($study, $live),
                    except: layouts!(@except $($kind, $other_study, $other_live)?),
                    sealed: $sealed,
                };
            )+
            /// All layouts.
            pub const ALL: &'static [&'static Self] = &[$(&Self::$layout,)+];
        }
    };
    (@except) => { None };
    (@except $kind:ident, $study:tt, $live:tt) => { Some((FrameKind::$kind, fields!($study, $live))) };
}

macro_rules! fields {
    ([$($study:ident)*], [$($live:ident)*]) => {
        Fields { study: &[$(Field::$study,)*], live: &[$(Field::$live,)*] }
    };
}

layouts! {
    /// Nothing; in the live profiles a number only for measuring loss.
    BARE = "bare", sealed: 4, study: [], live: [Seq];
    /// A sequence number.
    SEQ = "seq", sealed: 4, study: [Seq], live: [Seq];
    /// A sequence number and an acknowledgment.
    SEQ_ACK = "seq-ack", sealed: 3, study: [Seq Ack], live: [Seq Ack Echo];
    /// A sequence number, and the coded length of the packets that a parity frame combines.
    CODED = "coded", sealed: 4, study: [Seq], live: [Seq CodedLen];
    /// The number of a block, the position in it, and the coded length.
    BLOCK = "block", sealed: 4, study: [Block Index], live: [Seq CodedLen Index];
    /// A sequence number; BITMAP frames add an acknowledgment and a bitmap.
    BITMAP = "bitmap", sealed: 3, study: [Seq], live: [Seq],
        Bitmap: study: [SeqAndAck Bits], live: [Seq Ack Echo Bits];
    /// A sequence number, an acknowledgment, and the distance to its predecessor in delivery order; live
    /// profiles only.
    LANES = "lanes", sealed: 3, study: [Seq Ack], live: [Seq Ack Echo Back];
    /// The octets of GSM's radio link protocol; in the live profiles after a number that gives the order of
    /// departure.
    GSM = "gsm", sealed: 4, study: [Octets], live: [Seq Octets];
    /// Frames between ports, independent of their services; live profiles only.
    PORTS = "ports", sealed: 4, study: [], live: [Seq], Report: study: [Report], live: [Seq Report];
}

impl Layout {
    /// Its name in documents.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The fields of frames of this kind.
    pub(super) const fn fields(&self, kind: FrameKind, profile: HeaderProfile) -> &'static [Field] {
        match &self.except {
            Some((other, fields)) if *other as u32 == kind as u32 => fields.of(profile),
            _ => self.fields.of(profile),
        }
    }

    /// Width of its sequence numbers, bytes.
    pub(super) const fn number_len(&self, profile: HeaderProfile) -> usize {
        match profile {
            HeaderProfile::Study => 1,
            HeaderProfile::Live => 4,
            HeaderProfile::Sealed => self.sealed,
        }
    }

    /// Length of the fields of this kind of frame without a bitmap, bytes.
    pub(super) const fn fields_len(&self, kind: FrameKind, profile: HeaderProfile) -> usize {
        let (fields, number) = (self.fields(kind, profile), self.number_len(profile));
        let (mut len, mut at) = (0, 0);
        while at < fields.len() {
            len += fields[at].width(number);
            at += 1;
        }
        len
    }

    fn has(&self, kind: FrameKind, wanted: &[Field]) -> bool {
        let fields = self.fields(kind, HeaderProfile::Live).iter();
        let all = fields.chain(self.fields(kind, HeaderProfile::Study));
        all.into_iter().any(|field| wanted.contains(field))
    }

    /// Whether frames of this kind carry an acknowledgment.
    pub fn acknowledges(&self, kind: FrameKind) -> bool {
        self.has(kind, &[Field::Ack, Field::SeqAndAck])
    }

    /// Whether frames are numbered in every profile.
    pub const fn is_numbered(&self) -> bool {
        !self.fields.study.is_empty()
    }

    /// Whether frames name a predecessor in delivery order.
    pub fn keeps_lanes(&self) -> bool {
        self.has(FrameKind::Data, &[Field::Back])
    }

    /// Whether all frames have the same length apart from their packets.
    pub const fn is_fixed(&self) -> bool {
        self.except.is_none()
    }
}

impl Fields {
    const fn of(&self, profile: HeaderProfile) -> &'static [Field] {
        match profile {
            HeaderProfile::Study => self.study,
            HeaderProfile::Live | HeaderProfile::Sealed => self.live,
        }
    }
}
