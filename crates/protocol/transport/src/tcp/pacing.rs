//! Pacing: segments are sent evenly over the round trip, not in the bursts in which acknowledgments arrive.
//!
//! The congestion control sets the rate; nothing is paced before the first round trip. No credit accumulates: after
//! an idle time, one segment is sent at once and the next one an interval later.

use airlane_base::{Duration, Instant};

/// When the next segment may be sent.
#[derive(Clone, Debug)]
pub(super) struct Pacing {
    enabled: bool,
    next: Instant,
    /// Whether a segment is waiting for that time.
    asked: bool,
}

impl Pacing {
    pub(super) const fn new(enabled: bool) -> Self {
        Self {
            enabled,
            next: Instant::ORIGIN,
            asked: false,
        }
    }

    /// Whether a segment that is ready now has to wait.
    #[inline]
    pub(super) fn holds(&mut self, now: Instant) -> bool {
        self.asked = self.enabled && self.next > now;
        self.asked
    }

    /// A segment is sent now; the next one has to wait for `interval`.
    pub(super) fn on_sent(&mut self, now: Instant, interval: Duration) {
        self.next = now + interval;
    }

    #[inline]
    pub(super) const fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// When the waiting segment may be sent.
    #[inline]
    pub(super) fn due(&self) -> Option<Instant> {
        self.asked.then_some(self.next)
    }

    /// Time has passed.
    pub(super) fn on_time(&mut self, now: Instant) {
        self.asked &= self.next > now;
    }
}
