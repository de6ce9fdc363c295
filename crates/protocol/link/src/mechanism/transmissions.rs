//! The true order of transmissions (the "FTO" of IS-54, section 8.1 of docs/spec/multi-service.md).
//!
//! Every transmission, first or repeated, gets the next number of a counter that never wraps. Frames arrive
//! in that order or not at all; so when one has arrived, every earlier transmission that has not arrived is
//! lost.

use std::collections::VecDeque;

use airlane_base::{Seq, SeqSpace};

use super::ring::Ring;

/// The order in which frames were sent, and up to where they can be judged lost.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Transmissions {
    sent: u64,
    /// The number of each frame's last transmission.
    latest: Ring<u64>,
    /// Transmissions not judged yet, oldest first. Those that are not the latest of their frame are ignored.
    queue: VecDeque<(u64, Seq)>,
    /// The newest transmission that has arrived.
    arrived: u64,
    most: usize,
}

impl Transmissions {
    pub(crate) fn new(window: u32, space: SeqSpace) -> Self {
        Self {
            sent: 0,
            latest: Ring::for_span(window, space),
            queue: VecDeque::with_capacity(2 * window as usize),
            arrived: 0,
            most: window as usize,
        }
    }

    /// A frame is handed over.
    pub(crate) fn note_sent(&mut self, seq: Seq) {
        self.sent += 1;
        self.latest.insert(seq, self.sent);
        if self.queue.len() >= 2 * self.most {
            let latest = &self.latest;
            self.queue
                .retain(|(order, seq)| latest.get(*seq) == Some(order));
        }
        self.queue.push_back((self.sent, seq));
    }

    /// The peer has a frame.
    pub(crate) fn note_arrived(&mut self, seq: Seq) {
        if let Some(order) = self.latest.remove(seq) {
            self.arrived = self.arrived.max(order);
        }
    }

    /// The next frame, in order of transmission, that one sent later has overtaken.
    pub(crate) fn next_overtaken(&mut self) -> Option<Seq> {
        while let Some((order, seq)) = self.queue.front().copied() {
            let judged = self.latest.get(seq) != Some(&order);
            if !judged && order > self.arrived {
                return None;
            }
            self.queue.pop_front();
            if !judged {
                return Some(seq);
            }
        }
        None
    }

    pub(crate) fn clear(&mut self) {
        self.latest.clear();
        self.queue.clear();
        (self.sent, self.arrived) = (0, 0);
    }
}
