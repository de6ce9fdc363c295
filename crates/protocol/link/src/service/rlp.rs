//! RLP and RLP/OOS: limited recovery (sections 7.6 and 7.7 of docs/spec/multi-service.md, after Xylomenos
//! 1999, sections 4.3 and 5.3; the idea is that of the IS-95 radio link protocol).
//!
//! No acknowledgments, no sender window, no sender timers but a keepalive. The receiver asks for
//! what is missing, at most N times, then gives up and lets the hole show. RLP delivers in order;
//! RLP/OOS delivers as received, so that a loss delays nobody else and frames freed together do not
//! queue at the next link.
//!
//! ```text
//! sender     next - window .. next   kept for retransmission
//! receiver   base .. high            missing (RLP: or held behind a hole), the rest is done with
//! frames     DATA, RETRANSMISSION (seq, packet)   NAK (seq)   KEEPALIVE (highest seq sent)
//!            COPY (seq, packet), live with `copies` (see `mechanism::copies`): 12 bytes, as all others
//!            study   | service:4 type:4 | seq:8 |    live   see `wire`, seq
//! ```
//!
//! Invariants: at most one delivery of a packet; a packet is never held longer than N times T_nak
//! after its arrival, plus the time that its NAKs wait to leave and, live, for what may only be overtaken; d(high, base) <= window, kept by
//! giving up the oldest hole early (the overflow guard).
//!
//! With a budget, a packet of that age is not repaired (see docs/lab/thin-flows.md). The receiver does not
//! know a packet's age, but how long ago it has missed it, which is a delay of the link later: it gives
//! up when an answer would come too late. The sender knows when the packet came, and leaves requests
//! unanswered when its budget is spent. Either takes half of the measured round trip for the delay, once it
//! is known. Copies are spaced by the fades that requests show, and by what the budget leaves.
//!
//! With `residual` the receiver asks as often as it takes for no more than that share of frames to be lost for good, by
//! what it misses and what its requests bring (`persistence`): more often while a radio is bad, and no longer than that
//! while it is good.
//!
//! The receiver times its answers, for its own timers. Live, it waits a moment before it asks where frames overtake each
//! other (see `mechanism::overtaken`).
//!
//! Loss of step. In the study profile an original frame from behind `high` can only mean that half
//! the sequence space was lost, and the receiver alone resynchronises (section 7.6). In the live
//! profile such a frame is late or a duplicate: it fills its hole or is dropped, and nothing but a
//! new epoch resets the service.
//! Left out: RESET frames; delivery of repairs that come after giving up (XYL-S-11: discarded).

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
    /// What was lost together, as far as copies go by that.
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
            sender: RlpSender::new(window, ages, space),
            receiver: RlpReceiver::new(policy, terms),
        }
    }

    /// When the peer cannot ask any more for what was sent last: live, where keepalives end and packets
    /// are memory.
    fn forgets_at(&self) -> Option<Instant> {
        if !self.live || !self.keepalive.is_over() {
            return None;
        }
        self.sender
            .forgets_at(PATIENCE.max(Scheme::<P>::linger(self)))
    }

    /// When it has something to do that it has live alone, or `due` if that is earlier.
    // Apart and last, since a call on the way would cost every call.
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
        let repair = self.sender.next_repair()?;
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
        // Nothing is owed to the peer: what was sent was sent, once.
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

    /// A lost tail is noticed by a keepalive, and asked for until the peer gives it up.
    fn linger(&self) -> Duration {
        self.receiver.policy.keepalive() + self.receiver.patience()
    }

    fn srtt(&self) -> Option<Duration> {
        self.receiver.policy.srtt()
    }
}
