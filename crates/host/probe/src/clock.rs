//! Two clocks that were never set by each other: reading ours, and how far the server's is ahead.
//!
//! Times are CLOCK_MONOTONIC, whose origin is anywhere. An echo has four times, two of each clock
//! (RFC 5905, section 8):
//!
//! ```text
//! client  sent ───────────────────────────────── returned      ahead = ((heard - sent) + (answered - returned)) / 2
//! server          heard ──────── answered                      round trip = (returned - sent) - (answered - heard)
//! ```
//!
//! That is exact where both ways took the same time, and wrong by half their difference where not, so by
//! half the round trip at most. Whoever waited in a queue waited on one way: of many echoes the one with
//! the shortest round trip counts. Clocks drift apart, too, by up to 100 us in a second. Two readings, one
//! before the load and one behind it, with a straight line between them, take that out.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// A clock of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalClock {
    /// Nanoseconds that it is ahead of CLOCK_MONOTONIC, which all processes of a machine share: other
    /// than zero where a test wants two clocks on one machine.
    pub ahead_ns: u64,
}

impl LocalClock {
    pub(crate) fn now_ns(self) -> u64 {
        let t = clock_gettime(ClockId::Monotonic);
        t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64 + self.ahead_ns
    }

    /// What is left until then.
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
    /// The request left, by the client's clock.
    pub sent_ns: u64,
    /// It arrived, by the server's clock.
    pub heard_ns: u64,
    /// The answer left, by the server's clock.
    pub answered_ns: u64,
    /// The answer arrived, by the client's clock.
    pub returned_ns: u64,
}

impl EchoTimes {
    /// Time on the way, both ways together; none if the server's times make no sense.
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

/// How far the server's clock was ahead at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Reading {
    /// When, by the client's clock.
    at_ns: u64,
    ahead_ns: i64,
    /// The round trip behind it.
    rtt_ns: u64,
}

/// How far the server's clock is ahead of the client's, from the first reading to the last. The default
/// is one clock for both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    first: Reading,
    last: Reading,
}

impl Clocks {
    /// From echoes before the load and behind it; none if nothing of use is among the first. Without the
    /// others the clocks are taken to go equally fast.
    pub fn new(before: &[EchoTimes], behind: &[EchoTimes]) -> Option<Self> {
        let best = |exchanges: &[EchoTimes]| {
            let readings = exchanges.iter().filter_map(EchoTimes::reading);
            readings.min_by_key(|reading| reading.rtt_ns)
        };
        let first = best(before)?;
        Some(Self {
            first,
            last: best(behind).unwrap_or(first),
        })
    }

    /// How far the server's clock is ahead when the client's shows this.
    pub fn ahead_ns(&self, at_ns: u64) -> i64 {
        let Self { first, last } = self;
        let span = last.at_ns.saturating_sub(first.at_ns);
        if span == 0 {
            return first.ahead_ns;
        }
        let behind = at_ns.saturating_sub(first.at_ns).min(span);
        let drift_ns = last.ahead_ns.saturating_sub(first.ahead_ns) as f64;
        let drifted = drift_ns * (behind as f64 / span as f64);
        first.ahead_ns.saturating_add(drifted as i64)
    }

    /// The most that [`Clocks::ahead_ns`] is wrong by between its readings, however different the two
    /// ways were.
    pub fn uncertainty_ns(&self) -> u64 {
        self.first.rtt_ns.max(self.last.rtt_ns) / 2
    }

    /// From the server's clock, when it sent, to the client's, when it received.
    pub(crate) fn down_ns(&self, sent_ns: u64, received_ns: u64) -> u64 {
        let ahead = i128::from(self.ahead_ns(received_ns));
        delay(i128::from(received_ns) + ahead - i128::from(sent_ns))
    }

    /// From the client's clock, when it sent, to the server's, when it received.
    pub(crate) fn up_ns(&self, sent_ns: u64, received_ns: u64) -> u64 {
        let ahead = i128::from(self.ahead_ns(sent_ns));
        delay(i128::from(received_ns) - ahead - i128::from(sent_ns))
    }
}

/// A short delay may come out negative by as much as the clocks are uncertain.
fn delay(ns: i128) -> u64 {
    u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;
    const HOUR: i64 = 3_600_000_000_000;

    /// A server's clock: ahead of the client's, and faster by so many ppm.
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

        /// An echo sent at `at`, with these times on the two ways.
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
    fn clocks_hours_apart_give_delays_as_if_they_were_one() {
        let other = Other {
            ahead_ns: -3 * HOUR,
            ppm: 80,
        };
        let begin = 10 * HOUR as u64;
        let end = begin + 60_000 * MS;
        // Queues on either way, and now and then none.
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
    fn without_a_second_reading_the_clocks_go_equally_fast() {
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
    fn times_that_make_no_sense_are_not_used() {
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
        /// Whatever the ways and the clocks are, the error stays below what is said of it.
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

        /// The peer's times are its own affair: any of them are survived.
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
