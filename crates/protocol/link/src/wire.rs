//! Frames and their headers.
//!
//! Byte 0 is the service number (high nibble) and the frame type (low nibble, [`FrameKind`]). The following
//! fields are those of the service's [`Layout`]. The scheme, on which both ends have agreed, determines the
//! layout and the kinds of frames of a service. There are three profiles:
//!
//! **`study`** is the dissertation's (Xylomenos 1999, figure 6.2; docs/spec/multi-service.md, section 6):
//! 8-bit sequence numbers, and nothing beyond the published works. It lacks the coded length of a parity
//! frame: the dissertation does not count framing, and all its packets have the same length. The simulator
//! passes the coded length alongside the bytes.
//!
//! **`live`** travels in datagrams, one frame each, where old frames can arrive at any time, unauthenticated.
//! So every frame names its session in 4 bytes after byte 0, and sequence numbers have 32 bits. **`sealed`**
//! is the same inside messages of a secure session. A message can only be opened in the session in which it
//! was sealed, so its frame does not name the session. A link with keys uses `sealed`, one without uses
//! `live`; ends that disagree on this cannot communicate.
//!
//! In both profiles the datagram delimits the frame. Frames between the ports themselves have a layout of
//! their own. All fields of a hello are 0; its version is in its body.
//!
//! **Why 24 bits are enough** where frames are acknowledged and sealed: a sender is never further ahead of
//! its oldest unacknowledged frame than its window, and the secure session rejects replayed messages and
//! those that some thousand others have overtaken. Half of the number space must cover both: 8.4 million
//! frames, where eight bandwidth-delay products of 10 Gbit/s x 100 ms in frames of 256 bytes are 3.9 million.
//! Without acknowledgments a sender continues through an outage of any length, and the receiver must still
//! recognise what follows as new; without keys an old frame may be of any age. Both need 32 bits.
//!
//! All numbers are big-endian. Decoding never panics and never reads past the buffer.

mod bitmap;
mod codec;
mod kind;
mod layout;
mod profile;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;

use airlane_base::{Duration, Payload, Seq};

pub use bitmap::Bitmap;
pub(crate) use codec::STUDY_BLOCKS;
pub use codec::{Codec, Decoded, FrameError, LIVE_HEADER_ROOM};
pub use kind::{FrameKind, Kinds, Role};
pub use layout::Layout;
pub use profile::HeaderProfile;

/// Service numbers have 4 bits.
pub const SERVICES: usize = 16;

/// The newest original frame that the peer received, for unambiguous round trip measurement: retransmissions
/// have a type of their own and are never echoed (Karn's rule for links).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Echo {
    /// Low 16 bits of the newest original frame received.
    pub seq_low: u16,
    /// Nanoseconds plus one, so that zero can mean that there is no echo.
    held: NonZeroU32,
}

impl Echo {
    /// The echo of a frame that was held for this long; none beyond 4 s, which the header cannot express.
    pub fn new(seq_low: u16, held: Duration) -> Option<Self> {
        let held = u32::try_from(held.as_nanos()).ok()?;
        let held = NonZeroU32::MIN.checked_add(held)?;
        Some(Self { seq_low, held })
    }

    /// How long the peer held the frame before it sent this echo.
    pub fn held(self) -> Duration {
        Duration::from_nanos(u64::from(self.held.get()) - 1)
    }
}

/// The header of a frame. Fields that a layout does not carry are zero.
// Aligned as packets are, so that it is moved in whole words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(align(8))]
pub struct Header {
    /// Service number, 0 to 15.
    pub service: u8,
    /// What the frame is for.
    pub kind: FrameKind,
    /// Position in the block.
    pub index: u8,
    /// In a parity frame: the combined lengths of the packets.
    pub coded_len: u16,
    /// Sequence number, or block number.
    pub seq: Seq,
    /// The next number that the sender of this frame expects.
    pub ack: Seq,
    /// Round trip measurement, live profile only.
    pub echo: Option<Echo>,
    /// Distance back to the latest frame that must be delivered before this one's packet; see
    /// [`Header::BEHIND_ALL`].
    pub back: u16,
    /// The header octets of GSM's radio link protocol, which define the frame type.
    pub octets: [u8; 2],
}

impl Header {
    /// Value of `back` that requires delivery after every earlier frame.
    pub const BEHIND_ALL: u16 = u16::MAX;

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
            back: 0,
            octets: [0; 2],
        }
    }
}

/// The contents of a frame after its header fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Body<P> {
    /// Nothing.
    Empty,
    /// A packet, or redundancy of packets.
    Packet(P),
    /// In a BITMAP frame: what has been received from the header's `seq` on.
    Bitmap(Bitmap),
    /// In a REPORT: the reply to the mark with the header's `seq`.
    Report(Report),
}

/// What the peer observed when a mark arrived. Both fields wrap at 2^32.
// Aligned as packets are: otherwise bodies are copied in pieces that straddle the words of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(align(8))]
pub struct Report {
    /// Bytes of all frames received up to the mark, with all overhead below them.
    pub received: u32,
    /// Arrival time of the mark, in microseconds of an arbitrary clock.
    pub at_us: u32,
}

/// A frame, as one port sends and the other receives it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame<P> {
    /// Its header.
    pub header: Header,
    /// A packet in DATA, PARITY, COPY and RETRANSMISSION frames.
    pub body: Body<P>,
}

impl<P> Frame<P> {
    /// A frame with or without a packet.
    pub fn new(header: Header, packet: Option<P>) -> Self {
        let body = packet.map_or(Body::Empty, Body::Packet);
        Self { header, body }
    }

    pub(crate) fn control(kind: FrameKind, seq: Seq) -> Self {
        Self {
            header: Header::new(kind, seq),
            body: Body::Empty,
        }
    }

    pub(crate) fn with_packet(kind: FrameKind, seq: Seq, packet: P) -> Self {
        Self {
            header: Header::new(kind, seq),
            body: Body::Packet(packet),
        }
    }

    /// Its packet.
    #[inline]
    pub fn packet(&self) -> Option<&P> {
        match &self.body {
            Body::Packet(packet) => Some(packet),
            Body::Empty | Body::Bitmap(_) | Body::Report(_) => None,
        }
    }

    /// Takes its packet out.
    #[inline]
    pub fn into_packet(self) -> Option<P> {
        match self.body {
            Body::Packet(packet) => Some(packet),
            Body::Empty | Body::Bitmap(_) | Body::Report(_) => None,
        }
    }

    /// The frame with its packet transformed by `change`.
    #[must_use]
    pub fn map_packet(mut self, change: impl FnOnce(P) -> P) -> Self {
        self.body = match self.body {
            Body::Packet(packet) => Body::Packet(change(packet)),
            other => other,
        };
        self
    }

    /// Its receive bitmap; empty in all frames but BITMAP.
    fn bits(&self) -> Bitmap {
        match self.body {
            Body::Bitmap(bits) => bits,
            Body::Empty | Body::Packet(_) | Body::Report(_) => Bitmap::EMPTY,
        }
    }

    /// Its report on a mark.
    pub(crate) fn report(&self) -> Option<Report> {
        match self.body {
            Body::Report(report) => Some(report),
            Body::Empty | Body::Packet(_) | Body::Bitmap(_) => None,
        }
    }
}

impl<P: Payload> Frame<P> {
    /// Length of its packet in bytes, zero without one.
    #[inline]
    pub fn payload_len(&self) -> usize {
        self.packet().map_or(0, Payload::len)
    }
}
