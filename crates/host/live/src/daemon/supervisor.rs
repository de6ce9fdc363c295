//! Notifications to a service manager (sd_notify(3)): the link is up, the loop runs, the node stops. Without
//! a manager none are sent.

use airlane_base::{Duration, Instant};
use sd_notify::NotifyState;

/// The service manager, if there is one.
#[derive(Debug)]
pub(super) struct Supervisor {
    /// Interval of watchdog notifications.
    every: Option<Duration>,
    next: Instant,
}

impl Supervisor {
    /// Reads the environment.
    pub(super) fn new(now: Instant) -> Self {
        let mut us = 0;
        let wanted = sd_notify::watchdog_enabled(false, &mut us) && us > 0;
        Self {
            // Half the watchdog timeout, as sd_watchdog_enabled(3) recommends.
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

/// A manager that cannot be notified notices by its timeout.
fn say(state: NotifyState<'_>) {
    let _best_effort = sd_notify::notify(false, &[state]);
}
