//! What ports that share a bottleneck tell each other: how long its queue is, and who sends how much of what it carries.

use airlane_base::{Duration, Instant};

use super::{Finder, LEAST_BPS, Stretch};
use crate::bottleneck::Seen;

/// What was seen before that is no news.
const FRESH: Duration = Duration::from_millis(300);

impl Finder {
    /// What was seen last; none: nothing of late.
    pub(in crate::port) fn seen(&self, now: Instant) -> Option<Seen> {
        let last = self.samples.back()?;
        (now.saturating_since(last.left) < FRESH + self.round_trip).then(|| Seen {
            queue_us: (last.delay_us - self.base_us()).max(0),
            bps: self.bps,
            sent_bps: Stretch::of(self.samples.iter()).map_or(0, |of_late| of_late.sent_bps as u64),
            busy: self.busy,
        })
    }

    /// Takes the link to carry so much for this end, because others of the same bottleneck send as much less or more: what
    /// is known of it is known of that.
    pub(in crate::port) fn shift(&mut self, bps: u64) {
        let bps = bps.clamp(LEAST_BPS.min(self.most), self.most);
        let part = bps as f64 / self.bps as f64;
        self.confirmed = (self.confirmed).map(|confirmed| (confirmed as f64 * part) as u64);
        self.carried = self.carried.map(|carried| carried * part);
        self.bps = bps;
    }
}
