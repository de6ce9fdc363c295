//! The reaction to a queue below: reduce the rate to the capacity, then lower until the queue is gone, or
//! recognise it as another sender's.

use airlane_base::{Duration, Instant};

use super::seen::{Least, Stretch};
use super::{
    Doubt, FOUND, LEAST_BPS, LEAST_MARKS, LEAST_OF, LEAST_ROUND, MOST_MARKS, Phase, RateEstimator,
    Taken,
};

/// A queue of more than `LONG_S` seconds is drained at the lowest rate, for at most `LONGEST_DRAIN_S`.
const LONG_S: f64 = 0.5;
const LONGEST_DRAIN_S: f64 = 2.0;
/// A queue of this many seconds that does not fall although less is sent belongs to a link that became
/// slower.
const STANDS_S: f64 = 0.2;
/// Number of attempts after which a queue that does not fall is no longer assumed to be ours.
const TRIES: u32 = 2;
/// Number of attempts after which a queue that has not fallen, or has even grown, is attributed to another
/// sender: no link becomes slower so often in a row.
const VAIN: u32 = 3;
/// How long, and how often at least, less is sent to measure the delay without a queue.
const PEEK: Duration = Duration::from_millis(200);
const PEEK_EVERY: Duration = Duration::from_secs(8);
/// Sending rate as a fraction of the capacity, so that the rest of a queue drains.
const BELOW: f64 = 0.97;

impl RateEstimator {
    /// Handles a queue that stands or grows.
    pub(super) fn on_queue(&mut self, now: Instant, queue: i64, of_late: usize) {
        let (base, allowed) = (self.base_us(), self.allowed_us());
        // The link was never idle between the marks that found a queue; before the first of them it may have
        // been.
        let found = self.samples.iter().rev().take(of_late);
        let found = found
            .take_while(|sample| sample.delay_us - base > allowed / 2)
            .count();
        if found < FOUND {
            return;
        }
        let begin = self.samples.len() - found;
        let seen = Stretch::of(self.samples.range(begin..));
        let (Some(to), Some(seen)) = (self.samples.back(), seen) else {
            return;
        };
        let (to_delay, grows) = (to.delay_us, seen.carried_bps < 0.95 * seen.sent_bps);
        let overflows = seen.loss > self.losses.much(true);
        self.since = now;
        if self.before_silence.is_some() && !grows && self.stands_still(found) {
            // A queue left by a silence falls at this low rate, or grows. A constant delay means a longer
            // path.
            return self.accept(now, found);
        }
        let (mut before, mut tries, mut vain) = (self.bps, 0, 0);
        if let Doubt::Queue(doubt) = self.doubt
            && queue > doubt.was * 2 / 3
        {
            vain = doubt.vain + 1;
            if vain == VAIN {
                let least = self.not_ours.least(base);
                return self.meet(now, least, None);
            }
            if !grows {
                (before, tries) = (doubt.bps, doubt.tries + 1);
            }
            if tries == TRIES {
                // The earlier rate may have been far above what arrived.
                let shown = self
                    .carried
                    .map_or(before, |carried| (2.0 * carried) as u64);
                self.bps = before.min(shown).max(self.bps).min(self.most);
                match self.not_ours.add(now) {
                    Some(least) => self.meet(now, least, None),
                    None => self.accept(now, MOST_MARKS),
                }
                return;
            }
        }
        if !grows && !self.busy {
            // The queue is another sender's: it goes when that sender yields, or becomes the base delay when
            // the minimum is forgotten.
            self.doubt = Doubt::None;
            return;
        }
        let rule = self.losses.rule();
        let mut carried = match overflows {
            true => seen.carried_bps * (1.0 - seen.loss) / (1.0 - rule),
            false => seen.carried_bps,
        };
        let stands = (to_delay - base) as f64 / 1e6;
        if tries > 0 && stands > STANDS_S {
            carried = carried.min(self.bps as f64 * self.part);
        }
        // What has been sent since then at too high a rate will join the queue.
        let too_fast = (self.bps as f64 / carried - 1.0).max(0.0);
        let length = stands + too_fast * self.round_trip.as_secs_f64();
        let (part, longest) = match length {
            _ if stands > LONG_S => (0.25, LONGEST_DRAIN_S),
            length if length > 0.05 => (0.5, 1.0),
            _ => (0.75, 1.0),
        };
        // A short queue is no evidence about the link then: another sender may have filled it meanwhile.
        self.part = if tries > 0 && stands <= STANDS_S {
            self.part * part
        } else {
            part
        };
        let takes = (length / (1.0 - part)).min(longest);
        self.take_back(carried);
        self.losses.on_queue(overflows);
        if let Some((least, before)) = self.not_ours.comes_back(now, self.bps) {
            self.meet(now, least, Some(before));
            return;
        }
        self.drain(now, Duration::from_secs_f64(takes));
        self.doubt = Doubt::Queue(Taken {
            was: queue,
            bps: before,
            tries,
            vain,
        });
    }

    /// Whether the last `marks` marks had about the same delay, for at least a round.
    fn stands_still(&self, marks: usize) -> bool {
        let late = || self.samples.iter().rev().take(marks);
        let delays = || late().map(|sample| sample.delay_us);
        let (Some(least), Some(most)) = (delays().min(), delays().max()) else {
            return false;
        };
        let lasts = late().next_back().zip(late().next());
        let lasts = lasts.map(|(first, last)| last.left.saturating_since(first.left));
        marks >= LEAST_MARKS
            && most - least <= self.allowed_us()
            && lasts.is_some_and(|lasts| lasts >= LEAST_ROUND)
    }

    fn drain(&mut self, now: Instant, takes: Duration) {
        self.phase = Phase::Drains { until: now + takes };
        self.drained = now;
    }

    /// Sending less has not reduced the delay of the last marks: the queue is not ours.
    pub(super) fn accept(&mut self, now: Instant, marks: usize) {
        let of_late = self.samples.iter().rev().take(marks);
        if let Some(delay) = of_late.map(|sample| sample.delay_us).min() {
            self.base = Some(Least::of(now, delay, LEAST_OF));
        }
        self.doubt = Doubt::None;
    }

    /// A permanent queue looks like no queue: now and then less is sent for a while, to measure the delay
    /// without it.
    pub(super) fn look_below(&mut self, now: Instant) {
        if self.busy
            && self.phase == Phase::Grows
            && now.saturating_since(self.drained) >= PEEK_EVERY
        {
            (self.part, self.since) = (0.5, now);
            self.drain(now, PEEK);
        }
    }

    /// Reduces the estimate to this capacity.
    fn take_back(&mut self, carried: f64) {
        if let Some(before) = self.carried.filter(|before| *before > 0.0) {
            self.variation.add(before, carried);
        }
        let carried = carried.min(self.bps as f64).max(self.bps as f64 / 64.0);
        self.bps = ((carried * BELOW) as u64).max(LEAST_BPS.min(self.most));
        (self.carried, self.confirmed) = (Some(carried), Some(self.bps));
        (self.before_silence, self.is_shown) = (None, true);
    }
}
