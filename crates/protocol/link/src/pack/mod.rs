//! What stands between packets and the payloads that services carry: a packet for each payload, several
//! small ones together, a large one in parts, or one with headers that the other end can tell.
//!
//! ```text
//! queue ─► Packer: [shorten headers] ─► [join | cut] ─► payload ─► service     (`fill`, `shorten`)
//! up    ◄─ Unpacker: [expand headers] ◄─ [split | reassemble] ◄─ payload ◄─ service  (`unpack`)
//! ```
//!
//! A service numbers, repairs and copies payloads and never learns what is in them, so all of this works
//! with every scheme but those that look into packets. What kind of payload it is, the payload says itself,
//! in its first byte ([`contents`]); one with a single packet is that packet and pays nothing. A payload
//! that can be joined and cut is [`Divisible`]; the simulator's is not, and costs nothing here.

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

/// What travels as a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Contents {
    /// One packet.
    Packet,
    /// One packet whose headers are not as they were.
    Short,
    /// Several packets.
    Aggregate,
    /// A part of one.
    Fragment(Fragment),
    /// Nothing that this link makes.
    Malformed,
}

/// Which part of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fragment {
    /// The packet's number among those that are cut.
    pub packet: u16,
    /// Its place, from 0 on.
    pub index: u8,
    /// Whether it is the last one.
    pub last: bool,
}

/// A payload that may be more or less than a packet. What is not divisible needs none of the functions.
pub trait Divisible: Payload {
    /// Whether several can travel as one, and one as several.
    const DIVISIBLE: bool = false;

    /// What it is.
    fn contents(&self) -> Contents {
        Contents::Packet
    }

    /// Its bytes, where there are any.
    fn visible(&self) -> Option<&[u8]> {
        None
    }

    /// Gives this payload with `head` in place of its first `cut` bytes. None unless its bytes are visible.
    #[must_use]
    fn with_head(&self, _cut: usize, _head: &[u8]) -> Option<Self> {
        None
    }

    /// Several packets as one payload. None unless they are divisible.
    #[must_use]
    fn aggregated(_packets: &[Self]) -> Option<Self> {
        None
    }

    /// Gives the packets of an aggregate in their order.
    fn packets(&self, _each: &mut dyn FnMut(Self)) {}

    /// The bytes `from..to` of a packet as a payload that says which part it is. None unless it is
    /// divisible.
    #[must_use]
    fn fragment(&self, _which: Fragment, _from: usize, _to: usize) -> Option<Self> {
        None
    }

    /// The packet of which these are all the fragments, in their order. None if they are not.
    #[must_use]
    fn reassembled(_fragments: &[Option<Self>]) -> Option<Self> {
        None
    }
}
