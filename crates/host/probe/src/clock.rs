//! Two unsynchronised clocks: reading ours, and estimating the offset of the server's.
//!
//! Times are CLOCK_MONOTONIC, whose origin is arbitrary. An echo has four times, two from each clock (RFC 5905,
//! section 8):
//!
//! ```text
//! client  sent ───────────────────────────────── returned      ahead = ((heard - sent) + (answered - returned)) / 2
//! server          heard ──────── answered                      round trip = (returned - sent) - (answered - heard)
//! ```
//!
//! That is exact if both directions took the same time, and otherwise wrong by half the difference, so by half the
//! round trip at most. Queueing delays one direction, so the echo with the shortest round trip is used. Clocks also
//! drift apart, by up to 100 us per second. Two readings, one before the load and one after it, with linear
//! interpolation between them, correct that.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// A clock of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalClock {
    /// Nanoseconds that it is ahead of CLOCK_MONOTONIC, which all processes of a machine share. Tests use a value
    /// other than zero to get two clocks on one machine.
    pub ahead_ns: u64,
}

impl LocalClock {
    pub(crate) fn now_ns(self) -> u64 {
        let t = clock_gettime(ClockId::Monotonic);
        t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64 + self.ahead_ns
    }

    /// The time until then.
    pub(crate) fn until(self, at_ns: u64) -> Duration {
        Duration::from_nanos(at_ns.saturating_sub(self.now_ns()))
    }

    pub(crate) fn sleep_until(self, at_ns: u64) {
        std::thread::sleep(self.until(at_ns));
    }
}

/// The four times of an echo, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoTimes {
    /// When the request left, by the client's clock.
    pub sent_ns: u64,
    /// When it arrived, by the server's clock.
    pub heard_ns: u64,
    /// When the reply left, by the server's clock.
    pub answered_ns: u64,
    /// When the reply arrived, by the client's clock.
    pub returned_ns: u64,
}

impl EchoTimes {
    /// Round trip without the time in the server; none if the server's times are inconsistent.
    pub fn rtt_ns(&self) -> Option<u64> {
        let away = self.returned_ns.checked_sub(self.sent_ns)?;
        away.checked_sub(self.answered_ns.checked_sub(self.heard_ns)?)
    }

    fn reading(&self) -> Option<Reading> {
        let rtt_ns = self.rtt_ns()?;
        let apart = |theirs: u64, ours: u64| i128::from(theirs) - i128::from(ours);
        let twice = apart(self.heard_ns, self.sent_ns) + apart(self.answered_ns, self.returned_ns);
        Some(Reading {
            at_ns: self.returned_ns,
            ahead_ns: i64::try_from(twice / 2).ok()?,
            rtt_ns,
        })
    }
}

/// The offset of the server's clock at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Reading {
    /// The time, by the client's clock.
    at_ns: u64,
    ahead_ns: i64,
    /// The round trip that it is based on.
    rtt_ns: u64,
}

/// How far the server's clock is ahead of the client's, from the first reading to the last. The default is one clock
/// for both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    first: Reading,
    last: Reading,
}

impl Clocks {
    /// From echoes before the load and after it; none if the former contain no valid echo. Without the latter, the
    /// clocks are assumed not to drift.
    pub fn new(before: &[EchoTimes], after: &[EchoTimes]) -> Option<Self> {
        let best = |exchanges: &[EchoTimes]| {
            let readings = exchanges.iter().filter_map(EchoTimes::reading);
            readings.min_by_key(|reading| reading.rtt_ns)
        };
        let first = best(before)?;
        Some(Self {
            first,
            last: best(after).unwrap_or(first),
        })
    }

    /// How far the server's clock is ahead when the client's shows this time.
    pub fn ahead_ns(&self, at_ns: u64) -> i64 {
        let Self { first, last } = self;
        let span = last.at_ns.saturating_sub(first.at_ns);
        if span == 0 {
            return first.ahead_ns;
        }
        let elapsed = at_ns.saturating_sub(first.at_ns).min(span);
        let drift_ns = last.ahead_ns.saturating_sub(first.ahead_ns) as f64;
        let drifted = drift_ns * (elapsed as f64 / span as f64);
        first.ahead_ns.saturating_add(drifted as i64)
    }

    /// The largest error of [`Clocks::ahead_ns`] between its readings, however different the two directions were.
    pub fn uncertainty_ns(&self) -> u64 {
        self.first.rtt_ns.max(self.last.rtt_ns) / 2
    }

    /// The delay from the server, by its clock, to the client, by the client's.
    pub(crate) fn down_ns(&self, sent_ns: u64, received_ns: u64) -> u64 {
        let ahead = i128::from(self.ahead_ns(received_ns));
        delay(i128::from(received_ns) + ahead - i128::from(sent_ns))
    }

    /// The delay from the client, by its clock, to the server, by the server's.
    pub(crate) fn up_ns(&self, sent_ns: u64, received_ns: u64) -> u64 {
        let ahead = i128::from(self.ahead_ns(sent_ns));
        delay(i128::from(received_ns) - ahead - i128::from(sent_ns))
    }
}

