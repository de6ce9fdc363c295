//! The counters of a service: plain integers that only grow.

use airlane_base::Duration;
use serde::{Deserialize, Serialize};

/// The ledger of one service at one port: one section per direction.
///
/// Conservation, sender: `packets_offered = packets_sent + packets_dropped() + still queued`.
/// Byte counts are of packets, without any link header, unless the name says *frame*.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ServiceLedger {
    // ---- transmit
    /// Packets that the classifier gave to this service.
    pub packets_offered: u64,
    /// Bytes of these packets.
    pub offered_bytes: u64,
    /// Packets put into a frame for the first time.
    pub packets_sent: u64,
    /// Bytes of these packets.
    pub sent_bytes: u64,
    /// Header bytes that header compression saved.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spared_bytes: u64,
    /// Packets dropped because the queue was full.
    pub dropped_queue_full: u64,
    /// Packets dropped by CoDel.
    pub dropped_codel: u64,
    /// Packets dropped because the window was full and the service has no queue, or because the window did
    /// not open again before the service was removed.
    pub dropped_window_full: u64,
    /// Packets dropped because the link was disconnected while they waited.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_disconnected: u64,
    /// Packets dropped because they had waited longer than their budget or the service's patience.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_too_old: u64,
    /// Packets dropped because they do not fit a frame.
    pub dropped_too_big: u64,
    /// Bytes of all packets dropped.
    pub dropped_bytes: u64,
    /// Packets sent that were unacknowledged, or had not fully left, when a new epoch began or the service
    /// was removed. The peer may have received some of them.
    pub epoch_lost: u64,
    /// Bytes of these packets as they travel, without those that the peer has acknowledged.
    pub epoch_lost_bytes: u64,
    /// Packets sent that followed another one in the same frame.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packets_joined: u64,
    /// Packets sent that were fragmented over several frames.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packets_cut: u64,
    /// Frames that were built to carry a fragment of these packets.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fragments_sent: u64,
    /// Frames sent, of all kinds.
    pub frames_sent: u64,
    /// Bytes of these frames, headers included.
    pub frame_sent_bytes: u64,
    /// Frames sent that repeat a packet or carry redundancy.
    pub repair_frames_sent: u64,
    /// Bytes of the repair frames, headers included.
    pub repair_frame_bytes: u64,
    /// Repair frames that are copies, sent before any request.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copy_frames_sent: u64,
    /// Frames sent without a packet: acknowledgments, NAKs, keepalives.
    pub control_frames_sent: u64,
    /// Bytes of the control frames.
    pub control_frame_bytes: u64,
    /// Retransmissions by timeout.
    pub timeouts: u64,
    /// Resets of the service that its scheme demanded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resets: u64,
    /// NAKs for frames that are no longer buffered.
    pub stale_naks: u64,
    /// NAKs left unanswered because the packet had exceeded its budget or the service's patience.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub too_old_naks: u64,

    // ---- receive
    /// Frames received, of all kinds.
    pub frames_received: u64,
    /// Bytes of these frames, headers included.
    pub frame_received_bytes: u64,
    /// Packets delivered to the layer above.
    pub packets_delivered: u64,
    /// Bytes of these packets.
    pub delivered_bytes: u64,
    /// Packets delivered that followed another one in the same frame.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub joined_delivered: u64,
    /// Packets delivered that were reassembled from several frames.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packets_reassembled: u64,
    /// Fragments received, including those of packets never completed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fragments_received: u64,
    /// Packets with a fragment received and another one missing for good.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packets_incomplete: u64,
    /// Packets whose compressed header cannot be restored, because its reference packet was lost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub headers_unknown: u64,
    /// Frames of a kind that the scheme does not have, and payloads that are neither packets nor a fragment.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub malformed: u64,
    /// Packets delivered from a repair.
    pub packets_recovered: u64,
    /// Bytes of the recovered packets.
    pub recovered_bytes: u64,
    /// Duplicate acknowledgments that Snoop withheld from the TCP sender.
    pub suppressed_acks: u64,
    /// Bytes of the suppressed acknowledgments.
    pub suppressed_bytes: u64,
    /// Repairs that came too late or twice and were discarded.
    pub late: u64,
    /// Bytes of the late repairs.
    pub late_bytes: u64,
    /// Duplicates of original frames, and copies of frames already received; they were discarded.
    pub duplicates: u64,
    /// Original frames that arrived after a later one and before any repair: reordered, not lost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub overtaken: u64,
    /// Frames outside of the receive window, which were discarded.
    pub out_of_window: u64,
    /// Blocks that decoded to bytes that are not a packet.
    pub undecodable: u64,
    /// Holes abandoned after the last attempt or because the buffer was full.
    pub given_up: u64,
    /// Estimated bytes of these, at the mean length of the packets delivered.
    pub given_up_bytes_estimated: u64,
    /// Holes abandoned before the last attempt, because a repair would have exceeded the packet's budget.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub given_up_too_old: u64,
    /// Packets known to be lost for good: given up or skipped. Each lost frame counts as one packet, since
    /// its contents are unknown.
    pub residual_lost: u64,
    /// Estimated bytes of these, at the mean length of the packets delivered.
    pub residual_lost_bytes_estimated: u64,
    /// Losses of synchronisation after which the receiver had to resynchronise (study profile only).
    pub resyncs: u64,
    /// Time that delivered packets spent in this service after the arrival of their frame, or of the frame
    /// that revealed their loss; the sum over `packets_delivered`.
    pub hold_ns: u64,
}

