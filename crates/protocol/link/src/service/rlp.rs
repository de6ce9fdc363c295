//! RLP and RLP/OOS: limited recovery (sections 7.6 and 7.7 of docs/spec/multi-service.md, after Xylomenos
//! 1999, sections 4.3 and 5.3; the idea is that of the IS-95 radio link protocol).
//!
//! There are no acknowledgments, no sender window, and no sender timers except for keepalives. The receiver
//! requests a missing frame at most N times, then gives up and exposes the hole. RLP delivers in order;
//! RLP/OOS delivers as received, so that a loss delays no other packet and frames released together do not
//! queue at the next link.
//!
//! ```text
//! sender     next - window .. next   kept for retransmission
//! receiver   base .. high            missing (RLP: or held out of order); everything else is done
//! frames     DATA, RETRANSMISSION (seq, packet)   NAK (seq)   KEEPALIVE (highest seq sent)
//!            COPY (seq, packet), live with `copies` (see `mechanism::copies`): 12 bytes, as all others
//!            study   | service:4 type:4 | seq:8 |    live   see `wire`, seq
//! ```
//!
//! Invariants: a packet is delivered at most once; it is never held longer than N times T_nak after its
//! arrival, plus the time that its NAKs wait to leave and, live, the wait for reordered frames; d(high, base)
//! <= window, kept by giving up the oldest hole early (the overflow guard).
//!
//! With a budget, a packet of that age is not repaired (see docs/lab/thin-flows.md). The receiver does not
//! know a packet's age, only when it detected the loss, which is one link delay later: it gives up when an
//! answer would come too late. The sender knows when the packet arrived, and leaves requests unanswered when
//! its budget is spent. Either assumes half of the measured round trip as the delay, once it is known. Copies
//! are spaced by the fades that requests show, and by what the budget leaves.
//!
//! With `residual` the receiver makes as many requests as keep the share of frames lost for good below that
//! target, given the loss and the success of requests that it measures (`persistence`): more while the radio
//! is bad, and no more than needed while it is good.
//!
//! The receiver measures the response time for its own timers. Live, it waits a moment before it requests a
//! frame that may only be reordered (see `mechanism::overtaken`).
//!
//! Loss of synchronisation: in the study profile an original frame from before `high` can only mean that half
//! the sequence space was lost, and the receiver alone resynchronises (section 7.6). In the live profile such
//! a frame is late or a duplicate: it fills its hole or is dropped, and only a new epoch resets the service.
//! Left out: RESET frames; delivery of repairs that arrive after giving up (XYL-S-11: discarded).

mod persistence;
mod receiver;
mod sender;

use airlane_base::{Duration, Instant, Payload, SeqSpace};

use super::scheme::{Frames, Scheme};
use crate::config::{Keepalives, RlpConfig, USUAL_RETRIES};
use crate::context::{Ages, Context, Origin, PortFacts, earliest};
use crate::mechanism::copies::Copies;
use crate::mechanism::fades::Fades;
use crate::mechanism::keepalive::Keepalive;
use crate::mechanism::timers::{LinkTiming, TimerPolicy};
use crate::wire::{Body, Frame, FrameKind, Header, Layout};
use persistence::{Asks, Persistence};
pub(crate) use receiver::Order;
use receiver::{RlpReceiver, Terms};
use sender::RlpSender;

const FRAMES: Frames = Frames::new(
    &Layout::SEQ,
    &[
        FrameKind::Data,
        FrameKind::Copy,
        FrameKind::Retransmission,
        FrameKind::Nak,
        FrameKind::Keepalive,
    ],
);
/// Longer than a measured timer of any peer.
const PATIENCE: Duration = Duration::from_secs(15);

/// RLP or RLP/OOS.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct Rlp<P> {
    live: bool,
    space: SeqSpace,
    budget: Option<Duration>,
    keepalive: Keepalive,
    copies: Option<Copies>,
    /// Estimates fades, for the spacing of copies.
    fades: Fades,
    sender: RlpSender<P>,
    receiver: RlpReceiver<P>,
}

impl<P: Payload> Rlp<P> {
    /// `config` must be resolved.
    pub(crate) fn new(config: &RlpConfig, ages: Ages, order: Order, facts: &PortFacts) -> Self {
        let space = facts.space(FRAMES.layout);
        let window = config.window.unwrap_or(127).min(space.half() - 1).max(1);
        let asks = match config.residual {
            Some(residual) => Asks::UntilLeft(Persistence::new(residual)),
            None => Asks::Always(config.retries.unwrap_or(USUAL_RETRIES)),
        };
        let timing = LinkTiming::new(facts, FRAMES.layout);
        let policy = TimerPolicy::new(config.timers.as_ref(), &timing);
        let terms = Terms {
            space,
            order,
            live: facts.is_live(),
            window,
            asks,
            budget: ages.enduring,
            delay: facts.delay,
        };
        Self {
            live: facts.is_live(),
            space,
            budget: ages.enduring,
            fades: Fades::default(),
            keepalive: Keepalive::new(config.keepalives.and_then(Keepalives::limit)),
            copies: config
                .copies
                .as_ref()
                .map(|copies| Copies::new(copies, facts, FRAMES.layout)),
            sender: RlpSender::new(window, ages, space).newest_first(facts.is_live()),
            receiver: RlpReceiver::new(policy, terms),
        }
    }

    /// When the peer can no longer request the last frames: only on a live link, where keepalives end and
    /// packets occupy memory.
    fn forgets_at(&self) -> Option<Instant> {
        if !self.live || !self.keepalive.is_over() {
            return None;
        }
        self.sender
            .forgets_at(PATIENCE.max(Scheme::<P>::linger(self)))
    }

