//! The stages of a departing frame: handed over, given out with a token, done.

use airlane_base::Instant;

use crate::wire::{Frame, Header};

/// A frame, and the arrival time of its packet, if the frame is the first that carries it.
#[derive(Clone, Debug)]
pub(crate) struct DepartingFrame<P> {
    pub(crate) frame: Frame<P>,
    pub(crate) came: Option<Instant>,
}

/// Identifies a frame that a port has given out, until the medium reports its outcome.
///
/// It goes back to the same port, by [`Port::frame_done`](crate::Port::frame_done), when the frame has left
/// or never will.
#[derive(Debug)]
#[must_use = "timers and pacing start when the port is told that the frame is done"]
pub struct Token {
    pub(crate) header: Header,
    /// Bytes with all overhead below the frame.
    pub(crate) len: usize,
    pub(crate) came: Option<Instant>,
    /// The epoch of its service at that time.
    pub(crate) epoch: u32,
}

/// The outcome of a frame that was given to a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is on its way: its first bit left at that time.
    Sent(Instant),
    /// The medium has given it up, and does not know whether the peer has it: services that retransmit do so
    /// at once.
    Failed,
}
