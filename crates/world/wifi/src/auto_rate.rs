//! Rate control: automatic rate fallback (Kamerman and Monteban 1997), separately for each neighbour.
//!
//! Two frames in a row without an answer lower the rate. Ten in a row with one raise it, and the first frame at the
//! higher rate is a trial: if it is not answered, the rate is lowered again at once. As is known of it, the algorithm
//! cannot tell a collision from a weak signal.

/// Consecutive answers before a higher rate is tried.
const RISES: u32 = 10;
/// Consecutive failures before the rate is lowered.
const FALLS: u32 = 2;

/// The rate to one neighbour, as an index into the list of rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AutoRate {
    at: usize,
    answered: u32,
    failed: u32,
    on_trial: bool,
}

impl AutoRate {
    /// The index of the rate, initially the lowest.
    pub(crate) const fn at(self) -> usize {
        self.at
    }

    /// An answer has arrived. `fastest` is the index of the highest rate.
    pub(crate) const fn on_answer(&mut self, fastest: usize) {
        self.failed = 0;
        self.on_trial = false;
        self.answered += 1;
        if self.answered >= RISES && self.at < fastest {
            (self.at, self.answered, self.on_trial) = (self.at + 1, 0, true);
        }
    }

    /// No answer has arrived.
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
        // The trial was answered, so one failure does not lower the rate.
        rate.on_failure();
        assert_eq!(rate.at(), 1);
        rate.on_failure();
        assert_eq!(rate.at(), 0);
        answers(&mut rate, 100);
        assert_eq!(rate.at(), 3);
    }
}
