//! The mapping from frame numbers to blocks and positions.

/// The parameters that both ends share: n, n + h0 and n + h, and the size of the block number space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbering {
    pub(super) packets: u32,
    pub(super) unasked: u32,
    pub(super) frames: u32,
    pub(super) numbers: u32,
}
