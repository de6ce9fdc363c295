//! When a mark is due, and which marks are in flight.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant};

/// A mark is due after this many bytes, fewer on slow links, but not more often than `MARK_EVERY`; and after
/// `MARK_AFTER` with any data.
const MARK_BYTES: u64 = 8_000;
const LEAST_MARK_BYTES: u64 = 1_200;
const MARK_EVERY: Duration = Duration::from_millis(10);
/// The minimum interval before any queue has been seen: a burst into a slower link than assumed is soon over.
const MARK_EVERY_AT_FIRST: Duration = Duration::from_millis(2);
const MARK_AFTER: Duration = Duration::from_millis(500);
/// Number of marks remembered.
pub(super) const MARKS: usize = 256;
/// Marks count as missed when this many are unanswered, for this time plus two round trips.
const MISSED: usize = 8;
const MISSED_FOR: Duration = Duration::from_millis(200);

/// A mark in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    number: u32,
    pub(super) left: Instant,
    /// Bytes sent before it.
    pub(super) sent: u64,
}

/// The marks of an estimator.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    number: u32,
    /// When the last one left, and after how many bytes.
    last: (Instant, u64),
    due: bool,
    /// Bytes sent so far.
    sent: u64,
    under_way: VecDeque<Mark>,
    /// When the last report arrived, or the first mark in flight left.
    heard: Instant,
}

impl Marks {
    pub(super) fn new() -> Self {
        Self {
            number: 0,
            last: (Instant::ORIGIN, 0),
            due: false,
            sent: 0,
            under_way: VecDeque::with_capacity(MARKS),
            heard: Instant::ORIGIN,
        }
    }

    /// Forgets the marks in flight.
    pub(super) fn clear(&mut self) {
        self.due = false;
        self.under_way.clear();
    }

    /// `sent` bytes have left so far, at this rate; `at_first` no queue has been seen yet.
    #[inline]
    pub(super) fn departed(&mut self, now: Instant, sent: u64, bps: u64, at_first: bool) {
        self.sent = sent;
        let (at, before) = self.last;
        let since = now.saturating_since(at);
        // On a long path the oldest of many marks would be forgotten before their reports arrive.
        let every = match at_first && self.under_way.len() < MARKS / 2 {
            true => MARK_EVERY_AT_FIRST,
            false => MARK_EVERY,
        };
        // Slow links have more marks per byte, so that a change is seen in time.
        let bytes = (bps / 8 * 20 / 1_000).clamp(LEAST_MARK_BYTES, MARK_BYTES);
        self.due |= sent - before >= bytes && since >= every || since >= MARK_AFTER;
    }

    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.due
    }

    /// Sends a mark after this many bytes and returns its number.
    pub(super) fn take(&mut self, now: Instant, sent: u64) -> u32 {
        (self.due, self.last) = (false, (now, sent));
        self.number = self.number.wrapping_add(1);
        if self.under_way.len() == MARKS {
            self.under_way.pop_front();
        }
        if self.under_way.is_empty() {
            self.heard = now;
        }
        let number = self.number;
        self.under_way.push_back(Mark {
            number,
            left: now,
            sent,
        });
        number
    }

    /// Takes the report on a mark. Earlier marks are lost or were overtaken.
    pub(super) fn answer(&mut self, now: Instant, number: u32) -> Option<Mark> {
        let at = self
            .under_way
            .iter()
            .position(|mark| mark.number == number)?;
        let mark = self.under_way[at];
        self.under_way.drain(..=at);
        self.heard = now;
        Some(mark)
    }

    /// Whether so many marks are unanswered for so long that a full queue or an outage must have taken them
    /// all. The next check is due after the same time.
    pub(super) fn are_missed(&mut self, now: Instant, round_trip: Duration) -> bool {
        let missed =
            self.under_way.len() >= MISSED && self.silence(now) > round_trip * 2 + MISSED_FOR;
        if missed {
            self.heard = now;
        }
        missed
    }

    /// Time since the last report.
    pub(super) fn silence(&self, now: Instant) -> Duration {
        now.saturating_since(self.heard)
    }

    /// Bytes sent so far.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> (u32, usize) {
        (self.number, self.under_way.len())
    }
}
