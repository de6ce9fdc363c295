//! Frames that others overtake are late, and not lost: a receiver waits a moment before it asks for what it misses.
//!
//! For how long is learned, in the manner of RACK's reordering window (RFC 8985, section 6.2), from what RACK has to
//! guess: how late an original was that came all the same. Where nothing is overtaken, nothing waits.
//!
//! ```text
//! wait     min(longest, round trip x share)
//! longest  an eighth more than the lateness of an original that came after it had been asked for;
//!          halved after each PAUSE in which no original was late
//! share    of what was missed of late, the part that came unasked or in spite of it
//! ```
//!
//! The share bounds what a wait may cost: where most of what is missed is lost, repairs are not held up for the few that
//! are late. RACK's first bound, a quarter of a round trip, would be in vain where frames are later than that: a wait
//! that is too short costs its time and spares no repair.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant, Seq};

/// What was overtaken before that says less.
const PAUSE: Duration = Duration::from_secs(4);
/// Waits below this are none.
const LEAST: Duration = Duration::from_micros(100);
/// Shares are in units of 2^-16, and look back at about so many frames that were missed.
const ONE: u32 = 1 << 16;
const MEMORY: u32 = 32;

/// What is asked for when its wait is over: everything from one number to before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Later {
    since: Instant,
    pub(crate) from: Seq,
    pub(crate) upto: Seq,
    /// What was asked for so often, or less, is asked for again; none: what has just been missed.
    pub(crate) again: Option<u32>,
}

/// Learns how late frames are, and keeps what is asked for later.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Overtaken {
    longest: Duration,
    share: u32,
    /// When an original was late last, or `longest` was halved.
    last: Option<Instant>,
    /// In the order of their waits.
    later: VecDeque<Later>,
}

impl Overtaken {
    /// A missing original has come so late, after it had been asked for or before.
    pub(crate) fn note_late(&mut self, now: Instant, late: Duration, asked: bool) {
        self.share += (ONE - self.share) / MEMORY;
        self.last = Some(now);
        if asked {
            self.longest = self.longest.max(late + late / 8);
        }
    }

    /// A repair has brought what was missing, which had been lost by that.
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

    /// Keeps a request for later. False if it is for now.
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

    /// Whether something is asked for later.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        !self.later.is_empty()
    }

    /// What is asked for now.
    pub(crate) fn pop(
        &mut self,
        now: Instant,
        round_trip: impl FnOnce() -> Duration,
    ) -> Option<Later> {
        let due = self.deadline(round_trip)? <= now;
        due.then(|| self.later.pop_front()).flatten()
    }

    /// When something is asked for.
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
    fn nothing_waits_where_nothing_is_overtaken() {
        let mut overtaken = Overtaken::default();
        for ms in 0..1_000 {
            assert!(!overtaken.defer(at(ms), ROUND_TRIP, [0, 1], None));
            overtaken.note_repaired();
        }
        assert_eq!(overtaken.deadline(|| ROUND_TRIP), None);
    }

    #[test]
    fn the_wait_is_as_long_as_frames_are_late_and_ends_with_that() {
        let mut overtaken = Overtaken::default();
        for ms in 0..200 {
            overtaken.note_late(at(ms), MS * 16, overtaken.wait(ROUND_TRIP) < MS * 16);
        }
        assert_eq!(overtaken.wait(ROUND_TRIP), MS * 18);
        assert!(overtaken.defer(at(200), ROUND_TRIP, [7, 9], None));
        assert_eq!(overtaken.pop(at(217), || ROUND_TRIP), None);
        let later = overtaken.pop(at(218), || ROUND_TRIP).unwrap();
        assert_eq!((later.from, later.upto), (7, 9));
        // Nothing is late any more, and losses go on.
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
        // No longer than a round trip, however late frames are.
        for ms in 1_000..2_000 {
            overtaken.note_late(at(ms), MS * 400, true);
        }
        assert!(overtaken.wait(ROUND_TRIP) <= ROUND_TRIP);
    }
}
