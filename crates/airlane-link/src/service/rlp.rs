//! RLP and RLP/OOS: limited recovery (sections 7.6 and 7.7 of the specification, after Xylomenos
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
//! ```
//!
//! Invariants: at most one delivery of a packet; a packet is never held longer than N times T_nak
//! after its arrival, plus the time that its NAKs wait to leave; d(high, base) <= window, kept by
//! giving up the oldest hole early (the overflow guard).
//!
//! Loss of step. In the study profile an original frame from behind `high` can only mean that half
//! the sequence space was lost, and the receiver alone resynchronises (section 7.6). In the live
//! profile such a frame is late or a duplicate: it fills its hole or is dropped, and nothing but a
//! new epoch resets the service.
//! Hybrid ARQ is this with damaged frames put to use (see `hybrid`).
//! Left out: RESET frames; delivery of repairs that come after giving up (XYL-S-11: discarded).

use std::collections::VecDeque;

use airlane_base::{Damage, Duration, Instant, Payload, Seq, SeqSpace};

use super::hybrid::{Combined, Combining, Plain};
use super::{Context, PortFacts, Scheme, earliest};
use crate::config::{Keepalives, RlpConfig};
use crate::mechanism::keepalive::Keepalive;
use crate::mechanism::ring::Ring;
use crate::mechanism::started::StartedTimers;
use crate::mechanism::timers::{LinkTiming, TimerPolicy};
use crate::wire::{Frame, FrameKind, Header};

/// In which order packets go up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// RLP.
    InOrder,
    /// RLP/OOS.
    AsReceived,
}

/// A frame kept for retransmission.
#[derive(Clone, Debug)]
struct Kept<P> {
    packet: P,
    /// A repair is asked for and has not left yet.
    waits: bool,
    /// Symbols that the peer is short of; 0: all of them.
    short: u8,
    /// Repair symbols that have been sent.
    repair: u8,
}

/// A missing frame.
#[derive(Clone, Copy, Debug)]
struct Hole {
    /// Attempts made or about to be.
    tries: u32,
    /// NAKs sent or about to be: more than attempts if answers have helped and were not enough.
    naks: u32,
    /// The NAK has not left yet; the timer does not run.
    waits: bool,
    /// When the last NAK left.
    asked: Instant,
    /// When the loss was noticed.
    since: Instant,
}

/// A frame held behind a hole.
#[derive(Clone, Debug)]
struct Held<P> {
    packet: P,
    since: Instant,
    recovered: bool,
}

/// RLP or RLP/OOS.
#[derive(Clone, Debug)]
pub(crate) struct Rlp<P, C = Plain> {
    combining: C,
    space: SeqSpace,
    order: Order,
    live: bool,
    window: u32,
    retries: u32,
    policy: TimerPolicy,
    keepalive: Keepalive,

    next: Seq,
    kept: Ring<Kept<P>>,
    repairs: VecDeque<Seq>,

    base: Seq,
    high: Seq,
    holes: Ring<Hole>,
    hole_count: u32,
    held: Ring<Held<P>>,
    naks: VecDeque<Seq>,
    nak_timers: StartedTimers,
}

impl<P: Payload> Rlp<P> {
    /// `config` must be resolved.
    pub(crate) fn new(
        config: &RlpConfig,
        order: Order,
        facts: &PortFacts,
        timing: &LinkTiming,
    ) -> Self {
        Self::combining(config, Plain, order, facts, timing)
    }
}

impl<P: Payload, C: Combining<P>> Rlp<P, C> {
    /// The same with something to do with damaged frames.
    pub(crate) fn combining(
        config: &RlpConfig,
        combining: C,
        order: Order,
        facts: &PortFacts,
        timing: &LinkTiming,
    ) -> Self {
        let space = facts.space();
        let window = config.window.unwrap_or(127).min(space.half() - 1).max(1);
        Self {
            combining,
            space,
            order,
            live: facts.is_live(),
            window,
            retries: config.retries.unwrap_or(3),
            policy: TimerPolicy::new(config.timers.as_ref(), timing),
            keepalive: Keepalive::new(config.keepalives.and_then(Keepalives::limit)),
            next: 0,
            kept: Ring::for_window(window, space),
            repairs: VecDeque::with_capacity(window as usize),
            base: 0,
            high: 0,
            holes: Ring::for_window(window, space),
            hole_count: 0,
            held: Ring::for_window(window, space),
            naks: VecDeque::with_capacity(window as usize),
            nak_timers: StartedTimers::with_capacity(window),
        }
    }

