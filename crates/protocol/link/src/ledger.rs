//! What a service did, in plain integers that only grow.

use airlane_base::Duration;
use serde::{Deserialize, Serialize};

/// The ledger of one service at one port: one column per direction.
///
/// Conservation, sender: `packets_offered = packets_sent + packets_dropped() + still queued`.
/// Byte counts are of packets, without any link header, unless the name says *frame*.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ServiceLedger {
    // ---- towards the link
    /// Packets that the classifier gave to this service.
    pub packets_offered: u64,
    /// Bytes of them.
    pub offered_bytes: u64,
    /// Packets put into a frame for the first time.
    pub packets_sent: u64,
    /// Bytes of them.
    pub sent_bytes: u64,
    /// Bytes of their headers that did not have to travel.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spared_bytes: u64,
    /// Packets dropped because the queue was full.
    pub dropped_queue_full: u64,
    /// Packets dropped by CoDel.
    pub dropped_codel: u64,
    /// Packets dropped because the window was full and there is no queue, or did not open again
    /// before the service was removed.
    pub dropped_window_full: u64,
    /// Packets dropped because the link was taken away while they waited.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_disconnected: u64,
    /// Packets dropped because they had waited for longer than their budget, or than the service's patience.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_too_old: u64,
    /// Packets dropped because they do not fit a frame.
    pub dropped_too_big: u64,
    /// Bytes of all packets dropped.
    pub dropped_bytes: u64,
    /// Of the packets sent: how many were unacknowledged, or had not left, when a new epoch began
    /// or the service was removed, also in part.
    /// The peer may have some of them.
    pub epoch_lost: u64,
    /// Bytes of these, without what the peer has acknowledged, as they travel.
    pub epoch_lost_bytes: u64,
    /// Of the packets sent: how many left behind another one in its frame.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packets_joined: u64,
    /// Of the packets sent: how many were cut, for several frames each.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packets_cut: u64,
    /// Frames with a part of these, put together for the first time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fragments_sent: u64,
    /// Frames that left, of all kinds.
    pub frames_sent: u64,
    /// Bytes of them with their headers.
    pub frame_sent_bytes: u64,
    /// Frames among them that repeat a packet, or carry redundancy.
    pub repair_frames_sent: u64,
    /// Bytes of these with their headers.
    pub repair_frame_bytes: u64,
    /// Of the repair frames: copies that went before anybody could ask for them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copy_frames_sent: u64,
    /// Frames among them without a packet: acknowledgments, NAKs, keepalives.
    pub control_frames_sent: u64,
    /// Bytes of these.
    pub control_frame_bytes: u64,
    /// Retransmissions because a timer ran out.
    pub timeouts: u64,
    /// Times that the service began anew because its scheme demanded it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resets: u64,
    /// NAKs for frames that were no longer kept.
    pub stale_naks: u64,
    /// NAKs that were not answered because the packet's budget was spent, or the service's patience.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub too_old_naks: u64,

    // ---- from the link
    /// Frames received, of all kinds.
    pub frames_received: u64,
    /// Bytes of them with their headers.
    pub frame_received_bytes: u64,
    /// Packets given to the layer above.
    pub packets_delivered: u64,
    /// Bytes of them.
    pub delivered_bytes: u64,
    /// Packets among them that came behind another one in its frame.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub joined_delivered: u64,
    /// Packets among them that came in several frames.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packets_reassembled: u64,
    /// What such frames brought, whatever became of it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fragments_received: u64,
    /// Packets of which a fragment came and another was waited for in vain.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packets_incomplete: u64,
    /// Packets with short headers that nobody here can make long: what they differ from was lost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub headers_unknown: u64,
    /// Frames of kinds that the scheme does not have, and what came in others and was no packet, nor several, nor a part
    /// of one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub malformed: u64,
    /// Packets among them that a repair brought.
    pub packets_recovered: u64,
    /// Bytes of these.
    pub recovered_bytes: u64,
    /// Duplicate acknowledgments that Snoop kept from the TCP sender.
    pub suppressed_acks: u64,
    /// Bytes of them.
    pub suppressed_bytes: u64,
    /// Repairs that came too late or twice, and were discarded.
    pub late: u64,
    /// Bytes of these.
    pub late_bytes: u64,
    /// Original frames that came twice and copies of what was here, which were discarded.
    pub duplicates: u64,
    /// Original frames that came after one that was sent later, before a repair did: late, and not lost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub overtaken: u64,
    /// Frames that fit no place in the window, and were discarded.
    pub out_of_window: u64,
    /// Blocks whose redundancy gave bytes that are no packet.
    pub undecodable: u64,
    /// Holes abandoned after the last attempt or for lack of room.
    pub given_up: u64,
    /// Estimate of their bytes, at the mean length of the packets delivered.
    pub given_up_bytes_estimated: u64,
    /// Holes that were abandoned before the last attempt, as a repair would have come after the packet's budget.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub given_up_too_old: u64,
    /// Packets known to be lost for good: given up, or jumped over. What was in a frame that was lost
    /// nobody knows: each counts as one.
    pub residual_lost: u64,
    /// Estimate of their bytes, likewise.
    pub residual_lost_bytes_estimated: u64,
    /// Losses of step after which the receiver had to resynchronise (study profile only).
    pub resyncs: u64,
    /// Time that packets delivered spent in this service after their frame, or the frame that
    /// revealed their loss, had arrived; the sum over `packets_delivered`.
    pub hold_ns: u64,
}

/// How often something out of the ordinary happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct EventCount {
    /// What the scheme calls it.
    pub name: &'static str,
    /// How often it happened.
    pub count: u64,
}

/// Counters of what only some links can do are left out where nothing has happened.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl ServiceLedger {
    /// A packet of `len` bytes goes up, which was held for so long.
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

    /// Packets dropped before they were sent, whatever the reason.
    pub const fn packets_dropped(&self) -> u64 {
        self.dropped_queue_full
            + self.dropped_codel
            + self.dropped_window_full
            + self.dropped_disconnected
            + self.dropped_too_old
            + self.dropped_too_big
    }

    /// Frames with something new that were put together: as many as packets sent, but for those that
    /// share one and those that take several.
    pub const fn originals_sent(&self) -> u64 {
        self.packets_sent - self.packets_joined - self.packets_cut + self.fragments_sent
    }

    /// Of how many of the peer's originals something came out. Between two ends: originals sent =
    /// originals delivered + residual lost + in flight.
    pub const fn originals_delivered(&self) -> u64 {
        let whole = self.packets_delivered - self.joined_delivered - self.packets_reassembled;
        whole + self.fragments_received
    }

    /// A frame with a packet of `len` bytes that was here before has come again.
    pub(crate) fn repeat(&mut self, original: bool, len: usize) {
        if original {
            self.duplicates += 1;
        } else {
            self.late += 1;
            self.late_bytes += len as u64;
        }
    }

    /// The estimated bytes of `packets` that never arrived.
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
