//! Rate limit for log entries about a repeated event: one at once, then one a minute.

use airlane_base::{Duration, Instant};

const QUIET: Duration = Duration::from_secs(60);

/// Time of the last log entry, and the number of events by then.
#[derive(Clone, Copy, Debug)]
pub struct Quiet(Option<(Instant, u64)>);

impl Quiet {
    /// Nothing has been logged.
    pub const NEW: Self = Self(None);

    /// Records an event at `now`. If it should be logged, returns the number of events, which `total` counts,
    /// and the number since the last entry.
    pub fn speak(&mut self, now: Instant, total: impl FnOnce() -> u64) -> Option<[u64; 2]> {
        if self.0.is_some_and(|(when, _)| now < when + QUIET) {
            return None;
        }
        let (total, before) = (total(), self.0.map_or(0, |(_, before)| before));
        self.0 = Some((now, total));
        Some([total, total - before])
    }
}
