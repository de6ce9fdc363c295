//! A frame on its way out of a port: handed over, given out with a token, done.

use airlane_base::Instant;

use crate::wire::{Frame, Header};

/// A frame, and when its packet came, where it is the first with it.
#[derive(Clone, Debug)]
pub(super) struct Handed<P> {
    pub(super) frame: Frame<P>,
    pub(super) came: Option<Instant>,
}

/// Stands for a frame that a port has given out, until the medium says what became of it.
///
/// It goes back to the same port, by [`Port::frame_done`](super::Port::frame_done), when the frame has left or never will.
#[derive(Debug)]
#[must_use = "timers and pacing start when the port is told that the frame is done"]
pub struct Token {
    pub(super) header: Header,
    /// Bytes with all that is below the frame.
    pub(super) len: usize,
    pub(super) came: Option<Instant>,
    /// Which epoch of its service it is of.
    pub(super) epoch: u32,
}

/// What became of a frame that a medium was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is on its way since then: its first bit left at that time.
    Sent(Instant),
    /// The medium has given it up, and does not know that the peer has it: services that can send it again at once.
    Failed,
}
