//! What reports show: the rate at which bytes arrive, the loss, and the minimum delay.

use airlane_base::{Duration, Instant};

/// If more than this fraction between two marks is lost, the cause is not the link's ordinary loss.
const MOSTLY: f64 = 0.4;
/// A sender that uses less than this fraction of a rate is not limited by it.
pub(super) const USED: f64 = 0.25;

/// A mark that arrived: when it left, and the peer's report on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) left: Instant,
    pub(super) sent: u64,
    /// By the peer's clock, microseconds.
    pub(super) came_us: i64,
    pub(super) received: u64,
    /// Its delay by two unsynchronised clocks: only differences have a meaning.
    pub(super) delay_us: i64,
}

/// Rates in bit/s and the loss ratio over a range of samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) sent_bps: f64,
    /// Bytes sent, divided by the time in which they arrived.
    pub(super) carried_bps: f64,
    /// Bytes that arrived, divided by the longer of both times.
    pub(super) arrived_bps: f64,
    pub(super) loss: f64,
}

impl Stretch {
    /// From the first of these samples to the last. A fade falls between two of them, because it also takes
    /// the marks sent during it: so the interval with the highest loss is left out of the loss ratio.
    pub(super) fn of<'a>(samples: impl Iterator<Item = &'a Sample>) -> Option<Self> {
        let (mut ends, mut worst, mut worst_took_us) = (None, (0.0, 0.0), 0);
        let (mut sent, mut lost) = (0.0, 0.0);
        for sample in samples {
            let (first, last) = ends.unwrap_or((sample, sample));
            let gap = sample.sent.saturating_sub(last.sent) as f64;
            let came = sample.received.saturating_sub(last.received) as f64;
            (sent, lost) = (sent + gap, lost + gap - came);
            if gap - came > worst.1 {
                worst = (gap, gap - came);
                worst_took_us = sample.came_us - last.came_us;
            }
            ends = Some((first, sample));
        }
        let (from, to) = ends?;
        let took = to.left.saturating_since(from.left).as_secs_f64();
        let came = (to.came_us - from.came_us) as f64 / 1e6;
        let rest = sent - worst.0;
        // When a queue overflows, the mark after the dropped bytes arrives right after the mark before them.
        let (through, through_s) = match rest > 0.0 && worst.1 > MOSTLY * worst.0 {
            true => (rest, came - worst_took_us as f64 / 1e6),
            false => (sent, came),
        };
        (took > 0.0 && came > 0.0 && sent > 0.0).then(|| Self {
            sent_bps: sent * 8.0 / took,
            carried_bps: through * 8.0 / through_s.max(1e-6),
            arrived_bps: (sent - lost).max(0.0) * 8.0 / came.max(took),
            loss: match rest > 0.0 {
                true => ((lost - worst.1) / rest).clamp(0.0, 1.0),
                false => 0.0,
            },
        })
    }
}

impl Stretch {
    /// The recent arrival rate, bit/s: from the newest of these samples, which come first, to one at least
    /// this many marks and this much time older, or to the last.
    pub(super) fn newest<'a>(
        samples: impl Iterator<Item = &'a Sample>,
        marks: usize,
        time_us: i64,
    ) -> Option<f64> {
        let mut samples = samples.enumerate();
        let (_, newest) = samples.next()?;
        let mut oldest = newest;
        for (at, sample) in samples {
            oldest = sample;
            if at + 1 >= marks && newest.came_us - sample.came_us > time_us {
                break;
            }
        }
        let came_s = (newest.came_us - oldest.came_us) as f64 / 1e6;
        let sent = newest.sent.saturating_sub(oldest.sent) as f64;
        (came_s > 0.0).then(|| sent * 8.0 / came_s)
    }
}

/// Mean ratio between the rates that successive queues showed, minus 1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Variation(f64);

impl Variation {
    /// The variation that a steady link shows by chance, the one that counts as full, and the most that a
    /// sample counts.
    const STEADY: f64 = 0.2;
    const WHOLE: f64 = 0.5;
    const MOST: f64 = 1.0;

    pub(super) fn add(&mut self, before: f64, after: f64) {
        let differs = (after / before).max(before / after) - 1.0;
        self.0 += (differs.min(Self::MOST) - self.0) / 8.0;
    }

    /// From 0, a steady link, to 1.
    pub(super) fn degree(self) -> f64 {
        ((self.0 - Self::STEADY) / (Self::WHOLE - Self::STEADY)).clamp(0.0, 1.0)
    }
}

/// The minimum over the last one to two memories, microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Least {
    before: i64,
    now: i64,
    since: Instant,
    memory: Duration,
}

impl Least {
    /// Starts with a single value.
    pub(super) const fn of(now: Instant, us: i64, memory: Duration) -> Self {
        Self {
            before: us,
            now: us,
            since: now,
            memory,
        }
    }

    pub(super) fn add(&mut self, now: Instant, us: i64) {
        if now.saturating_since(self.since) >= self.memory {
            (self.before, self.now, self.since) = (self.now, us, now);
        }
        self.now = self.now.min(us);
    }

    pub(super) fn get(self) -> i64 {
        self.now.min(self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_at_a_full_queue_are_not_measured_as_rate() {
        // 64 kbit/s: 1200 B every 150 ms, and once 9600 B of which only the mark arrives.
        let marks = [
            (0, 0),
            (1_200, 1_200),
            (10_800, 1_200),
            (12_000, 2_400),
            (13_200, 3_600),
        ];
        let came_ms = [0, 150, 151, 301, 451];
        let samples = marks.iter().zip(came_ms).zip(0u64..);
        let samples: Vec<_> = samples
            .map(|(((sent, received), came), left)| Sample {
                left: Instant::ORIGIN + Duration::from_millis(left * 5),
                sent: *sent,
                came_us: came * 1_000,
                received: *received,
                delay_us: 0,
            })
            .collect();
        let seen = Stretch::of(samples.iter()).unwrap();
        assert!((seen.carried_bps - 64_000.0).abs() < 500.0, "{seen:?}");
    }
}
