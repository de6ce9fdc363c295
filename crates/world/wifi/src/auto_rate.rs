//! Which rate a station sends at: automatic rate fallback (Kamerman and Monteban 1997), for each neighbour by itself.
//!
//! Two frames in a row without an answer: a slower rate. Ten in a row with one: a faster rate, and the first frame at that is
//! a trial: without an answer to it the slower rate is back at once. It cannot tell collisions from a weak signal, as is
//! known of it.

/// Answers in a row before a faster rate is tried.
const RISES: u32 = 10;
/// Failures in a row before a slower rate is taken.
const FALLS: u32 = 2;

/// The rate to one neighbour, by its place among those that there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AutoRate {
    at: usize,
    answered: u32,
    failed: u32,
    on_trial: bool,
}

impl AutoRate {
    /// The place of the rate, the slowest at first.
    pub(crate) const fn at(self) -> usize {
        self.at
    }

    /// An answer has come. `fastest` is the place of the fastest rate.
    pub(crate) const fn on_answer(&mut self, fastest: usize) {
        self.failed = 0;
        self.on_trial = false;
        self.answered += 1;
        if self.answered >= RISES && self.at < fastest {
            (self.at, self.answered, self.on_trial) = (self.at + 1, 0, true);
        }
    }

    /// None has.
    pub(crate) const fn on_failure(&mut self) {
        self.answered = 0;
        self.failed += 1;
        if self.on_trial || self.failed >= FALLS {
            (self.at, self.failed, self.on_trial) = (self.at.saturating_sub(1), 0, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_answers_raise_a_failed_trial_and_two_failures_lower() {
        let mut rate = AutoRate::default();
        let answers = |rate: &mut AutoRate, n: u32| (0..n).for_each(|_| rate.on_answer(3));
        answers(&mut rate, 9);
        assert_eq!(rate.at(), 0);
        answers(&mut rate, 1);
        assert_eq!(rate.at(), 1);
        rate.on_failure();
        assert_eq!(rate.at(), 0);
        answers(&mut rate, 11);
        assert_eq!(rate.at(), 1);
        // The trial was answered: one failure is chance.
        rate.on_failure();
        assert_eq!(rate.at(), 1);
        rate.on_failure();
        assert_eq!(rate.at(), 0);
        answers(&mut rate, 100);
        assert_eq!(rate.at(), 3);
    }
}
