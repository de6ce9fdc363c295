//! Log entries about a value that may change briefly: only changes that last are logged.

use airlane_base::{Duration, Instant};

/// The value that was logged, and when it last held.
#[derive(Clone, Copy, Debug)]
pub(super) struct Debounced<T> {
    said: T,
    was: Instant,
}

impl<T: Copy + PartialEq> Debounced<T> {
    /// Starts with a value that is not logged.
    pub(super) const fn new(now: Instant, said: T) -> Self {
        Self { said, was: now }
    }

    /// Takes the present value. Returns whether to log it, because the logged one has not held for `held`.
    pub(super) fn changes(&mut self, now: Instant, value: T, held: Duration) -> bool {
        if value == self.said {
            self.was = now;
            return false;
        }
        let changes = now >= self.was + held;
        if changes {
            *self = Self::new(now, value);
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HELD: Duration = Duration::from_secs(15);

    fn at(seconds: u64) -> Instant {
        Instant::ORIGIN + Duration::from_secs(seconds)
    }

    #[test]
    fn a_brief_change_is_not_reported_and_a_lasting_one_once() {
        let mut debounced = Debounced::new(at(0), false);
        let said = |debounced: &mut Debounced<bool>, from: u64, to: u64, value| {
            (from..to)
                .filter(|s| debounced.changes(at(*s), value, HELD))
                .count()
        };
        assert_eq!(said(&mut debounced, 1, 12, true), 0);
        assert_eq!(said(&mut debounced, 12, 20, false), 0);
        assert_eq!(said(&mut debounced, 20, 60, true), 1);
        assert_eq!(said(&mut debounced, 60, 100, false), 1);
    }

    proptest! {
        /// However fast the value changes, the log has at most one entry in that time.
        #[test]
        fn changes_are_reported_at_most_once_per_hold_time(
            values in prop::collection::vec(0..3u8, 0..200),
        ) {
            let mut debounced = Debounced::new(at(0), 0);
            let said = (1..).zip(&values).filter(|(s, v)| debounced.changes(at(*s), **v, HELD)).count();
            prop_assert!(said as u64 * 15 <= values.len() as u64);
        }
    }
}
