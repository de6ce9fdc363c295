//! Which fields stand in a frame's header, and how: each layout lists its fields once, for whoever writes and whoever
//! reads, and each field says once how wide it is and what it holds.

use std::convert::Infallible;

use airlane_base::{Duration, Seq};

use super::kind::FrameKind;
use super::profile::HeaderProfile;
use super::{Body, Echo, Frame, Header, Report};

/// A field behind byte 0 and the session. All are big-endian numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// The sequence number, or the number of the block.
    Seq,
    /// The next number that the sender of the frame expects.
    Ack,
    /// A sequence number that is the next number expected, too.
    SeqAndAck,
    /// Low 16 bits of the newest original frame received, and how long ago that was, in units of 16 us, 0xffff: never
    /// or too long ago.
    Echo,
    /// What the lengths of the packets of a block combine to.
    CodedLen,
    /// The place in the block.
    Index,
    /// Three bits of the block's number and one that marks parities. It stands in byte 0, in the place of the type.
    Block,
    /// How far back the frame is that has to go up before this one.
    Back,
    /// The octets of GSM's radio link protocol.
    Octets,
    /// What a mark met: 4 bytes that count bytes, and 4 of microseconds.
    Report,
    /// Which frames have been received from the sequence number on: all that is left of the frame.
    Bits,
}

pub(super) const HELD_UNIT: Duration = Duration::from_micros(16);

impl Field {
    /// Bytes that it takes where numbers take so many; those of bits depend on the frame.
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

    /// Whether it is one of the sequence space.
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

    pub(super) fn set(self, header: &mut Header, behind: &mut Body<Infallible>, value: u64) {
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
                *behind = Body::Report(Report { received, at_us });
            }
            Self::Block | Self::Bits => {}
        }
    }
}

/// The fields of a frame by header profile; live and sealed frames have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fields {
    study: &'static [Field],
    live: &'static [Field],
}

/// Which fields the frames of a service carry behind byte 0.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    name: &'static str,
    fields: Fields,
    /// Frames of one kind may have others.
    except: Option<(FrameKind, Fields)>,
    /// Bytes of a number in sealed frames.
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
            /// All of them.
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
    /// Nothing; in the live profiles a number that only measures loss.
    BARE = "bare", sealed: 4, study: [], live: [Seq];
    /// A sequence number.
    SEQ = "seq", sealed: 4, study: [Seq], live: [Seq];
    /// A sequence number and an acknowledgment.
    SEQ_ACK = "seq-ack", sealed: 3, study: [Seq Ack], live: [Seq Ack Echo];
    /// A sequence number, and the coded length of the packets that a parity frame combines.
    CODED = "coded", sealed: 4, study: [Seq], live: [Seq CodedLen];
    /// The number of a block, the place in it, and the coded length.
    BLOCK = "block", sealed: 4, study: [Block Index], live: [Seq CodedLen Index];
    /// A sequence number; BITMAP frames have an acknowledgment and a bitmap, too.
    BITMAP = "bitmap", sealed: 3, study: [Seq], live: [Seq],
        Bitmap: study: [SeqAndAck Bits], live: [Seq Ack Echo Bits];
    /// A sequence number, an acknowledgment, and what has to go up before; live profiles only.
    LANES = "lanes", sealed: 3, study: [Seq Ack], live: [Seq Ack Echo Back];
    /// The octets of GSM's radio link protocol; in the live profiles behind a number that says which frame left before.
    GSM = "gsm", sealed: 4, study: [Octets], live: [Seq Octets];
    /// What ports say to each other, whatever their services; live profiles only.
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

    /// Bytes of its numbers.
    pub(super) const fn number_len(&self, profile: HeaderProfile) -> usize {
        match profile {
            HeaderProfile::Study => 1,
            HeaderProfile::Live => 4,
            HeaderProfile::Sealed => self.sealed,
        }
    }

    /// Bytes of the fields of frames of this kind, but for bits.
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

    /// Whether frames of this kind say what has been received.
    pub fn acknowledges(&self, kind: FrameKind) -> bool {
        self.has(kind, &[Field::Ack, Field::SeqAndAck])
    }

    /// Whether a frame tells which one it is in every profile.
    pub const fn is_numbered(&self) -> bool {
        !self.fields.study.is_empty()
    }

    /// Whether frames say which others have to go up before.
    pub fn keeps_lanes(&self) -> bool {
        self.has(FrameKind::Data, &[Field::Back])
    }

    /// Whether all frames are equally long but for their packets.
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
