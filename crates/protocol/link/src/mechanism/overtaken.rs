//! Tolerates reordering: a receiver waits a moment before it requests a missing frame, which may only be
//! late.
//!
//! The wait is learned, in the manner of RACK's reordering window (RFC 8985, section 6.2), but from what RACK
//! has to guess: how late an original was that arrived after all. Without reordering, no request waits.
//!
//! ```text
//! wait     min(longest, round trip x share)
//! longest  an eighth more than the lateness of an original that arrived after it had been requested;
//!          halved after each PAUSE in which no original was late
//! share    of the frames missed recently, the fraction that arrived without a request or in spite of it
//! ```
//!
//! The share bounds the cost of a wait: where most missing frames are lost, repairs are not delayed for the
//! few that are late. RACK's initial bound of a quarter of a round trip would be useless where frames are
//! later than that: a wait that is too short costs its time and saves no repair.
//! that is too short costs its time and spares no repair.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant, Seq};

/// The time after which observed reordering counts less.
const PAUSE: Duration = Duration::from_secs(4);
/// Shorter waits are skipped.
const LEAST: Duration = Duration::from_micros(100);
/// Shares are in units of 2^-16, and average over about this many missed frames.
const ONE: u32 = 1 << 16;
const MEMORY: u32 = 32;

/// A deferred request: for all numbers from `from` to before `upto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Later {
    since: Instant,
    pub(crate) from: Seq,
    pub(crate) upto: Seq,
    /// Repeats the request for frames requested at most this often; none: the frames have just been missed.
    pub(crate) again: Option<u32>,
}

/// Learns how late frames are, and keeps deferred requests.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Overtaken {
    longest: Duration,
    share: u32,
    /// When an original was last late, or `longest` was halved.
    last: Option<Instant>,
    /// In order of time.
    later: VecDeque<Later>,
}

impl Overtaken {
    /// A missing original has arrived this late, after it had been requested or before.
    pub(crate) fn note_late(&mut self, now: Instant, late: Duration, asked: bool) {
        self.share += (ONE - self.share) / MEMORY;
        self.last = Some(now);
        if asked {
            self.longest = self.longest.max(late + late / 8);
        }
    }

    /// A repair has replaced a missing frame, which had therefore been lost.
    pub(crate) fn note_repaired(&mut self) {
        self.share -= self.share / MEMORY;
    }

    /// How long to wait.
    pub(crate) fn wait(&self, round_trip: Duration) -> Duration {
        match self.longest > LEAST {
            true => {
                let bound = round_trip.mul_f64(f64::from(self.share) / f64::from(ONE));
                self.longest.min(bound)
            }
            false => Duration::ZERO,
        }
    }

    /// Defers a request. False if it has to be sent now.
    pub(crate) fn defer(
        &mut self,
        now: Instant,
        round_trip: Duration,
        [from, upto]: [Seq; 2],
        again: Option<u32>,
    ) -> bool {
        if self
            .last
            .is_some_and(|last| now.saturating_since(last) >= PAUSE)
        {
            self.longest = self.longest / 2;
            self.last = Some(now);
        }
        let waits = !self.later.is_empty() || self.wait(round_trip) > Duration::ZERO;
        if waits {
            let since = now;
            self.later.push_back(Later {
                since,
                from,
                upto,
                again,
            });
        }
        waits
    }

    /// Whether a request is deferred.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        !self.later.is_empty()
    }

    /// The next request that is due.
    pub(crate) fn pop(
        &mut self,
        now: Instant,
        round_trip: impl FnOnce() -> Duration,
    ) -> Option<Later> {
        let due = self.deadline(round_trip)? <= now;
        due.then(|| self.later.pop_front()).flatten()
    }

    /// When the next request is due.
    pub(crate) fn deadline(&self, round_trip: impl FnOnce() -> Duration) -> Option<Instant> {
        let first = self.later.front()?;
        Some(first.since + self.wait(round_trip()))
    }

    /// Forgets requests; what was learned of the link stays.
    pub(crate) fn clear(&mut self) {
        self.later.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const ROUND_TRIP: Duration = Duration::from_millis(50);

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + MS * ms
    }

    #[test]
    fn requests_do_not_wait_without_reordering() {
        let mut overtaken = Overtaken::default();
        for ms in 0..1_000 {
            assert!(!overtaken.defer(at(ms), ROUND_TRIP, [0, 1], None));
            overtaken.note_repaired();
        }
        assert_eq!(overtaken.deadline(|| ROUND_TRIP), None);
    }

    #[test]
    fn the_wait_follows_the_lateness_of_frames() {
        let mut overtaken = Overtaken::default();
        for ms in 0..200 {
            overtaken.note_late(at(ms), MS * 16, overtaken.wait(ROUND_TRIP) < MS * 16);
        }
        assert_eq!(overtaken.wait(ROUND_TRIP), MS * 18);
        assert!(overtaken.defer(at(200), ROUND_TRIP, [7, 9], None));
        assert_eq!(overtaken.pop(at(217), || ROUND_TRIP), None);
        let later = overtaken.pop(at(218), || ROUND_TRIP).unwrap();
        assert_eq!((later.from, later.upto), (7, 9));
        // No more frames are late, and losses continue.
        for second in 1..60 {
            overtaken.defer(at(second * 1_000), ROUND_TRIP, [0, 1], None);
            overtaken.clear();
        }
        assert_eq!(overtaken.wait(ROUND_TRIP), Duration::ZERO);
    }

    #[test]
    fn where_most_is_lost_repairs_wait_little() {
        let mut overtaken = Overtaken::default();
        for ms in 0..1_000 {
            match ms % 20 {
                0 => overtaken.note_late(at(ms), MS * 40, true),
                _ => overtaken.note_repaired(),
            }
        }
        assert!(overtaken.wait(ROUND_TRIP) < MS * 5);
        // At most a round trip, however late frames are.
        for ms in 1_000..2_000 {
            overtaken.note_late(at(ms), MS * 400, true);
        }
        assert!(overtaken.wait(ROUND_TRIP) <= ROUND_TRIP);
    }
}
