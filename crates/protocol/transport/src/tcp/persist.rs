//! The persist timer: asks a peer whose window is shut whether it has opened (RFC 9293, section 3.8.6.1).
//!
//! An acknowledgment that opens a window may be lost, and nothing acknowledges an acknowledgment. So a sender
//! that waits for nothing but the window sends one byte beyond it, first after a retransmission timeout and
//! then after twice as long each time. The timer runs only while nothing is outstanding, so it and the
//! retransmission timer never run together.

use airlane_base::{Duration, Instant};

/// The persist timer of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Persist {
    due: Option<Instant>,
    /// Probes since the window shut.
    count: u32,
    /// Whether a probe has to leave now.
    probe: bool,
}

impl Persist {
    #[inline]
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The window is shut: the timer runs, if it does not already.
    pub(super) fn arm(&mut self, now: Instant, rto: Duration, longest: Duration) {
        if self.due.is_none() {
            let wait = rto * (1u64 << self.count.min(16));
            self.due = Some(now + wait.min(longest));
        }
    }

    /// Something else will come: the window is open, or data is outstanding.
    pub(super) fn stop(&mut self) {
        *self = Self::default();
    }

    /// Time has passed; whether a probe is due.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        if self.due.is_none_or(|due| due > now) {
            return false;
        }
        self.due = None;
        self.count += 1;
        self.probe = true;
        true
    }

    /// Whether a probe leaves now.
    #[inline]
    pub(super) fn take_probe(&mut self) -> bool {
        std::mem::take(&mut self.probe)
    }
}