/// A count of exceptional events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct EventCount {
    /// The scheme's name for the event.
    pub name: &'static str,
    /// How often it happened.
    pub count: u64,
}

/// Counters of optional features are left out while they are zero.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl ServiceLedger {
    /// Counts a packet of `len` bytes that is delivered after it was held for this long.
    #[inline]
    pub(crate) fn deliver(&mut self, len: usize, held: Duration, repaired: bool) {
        self.packets_delivered += 1;
        self.delivered_bytes += len as u64;
        if repaired {
            self.packets_recovered += 1;
            self.recovered_bytes += len as u64;
        }
        self.hold_ns += held.as_nanos();
    }

    /// Packets dropped before they were sent, for all reasons.
    pub const fn packets_dropped(&self) -> u64 {
        self.dropped_queue_full
            + self.dropped_codel
            + self.dropped_window_full
            + self.dropped_disconnected
            + self.dropped_too_old
            + self.dropped_too_big
    }

    /// Original frames built: the packets sent, corrected for packets that share a frame and for fragments.
    pub const fn originals_sent(&self) -> u64 {
        self.packets_sent - self.packets_joined - self.packets_cut + self.fragments_sent
    }

    /// Original frames of the peer that yielded a payload. Between two ends: originals sent = originals
    /// delivered + residual lost + in flight.
    pub const fn originals_delivered(&self) -> u64 {
        let whole = self.packets_delivered - self.joined_delivered - self.packets_reassembled;
        whole + self.fragments_received
    }

    /// Counts a frame that repeats a packet of `len` bytes which was already received.
    pub(crate) fn repeat(&mut self, original: bool, len: usize) {
        if original {
            self.duplicates += 1;
        } else {
            self.late += 1;
            self.late_bytes += len as u64;
        }
    }

    /// Estimated bytes of `packets` that never arrived.
    pub(crate) fn estimate_bytes(&self, packets: u64) -> u64 {
        if self.packets_delivered == 0 {
            return 0;
        }
        let mean = self.delivered_bytes / self.packets_delivered;
        mean.saturating_mul(packets)
    }

    pub(crate) fn lose(&mut self, packets: u64, gave_up: bool) {
        let bytes = self.estimate_bytes(packets);
        self.residual_lost += packets;
        self.residual_lost_bytes_estimated += bytes;
        if gave_up {
            self.given_up += packets;
            self.given_up_bytes_estimated += bytes;
        }
    }
}
