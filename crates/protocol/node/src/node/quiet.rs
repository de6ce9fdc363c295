//! How often the log speaks of one thing that happens again and again: at once, then once a minute.

use airlane_base::{Duration, Instant};

const QUIET: Duration = Duration::from_secs(60);

/// When the log spoke of a thing last, and how often it had happened by then.
#[derive(Clone, Copy, Debug)]
pub struct Quiet(Option<(Instant, u64)>);

impl Quiet {
    /// The log has never spoken of it.
    pub const NEW: Self = Self(None);

    /// It happens at `now`. Where the log is to say so, how often it has happened, as `total` counts, and how often
    /// since the log spoke last.
    pub fn speak(&mut self, now: Instant, total: impl FnOnce() -> u64) -> Option<[u64; 2]> {
        if self.0.is_some_and(|(when, _)| now < when + QUIET) {
            return None;
        }
        let (total, before) = (total(), self.0.map_or(0, |(_, before)| before));
        self.0 = Some((now, total));
        Some([total, total - before])
    }
}
