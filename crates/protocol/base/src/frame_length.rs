//! Frame lengths that adapt to a link (after Ludwig et al. 1999, section 6, which calls for them but gives no rule).
//!
//! If a frame of length n is lost with a probability of about a + b n, goodput is largest at the root of f / (p b). Here
//! f is the fixed cost of a frame, p the payload's share of each unit of length, and b the rate at which bursts begin,
//! estimated from the outcomes of frames. A loss right after a loss belongs to the same burst and is ignored.
//!
//! On some links a loss takes a frame whatever its length: routers drop packets, not bytes. A rule based on b alone
//! would shorten frames there and gain nothing. [`FrameLength::doubting`] makes it compare how often short frames begin
//! a burst with how often average frames do, and use only the part of b that depends on length.
//!
//! The rule maps outcomes to lengths; it is independent of time and of the unit of length.

/// Chooses the length of the next frame.
#[derive(Clone, Debug)]
pub struct FrameLength {
    shortest: u32,
    longest: u32,
    /// f / p.
    cost: f64,
    /// Length that the link sends in 20 ms.
    unit: f64,
    /// Estimate of b.
    begins: f64,
    /// Whether the previous frame was lost.
    failed: bool,
    doubt: Option<Doubt>,
}

/// Memory of the estimate, in units: 6 s.
const MEMORY: f64 = 300.0;
/// Initial estimate, bursts per unit: a link of medium quality.
const FIRST: f64 = 0.004;
/// Lower bound of the estimate; a smaller one would not change any sensible length.
const LEAST: f64 = 1e-9;

impl FrameLength {
    /// Chooses lengths between `shortest` and `longest`. A frame has a fixed cost of `fixed`, `user` of each unit of
    /// length is payload, and the link sends `unit` in 20 ms.
    pub const fn new([shortest, longest]: [u32; 2], fixed: f64, user: f64, unit: f64) -> Self {
        Self {
            shortest,
            longest,
            cost: fixed / user,
            unit,
            begins: FIRST / unit,
            failed: false,
            doubt: None,
        }
    }

    /// For links on which losses may not depend on length.
    #[must_use]
    pub const fn doubting(mut self) -> Self {
        self.doubt = Some(Doubt::NONE);
        self
    }

    /// Changes the length that the link sends in 20 ms.
    pub fn set_unit(&mut self, unit: f64) {
        // An estimate from outcomes is kept; the initial one is per time, so it is converted.
        if self.begins == FIRST / self.unit {
            self.begins = FIRST / unit;
        }
        self.unit = unit;
    }

    /// The length of the next frame.
    pub fn length(&self) -> u32 {
        let share = self.doubt.as_ref().map_or(1.0, Doubt::by_length);
        let best = libm::round(libm::sqrt(self.cost / (self.begins * share).max(LEAST)));
        // The cast saturates.
        (best as u32).clamp(self.shortest, self.longest)
    }

    /// Reports whether a frame of this length was lost.
    pub fn outcome(&mut self, length: u32, lost: bool) {
        let previous = std::mem::replace(&mut self.failed, lost);
        if lost && previous {
            return;
        }
        let length = f64::from(length.max(1));
        let weight = -libm::expm1(-length / (MEMORY * self.unit));
        if let Some(doubt) = &mut self.doubt {
            doubt.outcome(length, weight, self.begins, lost);
        }
        let begun = if lost { 1.0 / length } else { 0.0 };
        self.begins += weight * (begun - self.begins);
    }
}

/// Estimates how far losses depend on length.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    /// Mean number of frames per unit of length, over the estimate's memory; 0 before the first frame.
    frames: f64,
    /// Bursts that short frames would have begun in excess of their length's share if losses did not depend on length.
    possible: f64,
    /// The excess observed.
    seen: f64,
}

impl Doubt {
    const NONE: Self = Self {
        frames: 0.0,
        possible: 0.0,
        seen: 0.0,
    };
    /// Weight of the prior that losses depend on length, in bursts.
    const BELIEF: f64 = 10.0;
    /// Memory, in bursts: both counts are halved beyond it.
    const MOST: f64 = 200.0;
    /// Lower bound of the part that depends on length.
    const LEAST: f64 = 0.01;

    /// The part of b that depends on length.
    fn by_length(&self) -> f64 {
        (1.0 - self.seen / (self.possible + Self::BELIEF)).clamp(Self::LEAST, 1.0)
    }

    fn outcome(&mut self, length: f64, weight: f64, begins: f64, lost: bool) {
        if self.frames == 0.0 {
            self.frames = 1.0 / length;
        }
        let mean = 1.0 / self.frames;
        if length < mean {
            self.possible += begins * (mean - length);
            self.seen += f64::from(u8::from(lost)) - begins * length;
            if self.possible > Self::MOST {
                (self.possible, self.seen) = (self.possible / 2.0, self.seen / 2.0);
            }
        }
        self.frames += weight * (1.0 / length - self.frames);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Streams;

    /// The mean length that frames settle at on a link with full frames and short rests, where a frame of n bytes is
    /// lost with probability `lost(n)`.
    fn settles(lost: impl Fn(f64) -> f64) -> f64 {
        let mut random = Streams::new(1, 0).stream("losses");
        let mut rule = FrameLength::new([110, 1500], 55.0, 1.0, 25_000.0).doubting();
        let (mut sum, mut frames) = (0.0, 0.0);
        for packet in 0..60_000 {
            let mut rest = 1500;
            while rest > 0 {
                let whole = rule.length().min(rest + 55);
                rule.outcome(whole, random.uniform() < lost(f64::from(whole)));
                rest = rest.saturating_sub(whole - 55);
                if packet > 30_000 {
                    (sum, frames) = (sum + f64::from(whole), frames + 1.0);
                }
            }
        }
        sum / frames
    }

    #[test]
    fn only_length_dependent_losses_shorten_frames() {
        // The root of 55 / b, slightly less because rests lower the mean.
        let by_length = settles(|n| n * 2e-4);
        assert!((380.0..560.0).contains(&by_length), "{by_length}");
        for lost in [0.05, 0.2] {
            let whatever = settles(|_| lost);
            assert!(whatever > 700.0, "{whatever}");
        }
        assert!(settles(|_| 0.0) > 770.0);
    }

    #[test]
    fn a_burst_counts_once() {
        let mut rule = FrameLength::new([1, 4_700], 600.0, 29.0, 100.0);
        rule.outcome(1_000, true);
        let once = rule.length();
        rule.outcome(1_000, true);
        assert_eq!(rule.length(), once);
        rule.outcome(1, false);
        rule.outcome(1_000, true);
        assert!(rule.length() < once);
    }
}
