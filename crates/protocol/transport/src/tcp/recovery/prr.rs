//! Proportional rate reduction (RFC 6937, RFC 9937): during a recovery segments are sent in proportion to those that
//! arrive, so that the window reaches `ssthresh` at the end, without a pause at the beginning or a burst.
//!
//! While more than `ssthresh` is in flight, segments are sent at the ratio of the new window to the old one. With
//! less in flight, as many are sent as arrive (the conservative reduction bound), plus one if the acknowledgment is
//! safe (the slow start reduction bound), up to `ssthresh`. For RFC 6937 every acknowledgment is safe; for RFC 9937
//! and Linux, one that acknowledges something and shows no further loss.

/// The account of one recovery, segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    /// The flight size at the beginning (RecoverFS).
    flight: u64,
    /// Delivered since (prr_delivered).
    delivered: u64,
    /// Sent since (prr_out).
    sent: u64,
    /// May leave now (sndcnt).
    left: u64,
}

impl Prr {
    /// A recovery begins with `flight` segments in flight.
    pub(super) const fn begin(flight: u64) -> Self {
        Self {
            flight,
            delivered: 0,
            sent: 0,
            left: 0,
        }
    }

    /// An acknowledgment reports that `delivered` more segments have arrived; `pipe` are in flight.
    pub(super) fn on_ack(&mut self, delivered: u64, pipe: u64, ssthresh: u64, is_safe: bool) {
        self.delivered += delivered;
        self.left = if pipe > ssthresh {
            let share = (self.delivered * ssthresh).div_ceil(self.flight.max(1));
            share.saturating_sub(self.sent)
        } else {
            let bound = self.delivered.saturating_sub(self.sent).max(delivered);
            (ssthresh - pipe).min(bound + u64::from(is_safe))
        };
        // The first is sent at once: no later acknowledgment may arrive to release it (RFC 5681, section 3.2).
        if self.sent == 0 {
            self.left = self.left.max(1);
        }
    }

    /// Whether a segment may be sent now.
    pub(super) const fn allows(&self) -> bool {
        self.left > 0
    }

    /// A segment was sent.
    pub(super) const fn on_sent(&mut self) {
        self.sent += 1;
        self.left = self.left.saturating_sub(1);
    }
}
