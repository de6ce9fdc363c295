//! One timer for a whole window, which runs for the oldest outstanding frame.
//!
//! It stops while that frame, or a repair, waits to leave. So a burst of repairs that takes longer than the
//! timeout does not trigger it (the backlog guard of section 7.11).

use airlane_base::{Duration, Instant, Payload};

use super::send_window::SendWindow;
use crate::context::Noted;

/// The timer of a window's oldest frame.
#[derive(Clone, Debug, Hash)]
pub(crate) struct OldestTimer {
    since: Option<Instant>,
    /// When the last frame with a packet left, or will have left.
    last_left: Noted,
}

impl OldestTimer {
    pub(crate) fn new() -> Self {
        Self {
            since: None,
            last_left: Noted(Instant::ORIGIN),
        }
    }

    /// Starts or stops the timer according to the window's state.
    pub(crate) fn follow<P: Payload>(&mut self, window: &SendWindow<P>, now: Instant) {
        let oldest = window.get(window.base());
        if oldest.is_some_and(|frame| !frame.waits) && !window.repairs_pending() {
            self.since.get_or_insert(now.max(self.last_left.0));
        } else {
            self.since = None;
        }
    }

    /// A frame with a packet has left, or has been handed over.
    pub(crate) fn left<P: Payload>(&mut self, window: &SendWindow<P>, left: Instant) {
        self.last_left = Noted(left);
        self.follow(window, left);
    }

    /// Restarts the timer now, if there is anything to time.
    pub(crate) fn restart<P: Payload>(&mut self, window: &SendWindow<P>, now: Instant) {
        self.since = None;
        self.follow(window, now);
    }

    /// Stops the timer if it has expired, and returns whether it has.
    pub(crate) fn expire(&mut self, now: Instant, runs: Duration) -> bool {
        let expired = self.since.is_some_and(|since| since + runs <= now);
        if expired {
            self.since = None;
        }
        expired
    }

    pub(crate) fn deadline(&self, runs: Duration) -> Option<Instant> {
        self.since.map(|since| since + runs)
    }
}
