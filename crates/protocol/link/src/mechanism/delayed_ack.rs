//! Delayed acknowledgments: they are piggybacked on any frame, or sent alone when none leaves in time
//! (Xylomenos 1999, section 4.3).

use airlane_base::{Duration, Instant, Payload, Seq};

use crate::context::Noted;
use crate::wire::{Echo, Frame, FrameKind, Header};

/// The acknowledgment that this end owes.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct DelayedAck {
    /// When it must be sent alone.
    timer: Option<Instant>,
    due: bool,
    /// The newest original frame and its arrival, for the peer's round trip measurement.
    newest: Option<(Seq, Noted)>,
}

impl DelayedAck {
    /// A frame has arrived that requires an acknowledgment.
    pub(crate) fn owe(&mut self, now: Instant, at_most: Duration) {
        if self.timer.is_none() && !self.due {
            self.timer = Some(now + at_most);
        }
    }

    /// An original frame has arrived, from which the peer will measure the round trip.
    pub(crate) fn note_original(&mut self, seq: Seq, now: Instant) {
        self.newest = Some((seq, Noted(now)));
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.timer.is_some_and(|due| due <= now) {
            self.timer = None;
            self.due = true;
        }
    }

    /// Whether it must be sent alone now.
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// The frame for an acknowledgment that must be sent alone now. `next` is the number of the next new
    /// packet, which has no meaning here.
    pub(crate) fn alone<P: Payload>(&self, next: Seq) -> Option<Frame<P>> {
        self.due.then(|| Frame::control(FrameKind::Ack, next))
    }

    /// Whether no acknowledgment is owed.
    pub(crate) fn is_idle(&self) -> bool {
        self.timer.is_none() && !self.due
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.timer
    }

    /// Puts the acknowledgment into a header.
    pub(crate) fn ride(&mut self, header: &mut Header, expected: Seq, now: Instant) {
        header.ack = expected;
        header.echo = self
            .newest
            .take()
            .and_then(|(seq, came)| Echo::new(seq as u16, now.saturating_since(came.0)));
        self.settle();
    }

    /// The acknowledgment has been sent.
    pub(crate) fn settle(&mut self) {
        self.timer = None;
        self.due = false;
    }
}
