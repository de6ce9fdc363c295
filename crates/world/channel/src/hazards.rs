//! What may happen to frames besides errors: outages, a policer, jitter. Most links have none of it and pay for a single
//! test.

use std::collections::VecDeque;

use airlane_base::{Bucket, Instant};

use crate::jitter::Jitter;

/// A window `[from, to)`.
type Window = [Instant; 2];

#[derive(Debug, Default)]
pub(crate) struct Hazards {
    /// When the link is down, in order and disjoint; past windows are removed.
    pub(crate) outages: VecDeque<Window>,
    /// When the far end is absent, likewise.
    pub(crate) absences: VecDeque<Window>,
    /// The policer.
    pub(crate) police: Option<Bucket>,
    /// The jitter.
    pub(crate) jitter: Option<Jitter>,
}

/// What happens to a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Met {
    /// Lost because the link is down.
    pub(crate) down: bool,
    /// Lost because the far end is absent.
    pub(crate) gone: bool,
    /// Lost because the frame exceeds the policer.
    pub(crate) exceeds: bool,
    /// Its arrival if it is not lost.
    pub(crate) arrives: Instant,
    /// Frames sent later arrive no earlier than this, by their usual delay.
    pub(crate) bounds: Instant,
}

impl Met {
    /// No hazard.
    pub(crate) const fn nothing(arrives: Instant) -> Self {
        Self {
            down: false,
            gone: false,
            exceeds: false,
            arrives,
            bounds: arrives,
        }
    }

    pub(crate) const fn is_loss(self) -> bool {
        self.down || self.gone || self.exceeds
    }
}

impl Hazards {
    /// What happens to a frame of `len` bytes that leaves from `start` to `departs` and arrives at `usually`, but not
    /// before `bound`.
    pub(crate) fn meet(
        &mut self,
        [start, departs]: Window,
        [usually, bound]: [Instant; 2],
        len: usize,
    ) -> Met {
        let due = usually.max(bound);
        let (arrives, bounds) = match &mut self.jitter {
            None => (due, due),
            Some(jitter) if jitter.keeps_order() => {
                let arrives = jitter.arrival(departs, usually).max(bound);
                (arrives, arrives)
            }
            Some(jitter) => (jitter.arrival(departs, due), due),
        };
        Met {
            down: meets(&mut self.outages, start, departs),
            gone: meets(&mut self.absences, start, arrives),
            exceeds: (self.police.as_mut()).is_some_and(|police| !police.take(departs, len)),
            arrives,
            bounds,
        }
    }
}

/// Whether a window overlaps `[start, end)`. Starts must not go back, since past windows are removed.
fn meets(windows: &mut VecDeque<Window>, start: Instant, end: Instant) -> bool {
    while windows.front().is_some_and(|[_, over]| *over <= start) {
        windows.pop_front();
    }
    // A frame of zero duration leaves at an instant, which belongs to a window from its beginning on.
    windows
        .front()
        .is_some_and(|[begin, _]| *begin < end || *begin <= start)
}
