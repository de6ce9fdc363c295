//! Pacing: segments leave evenly over the round trip, and not as acknowledgments come.
//!
//! The congestion control says how fast; before the first round trip nothing is paced. Nothing is saved up: who
//! was idle sends one segment at once and the next behind its interval.

use airlane_base::{Duration, Instant};

/// When the next segment may leave.
#[derive(Clone, Debug)]
pub(super) struct Pacing {
    enabled: bool,
    next: Instant,
    /// Whether somebody waits for it.
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

    /// Whether a segment that wants to leave now has to wait.
    #[inline]
    pub(super) fn holds(&mut self, now: Instant) -> bool {
        self.asked = self.enabled && self.next > now;
        self.asked
    }

    /// One leaves now, and the next not before `interval` has passed.
    pub(super) fn on_sent(&mut self, now: Instant, interval: Duration) {
        self.next = now + interval;
    }

    #[inline]
    pub(super) const fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// When the one that waits may leave.
    #[inline]
    pub(super) fn due(&self) -> Option<Instant> {
        self.asked.then_some(self.next)
    }

    /// Time has passed.
    pub(super) fn on_time(&mut self, now: Instant) {
        self.asked &= self.next > now;
    }
}
