//! The replay window: a bitmap of the last counters, advanced by whole words so that nothing is shifted (RFC 6479, as in
//! WireGuard, NDSS 2017, section 5.4.6).
//!
//! A counter is accepted once, and only while it is less than [`WINDOW`] below the highest accepted one. A frame may
//! therefore be overtaken by that many others.
//!
//! The window also restores the high bits of a counter, of which messages carry the low 32 (RFC 4303, appendix A2; RFC
//! 9000, appendix A.3): it takes the value nearest to the expected one. This is correct unless 2^31 messages in a row
//! are lost. In the 180 s for which keys live, that would take 12 million per second. Even then the only effect is that
//! messages fail authentication until a handshake, which has no counter, renews the keys.

/// How far a counter may be below the highest one and still be accepted.
pub const WINDOW: u64 = (WORDS as u64 - 1) * 64;

/// A power of two. One word is always partly ahead of the window.
const WORDS: usize = 128;

/// Why a counter is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stale {
    /// It was accepted before.
    Seen,
    /// It is below the window.
    TooOld,
}

/// The counters accepted under one key.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// One more than the highest counter accepted; zero if none was.
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

    /// Whether the counter is higher than all accepted ones.
    pub(crate) const fn is_newest(&self, counter: u64) -> bool {
        counter >= self.end
    }

    /// The counter with these low bits nearest to the one expected next. Changes nothing; forged bits give a wrong
    /// nonce.
    pub(crate) fn widen(&self, low: u32) -> u64 {
        let ahead = low.wrapping_sub(self.end as u32) as i32;
        let nearest = self.end.checked_add_signed(ahead.into());
        // A counter below zero does not exist: the sender is still within the first 2^32.
        nearest.unwrap_or(low.into())
    }

    /// Whether the counter would be accepted. Changes nothing, because the message is not authenticated yet.
    pub(crate) fn check(&self, counter: u64) -> Result<(), Stale> {
        if self.is_newest(counter) {
            return Ok(());
        }
        if self.end - 1 - counter >= WINDOW {
            return Err(Stale::TooOld);
        }
        match self.bits[word(counter)] & bit(counter) {
            0 => Ok(()),
            _ => Err(Stale::Seen),
        }
    }

    /// Accepts a counter that [`Window::check`] has passed. Never `u64::MAX`, since keys expire before.
    pub(crate) fn accept(&mut self, counter: u64) {
        debug_assert_eq!(self.check(counter), Ok(()));
        if self.is_newest(counter) {
            // The words that the window moves into hold an earlier lap.
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

    /// A naive reference model of the window.
    #[derive(Default)]
    struct Naive(BTreeSet<u64>);

    impl Naive {
        fn check(&self, counter: u64) -> Result<(), Stale> {
            match self.0.last() {
                Some(&highest) if counter + WINDOW <= highest => Err(Stale::TooOld),
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
        assert_eq!(window.check(highest - WINDOW), Err(Stale::TooOld));
        assert_eq!(window.check(highest - WINDOW + 1), Ok(()));
        window.accept(highest - WINDOW + 1);
        assert_eq!(window.check(highest - WINDOW + 1), Err(Stale::Seen));
    }

    #[test]
    fn low_bits_stand_for_the_nearest_counter() {
        let half = 1u64 << 31;
        for end in [0, 1, half - 1, half, 2 * half, 3 * half + 7, 1 << 60] {
            let mut window = Window::new();
            if end > 0 {
                window.accept(end - 1);
            }
            for counter in [end, end + 1, end + half - 1] {
                assert_eq!(window.widen(counter as u32), counter, "{end}");
            }
            for lag in [1, WINDOW, half].into_iter().filter(|n| *n <= end) {
                assert_eq!(window.widen((end - lag) as u32), end - lag, "{end}");
            }
        }
        assert_eq!(Window::new().widen(u32::MAX), u64::from(u32::MAX));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// RFC 9000, appendix A.3, transcribed.
        #[test]
        fn low_bits_are_widened_as_in_quic(end in prop_oneof![0..1u64 << 34, 0..1u64 << 62], low: u32) {
            let mut window = Window::new();
            if end > 0 {
                window.accept(end - 1);
            }
            let (lap, half) = (1u64 << 32, 1u64 << 31);
            let candidate = end & !(lap - 1) | u64::from(low);
            let expected = if candidate + half <= end {
                candidate + lap
            } else if candidate > end + half - 1 && candidate >= lap {
                candidate - lap
            } else {
                candidate
            };
            prop_assert_eq!(window.widen(low), expected);
        }

        /// However messages are lost and reordered, the counters of accepted ones are restored correctly.
        #[test]
        fn accepted_low_bits_widen_to_the_sent_counter(
            start in prop_oneof![Just(0u64), (1u64 << 32) - 500..(1u64 << 32) + 500, 0..1u64 << 50],
            steps in prop::collection::vec((0..1u64 << 30, 0..3 * WINDOW), 0..60),
        ) {
            let (mut window, mut highest) = (Window::new(), start);
            window.accept(start);
            for (ahead, lag) in steps {
                let late = highest.saturating_sub(lag);
                prop_assert_eq!(window.widen(late as u32), late);
                highest += ahead;
                prop_assert_eq!(window.widen(highest as u32), highest);
                if window.check(highest).is_ok() {
                    window.accept(highest);
                }
            }
        }

        /// Small and large steps, back and forth, compared with a set of all accepted counters.
        #[test]
        fn the_window_agrees_with_a_set_of_counters(
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
