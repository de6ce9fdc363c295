//! Default: the raw link (section 7.1 of docs/spec/multi-service.md).
//!
//! Sends each packet at once and repairs nothing. Live frames are nevertheless numbered, so that the receiver
//! can count losses; the study profile has no room for a number.
//!
//! ```text
//! frames   DATA (packet)
//!          study   | service:4 type:4 |    live   see `wire`, bare
//! ```

use airlane_base::{Duration, Instant, Payload, Seq, SeqSpace};

use super::scheme::{Frames, Scheme};
use crate::context::{Context, Origin, PortFacts};
use crate::wire::{Body, Frame, FrameKind, Header, Layout};

const FRAMES: Frames = Frames::new(&Layout::BARE, &[FrameKind::Data]);

/// The raw service.
#[derive(Clone, Debug)]
pub(crate) struct DefaultService {
    space: SeqSpace,
    numbered: bool,
    next: Seq,
    /// The number after the highest received; none before the first frame.
    expected: Option<Seq>,
    on_its_way: Duration,
}

impl DefaultService {
    pub(crate) fn new(facts: &PortFacts) -> Self {
        Self {
            space: facts.space(FRAMES.layout),
            numbered: facts.is_live(),
            next: 0,
            expected: None,
            on_its_way: facts.on_its_way(FRAMES.layout),
        }
    }

    /// Counts the numbers that a frame has skipped, where frames are numbered. Without memory, a late frame
    /// cannot be distinguished from a duplicate, so reordering on the path counts as loss here.
    #[inline]
    pub(crate) fn note(&mut self, cx: &mut Context<'_, impl Payload>, seq: Seq) {
        if !self.numbered {
            return;
        }
        let missed = self
            .expected
            .map_or(0, |expected| self.space.distance(seq, expected));
        if missed < self.space.half() {
            cx.ledger.lose(u64::from(missed), false);
            self.expected = Some(self.space.next(seq));
        }
    }

    /// The frame of this packet.
    pub(crate) fn frame<P: Payload>(&mut self, kind: FrameKind, packet: P) -> Frame<P> {
        let seq = if self.numbered { self.next } else { 0 };
        self.next = self.space.next(self.next);
        Frame::with_packet(kind, seq, packet)
    }
}

impl<P: Payload> Scheme<P> for DefaultService {
    fn frames(&self) -> Frames {
        FRAMES
    }

    fn handle_frame(&mut self, cx: &mut Context<'_, P>, frame: Frame<P>) {
        let seq = frame.header.seq;
        if let Body::Packet(packet) = frame.body {
            self.note(cx, seq);
            cx.deliver(packet, cx.now, false);
        }
    }

    fn handle_timeout(&mut self, _cx: &mut Context<'_, P>) {}

    fn send(&mut self, _cx: &mut Context<'_, P>, packet: P, _from: Origin) -> Frame<P> {
        self.frame(FrameKind::Data, packet)
    }

    fn has_frames(&self) -> bool {
        false
    }

    fn start_timers(&mut self, _header: &Header, _left: Instant) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn set_timer_factor(&mut self, _factor: f64) {}

    fn retime(&mut self, fresh: Self) {
        self.on_its_way = fresh.on_its_way;
    }

    fn reset(&mut self, _cx: &mut Context<'_, P>) {
        (self.next, self.expected) = (0, None);
    }

    fn is_idle(&self) -> bool {
        true
    }

    fn linger(&self) -> Duration {
        self.on_its_way
    }
}
