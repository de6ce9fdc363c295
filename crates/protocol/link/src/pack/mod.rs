//! Converts between packets and the payloads that services carry: one packet per payload, several small ones,
//! a fragment of a large one, or one with compressed headers.
//!
//! ```text
//! queue ─► Packer: [shorten headers] ─► [join | cut] ─► payload ─► service     (`fill`, `shorten`)
//! up    ◄─ Unpacker: [expand headers] ◄─ [split | reassemble] ◄─ payload ◄─ service  (`unpack`)
//! ```
//!
//! A service numbers, repairs and copies payloads without knowing what they contain, so all of this works
//! with every scheme, except those that look into packets. The first byte of a payload gives its kind
//! ([`contents`]); a payload with a single packet is that packet, without overhead. A payload that can be
//! aggregated and fragmented is [`Divisible`]; the simulator's is not, and costs nothing here.

mod anchors;
pub mod contents;
mod fill;
pub mod headers;
mod lost;
mod reassembly;
#[cfg(test)]
mod sample;
mod shorten;
mod unpack;

use airlane_base::Payload;

pub(crate) use fill::{Packer, Shortening};
pub(crate) use lost::EpochLoss;
pub(crate) use unpack::{Holds, Unpacker};

/// The kinds of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Contents {
    /// One packet.
    Packet,
    /// One packet with compressed headers.
    Short,
    /// Several packets.
    Aggregate,
    /// A fragment of one packet.
    Fragment(Fragment),
    /// Anything else; this link sends none.
    Malformed,
}

/// Identifies a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fragment {
    /// The packet's number among those that are fragmented.
    pub packet: u16,
    /// Its index, from 0.
    pub index: u8,
    /// Whether it is the last one.
    pub last: bool,
}

/// A payload that may be more or less than one packet. A type that is not divisible needs none of the
/// functions.
pub trait Divisible: Payload {
    /// Whether packets can be aggregated and fragmented.
    const DIVISIBLE: bool = false;

    /// Its kind.
    fn contents(&self) -> Contents {
        Contents::Packet
    }

    /// Its bytes, where they exist.
    fn visible(&self) -> Option<&[u8]> {
        None
    }

    /// This payload with `head` in place of its first `cut` bytes. None unless its bytes are visible.
    #[must_use]
    fn with_head(&self, _cut: usize, _head: &[u8]) -> Option<Self> {
        None
    }

    /// Several packets as one payload. None unless they are divisible.
    #[must_use]
    fn aggregated(_packets: &[Self]) -> Option<Self> {
        None
    }

    /// Calls `each` with the packets of an aggregate, in order.
    fn packets(&self, _each: &mut dyn FnMut(Self)) {}

    /// The bytes `from..to` of a packet as a fragment. None unless it is divisible.
    #[must_use]
    fn fragment(&self, _which: Fragment, _from: usize, _to: usize) -> Option<Self> {
        None
    }

    /// The packet of which these are all the fragments, in order. None if they are not.
    #[must_use]
    fn reassembled(_fragments: &[Option<Self>]) -> Option<Self> {
        None
    }
}
