//! The persist timer: probes a peer with a zero window (RFC 9293, section 3.8.6.1).
//!
//! An acknowledgment that opens the window may be lost, and acknowledgments are not acknowledged. So a sender that
//! waits only for the window sends one byte beyond it, first after a retransmission timeout and then after twice as
//! long each time. The timer runs only while nothing is in flight, so it never runs together with the retransmission
//! timer.

use airlane_base::{Duration, Instant};

/// The persist timer of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Persist {
    due: Option<Instant>,
    /// Probes since the window closed.
    count: u32,
    /// Whether a probe must be sent now.
    probe: bool,
}

impl Persist {
    #[inline]
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The window is closed: starts the timer if it is not running.
    pub(super) fn arm(&mut self, now: Instant, rto: Duration, longest: Duration) {
        if self.due.is_none() {
            let wait = rto * (1u64 << self.count.min(16));
            self.due = Some(now + wait.min(longest));
        }
    }

    /// No probe is needed: the window is open, or data is in flight.
    pub(super) fn stop(&mut self) {
        *self = Self::default();
    }

    /// Advances time; true if a probe is due.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        if self.due.is_none_or(|due| due > now) {
            return false;
        }
        self.due = None;
        self.count += 1;
        self.probe = true;
        true
    }

    /// Whether a probe is sent now.
    #[inline]
    pub(super) fn take_probe(&mut self) -> bool {
        std::mem::take(&mut self.probe)
    }
}
