//! Timers of one kind, in the order in which they were started.
//!
//! All of them have the same duration, so the oldest is always the next to expire, and a queue does the work
//! of a costlier heap. A timer is never cancelled: the caller decides whether an expired one still counts.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant, Seq};

/// One running timer, for one attempt at a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Started {
    pub(crate) at: Instant,
    pub(crate) seq: Seq,
    pub(crate) attempt: u32,
}

/// Running timers of one kind.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct StartedTimers {
    queue: VecDeque<Started>,
    /// Maximum number that can count at once.
    most: usize,
}

impl StartedTimers {
    /// For at most `n` timers that count at once.
    pub(crate) fn with_capacity(n: u32) -> Self {
        Self {
            queue: VecDeque::with_capacity(n as usize),
            most: n as usize,
        }
    }

    /// Starts a timer. A start time before that of the previous timer is moved to it, by at most the time of
    /// one frame on its way out.
    #[inline]
    pub(crate) fn start(&mut self, at: Instant, seq: Seq, attempt: u32) {
        let at = self.queue.back().map_or(at, |last| last.at.max(at));
        self.queue.push_back(Started { at, seq, attempt });
    }

    /// Forgets timers at the front that no longer count. If the queue is longer than twice the number that
    /// can count, forgets all that do not.
    #[inline]
    pub(crate) fn prune(&mut self, counts: impl Fn(&Started) -> bool) {
        while self.queue.front().is_some_and(|t| !counts(t)) {
            self.queue.pop_front();
        }
        if self.queue.len() > 2 * self.most {
            self.prune_all(counts);
        }
    }

    #[cold]
    fn prune_all(&mut self, counts: impl Fn(&Started) -> bool) {
        self.queue.retain(counts);
    }

    /// When the oldest expires, given the duration.
    #[inline]
    pub(crate) fn deadline(&self, runs: impl FnOnce() -> Duration) -> Option<Instant> {
        self.queue.front().map(|t| t.at + runs())
    }

    /// When this timer was started, if it runs.
    pub(crate) fn started_at(&self, seq: Seq, attempt: u32) -> Option<Instant> {
        let mut all = self.queue.iter();
        all.find(|t| t.seq == seq && t.attempt == attempt)
            .map(|t| t.at)
    }

    /// Whether no timer runs.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes the oldest timer if it has expired.
    pub(crate) fn pop_expired(&mut self, now: Instant, runs: Duration) -> Option<Started> {
        if self.queue.front().is_some_and(|t| t.at + runs <= now) {
            self.queue.pop_front()
        } else {
            None
        }
    }

    pub(crate) fn clear(&mut self) {
        self.queue.clear();
    }
}
