//! The trait that every scheme implements to be a service.

use airlane_base::{Duration, Instant, Payload, Seq};

use crate::context::{Context, Origin};
#[cfg(test)]
use crate::flow::Lane;
use crate::wire::{Frame, FrameKind, Header, Kinds, Layout};

/// For this many timeouts a removed service continues to answer, so that the peer can finish too.
pub(super) const LINGER_TIMEOUTS: u64 = 8;

/// The frames of a scheme: header layout and kinds. Its port drops frames of all other kinds, and frames
/// whose packet is missing or unexpected for their kind.
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

    /// Whether this frame is valid for the scheme.
    #[inline]
    pub(crate) fn admit<P>(self, frame: &Frame<P>) -> bool {
        let kind = frame.header.kind;
        self.kinds.has(kind) && kind.carries_packet() == frame.packet().is_some()
    }
}

/// The interface of a scheme. The module documentation of `service` states the rules.
pub(crate) trait Scheme<P: Payload> {
    /// The layout and kinds of its frames; constant.
    fn frames(&self) -> Frames;
    /// Takes a frame of this service from the peer.
    fn handle_frame(&mut self, cx: &mut Context<'_, P>, frame: Frame<P>);
    /// Processes timers that have expired by now; an early call does nothing.
    fn handle_timeout(&mut self, cx: &mut Context<'_, P>);
    /// The next frame that precedes new packets: requests, repairs, redundancy.
    fn poll_frame(&mut self, _cx: &mut Context<'_, P>) -> Option<Frame<P>> {
        None
    }
    /// Whether a new packet may be sent.
    fn has_room(&self) -> bool {
        true
    }
    /// The frame of a new packet; there is room for it, and no frame that precedes it.
    fn send(&mut self, cx: &mut Context<'_, P>, packet: P, from: Origin) -> Frame<P>;
    /// The next frame to send when there is no new packet: copies, keepalives, an acknowledgment alone.
    fn poll_spare(&mut self, _cx: &mut Context<'_, P>) -> Option<Frame<P>> {
        None
    }
    /// The next frame of any kind, including one for the packet that `waits`, in the order in which a port
    /// asks.
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
    /// Whether [`Scheme::poll_frame`] or [`Scheme::poll_spare`] may return a frame. A false positive is
    /// allowed; a scheme that usually has nothing spares the port these calls after every input.
    fn has_frames(&self) -> bool {
        true
    }
    /// A frame has been handed over (`left` = now) or its last bit leaves at `left`, depending on the timer
    /// origin of this service.
    fn start_timers(&mut self, header: &Header, left: Instant);
    /// The medium has given up a frame and reports it: timers and requests would detect the loss only later.
    /// Follows [`Scheme::start_timers`].
    fn handle_failure(&mut self, _header: &Header) {}
    /// When `handle_timeout` is due.
    fn poll_timeout(&self) -> Option<Instant>;
    /// The number that all frames with the same packet share.
    fn packet_number(&self, header: &Header) -> Seq {
        header.seq
    }
    /// Stretches fixed timers for sharing.
    fn set_timer_factor(&mut self, factor: f64);
    /// The link has another rate: takes over the port's facts from `fresh`, which was constructed for that
    /// rate.
    fn retime(&mut self, fresh: Self)
    where
        Self: Sized;
    /// Forgets all numbers and frames: a new epoch. Packets held out of order are delivered; unacknowledged
    /// ones are lost.
    fn reset(&mut self, cx: &mut Context<'_, P>);
    /// Whether nothing is outstanding, missing or waiting to be sent.
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
