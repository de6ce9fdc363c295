//! The beginning and end of competition with another sender that keeps a queue filled (`rival.rs`).

use airlane_base::Instant;

use super::rival::{NotOurs, Rival};
use super::seen::Sample;
use super::{Doubt, FOUND, LEAST_BPS, MOST_MARKS, MOST_STEP, Phase, RateEstimator};

impl RateEstimator {
    /// Another sender keeps a queue filled; a mark takes `least_us` without it. `before` is the rate sent
    /// beside such a queue in the last minute.
    pub(super) fn meet(&mut self, now: Instant, least_us: i64, before: Option<u64>) {
        let queue_us = self.queue_us(FOUND) + self.base_us() - least_us;
        let round_s = self.round_trip.as_secs_f64();
        let rival = Rival::new(now, least_us, queue_us, (self.bps, before), round_s);
        (self.rival, self.phase, self.doubt) = (Some(rival), Phase::Grows, Doubt::None);
        self.held = u64::MAX;
    }

    /// Sets the rate that TCP would send beside the filled queue.
    pub(super) fn compete(&mut self, now: Instant, before: &Sample, last: &Sample) {
        let delay_us = self.queue_us(FOUND) + self.base_us();
        let Some(rival) = &mut self.rival else {
            return;
        };
        let queue_us = delay_us - rival.base_us();
        let round_s = self.round_trip.as_secs_f64();
        let bps = rival.handle_mark(now, [before, last], queue_us, round_s);
        let is_alone = rival.is_alone();
        let is_gone = rival.looks(now) && queue_us < self.allowed_us();
        self.bps = (bps as u64).clamp(LEAST_BPS.min(self.most), self.most);
        if is_gone || is_alone {
            (self.since, self.carried, self.rival) = (now, None, None);
            self.gain = MOST_STEP;
            self.not_ours.went(now, self.bps);
        }
        if is_alone {
            self.not_ours = NotOurs::new();
            self.accept(now, MOST_MARKS);
        }
    }
}
