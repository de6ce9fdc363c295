//! The schedule of one end, by its own clock.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::GLANCE;
use crate::clock::LocalClock;

/// Durations of a test's load. Both ends know them; each knows by its own clock when the load begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// Load before the measuring period.
    pub warmup: Duration,
    /// The measuring period.
    pub measure: Duration,
    /// Load after it, in which late packets still count.
    pub grace: Duration,
}

impl Times {
    /// The total duration.
    pub fn total(&self) -> Duration {
        self.warmup
            .saturating_add(self.measure)
            .saturating_add(self.grace)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Timetable {
    pub(crate) watch: LocalClock,
    /// Start of the load.
    pub(crate) start_ns: u64,
    /// Start and end of the measuring period.
    pub(crate) from_ns: u64,
    pub(crate) until_ns: u64,
    /// End of the load.
    pub(crate) end_ns: u64,
}

impl Timetable {
    /// The schedule of a load that starts now.
    pub(crate) fn starting_now(watch: LocalClock, times: &Times) -> Self {
        let start_ns = watch.now_ns();
        let later = |at: u64, time: Duration| at.saturating_add(time.as_nanos() as u64);
        let from_ns = later(start_ns, times.warmup);
        let until_ns = later(from_ns, times.measure);
        Self {
            watch,
            start_ns,
            from_ns,
            until_ns,
            end_ns: later(until_ns, times.grace),
        }
    }

    pub(crate) const fn measures(&self, at_ns: u64) -> bool {
        self.from_ns <= at_ns && at_ns < self.until_ns
    }

    pub(crate) fn is_over(&self) -> bool {
        self.watch.now_ns() >= self.end_ns
    }

    /// The time until the end, but not zero.
    pub(crate) fn patience(&self) -> Duration {
        self.watch.until(self.end_ns).max(GLANCE)
    }
}
