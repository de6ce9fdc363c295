//! How the numbers of frames say which block they belong to, and where in it.

/// What both ends agree on: n, n + h0 and n + h, and how many blocks have a number of their own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbering {
    pub(super) packets: u32,
    pub(super) unasked: u32,
    pub(super) frames: u32,
    pub(super) numbers: u32,
}
