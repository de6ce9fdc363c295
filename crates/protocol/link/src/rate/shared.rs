//! What ports with a shared bottleneck exchange: the length of its queue, and how much of its capacity each
//! uses.

use airlane_base::{Duration, Instant};

use super::{LEAST_BPS, RateEstimator, Stretch};
use crate::bottleneck::Seen;

/// Older observations are not reported.
const FRESH: Duration = Duration::from_millis(300);

impl RateEstimator {
    /// The last observation; none if there is no recent one.
    pub(crate) fn seen(&self, now: Instant) -> Option<Seen> {
        let last = self.samples.back()?;
        (now.saturating_since(last.left) < FRESH + self.round_trip).then(|| Seen {
            queue_us: (last.delay_us - self.base_us()).max(0),
            bps: self.bps,
            sent_bps: Stretch::of(self.samples.iter()).map_or(0, |of_late| of_late.sent_bps as u64),
            busy: self.busy,
        })
    }

    /// Moves the estimate to this rate, because other senders at the same bottleneck send as much less or
    /// more: everything known of the old rate is scaled to the new one.
    pub(crate) fn shift(&mut self, bps: u64) {
        let bps = bps.clamp(LEAST_BPS.min(self.most), self.most);
        let part = bps as f64 / self.bps as f64;
        self.confirmed = (self.confirmed).map(|confirmed| (confirmed as f64 * part) as u64);
        self.carried = self.carried.map(|carried| carried * part);
        self.bps = bps;
    }
}
