//! Frame lengths that follow a link (after Ludwig et al. 1999, section 6, which asks for them and gives no rule).
//!
//! Where the loss of a frame of length n is about a + b n, goodput is largest at the root of f / (p b): f what a frame costs
//! whatever its length, p the user's part of each unit of length, and b the rate at which bursts begin, which is
//! estimated from what becomes of frames. A failure behind a failure is the same burst and says nothing.
//!
//! On some links a loss takes a frame whatever its length: routers drop packets, not bytes. There a rule that believes in
//! b alone would make frames shorter and win nothing. [`FrameLength::doubting`] has it compare how often short frames
//! begin a burst with how often the mean frame does, and count only the part of b that goes by length.
//!
//! The rule takes outcomes and gives lengths; it knows neither time nor what a unit of length is.

/// Chooses how long the next frame is.
#[derive(Clone, Debug)]
pub struct FrameLength {
    shortest: u32,
    longest: u32,
    /// f / p.
    cost: f64,
    /// Length of what a link sends in 20 ms.
    unit: f64,
    /// Estimate of b.
    begins: f64,
    /// The frame before was lost.
    failed: bool,
    doubt: Option<Doubt>,
}

/// Memory of the estimate, in units: 6 s.
const MEMORY: f64 = 300.0;
/// Bursts in a unit before anything is known: a link of medium quality.
const FIRST: f64 = 0.004;
/// Below it no frame of a sensible length would notice.
const LEAST: f64 = 1e-9;

impl FrameLength {
    /// Between two lengths, where a frame costs `fixed` whatever its length, of each unit of length `user` is the user's,
    /// and the link sends `unit` in 20 ms.
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

    /// For links whose losses may not go by length.
    #[must_use]
    pub const fn doubting(mut self) -> Self {
        self.doubt = Some(Doubt::NONE);
        self
    }

    /// The link sends so much in 20 ms from now on.
    pub fn set_unit(&mut self, unit: f64) {
        // What is known stays known, and what is not is a matter of time.
        if self.begins == FIRST / self.unit {
            self.begins = FIRST / unit;
        }
        self.unit = unit;
    }

    /// How long the next frame should be.
    pub fn length(&self) -> u32 {
        let share = self.doubt.as_ref().map_or(1.0, Doubt::by_length);
        let best = libm::round(libm::sqrt(self.cost / (self.begins * share).max(LEAST)));
        // A float beyond the largest number becomes that number.
        (best as u32).clamp(self.shortest, self.longest)
    }

    /// A frame of this length was lost, or came.
    pub fn outcome(&mut self, length: u32, lost: bool) {
        let behind = std::mem::replace(&mut self.failed, lost);
        if lost && behind {
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

/// Whether losses go by length.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    /// Frames in a unit of length, by the memory of the estimate; 0 before any.
    frames: f64,
    /// Bursts that short frames would have begun beyond their length's share, if length said nothing.
    possible: f64,
    /// Those that they have.
    seen: f64,
}

impl Doubt {
    const NONE: Self = Self {
        frames: 0.0,
        possible: 0.0,
        seen: 0.0,
    };
    /// Bursts for which the belief stands that they go by length, before any has been seen.
    const BELIEF: f64 = 10.0;
    /// What is remembered of them: half of it, whenever it is so much.
    const MOST: f64 = 200.0;
    /// A loss goes by length in so far at least.
    const LEAST: f64 = 0.01;

    /// The part of b that goes by length.
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

    /// A link of full frames and short rests, where a frame of n bytes is lost with a probability. The length that frames
    /// have in the end, on average.
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
    fn losses_that_go_by_length_make_frames_short_and_others_do_not() {
        // The root of 55 / b; rests take a little off the mean.
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
