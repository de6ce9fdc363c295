//! What a scheme must do to be a service: the one trait that all of them have.

use airlane_base::{Duration, Instant, Payload, Seq};

use crate::context::{Context, Origin};
#[cfg(test)]
use crate::flow::Lane;
use crate::wire::{Frame, FrameKind, Header, Kinds, Layout};

/// A removed service answers for this many timeouts more, so that the peer can finish too.
pub(super) const LINGER_TIMEOUTS: u64 = 8;

/// What the frames of a scheme are: the fields of their headers, and the kinds that there are. Its port drops all
/// others, and those that have no packet though their kind carries one, or have one though it does not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frames {
    pub(crate) layout: &'static Layout,
    pub(crate) kinds: Kinds,
}

impl Frames {
    pub(crate) const fn new(layout: &'static Layout, kinds: &[FrameKind]) -> Self {
        let kinds = Kinds::of(kinds);
        Self { layout, kinds }
    }

    /// Whether this may be one of them.
    #[inline]
    pub(crate) fn admit<P>(self, frame: &Frame<P>) -> bool {
        let kind = frame.header.kind;
        self.kinds.has(kind) && kind.carries_packet() == frame.packet().is_some()
    }
}

/// What a scheme must do. See the module's description for the rules.
pub(crate) trait Scheme<P: Payload> {
    /// What its frames are; always the same.
    fn frames(&self) -> Frames;
    /// Takes a frame of this service from the peer.
    fn handle_frame(&mut self, cx: &mut Context<'_, P>, frame: Frame<P>);
    /// Acts on timers that have run out by now; an early call does nothing.
    fn handle_timeout(&mut self, cx: &mut Context<'_, P>);
    /// The next frame that goes before anything new: requests, repairs, redundancy.
    fn poll_frame(&mut self, _cx: &mut Context<'_, P>) -> Option<Frame<P>> {
        None
    }
    /// Whether a new packet may be sent.
    fn has_room(&self) -> bool {
        true
    }
    /// The frame of a new packet, for which there is room and which nothing goes before.
    fn send(&mut self, cx: &mut Context<'_, P>, packet: P, from: Origin) -> Frame<P>;
    /// The next frame that goes where nothing new does: copies, keepalives, an acknowledgment alone.
    fn poll_spare(&mut self, _cx: &mut Context<'_, P>) -> Option<Frame<P>> {
        None
    }
    /// The next frame of all, of a packet if it `waits`: the order in which a port asks.
    #[cfg(test)]
    fn poll_any(
        &mut self,
        cx: &mut Context<'_, P>,
        waits: &mut Option<P>,
        lane: Lane,
    ) -> Option<Frame<P>> {
        if let Some(frame) = self.poll_frame(cx) {
            return Some(frame);
        }
        if self.has_room()
            && let Some(packet) = waits.take()
        {
            let from = Origin {
                came: Some(cx.now),
                lane,
                endures: true,
            };
            return Some(self.send(cx, packet, from));
        }
        self.poll_spare(cx)
    }
    /// Whether [`Scheme::poll_frame`] or [`Scheme::poll_spare`] may give a frame. May be wrong by saying yes;
    /// a scheme that is asked after every input and mostly has nothing spares the port the question.
    fn has_frames(&self) -> bool {
        true
    }
    /// A frame has been handed over (`left` = now) or its last bit leaves at `left`, whichever
    /// event the timer origin of this service names.
    fn start_timers(&mut self, header: &Header, left: Instant);
    /// The medium has given up a frame that it was to send, and says so: what timers and requests would
    /// find out later. Follows [`Scheme::start_timers`].
    fn handle_failure(&mut self, _header: &Header) {}
    /// When `handle_timeout` has something to do.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Which packet a frame has: the same for all frames that carry it.
    fn packet_number(&self, header: &Header) -> Seq {
        header.seq
    }
    /// Inflates fixed timers for sharing.
    fn set_timer_factor(&mut self, factor: f64);
    /// The link has another rate: takes over what `fresh`, made for it, was told by the port.
    fn retime(&mut self, fresh: Self)
    where
        Self: Sized;
    /// Forgets all numbers and frames: a new epoch. What is held behind a hole goes up; what was
    /// unacknowledged is lost.
    fn reset(&mut self, cx: &mut Context<'_, P>);
    /// Nothing outstanding, nothing missing, nothing to send.
    fn is_idle(&self) -> bool;
    /// How long the peer may still need answers after this end has become idle.
    fn linger(&self) -> Duration {
        Duration::ZERO
    }
    /// Smoothed round trip, where this scheme measures it.
    fn srtt(&self) -> Option<Duration> {
        None
    }
}
