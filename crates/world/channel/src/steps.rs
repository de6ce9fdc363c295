//! A rate that changes at known times, in a cycle.
//!
//! ```toml
//! rate = { kind = "steps", every = "10 s", rates = ["20 Mbit/s", "5 Mbit/s"] }
//! ```
//!
//! All changes are known in advance, so the departure of a frame is known when it is handed over: it is the time at
//! which the rates in force since its start have carried all of its bits. A queued frame is sent at the rate in force
//! when it leaves, and a frame in transmission at a step continues at the new rate.

use airlane_base::{Duration, Instant, Rate};

/// Rates that follow each other from time 0, in integer arithmetic: bits times nanoseconds are exact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateSteps {
    every: Duration,
    rates: Vec<Rate>,
}

const SECOND: u128 = 1_000_000_000;

impl RateSteps {
    /// Each rate holds for `every`; the first one follows the last. `None` if `every` is zero or there is no rate.
    pub fn new(every: Duration, rates: Vec<Rate>) -> Option<Self> {
        (every > Duration::ZERO && !rates.is_empty()).then_some(Self { every, rates })
    }

    /// How long each rate holds.
    pub const fn every(&self) -> Duration {
        self.every
    }

    /// The rates, in their order.
    pub fn rates(&self) -> &[Rate] {
        &self.rates
    }

    /// The mean rate of a cycle.
    pub fn mean_rate(&self) -> Rate {
        let mean = self.bits_a_nanosecond() / self.rates.len() as u128;
        Rate::from_bps(u64::try_from(mean).unwrap_or(u64::MAX).max(1)).expect("at least 1 bit/s")
    }

    /// The sum of all rates, bit/s.
    fn bits_a_nanosecond(&self) -> u128 {
        self.rates
            .iter()
            .map(|rate| u128::from(rate.as_bps()))
            .sum()
    }

    /// What a cycle carries, in bits times nanoseconds.
    fn round(&self) -> u128 {
        self.bits_a_nanosecond() * u128::from(self.every.as_nanos())
    }

    /// The rate of step `number`, counted across all cycles.
    fn rate(&self, number: u64) -> u128 {
        u128::from(self.rates[(number % self.rates.len() as u64) as usize].as_bps())
    }

    /// What is carried from the origin to `until`, in bits times nanoseconds.
    pub(crate) fn carried(&self, until: Instant) -> u128 {
        let (every, count) = (self.every.as_nanos(), self.rates.len() as u64);
        let (step, within) = (until.as_nanos() / every, until.as_nanos() % every);
        let whole: u128 = (0..step % count).map(|number| self.rate(number)).sum();
        self.round() * u128::from(step / count)
            + whole * u128::from(every)
            + self.rate(step) * u128::from(within)
    }

    /// When the last bit leaves of a frame of `len` bytes that begins to leave at `start`, rounded up to a whole
    /// nanosecond.
    pub(crate) fn departure(&self, start: Instant, len: usize) -> Instant {
        let bits = len as u128 * 8 * SECOND;
        let every = u128::from(self.every.as_nanos());
        let (rounds, mut left) = (bits / self.round(), bits % self.round());
        let mut at = u128::from(start.as_nanos()) + rounds * every * self.rates.len() as u128;
        let mut step = start.as_nanos() / self.every.as_nanos();
        let mut holds = every - u128::from(start.as_nanos()) % every;
        // At most one cycle, since whole cycles have been subtracted.
        while left > self.rate(step) * holds {
            left -= self.rate(step) * holds;
            at += holds;
            (step, holds) = (step + 1, every);
        }
        at += left.div_ceil(self.rate(step));
        Instant::from_nanos(u64::try_from(at).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn steps(every: u64, bps: &[u64]) -> RateSteps {
        let rates = bps
            .iter()
            .map(|bps| Rate::from_bps(*bps).unwrap())
            .collect();
        RateSteps::new(Duration::from_nanos(every), rates).unwrap()
    }

    #[test]
    fn a_frame_goes_on_at_the_rate_after_a_step() {
        // 10 B take 10 ms at 8 kbit/s: 5 ms until the step, and the other half at ten times the rate.
        let steps = steps(1_000_000_000, &[8_000, 80_000]);
        let at = |us: u64| Instant::from_nanos(us * 1_000);
        assert_eq!(steps.departure(at(0), 10), at(10_000));
        assert_eq!(steps.departure(at(995_000), 10), at(1_000_500));
        assert_eq!(steps.departure(at(1_999_500), 10), at(2_005_000));
        assert_eq!(steps.mean_rate().as_bps(), 44_000);
    }

    proptest! {
        /// A departure is the first nanosecond at which the rates have carried the frame, however many steps it spans.
        #[test]
        fn a_frame_has_left_as_soon_as_the_rates_have_carried_it(
            every in 1u64..2_000_000_000,
            rates in prop::collection::vec(1u64..1_000_000_000, 1..6),
            start in 0u64..10_000_000_000,
            len in 0usize..3_000,
        ) {
            let steps = steps(every, &rates);
            let start = Instant::from_nanos(start);
            let departs = steps.departure(start, len);
            let bits = len as u128 * 8 * SECOND;
            prop_assert!(steps.carried(departs) - steps.carried(start) >= bits);
            if departs > start {
                let before = departs - Duration::from_nanos(1);
                prop_assert!(steps.carried(before) - steps.carried(start) < bits);
            }
        }
    }
}
