//! Frames and their headers.
//!
//! Byte 0 is the service number (high nibble) and the frame type (low nibble, [`FrameKind`]). The fields behind it are
//! those of the service's [`Layout`], which lists them; which layout and which kinds of frames a service has is its
//! scheme's to say, and both ends have agreed on the scheme. There are three profiles:
//!
//! **`study`** is the dissertation's (Xylomenos 1999, figure 6.2; docs/spec/multi-service.md, section 6): numbers of 8 bits,
//! and nothing that the works do not have. The coded length of a parity frame is not in it: the dissertation does not
//! count framing, and its packets are all equally long. The simulator passes it on beside the bytes.
//!
//! **`live`** travels inside datagrams, one frame each, where an old frame can turn up at any time and
//! nobody vouches for it. So every frame names its session, in 4 bytes behind byte 0, and numbers have 32 bits.
//! **`sealed`** is the same inside messages of a secure session, which are bound to the session that they were sealed
//! in: frames of another cannot be opened, so they name none. Which of the two it is follows from whether a
//! link has keys, on which both ends agree or never meet.
//!
//! In both the datagram says where the frame ends. What ports say to each other has a layout of its own. A hello has
//! fields of 0; its version is in its body.
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

/// Which original frame the peer saw last, for round trip measurement without ambiguity:
/// retransmissions have their own type and are never echoed (Karn's rule for links).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Echo {
    /// Low 16 bits of the newest original frame received.
    pub seq_low: u16,
    /// Nanoseconds and one more, so that headers need no room to say that there is no echo.
    held: NonZeroU32,
}

impl Echo {
    /// An echo of a frame that was held for so long before this one was made; none for longer than 4 s,
    /// of which no header can tell.
    pub fn new(seq_low: u16, held: Duration) -> Option<Self> {
        let held = u32::try_from(held.as_nanos()).ok()?;
        let held = NonZeroU32::MIN.checked_add(held)?;
        Some(Self { seq_low, held })
    }

    /// How long the peer held it before this frame was made.
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
    /// Place in the block.
    pub index: u8,
    /// In a parity frame: what the lengths of the packets combine to.
    pub coded_len: u16,
    /// Sequence number, or number of the block.
    pub seq: Seq,
    /// The next number that the sender of this frame expects.
    pub ack: Seq,
    /// Round trip measurement, live profile only.
    pub echo: Option<Echo>,
    /// How far back the frame is that has to go up before this one's packet; see [`Header::BEHIND_ALL`].
    pub back: u16,
    /// Those of GSM's radio link protocol, which say what the frame is.
    pub octets: [u8; 2],
}

impl Header {
    /// In `back`: every frame before this one has to go up first.
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

/// What a frame carries behind the fields of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Body<P> {
    /// Nothing.
    Empty,
    /// A packet, or redundancy of packets.
    Packet(P),
    /// In a BITMAP frame: what has been received from the header's `seq` on.
    Bitmap(Bitmap),
    /// In a REPORT: what the mark with the header's `seq` met.
    Report(Report),
}

/// What a mark met at the other end. Both fields go round at 2^32.
// Aligned as packets are: else bodies are moved in pieces that begin in the midst of a packet's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(align(8))]
pub struct Report {
    /// Bytes of all frames that have come until then, with everything below.
    pub received: u32,
    /// When it came, in microseconds of a clock that nobody set.
    pub at_us: u32,
}

/// A frame: what one port gives and the other takes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame<P> {
    /// Its header.
    pub header: Header,
    /// A packet in DATA, PARITY, COPY and RETRANSMISSION frames.
    pub body: Body<P>,
}

impl<P> Frame<P> {
    /// A frame with a packet or without one.
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

    /// Gives its packet up.
    #[inline]
    pub fn into_packet(self) -> Option<P> {
        match self.body {
            Body::Packet(packet) => Some(packet),
            Body::Empty | Body::Bitmap(_) | Body::Report(_) => None,
        }
    }

    /// Gives the frame with what `change` makes of its packet.
    #[must_use]
    pub fn map_packet(mut self, change: impl FnOnce(P) -> P) -> Self {
        self.body = match self.body {
            Body::Packet(packet) => Body::Packet(change(packet)),
            other => other,
        };
        self
    }

    /// What it says that it has received; nothing in all frames but BITMAP.
    fn bits(&self) -> Bitmap {
        match self.body {
            Body::Bitmap(bits) => bits,
            Body::Empty | Body::Packet(_) | Body::Report(_) => Bitmap::EMPTY,
        }
    }

    /// What it says of a mark.
    pub(crate) fn report(&self) -> Option<Report> {
        match self.body {
            Body::Report(report) => Some(report),
            Body::Empty | Body::Packet(_) | Body::Bitmap(_) => None,
        }
    }
}

impl<P: Payload> Frame<P> {
    /// Bytes of the packet, zero without one.
    #[inline]
    pub fn payload_len(&self) -> usize {
        self.packet().map_or(0, Payload::len)
    }
}