    // ---- sender

    fn on_nak(&mut self, cx: &mut Context<'_, P>, seq: Seq, short: u8) {
        let age = self.space.distance(self.next, seq);
        match self.kept.get_mut(seq) {
            Some(kept) if (1..=self.window).contains(&age) => {
                if !kept.waits {
                    kept.waits = true;
                    kept.short = short;
                    self.repairs.push_back(seq);
                }
            }
            _ => cx.ledger.stale_naks += 1,
        }
    }

    // ---- receiver

    fn hole(&self, seq: Seq) -> Option<&Hole> {
        let inside =
            self.space.distance(seq, self.base) < self.space.distance(self.high, self.base);
        inside.then(|| self.holes.get(seq)).flatten()
    }

    fn close(&mut self, seq: Seq) -> Option<Hole> {
        self.hole(seq)?;
        self.hole_count -= 1;
        self.combining.forget(seq);
        self.holes.remove(seq)
    }

    fn on_data(&mut self, cx: &mut Context<'_, P>, seq: Seq, packet: P) {
        if self.space.distance(seq, self.high) < self.space.half() {
            self.miss_up_to(cx, seq);
            self.high = self.space.next(seq);
            self.accept(cx, seq, packet, cx.now, false);
        } else if !self.live {
            self.resync(cx, seq, packet);
        } else if let Some(hole) = self.close(seq) {
            // Only overtaken on the way, not lost.
            self.accept(cx, seq, packet, hole.since, false);
        } else {
            cx.ledger.duplicates += 1;
        }
    }

    fn on_retransmission(&mut self, cx: &mut Context<'_, P>, seq: Seq, packet: P) {
        let Some(hole) = self.close(seq) else {
            cx.ledger.late += 1;
            cx.ledger.late_bytes += packet.len() as u64;
            return;
        };
        // Karn's rule: only the first NAK has one possible answer.
        if hole.naks == 1 && !hole.waits {
            self.policy.sample(cx.now.saturating_since(hole.asked));
        }
        self.accept(cx, seq, packet, hole.since, true);
    }

    fn accept(
        &mut self,
        cx: &mut Context<'_, P>,
        seq: Seq,
        packet: P,
        since: Instant,
        recovered: bool,
    ) {
        match self.order {
            Order::AsReceived => cx.deliver(packet, since, recovered),
            Order::InOrder => {
                let held = Held {
                    packet,
                    since,
                    recovered,
                };
                self.held.insert(seq, held);
            }
        }
        self.release(cx);
    }

    /// A frame has come that is damaged, or brings redundancy. Whether it is of any use.
    fn on_fragment(
        &mut self,
        cx: &mut Context<'_, P>,
        frame: &Frame<P>,
        seq: Seq,
        damage: Option<&Damage>,
    ) -> bool {
        let kind = frame.header.kind;
        let ahead = self.space.distance(seq, self.high);
        // What is further ahead may be a header whose damage its check has not found.
        let newest = kind == FrameKind::Data && ahead < self.window;
        if !newest && self.hole(seq).is_none() {
            return false;
        }
        match self.combining.combine(frame, seq, damage) {
            Combined::Whole(packet) => {
                if kind == FrameKind::Data {
                    self.on_data(cx, seq, packet);
                } else {
                    self.on_retransmission(cx, seq, packet);
                }
                true
            }
            more => {
                let kept = matches!(more, Combined::Kept);
                if newest {
                    self.miss_up_to(cx, self.space.next(seq));
                    self.release(cx);
                } else if kept {
                    self.ask_again(seq);
                }
                kept
            }
        }
    }

    /// An answer has come that helps and is not enough.
    fn ask_again(&mut self, seq: Seq) {
        let inside = self.hole(seq).is_some();
        if let Some(hole) = self.holes.get_mut(seq).filter(|_| inside)
            && !hole.waits
        {
            hole.naks += 1;
            hole.waits = true;
            self.naks.push_back(seq);
        }
    }

