//! What happens to frames on some links beside errors: times without the link, a policer, delays that differ. Most links
//! have none of it, and ask once.

use std::collections::VecDeque;

use airlane_base::{Bucket, Instant};

use crate::jitter::Jitter;

/// From a time to before another.
type Window = [Instant; 2];

#[derive(Debug, Default)]
pub(crate) struct Hazards {
    /// When the link is down, in order and apart; those that are over go.
    pub(crate) outages: VecDeque<Window>,
    /// When the link is not there, likewise.
    pub(crate) absences: VecDeque<Window>,
    /// What drops all that exceeds it.
    pub(crate) police: Option<Bucket>,
    /// What makes delays differ.
    pub(crate) jitter: Option<Jitter>,
}

/// What a frame meets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Met {
    /// It is lost: the link is down,
    pub(crate) down: bool,
    /// or not there,
    pub(crate) gone: bool,
    /// or lets less pass.
    pub(crate) exceeds: bool,
    /// When it arrives if not.
    pub(crate) arrives: Instant,
    /// What is sent later arrives no earlier, by its usual delay.
    pub(crate) bounds: Instant,
}

impl Met {
    /// Nothing.
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
    /// What a frame of `len` bytes meets that leaves from `start` to `departs` and `usually` arrives then, but not
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

/// Whether one of the windows meets `[start, end)`; starts never go back, and what is over goes.
fn meets(windows: &mut VecDeque<Window>, start: Instant, end: Instant) -> bool {
    while windows.front().is_some_and(|[_, over]| *over <= start) {
        windows.pop_front();
    }
    // What leaves all at once leaves at a moment, which is in a window from its begin on.
    windows
        .front()
        .is_some_and(|[begin, _]| *begin < end || *begin <= start)
}
