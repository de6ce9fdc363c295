//! What a service manager wants to know (sd_notify(3)): that the link is up, that the loop turns, that
//! it ends. Without one nothing is said.

use airlane_base::{Duration, Instant};
use sd_notify::NotifyState;

/// Whoever started the process.
#[derive(Debug)]
pub(super) struct Supervisor {
    /// How often it wants to hear that the loop turns.
    every: Option<Duration>,
    next: Instant,
}

impl Supervisor {
    /// Asks the environment.
    pub(super) fn new(now: Instant) -> Self {
        let mut us = 0;
        let wanted = sd_notify::watchdog_enabled(false, &mut us) && us > 0;
        Self {
            // Twice in the time that it waits, as sd_watchdog_enabled(3) says.
            every: wanted.then(|| Duration::from_micros(us) / 2),
            next: now,
        }
    }

    pub(super) fn ready(&self) {
        say(NotifyState::Ready);
    }

    pub(super) fn stopping(&self) {
        say(NotifyState::Stopping);
    }

    pub(super) fn poll_timeout(&self) -> Instant {
        match self.every {
            Some(_) => self.next,
            None => Instant::FAR_FUTURE,
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if let Some(every) = self.every
            && now >= self.next
        {
            self.next = now + every;
            say(NotifyState::Watchdog);
        }
    }
}

/// A manager that cannot be told finds out by itself.
fn say(state: NotifyState<'_>) {
    let _best_effort = sd_notify::notify(false, &[state]);
}
