//! What a link carries without looking inside.

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

/// A packet as the link layer sees it: something with a length that is cheap to keep a copy of.
///
/// The simulator's payload is a small value that stands for bytes; the live daemon's is a
/// reference-counted buffer. A service cannot tell which one it carries, also where erasure codes
/// combine packets: they work on *images*, bytes that say everything about a packet but its
/// length, which is coded beside them.
pub trait Payload: Clone {
    /// Length on the wire in bytes, without any link layer header.
    fn len(&self) -> usize;

    /// Whether nothing is carried.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that erasure codes combine. Images of different lengths are padded with zeros.
    fn image(&self) -> impl AsRef<[u8]>;

    /// What carries redundancy: `len` bytes on the wire with this image, which need not be one of
    /// a packet. `self` is any payload of the same link, and may lend it memory.
    #[must_use]
    fn coded(&self, image: &[u8], len: usize) -> Self;

    /// The packet of `len` bytes with this image, computed out of others. None if no packet has
    /// it: as far as packets have checks of their own, what was computed wrongly ends here.
    fn recovered(&self, image: &[u8], len: usize) -> Option<Self>;

    /// Its bytes, where there are any.
    fn visible(&self) -> Option<&[u8]> {
        None
    }

    /// The same with `head` in place of its first `cut` bytes. None unless its bytes are visible.
    #[must_use]
    fn with_head(&self, _cut: usize, _head: &[u8]) -> Option<Self> {
        None
    }

    /// Whether several can travel as one, and one as several.
    const DIVISIBLE: bool = false;

    /// What it is.
    fn contents(&self) -> Contents {
        Contents::Packet
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

/// A packet's bytes out of its padded image. None if the padding is none.
pub fn unpadded(image: &[u8], len: usize) -> Option<&[u8]> {
    let (bytes, padding) = image.split_at_checked(len)?;
    padding.iter().all(|byte| *byte == 0).then_some(bytes)
}

impl Payload for Vec<u8> {
    fn len(&self) -> usize {
        self.len()
    }

    fn image(&self) -> impl AsRef<[u8]> {
        self
    }

    fn coded(&self, image: &[u8], len: usize) -> Self {
        let mut bytes = image.to_vec();
        bytes.resize(len, 0);
        bytes
    }

    fn recovered(&self, image: &[u8], len: usize) -> Option<Self> {
        unpadded(image, len).map(<[u8]>::to_vec)
    }
}
