//! When a mark is due, and which are on their way.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant};

/// A mark for so many bytes, fewer where the link is slow, not more often than this, and after so long for any.
const MARK_BYTES: u64 = 8_000;
const LEAST_MARK_BYTES: u64 = 1_200;
const MARK_EVERY: Duration = Duration::from_millis(10);
/// As often while no queue has been seen: a burst into a link that is slower than taken for is over soon.
const MARK_EVERY_AT_FIRST: Duration = Duration::from_millis(2);
const MARK_AFTER: Duration = Duration::from_millis(500);
/// So many are remembered.
pub(super) const MARKS: usize = 256;
/// So many without a report, for so long and two round trips, are too many.
const MISSED: usize = 8;
const MISSED_FOR: Duration = Duration::from_millis(200);

/// A mark on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    number: u32,
    pub(super) left: Instant,
    /// Bytes sent before it.
    pub(super) sent: u64,
}

/// What was marked.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    number: u32,
    /// When the last one left, and after how many bytes.
    last: (Instant, u64),
    due: bool,
    /// Bytes that were sent by now.
    sent: u64,
    under_way: VecDeque<Mark>,
    /// The last report came then, or the first mark of those under way left.
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

    /// Forgets those under way.
    pub(super) fn clear(&mut self) {
        self.due = false;
        self.under_way.clear();
    }

    /// `sent` bytes have left by now, at this rate; at first no queue has been seen.
    #[inline]
    pub(super) fn departed(&mut self, now: Instant, sent: u64, bps: u64, at_first: bool) {
        self.sent = sent;
        let (at, before) = self.last;
        let since = now.saturating_since(at);
        // On a long path so many would be on their way that the oldest are forgotten before their reports come.
        let every = match at_first && self.under_way.len() < MARKS / 2 {
            true => MARK_EVERY_AT_FIRST,
            false => MARK_EVERY,
        };
        // Slow links have marks more often than fast ones, so that a change is seen in time.
        let bytes = (bps / 8 * 20 / 1_000).clamp(LEAST_MARK_BYTES, MARK_BYTES);
        self.due |= sent - before >= bytes && since >= every || since >= MARK_AFTER;
    }

    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.due
    }

    /// One leaves, after so many bytes: its number.
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

    /// The peer tells of one. Those before it are lost, or overtaken.
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

    /// Whether so many are under way for so long that a full queue or an outage takes them all. It is asked again after as
    /// long.
    pub(super) fn are_missed(&mut self, now: Instant, round_trip: Duration) -> bool {
        let missed =
            self.under_way.len() >= MISSED && self.silence(now) > round_trip * 2 + MISSED_FOR;
        if missed {
            self.heard = now;
        }
        missed
    }

    /// How long nothing was heard.
    pub(super) fn silence(&self, now: Instant) -> Duration {
        now.saturating_since(self.heard)
    }

    /// Bytes that were sent by now.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> (u32, usize) {
        (self.number, self.under_way.len())
    }
}
