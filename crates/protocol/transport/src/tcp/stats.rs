//! The counters of a sender.

use serde::Serialize;

/// The counters of a sender, over all connections since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SenderStats {
    /// Segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Times that the retransmission timer expired.
    pub timeouts: u64,
    /// Retransmissions started by duplicate acknowledgments.
    pub fast_retransmits: u64,
    /// Tail loss probes sent.
    pub probes: u64,
    /// Times that `cwnd` was cut, for any reason.
    pub window_cuts: u64,
    /// Of these, cuts for a congestion mark.
    pub marked_cuts: u64,
    /// Of these, cuts that were spurious and were undone.
    pub undone_cuts: u64,
    /// Duplicate acknowledgments received.
    pub duplicate_acks: u64,
    /// Acknowledgments of segments that were never sent; they are ignored.
    pub invalid_acks: u64,
}