/// A short delay may come out negative, within the uncertainty of the clocks.
fn delay(ns: i128) -> u64 {
    u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;
    const HOUR: i64 = 3_600_000_000_000;

    /// A server's clock: ahead of the client's, and faster by some ppm.
    #[derive(Clone, Copy, Debug)]
    struct Other {
        ahead_ns: i64,
        ppm: i64,
    }

    impl Other {
        /// What it shows when the client's shows `at`.
        fn shows(self, at: u64) -> u64 {
            let drift = i128::from(at) * i128::from(self.ppm) / 1_000_000;
            (i128::from(at) + i128::from(self.ahead_ns) + drift) as u64
        }

        /// An echo sent at `at`, with these one-way delays.
        fn echo(self, at: u64, up: u64, down: u64) -> EchoTimes {
            let answer = at + up + 30_000;
            EchoTimes {
                sent_ns: at,
                heard_ns: self.shows(at + up),
                answered_ns: self.shows(answer),
                returned_ns: answer + down,
            }
        }
    }

    #[test]
    fn clocks_hours_apart_give_true_delays() {
        let other = Other {
            ahead_ns: -3 * HOUR,
            ppm: 80,
        };
        let begin = 10 * HOUR as u64;
        let end = begin + 60_000 * MS;
        // Queueing in either direction, and occasionally none.
        let echoes = |from: u64| -> Vec<EchoTimes> {
            let waits = [[7, 0], [3, 9], [0, 0], [0, 40], [12, 1]];
            let at = |i: usize| from + i as u64 * 25 * MS;
            let waits = waits.iter().enumerate();
            waits
                .map(|(i, [up, down])| other.echo(at(i), (25 + up) * MS, (25 + down) * MS))
                .collect()
        };
        let clocks = Clocks::new(&echoes(begin), &echoes(end)).unwrap();
        assert!(clocks.uncertainty_ns().abs_diff(25 * MS) < 5_000);
        for at in (begin..end).step_by(5_000 * MS as usize) {
            let arrives = at + 31 * MS;
            let down = clocks.down_ns(other.shows(at), arrives);
            let up = clocks.up_ns(at, other.shows(arrives));
            for delay in [down, up] {
                assert!(delay.abs_diff(31 * MS) < 20_000, "{delay} at {at}");
            }
        }
    }

    #[test]
    fn without_a_second_reading_no_drift_is_assumed() {
        let other = Other {
            ahead_ns: HOUR,
            ppm: 0,
        };
        let echoes = [other.echo(5 * MS, MS, MS)];
        let clocks = Clocks::new(&echoes, &[]).unwrap();
        assert_eq!(clocks.ahead_ns(0), HOUR);
        assert_eq!(clocks.ahead_ns(u64::MAX), HOUR);
        assert_eq!(Clocks::new(&[], &echoes), None);
        assert_eq!(Clocks::default().down_ns(7, 9), 2);
    }

    #[test]
    fn impossible_times_are_not_used() {
        let echo = EchoTimes {
            sent_ns: 10,
            heard_ns: 100,
            answered_ns: 90,
            returned_ns: 20,
        };
        let slow = EchoTimes {
            answered_ns: 120,
            ..echo
        };
        let far = EchoTimes {
            heard_ns: u64::MAX,
            answered_ns: u64::MAX,
            ..echo
        };
        assert_eq!(Clocks::new(&[echo, slow, far], &[]), None);
    }

    proptest! {
        /// For any delays and clocks, the error stays within the stated uncertainty.
        #[test]
        fn the_error_is_at_most_half_the_round_trip(
            ahead_ns in -1_000 * HOUR..1_000 * HOUR,
            ways in prop::collection::vec((0..500 * MS, 0..500 * MS), 1..20),
            at in 0..10_000 * MS,
        ) {
            let begin = 2_000 * HOUR as u64;
            let other = Other { ahead_ns, ppm: 0 };
            let echoes: Vec<_> = ways
                .iter()
                .zip(0..)
                .map(|((up, down), i)| other.echo(begin + i * 25 * MS, *up, *down))
                .collect();
            let clocks = Clocks::new(&echoes, &echoes[..1]).unwrap();
            let error = clocks.ahead_ns(begin + at).abs_diff(ahead_ns);
            prop_assert!(error <= clocks.uncertainty_ns() + 1);
        }

        /// The peer's times are untrusted: no values may cause a panic.
        #[test]
        fn no_times_panic(times in prop::collection::vec(any::<[u64; 4]>(), 0..6), at: [u64; 2]) {
            let echoes: Vec<_> = times
                .iter()
                .map(|[sent_ns, heard_ns, answered_ns, returned_ns]| EchoTimes {
                    sent_ns: *sent_ns,
                    heard_ns: *heard_ns,
                    answered_ns: *answered_ns,
                    returned_ns: *returned_ns,
                })
                .collect();
            let half = echoes.len() / 2;
            if let Some(clocks) = Clocks::new(&echoes[..half], &echoes[half..]) {
                clocks.down_ns(at[0], at[1]);
                clocks.up_ns(at[0], at[1]);
            }
        }
    }
}
