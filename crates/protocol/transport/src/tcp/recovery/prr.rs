//! Proportional rate reduction (RFC 6937, RFC 9937): during a recovery segments leave in proportion to those that
//! arrive, so that the window is at `ssthresh` at its end without a pause at its beginning or a burst.
//!
//! While more is on its way than `ssthresh`, so many have left as of the arrived ones the new window is of the
//! old; with less, as many as arrive (the conservative reduction bound), and one more where the acknowledgment is a
//! safe one (the slow start reduction bound), up to `ssthresh`. For RFC 6937 each is safe; for RFC 9937, as for Linux,
//! those that acknowledge something and show no further loss.

/// The account of one recovery, segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    /// Outstanding when it began (RecoverFS).
    flight: u64,
    /// Arrived since (prr_delivered).
    delivered: u64,
    /// Sent since (prr_out).
    sent: u64,
    /// May leave now (sndcnt).
    left: u64,
}

impl Prr {
    /// A recovery begins with so many segments outstanding.
    pub(super) const fn begin(flight: u64) -> Self {
        Self {
            flight,
            delivered: 0,
            sent: 0,
            left: 0,
        }
    }

    /// An acknowledgment, safe or not, has shown that `delivered` more have arrived; `pipe` are on their way.
    pub(super) fn on_ack(&mut self, delivered: u64, pipe: u64, ssthresh: u64, is_safe: bool) {
        self.delivered += delivered;
        self.left = if pipe > ssthresh {
            let share = (self.delivered * ssthresh).div_ceil(self.flight.max(1));
            share.saturating_sub(self.sent)
        } else {
            let bound = self.delivered.saturating_sub(self.sent).max(delivered);
            (ssthresh - pipe).min(bound + u64::from(is_safe))
        };
        // The first leaves at once: no acknowledgment may follow that would let it (RFC 5681, section 3.2).
        if self.sent == 0 {
            self.left = self.left.max(1);
        }
    }

    /// Whether one may leave now.
    pub(super) const fn allows(&self) -> bool {
        self.left > 0
    }

    /// One has left.
    pub(super) const fn on_sent(&mut self) {
        self.sent += 1;
        self.left = self.left.saturating_sub(1);
    }
}
