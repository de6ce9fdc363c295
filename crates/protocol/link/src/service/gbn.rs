//! Go-Back-N (section 7.2 of docs/spec/multi-service.md, after Xylomenos 1999, section 4.3).
//!
//! Full duplex, reliable, in order, with minimal state. The receiver accepts frames strictly in order and
//! discards all others; acknowledgments are cumulative and piggybacked on data frames, or sent alone when the
//! delayed-acknowledgment timer expires first, also after a discarded frame. There are no NAKs. One timer
//! runs for the oldest outstanding frame; when it expires, all outstanding frames are retransmitted in order,
//! and it restarts when the last of them has left.
//!
//! ```text
//! sender     base .. next    outstanding, at most `window`
//! receiver   expected        the one number that it takes
//! frames     DATA, RETRANSMISSION (seq, ack, packet)   ACK (ack)
//!            study   | service:4 type:4 | seq:8 | ack:8 |    live   see `wire`
//! ```
//!
//! Invariants: each accepted packet is delivered once and in order, whatever is lost; the receiver stores
//! nothing; `window < modulus`. A frame may arrive late by at most `modulus - 2 window` numbers without being
//! mistaken for a new one; a window above half the number space does not tolerate reordering. Left out: RESET
//! frames (numbers never get out of step here).

use airlane_base::{Duration, Instant, Payload, Seq, SeqSpace};

use super::scheme::{Frames, LINGER_TIMEOUTS, Scheme};
use crate::config::WindowConfig;
use crate::context::{Context, Origin, PortFacts, earliest};
use crate::mechanism::delayed_ack::DelayedAck;
use crate::mechanism::oldest::OldestTimer;
use crate::mechanism::send_window::SendWindow;
use crate::mechanism::timers::{LinkTiming, TimerPolicy};
use crate::wire::{Frame, FrameKind, Header, Layout};

const FRAMES: Frames = Frames::new(
    &Layout::SEQ_ACK,
    &[FrameKind::Data, FrameKind::Retransmission, FrameKind::Ack],
);

/// Go-Back-N.
#[derive(Clone, Debug, Hash)]
pub(crate) struct GoBackN<P> {
    space: SeqSpace,
    window: u32,
    policy: TimerPolicy,
    measures: bool,

    pub(super) sent: SendWindow<P>,
    timer: OldestTimer,

    expected: Seq,
    ack: DelayedAck,
}

impl<P: Payload> GoBackN<P> {
    /// `config` must be resolved.
    pub(crate) fn new(config: &WindowConfig, facts: &PortFacts) -> Self {
        let space = facts.space(FRAMES.layout);
        // With all numbers but one, a full window still differs from an empty one. A window above half of the
        // numbers suits only a link without reordering.
        let most = u32::try_from(space.modulus() - 1).unwrap_or(u32::MAX);
        let window = config.window.unwrap_or(127).min(most);
        let timing = &LinkTiming::new(facts, FRAMES.layout);
        Self {
            space,
            window,
            policy: TimerPolicy::new(config.timers.as_ref(), timing),
            measures: facts.is_live(),
            sent: SendWindow::new(window, space),
            timer: OldestTimer::new(),
            expected: 0,
            ack: DelayedAck::default(),
        }
    }

    fn acknowledging(&mut self, now: Instant, mut frame: Frame<P>) -> Frame<P> {
        self.ack.ride(&mut frame.header, self.expected, now);
        frame
    }

    fn receive(&mut self, cx: &mut Context<'_, P>, header: Header, packet: P) {
        let seq = header.seq;
        let original = header.kind == FrameKind::Data;
        if original && self.measures {
            self.ack.note_original(seq, cx.now);
        }
        self.ack.owe(cx.now, self.policy.ack());
        if seq == self.expected {
            cx.deliver(packet, cx.now, !original);
            self.expected = self.space.next(seq);
        } else if self.space.distance(seq, self.expected) < self.window {
            cx.ledger.out_of_window += 1;
        } else {
            cx.ledger.repeat(original, packet.len());
        }
    }
}

impl<P: Payload> Scheme<P> for GoBackN<P> {
    fn frames(&self) -> Frames {
        FRAMES
    }

    fn handle_frame(&mut self, cx: &mut Context<'_, P>, frame: Frame<P>) {
        let header = frame.header;
        if let Some(round_trip) = self.sent.round_trip(&header, cx.now) {
            self.policy.sample(round_trip);
        }
        if self.sent.acknowledge(header.ack) {
            self.policy.on_progress();
            self.timer.restart(&self.sent, cx.now);
        }
        match (header.kind, frame.into_packet()) {
            (FrameKind::Data | FrameKind::Retransmission, Some(packet)) => {
                self.receive(cx, header, packet);
            }
            (FrameKind::Ack, None) => {}
            _ => cx.ledger.malformed += 1,
        }
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_, P>) {
        self.ack.handle_timeout(cx.now);
        if self.timer.expire(cx.now, self.policy.rto_now()) {
            cx.ledger.timeouts += 1;
            self.policy.on_timeout(cx.now, cx.now);
            self.sent.repeat_all();
        }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_, P>) -> Option<Frame<P>> {
        let frame = self.sent.next_repair();
        // Repairs may have turned out to be unnecessary.
        self.timer.follow(&self.sent, cx.now);
        Some(self.acknowledging(cx.now, frame?))
    }

    fn has_room(&self) -> bool {
        self.sent.has_room()
    }

    fn send(&mut self, cx: &mut Context<'_, P>, packet: P, _from: Origin) -> Frame<P> {
        let frame = self.sent.send(packet);
        self.timer.follow(&self.sent, cx.now);
        self.acknowledging(cx.now, frame)
    }

    /// An acknowledgment is sent alone only if it must be.
    fn poll_spare(&mut self, cx: &mut Context<'_, P>) -> Option<Frame<P>> {
        let frame = self.ack.alone(self.sent.next())?;
        Some(self.acknowledging(cx.now, frame))
    }

    fn start_timers(&mut self, header: &Header, left: Instant) {
        if header.kind.carries_packet() {
            self.sent.started(header, left);
            self.timer.left(&self.sent, left);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let resend = self.timer.deadline(self.policy.rto_now());
        earliest(self.ack.deadline(), resend)
    }

    fn set_timer_factor(&mut self, factor: f64) {
        self.policy.set_factor(factor);
    }

    fn retime(&mut self, fresh: Self) {
        self.policy.retime(&fresh.policy);
    }

    fn reset(&mut self, cx: &mut Context<'_, P>) {
        self.expected = 0;
        self.ack = DelayedAck::default();
        self.timer = OldestTimer::new();
        self.policy.on_progress();
        self.sent.reset(&mut cx.out.lost);
    }

    fn is_idle(&self) -> bool {
        self.sent.is_empty() && self.ack.is_idle()
    }

    fn linger(&self) -> Duration {
        self.policy.rto() * LINGER_TIMEOUTS
    }

    fn srtt(&self) -> Option<Duration> {
        self.policy.srtt()
    }
}
