//! What two ends of TCP exchange, in segments.

use super::ecn::Ecn;
use super::ranges::Range;

/// One data segment. Numbers count segments from 0, as in the agents of ns-2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Segment number.
    pub seq: u64,
    /// User bytes carried; headers are not counted.
    pub len: u32,
    /// Whether these bytes were sent before.
    pub retransmission: bool,
    /// What its IP header says of congestion.
    pub ecn: Ecn,
    /// Whether its sender has cut its window for a mark (RFC 3168's CWR).
    pub cut: bool,
}

/// A cumulative acknowledgment: every segment below `ack` has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// The next segment expected (`rcv_nxt`).
    pub ack: u64,
    /// What has arrived beyond it, where that is reported (RFC 2018).
    pub blocks: Blocks,
    /// Segments from `ack` on that the receiver has room for.
    pub window: u32,
    /// Whether the segment at `ack` is known to have been destroyed on a link, and not dropped by a queue
    /// (explicit loss notification, Balakrishnan et al. 1997).
    pub eln: bool,
    /// Whether the segment that brought it to `ack` was sent before: which copy of it has come.
    pub again: bool,
    /// Whether a segment was marked that its sender has not cut its window for (RFC 3168's ECN-Echo).
    pub echo: bool,
}

/// As many blocks as an acknowledgment with other options has room for.
pub const MOST_BLOCKS: usize = 3;

/// Bytes of the option that reports so many blocks (RFC 2018, section 3), with two that align it.
pub const fn sack_option_len(blocks: usize) -> u32 {
    match blocks {
        0 => 0,
        _ => 4 + 8 * blocks as u32,
    }
}

/// Ranges of segments that arrived ahead of a hole: that of the segment which caused the
/// acknowledgment, then those that were reported last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// Those behind the last are empty.
    list: [Range; MOST_BLOCKS],
    len: u8,
}

impl Blocks {
    /// Adds a block behind the others, while there is room.
    pub fn push(&mut self, block: Range) {
        if let Some(free) = self.list.get_mut(usize::from(self.len)) {
            *free = block;
            self.len += 1;
        }
    }
}

impl std::ops::Deref for Blocks {
    type Target = [Range];

    #[inline]
    fn deref(&self) -> &[Range] {
        &self.list[..usize::from(self.len)]
    }
}

/// What two ends of TCP exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// From a sender to the receiver of the other end.
    Data(Data),
    /// From a receiver to the sender of the other end.
    Ack(Ack),
    /// One byte of this segment, which is beyond a shut window: the receiver answers with an acknowledgment and
    /// does not keep it (RFC 9293, section 3.8.6.1).
    Probe(u64),
}
