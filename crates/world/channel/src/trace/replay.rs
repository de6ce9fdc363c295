//! Replays one direction of a trace as a link for other frames.
//!
//! Another protocol sends other frames at other times, so losses follow time and not frame numbers: they belong to the
//! moments when the link was bad. A recorded frame is a sample at its time. Between two samples the loss probability is
//! interpolated linearly, so that frames sent when the recorded ones were meet the same fates, several frames within a
//! burst are all lost, and the loss rate is that of the recording. A sample holds for at most [`REACH`]: in a longer
//! pause, during which nothing was sent, the probability is the mean of the recording. Delays are interpolated in the
//! same way.
//!
//! After its end the trace repeats.

use airlane_base::{Duration, Instant};

use super::path::{DirectionTrace, FrameOutcome};

/// How long before and after it a recorded frame counts as a sample of the link.
pub const REACH: Duration = Duration::from_millis(20);

/// A piecewise linear function of time.
#[derive(Clone, Debug, Default, PartialEq)]
struct Line {
    /// Time in ns and value, in order of time.
    points: Vec<(u64, f32)>,
    /// The mean, which holds away from all points.
    mean: f64,
}

impl Line {
    fn at(&self, t: u64) -> f64 {
        let mean = self.mean;
        let after = self.points.partition_point(|(at, _)| *at <= t);
        let before = after.checked_sub(1).map(|i| self.points[i]);
        let after = self.points.get(after).copied();
        let reach = REACH.as_nanos();
        let between = |a: f64, b: f64, part: u64, whole: u64| {
            a + (b - a) * (part as f64 / whole.max(1) as f64)
        };
        match (before, after) {
            (Some((t0, a)), Some((t1, b))) if t1 - t0 <= 2 * reach => {
                between(f64::from(a), f64::from(b), t - t0, t1 - t0)
            }
            (Some((t0, a)), _) if t - t0 < reach => between(f64::from(a), mean, t - t0, reach),
            (_, Some((t1, b))) if t1 - t < reach => between(f64::from(b), mean, t1 - t, reach),
            _ => mean,
        }
    }
}

/// One direction of a trace, ready to be replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// Probability of loss.
    losses: Line,
    /// Delay beyond the smallest, ns.
    delays: Line,
    /// The period of the replay, ns; at least a microsecond.
    span: u64,
}

impl Replay {
    /// Prepares the replay of a recording that lasted for `span`.
    pub fn new(path: &DirectionTrace, span: Duration) -> Self {
        let mut losses = Line::default();
        let mut delays = Line::default();
        let (mut sum, mut count) = (0.0, 0u64);
        for sample in &path.samples {
            let lost = match sample.outcome {
                FrameOutcome::Lost => 1.0,
                FrameOutcome::Received(late) => {
                    if let Some(late) = late {
                        let late = late.as_nanos() as f32;
                        delays.points.push((sample.at.as_nanos(), late));
                        sum += f64::from(late);
                        count += 1;
                    }
                    0.0
                }
            };
            losses.points.push((sample.at.as_nanos(), lost));
            if sample.last > sample.at {
                losses.points.push((sample.last.as_nanos(), lost));
            }
        }
        // Runs of lost frames may overlap where frames arrived out of order.
        losses.points.sort_by_key(|(at, _)| *at);
        losses.mean = path.loss();
        delays.mean = sum / count.max(1) as f64;
        let end = losses.points.last().map_or(0, |(at, _)| *at);
        Self {
            losses,
            delays,
            span: span.as_nanos().max(end + 1).max(1_000),
        }
    }

    /// Duration of the recording.
    pub const fn span(&self) -> Duration {
        Duration::from_nanos(self.span)
    }

    /// The share of recorded frames that were lost.
    pub const fn loss(&self) -> f64 {
        self.losses.mean
    }

    fn place(&self, start: Duration, now: Instant) -> u64 {
        let start = start.as_nanos() % self.span;
        (now.as_nanos() % self.span + start) % self.span
    }

    /// Probability that a frame sent at `now` is lost, if the replay began at `start`.
    pub(crate) fn loss_at(&self, start: Duration, now: Instant) -> f64 {
        self.losses.at(self.place(start, now))
    }

    /// How late such a frame arrives.
    pub(crate) fn delay_at(&self, start: Duration, now: Instant) -> Duration {
        Duration::from_nanos(self.delays.at(self.place(start, now)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::TraceSample;

    const MS: Duration = Duration::from_millis(1);

    fn path(lost: &[bool], every: Duration) -> DirectionTrace {
        let samples = lost.iter().zip(0..).map(|(lost, i)| TraceSample {
            at: every * i,
            last: every * i,
            frames: 1,
            len: 100,
            queue: None,
            outcome: match lost {
                true => FrameOutcome::Lost,
                false => FrameOutcome::Received(Some(MS * (i % 3))),
            },
        });
        let all = lost.len() as u64;
        let lost = lost.iter().filter(|lost| **lost).count() as u64;
        DirectionTrace {
            samples: samples.collect(),
            lost,
            received: all - lost,
            unknown: 0,
        }
    }

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    #[test]
    fn frames_sent_as_recorded_meet_the_same_fates() {
        let lost = [false, true, false, false, true, true, true, false];
        let replay = Replay::new(&path(&lost, MS * 2), MS * 16);
        for (round, start) in [(0, Duration::ZERO), (1, Duration::ZERO), (0, MS * 160)] {
            for (lost, i) in lost.iter().zip(0..) {
                let now = at(round * 16_000 + i * 2_000);
                assert_eq!(replay.loss_at(start, now), f64::from(u8::from(*lost)));
            }
        }
        // Within a burst, at its edge, and later by an offset.
        assert_eq!(replay.loss_at(Duration::ZERO, at(9_000)), 1.0);
        assert_eq!(replay.loss_at(Duration::ZERO, at(7_000)), 0.5);
        assert_eq!(replay.loss_at(MS * 3, at(6_000)), 1.0);
        assert_eq!(replay.delay_at(Duration::ZERO, at(14_000)), MS);
    }

    #[test]
    fn the_mean_applies_where_nothing_was_sent() {
        let replay = Replay::new(&path(&[false, true], MS * 1_000), MS * 2_000);
        assert_eq!(replay.loss_at(Duration::ZERO, at(500_000)), 0.5);
        assert_eq!(replay.loss_at(Duration::ZERO, at(10_000)), 0.25);
        assert_eq!(replay.loss_at(Duration::ZERO, at(990_000)), 0.75);
        assert_eq!(replay.loss_at(Duration::ZERO, at(1_000_000)), 1.0);
        assert_eq!(replay.loss_at(Duration::ZERO, at(1_999_999)), 0.5);
    }

    #[test]
    fn nothing_recorded_is_no_loss() {
        let replay = Replay::new(&DirectionTrace::default(), Duration::ZERO);
        assert_eq!(replay.loss_at(MS, at(7)), 0.0);
        assert_eq!(replay.delay_at(MS, at(7)), Duration::ZERO);
    }
}
