//! The data that a link carries without interpreting it.

/// A packet as the link layer sees it: it has a length, and a copy of it is cheap to keep.
///
/// The simulator's payload is a small value that stands for bytes; the live daemon's is a reference-counted buffer. A
/// service cannot tell which one it carries, even where erasure codes combine packets: they work on *images*, bytes that
/// determine a packet except for its length, which is coded separately.
pub trait Payload: Clone {
    /// Length on the wire in bytes, without link layer headers.
    fn len(&self) -> usize;

    /// Whether the payload has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that erasure codes combine. Shorter images are padded with zeros.
    fn image(&self) -> impl AsRef<[u8]>;

    /// A payload that carries redundancy: `len` bytes on the wire with this image, which need not be the image of a
    /// packet. `self` is any payload of the same link, whose memory may be reused.
    #[must_use]
    fn coded(&self, image: &[u8], len: usize) -> Self;

    /// The packet of `len` bytes with this image, as recovered from others. `None` if no packet has this image: if
    /// packets have integrity checks, a wrong recovery is detected here.
    fn recovered(&self, image: &[u8], len: usize) -> Option<Self>;
}

/// A packet's bytes without the padding of its image. `None` if the padding is not all zero.
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
