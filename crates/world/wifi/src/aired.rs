//! Frames on the air, kept for captures and tests.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant};

use crate::profile::Modulation;

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AiredKind {
    /// A data frame.
    Data,
    /// A MAC acknowledgment.
    Ack,
    /// A request to send.
    Rts,
    /// A clear to send, which answers an RTS.
    Cts,
}

/// A frame that was on the air.
#[derive(Clone, Debug, PartialEq)]
pub struct Aired<P> {
    /// Its type.
    pub kind: AiredKind,
    /// The station that sent it.
    pub from: usize,
    /// The station that it was addressed to.
    pub to: usize,
    /// When its transmission began.
    pub began: Instant,
    /// The NAV that it set: how long others must stay silent after it.
    pub nav: Duration,
    /// How it was sent.
    pub modulation: Modulation,
    /// The sequence number of a data frame.
    pub seq: u64,
    /// Whether it is a retransmission.
    pub again: bool,
    /// Its power at the receiver, watts.
    pub power_w: f64,
    /// Whether it was received.
    pub came: bool,
    /// Its packet.
    pub packet: Option<P>,
}

/// The log of frames on the air.
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
