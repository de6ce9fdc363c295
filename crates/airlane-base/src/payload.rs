//! What a link carries without looking inside.

/// A packet as the link layer sees it: something with a length that is cheap to keep a copy of.
///
/// The simulator's payload is a small value that stands for bytes; the live daemon's is a
/// reference-counted buffer. A service cannot tell which one it carries.
pub trait Payload: Clone {
    /// Length on the wire in bytes, without any link layer header.
    fn len(&self) -> usize;

    /// Whether nothing is carried.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Payload for Vec<u8> {
    fn len(&self) -> usize {
        self.len()
    }
}