    /// The earlier of `due` and the deadlines that only a live link has.
    // Not inlined, since it would slow down every call of the caller.
    #[inline(never)]
    fn live_by(&self, due: Option<Instant>) -> Option<Instant> {
        earliest(earliest(due, self.receiver.asks_at()), self.forgets_at())
    }
}

impl<P: Payload> Scheme<P> for Rlp<P> {
    fn frames(&self) -> Frames {
        FRAMES
    }

    fn handle_frame(&mut self, cx: &mut Context<'_, P>, frame: Frame<P>) {
        let Header { seq, kind, .. } = frame.header;
        let receiver = &mut self.receiver;
        match (kind, frame.body) {
            (FrameKind::Data, Body::Packet(packet)) => receiver.on_data(cx, seq, packet),
            (FrameKind::Retransmission, Body::Packet(packet)) => {
                receiver.on_retransmission(cx, seq, packet);
            }
            (FrameKind::Copy, Body::Packet(packet)) => receiver.on_copy(cx, seq, packet),
            (FrameKind::Nak, Body::Empty) => {
                let first = self.sender.on_nak(cx, seq, receiver.delay());
                if let Some((left, copies)) = first.zip(self.copies.as_mut()) {
                    copies.on_lost();
                    self.fades.on_lost(self.space, seq, left);
                    if let Some(budget) = self.budget {
                        let (delay, asked) = (receiver.delay(), receiver.answered());
                        copies.space(self.fades.mean(), asked, budget.saturating_sub(delay));
                    }
                }
            }
            (FrameKind::Keepalive, Body::Empty) => receiver.on_keepalive(cx, seq),
            _ => cx.ledger.malformed += 1,
        }
        receiver.prune();
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_, P>) {
        self.receiver.handle_timeout(cx);
        let runs = self.receiver.policy.keepalive();
        self.keepalive.handle_timeout(cx.now, runs);
        if let Some(copies) = &mut self.copies {
            copies.handle_timeout(cx.now);
        }
        if self.forgets_at().is_some_and(|at| at <= cx.now) {
            self.sender.forget();
        }
    }

    /// Requests first, then answers.
    fn poll_frame(&mut self, cx: &mut Context<'_, P>) -> Option<Frame<P>> {
        if let Some(nak) = self.receiver.next_nak(cx.now) {
            return Some(nak);
        }
        let repair = (self.sender).next_repair(cx.now, self.receiver.delay())?;
        self.keepalive.on_repair();
        Some(repair)
    }

    fn send(&mut self, _cx: &mut Context<'_, P>, packet: P, from: Origin) -> Frame<P> {
        self.keepalive.on_new();
        self.sender.send(packet, from)
    }

    /// Copies, or a keepalive.
    fn poll_spare(&mut self, cx: &mut Context<'_, P>) -> Option<Frame<P>> {
        if let Some(copies) = &mut self.copies {
            let (sender, delay) = (&self.sender, self.receiver.delay());
            if let Some(copy) = copies.next(cx.now, |seq| {
                let packet = sender.kept(cx.now, seq, delay)?;
                Some(Frame::with_packet(FrameKind::Copy, seq, packet))
            }) {
                self.keepalive.on_repair();
                return Some(copy);
            }
        }
        let keepalive = self.keepalive.take();
        keepalive.then(|| Frame::control(FrameKind::Keepalive, self.sender.highest()))
    }

    fn has_frames(&self) -> bool {
        let own = self.receiver.has_naks() || !self.sender.is_idle();
        own || self.keepalive.is_due() || self.copies.is_some()
    }

    fn start_timers(&mut self, header: &Header, left: Instant) {
        if let Some(copies) = &mut self.copies
            && header.kind == FrameKind::Data
        {
            copies.on_left(header.seq, left);
        }
        match header.kind {
            FrameKind::Nak => self.receiver.on_nak_left(header.seq, left),
            kind if kind.carries_packet() || kind == FrameKind::Keepalive => {
                self.keepalive.on_left(left);
                self.sender.on_left(header, left);
            }
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let keepalive = self.keepalive.deadline(self.receiver.policy.keepalive());
        let mut due = earliest(self.receiver.poll_timeout(), keepalive);
        if let Some(copies) = &self.copies {
            due = earliest(due, copies.deadline());
        }
        match self.live {
            false => due,
            true => self.live_by(due),
        }
    }

    fn set_timer_factor(&mut self, factor: f64) {
        self.receiver.policy.set_factor(factor);
    }

    fn retime(&mut self, fresh: Self) {
        self.receiver.policy.retime(&fresh.receiver.policy);
        if let Some((copies, fresh)) = self.copies.as_mut().zip(fresh.copies) {
            copies.retime(&fresh);
        }
    }

    fn reset(&mut self, cx: &mut Context<'_, P>) {
        // Nothing is owed to the peer: every frame has been sent once.
        self.receiver.reset(cx);
        self.sender.reset();
        self.keepalive.reset();
        if let Some(copies) = &mut self.copies {
            copies.reset();
        }
    }

    fn is_idle(&self) -> bool {
        self.sender.is_idle() && self.receiver.is_idle()
    }

    /// A keepalive reveals a tail loss, which is requested until the peer gives it up.
    fn linger(&self) -> Duration {
        self.receiver.policy.keepalive() + self.receiver.patience()
    }

    fn srtt(&self) -> Option<Duration> {
        self.receiver.policy.srtt()
    }
}