    /// Notes and asks for every number from `high` to before `upto`.
    fn miss_up_to(&mut self, cx: &mut Context<'_, P>, upto: Seq) {
        let missed = self.space.distance(upto, self.high);
        if missed > self.window {
            // The peer keeps only a window of frames: what came before is lost, however long the
            // silence was.
            self.flush(cx);
            cx.ledger.lose(u64::from(missed - self.window), false);
            self.base = self.space.add(self.high, missed - self.window);
            self.high = self.base;
        }
        while self.high != upto {
            let hole = Hole {
                tries: 1,
                naks: 1,
                waits: true,
                asked: cx.now,
                since: cx.now,
            };
            self.holes.insert(self.high, hole);
            self.hole_count += 1;
            self.naks.push_back(self.high);
            self.high = self.space.next(self.high);
            // Keeps the span within the window while it grows.
            self.release(cx);
        }
    }

    fn give_up(&mut self, cx: &mut Context<'_, P>, seq: Seq) {
        if self.close(seq).is_some() {
            cx.ledger.lose(1, true);
        }
    }

    /// Moves `base` over everything that is done with. Its own number is missing afterwards, and
    /// not older than the window.
    fn release(&mut self, cx: &mut Context<'_, P>) {
        while self.base != self.high {
            if let Some(held) = self.held.remove(self.base) {
                cx.deliver(held.packet, held.since, held.recovered);
            } else if self.hole(self.base).is_some() {
                if self.space.distance(self.high, self.base) <= self.window {
                    return;
                }
                self.give_up(cx, self.base);
            }
            self.base = self.space.next(self.base);
        }
    }

    /// Gives up every hole and delivers everything held.
    fn flush(&mut self, cx: &mut Context<'_, P>) {
        let mut seq = self.base;
        while seq != self.high {
            self.give_up(cx, seq);
            seq = self.space.next(seq);
        }
        self.release(cx);
        self.naks.clear();
        self.nak_timers.clear();
    }

    /// Section 7.6: the receiver alone gets back into step.
    fn resync(&mut self, cx: &mut Context<'_, P>, seq: Seq, packet: P) {
        cx.ledger.resyncs += 1;
        self.flush(cx);
        self.base = seq;
        self.high = self.space.next(seq);
        self.accept(cx, seq, packet, cx.now, false);
    }

    /// Forgets NAKs for holes that are closed, so that they do not pile up on a busy link.
    fn prune_naks(&mut self) {
        while let Some(seq) = self.naks.front()
            && self.hole(*seq).is_none_or(|hole| !hole.waits)
        {
            self.naks.pop_front();
        }
    }

    fn prune_timers(&mut self) {
        let (space, base, high) = (self.space, self.base, self.high);
        let holes = &self.holes;
        self.nak_timers.prune(|timer| {
            space.distance(timer.seq, base) < space.distance(high, base)
                && holes
                    .get(timer.seq)
                    .is_some_and(|hole| hole.naks == timer.attempt && !hole.waits)
        });
    }
}

impl<P: Payload, C: Combining<P>> Scheme<P> for Rlp<P, C> {
    fn handle_frame(&mut self, cx: &mut Context<'_, P>, frame: Frame<P>) {
        let Header {
            seq, kind, index, ..
        } = frame.header;
        if C::PARITY && kind == FrameKind::Parity {
            if !self.on_fragment(cx, &frame, seq, None) {
                cx.ledger.repeat(false, frame.payload_len());
            }
            self.prune_timers();
            self.prune_naks();
            return;
        }
        match (kind, frame.payload) {
            (FrameKind::Data, Some(packet)) => self.on_data(cx, seq, packet),
            (FrameKind::Retransmission, Some(packet)) => self.on_retransmission(cx, seq, packet),
            (FrameKind::Nak, None) => self.on_nak(cx, seq, index),
            (FrameKind::Keepalive, None) => {
                let upto = self.space.next(seq);
                let ahead = self.space.distance(upto, self.high);
                if (1..self.space.half()).contains(&ahead) {
                    self.miss_up_to(cx, upto);
                    self.release(cx);
                }
            }
            _ => cx.ledger.out_of_window += 1,
        }
        self.prune_timers();
        self.prune_naks();
    }

