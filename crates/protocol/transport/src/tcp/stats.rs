//! What a sender counts.

use serde::Serialize;

/// What a sender has counted, over all connections since the start.
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
    /// Times that `cwnd` was cut, by any cause.
    pub window_cuts: u64,
    /// Of these, cuts that a queue asked for by a mark.
    pub marked_cuts: u64,
    /// Of these, cuts that were not needed and were undone.
    pub undone_cuts: u64,
    /// Duplicate acknowledgments received.
    pub duplicate_acks: u64,
    /// Acknowledgments of segments that were never sent, ignored.
    pub invalid_acks: u64,
}
