//! What a link carries without looking inside.

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