    fn handle_damaged(
        &mut self,
        cx: &mut Context<'_, P>,
        header: &Header,
        frame: &Frame<P>,
        damage: &Damage,
    ) -> bool {
        // What kind of frame it is says its header; if that is not so, its check has failed.
        let used = header.kind == frame.header.kind
            && header.kind.carries_packet()
            && self.on_fragment(cx, frame, header.seq, Some(damage));
        self.prune_timers();
        self.prune_naks();
        used
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_, P>) {
        let runs = self.policy.nak();
        while let Some(timer) = self.nak_timers.pop_expired(cx.now, runs) {
            let retries = self.retries;
            let inside = self.hole(timer.seq).is_some();
            let Some(hole) = self.holes.get_mut(timer.seq).filter(|_| inside) else {
                continue;
            };
            if hole.naks != timer.attempt || hole.waits {
                continue;
            }
            if hole.tries < retries {
                hole.tries += 1;
                hole.naks += 1;
                hole.waits = true;
                self.naks.push_back(timer.seq);
            } else {
                self.give_up(cx, timer.seq);
                self.release(cx);
            }
        }
        self.prune_timers();
        let runs = self.policy.keepalive();
        self.keepalive.handle_timeout(cx.now, runs);
    }

    fn poll_frame(
        &mut self,
        _cx: &mut Context<'_, P>,
        source: &mut dyn FnMut() -> Option<P>,
    ) -> Option<Frame<P>> {
        while let Some(seq) = self.naks.pop_front() {
            if self.hole(seq).is_some_and(|hole| hole.waits) {
                let mut nak = Frame::control(FrameKind::Nak, seq);
                nak.header.index = self.combining.short(seq);
                return Some(nak);
            }
        }
        while let Some(seq) = self.repairs.pop_front() {
            let age = self.space.distance(self.next, seq);
            if let Some(kept) = self.kept.get_mut(seq)
                && kept.waits
                && age <= self.window
            {
                let (packet, sent) = (kept.packet.clone(), &mut kept.repair);
                self.keepalive.on_repair();
                return Some(self.combining.answer(seq, packet, kept.short, sent));
            }
        }
        if let Some(packet) = source() {
            let seq = self.next;
            self.next = self.space.next(seq);
            let kept = Kept {
                packet: packet.clone(),
                waits: false,
                short: 0,
                repair: 0,
            };
            self.kept.insert(seq, kept);
            self.keepalive.on_new();
            return Some(Frame::with_packet(FrameKind::Data, seq, packet));
        }
        if self.keepalive.take() {
            let highest = self.space.add(self.next, u32::MAX);
            return Some(Frame::control(FrameKind::Keepalive, highest));
        }
        None
    }

    fn start_timers(&mut self, header: &Header, left: Instant) {
        match header.kind {
            FrameKind::Nak => {
                let inside = self.hole(header.seq).is_some();
                if let Some(hole) = self.holes.get_mut(header.seq).filter(|_| inside) {
                    hole.waits = false;
                    hole.asked = left;
                    self.nak_timers.start(left, header.seq, hole.naks);
                }
            }
            FrameKind::Data | FrameKind::Keepalive => self.keepalive.on_left(left),
            FrameKind::Retransmission | FrameKind::Parity => {
                self.keepalive.on_left(left);
                if let Some(kept) = self.kept.get_mut(header.seq) {
                    kept.waits = false;
                }
            }
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let nak = self.nak_timers.deadline(self.policy.nak());
        earliest(nak, self.keepalive.deadline(self.policy.keepalive()))
    }

    fn set_timer_factor(&mut self, factor: f64) {
        self.policy.set_factor(factor);
    }

    fn reset(&mut self, cx: &mut Context<'_, P>) -> (u64, u64) {
        // Nothing is owed to the peer: what was sent was sent, once.
        self.flush(cx);
        self.kept.clear();
        self.repairs.clear();
        (self.next, self.base, self.high) = (0, 0, 0);
        self.keepalive.reset();
        (0, 0)
    }

    fn is_idle(&self) -> bool {
        self.repairs.is_empty() && self.hole_count == 0
    }

    /// A lost tail is noticed by a keepalive, and asked for until the peer gives it up.
    fn linger(&self) -> Duration {
        self.policy.keepalive() + self.policy.nak() * (u64::from(self.retries) + 1)
    }

    fn srtt(&self) -> Option<Duration> {
        self.policy.srtt()
    }
}
