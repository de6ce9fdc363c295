//! The sliding window against replays: a bitmap over the last counters, moved by whole words so
//! that nothing is shifted (RFC 6479, as in WireGuard, NDSS 2017, section 5.4.6).
//!
//! A counter is accepted once, and only while it is less than [`WINDOW`] below the highest accepted.
//! So a frame may be overtaken by as many as the window is wide, whatever the link does to order.

/// How far behind the highest counter one may be and still be accepted.
pub const WINDOW: u64 = (WORDS as u64 - 1) * 64;

/// A power of two. One word is always partly ahead of the window.
const WORDS: usize = 128;

/// Why a counter is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stale {
    /// It was accepted before.
    Seen,
    /// It is behind the window.
    Behind,
}

/// The counters accepted so far under one key.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// One more than the highest counter accepted; zero: none was.
    end: u64,
    bits: [u64; WORDS],
}

impl Window {
    pub(crate) const fn new() -> Self {
        Self {
            end: 0,
            bits: [0; WORDS],
        }
    }

    /// Whether this counter is higher than all that were accepted.
    pub(crate) const fn is_newest(&self, counter: u64) -> bool {
        counter >= self.end
    }

    /// Whether this counter would be accepted. Changes nothing: the message is not authenticated yet.
    pub(crate) fn check(&self, counter: u64) -> Result<(), Stale> {
        if self.is_newest(counter) {
            return Ok(());
        }
        if self.end - 1 - counter >= WINDOW {
            return Err(Stale::Behind);
        }
        match self.bits[word(counter)] & bit(counter) {
            0 => Ok(()),
            _ => Err(Stale::Seen),
        }
    }

    /// Accepts a counter that [`Window::check`] has passed. `u64::MAX` is none: keys expire before.
    pub(crate) fn accept(&mut self, counter: u64) {
        debug_assert_eq!(self.check(counter), Ok(()));
        if self.is_newest(counter) {
            // Words that the window moves into are from a lap ago.
            let old = if self.end == 0 {
                0
            } else {
                (self.end - 1) / 64
            };
            let steps = (counter / 64 - old).min(WORDS as u64);
            for step in 1..=steps {
                self.bits[(old + step) as usize % WORDS] = 0;
            }
            self.end = counter + 1;
        }
        self.bits[word(counter)] |= bit(counter);
    }
}

const fn word(counter: u64) -> usize {
    (counter / 64) as usize % WORDS
}

const fn bit(counter: u64) -> u64 {
    1 << (counter % 64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// What the window is for, said slowly.
    #[derive(Default)]
    struct Naive(BTreeSet<u64>);

    impl Naive {
        fn check(&self, counter: u64) -> Result<(), Stale> {
            match self.0.last() {
                Some(&highest) if counter + WINDOW <= highest => Err(Stale::Behind),
                _ if self.0.contains(&counter) => Err(Stale::Seen),
                _ => Ok(()),
            }
        }
    }

    #[test]
    fn edges_of_the_window() {
        let mut window = Window::new();
        for counter in [0, 1, 63, 64, WINDOW, 3 * WINDOW, 1 << 60] {
            assert_eq!(window.check(counter), Ok(()));
            window.accept(counter);
            assert_eq!(window.check(counter), Err(Stale::Seen));
        }
        let highest = 1u64 << 60;
        assert_eq!(window.check(highest - WINDOW), Err(Stale::Behind));
        assert_eq!(window.check(highest - WINDOW + 1), Ok(()));
        window.accept(highest - WINDOW + 1);
        assert_eq!(window.check(highest - WINDOW + 1), Err(Stale::Seen));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// Small and large steps, back and forth, against the set of all that was accepted.
        #[test]
        fn does_what_a_set_does(
            start in prop_oneof![Just(0u64), 0..1u64 << 40],
            steps in prop::collection::vec(
                prop_oneof![
                    4 => -100i64..100,
                    2 => -9_000i64..9_000,
                    1 => -70_000i64..70_000,
                    1 => Just(0),
                    1 => Just(-(WINDOW as i64)),
                    1 => Just(1 - WINDOW as i64),
                ],
                0..300,
            ),
        ) {
            let (mut window, mut naive) = (Window::new(), Naive::default());
            for step in steps {
                let highest = naive.0.last().copied().unwrap_or(start);
                let counter = highest.saturating_add_signed(step);
                let expected = naive.check(counter);
                prop_assert_eq!(window.check(counter), expected, "counter {}", counter);
                if expected.is_ok() {
                    window.accept(counter);
                    naive.0.insert(counter);
                }
            }
        }
    }
}
