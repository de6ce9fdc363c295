//! Frames on the air, for those who watch: captures, tests.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant};

use crate::profile::Modulation;

/// Which frame it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AiredKind {
    /// A packet.
    Data,
    /// A MAC acknowledgment.
    Ack,
    /// An announcement.
    Rts,
    /// The answer to one.
    Cts,
}

/// A frame that was on the air, for those who watch.
#[derive(Clone, Debug, PartialEq)]
pub struct Aired<P> {
    /// Which frame it was.
    pub kind: AiredKind,
    /// The station that sent it.
    pub from: usize,
    /// The station that it was for.
    pub to: usize,
    /// When its first bit left.
    pub began: Instant,
    /// How long it asked others to be silent behind it.
    pub nav: Duration,
    /// How it was sent.
    pub modulation: Modulation,
    /// The number of data.
    pub seq: u64,
    /// Whether this number had been sent before.
    pub again: bool,
    /// Its power where it was to arrive, watts.
    pub power_w: f64,
    /// Whether it came.
    pub came: bool,
    /// What it carried.
    pub packet: Option<P>,
}

/// What is kept for those who watch.
#[derive(Clone, Debug)]
pub(crate) struct Watched<P> {
    /// Frames in the order in which they began, with their numbers, and whether they have ended.
    frames: VecDeque<(u64, bool, Aired<P>)>,
}

impl<P> Default for Watched<P> {
    fn default() -> Self {
        Self {
            frames: VecDeque::new(),
        }
    }
}

impl<P> Watched<P> {
    pub(crate) fn begin(&mut self, number: u64, frame: Aired<P>) {
        self.frames.push_back((number, false, frame));
    }

    pub(crate) fn end(&mut self, number: u64, came: bool) {
        let ending = self.frames.iter_mut().filter(|(n, ..)| *n == number);
        for (_, ended, aired) in ending {
            (*ended, aired.came) = (true, came);
        }
    }

    pub(crate) fn poll(&mut self) -> Option<Aired<P>> {
        let first = self.frames.pop_front_if(|(_, ended, _)| *ended);
        first.map(|(.., frame)| frame)
    }
}
