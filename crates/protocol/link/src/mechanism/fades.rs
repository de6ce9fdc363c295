//! Estimates the length of fades from requests: consecutive frames that were requested were lost together.

use airlane_base::{Duration, Instant, Seq, SeqSpace};

/// Approximate number of fades in the mean.
const MEMORY: u64 = 8;
/// Largest distance between lost frames of one fade: a frame in between may have arrived, or its copy did and
/// spared the request. With a larger distance, independent losses would look like fades.
const APART: u32 = 2;

/// Frames that were lost together.
#[derive(Clone, Copy, Debug, Hash)]
struct Run {
    began: Instant,
    last: Seq,
    ended: Instant,
}

/// The mean length of fades; zero for single losses.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(crate) struct Fades {
    run: Option<Run>,
    seen: u64,
    mean: Duration,
}

impl Fades {
    /// A frame that left at that time is requested for the first time.
    pub(crate) fn on_lost(&mut self, space: SeqSpace, seq: Seq, left: Instant) {
        if let Some(run) = &mut self.run {
            if (1..=APART).contains(&space.distance(seq, run.last)) {
                (run.last, run.ended) = (seq, left);
                return;
            }
            if left >= run.began && left <= run.ended {
                // An earlier request for it was lost, and has been repeated.
                return;
            }
            let lasted = run.ended.saturating_since(run.began);
            self.seen = (self.seen + 1).min(MEMORY);
            self.mean = (self.mean * (self.seen - 1) + lasted) / self.seen;
        }
        self.run = Some(Run {
            began: left,
            last: seq,
            ended: left,
        });
    }

    /// The mean so far.
    pub(crate) const fn mean(&self) -> Duration {
        self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fade_lasts_as_long_as_consecutive_losses() {
        let space = SeqSpace::new(1 << 16);
        let mut fades = Fades::default();
        let lose = |fades: &mut Fades, seq: u32| {
            let left = Instant::ORIGIN + Duration::from_millis(20) * u64::from(seq);
            fades.on_lost(space, seq, left);
        };
        for seq in (0..2_000).step_by(20) {
            lose(&mut fades, seq);
        }
        assert_eq!(fades.mean(), Duration::ZERO, "single losses are no fades");
        // Each lasts 100 ms; one frame of each arrives, and the second request for another is delayed.
        for begin in (2_000..6_000).step_by(50) {
            for seq in [0, 1, 3, 4, 5, 2] {
                lose(&mut fades, begin + seq);
            }
        }
        let (mean, fade) = (fades.mean(), Duration::from_millis(100));
        assert!(mean > fade * 9 / 10 && mean <= fade, "{mean}");
    }
}
