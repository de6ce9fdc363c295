//! SR/M2: selective repeat with several NAKs per frame (sections 7.3 to 7.5 of the specification,
//! after Xylomenos 1999, section 4.3).
//!
//! Full duplex, reliable, in order. Acknowledgments are cumulative and ride on data frames, or go
//! alone when the delayed-acknowledgment timer runs out first. Every missing frame is asked for at
//! once, in ascending order; since repairs come back in that order, a repair that overtakes an
//! older hole proves that the older NAK or repair was lost, and the hole is asked for again.
//! Timeouts are the last resort, for lost tails.
//!
//! ```text
//! sender     base .. next        outstanding, at most `window`; d(next, base) <= window
//! receiver   expected .. high    held or missing;               d(high, expected) <= window
//! frames     DATA, RETRANSMISSION (seq, ack, packet)   NAK (seq, ack)   ACK (ack)
//! ```
//!
//! Invariants: each packet accepted is delivered once and in order, whatever is lost; storage is
//! bounded by the window; a number is only reused when the peer has acknowledged its last use,
//! which needs `window <= modulus / 2`. A frame may arrive late by at most `modulus - 2 window`
//! numbers without being mistaken for a new one.
//!
//! With `timeout-resends = "base"` only the oldest outstanding frame answers to its timer: the
//! others may well have arrived behind a hole, where they cannot be acknowledged (section 7.11).
//! Left out: RESET frames (numbers never get out of step here).

use std::collections::VecDeque;

use airlane_base::{Duration, Instant, Payload, Seq, SeqSpace};

use super::{Context, PortFacts, Scheme};
use crate::config::{SrConfig, TimeoutResends, TimerProfile, TimersConfig};
use crate::mechanism::ring::Ring;
use crate::mechanism::started::StartedTimers;
use crate::mechanism::timers::{LinkTiming, TimerPolicy};
use crate::wire::{Echo, Frame, FrameKind, Header};

/// A removed service answers for this many timeouts more, so that the peer can finish too.
const LINGER_TIMEOUTS: u64 = 8;

/// A frame that the peer has not acknowledged.
#[derive(Clone, Debug)]
struct Outstanding<P> {
    packet: P,
    /// Transmissions handed over so far.
    attempt: u32,
    /// A transmission is asked for or under way; the timer does not run.
    waits: bool,
    /// When the original left, for round trip samples.
    left: Instant,
}

/// A number between `expected` and `high`.
#[derive(Clone, Debug)]
struct Place<P> {
    /// None while the frame is missing.
    packet: Option<P>,
    /// NAKs sent for it, or about to be.
    asked: u32,
    /// A NAK for it has not been handed over yet.
    waits: bool,
    /// When it arrived or was first missed.
    since: Instant,
}

/// Selective repeat, variant M2.
#[derive(Clone, Debug)]
pub(crate) struct SelectiveRepeat<P> {
    space: SeqSpace,
    window: u32,
    policy: TimerPolicy,
    timeout_resends: TimeoutResends,
    measures: bool,

    base: Seq,
    next: Seq,
    outstanding: Ring<Outstanding<P>>,
    repairs: VecDeque<Seq>,
    timers: StartedTimers,
    /// Timeouts since the last progress; measured timers back off by it.
    timeouts_in_a_row: u32,

    expected: Seq,
    high: Seq,
    places: Ring<Place<P>>,
    naks: VecDeque<Seq>,
    /// When the delayed acknowledgment is due.
    ack_timer: Option<Instant>,
    ack_due: bool,
    /// The newest original frame and when it came.
    newest: Option<(Seq, Instant)>,
}

impl<P: Payload> SelectiveRepeat<P> {
    /// `config` must be resolved.
    pub(crate) fn new(config: &SrConfig, facts: &PortFacts, timing: &LinkTiming) -> Self {
        let space = facts.space();
        // The window of a selective repeat scheme is at most half the sequence space.
        let window = config.window.unwrap_or(127).min(space.half());
        let profile = TimersConfig::Profile(TimerProfile::Tight);
        let timers = config.timers.as_ref().unwrap_or(&profile);
        Self {
            space,
            window,
            policy: TimerPolicy::new(timers, timing),
            timeout_resends: config.timeout_resends.unwrap_or(TimeoutResends::Base),
            measures: facts.is_live(),
            base: 0,
            next: 0,
            outstanding: Ring::for_window(window, space),
            repairs: VecDeque::with_capacity(window as usize),
            timers: StartedTimers::with_capacity(window),
            timeouts_in_a_row: 0,
            expected: 0,
            high: 0,
            places: Ring::for_window(window, space),
            naks: VecDeque::with_capacity(window as usize),
            ack_timer: None,
            ack_due: false,
            newest: None,
        }
    }

    fn rto(&self) -> Duration {
        let rto = self.policy.rto();
        if self.policy.srtt().is_none() {
            return rto;
        }
        // The first repetition is quick, for a lost tail; an unreachable peer is asked ever less.
        rto * (1 << self.timeouts_in_a_row.saturating_sub(1).min(6))
    }

    fn is_outstanding(&self, seq: Seq) -> bool {
        self.space.distance(seq, self.base) < self.space.distance(self.next, self.base)
    }

    // ---- sender

    fn on_ack(&mut self, ack: Seq) {
        let freed = self.space.distance(ack, self.base);
        if freed == 0 || freed > self.space.distance(self.next, self.base) {
            return;
        }
        while self.base != ack {
            self.outstanding.remove(self.base);
            self.base = self.space.next(self.base);
        }
        self.timeouts_in_a_row = 0;
        self.prune_timers();
    }

    fn prune_timers(&mut self) {
        let (space, base, next) = (self.space, self.base, self.next);
        let outstanding = &self.outstanding;
        self.timers.prune(|timer| {
            space.distance(timer.seq, base) < space.distance(next, base)
                && outstanding
                    .get(timer.seq)
                    .is_some_and(|frame| frame.attempt == timer.attempt && !frame.waits)
        });
    }

    fn resend(&mut self, seq: Seq) {
        if let Some(frame) = self.outstanding.get_mut(seq)
            && !frame.waits
        {
            frame.waits = true;
            self.repairs.push_back(seq);
        }
    }

    fn sample_rtt(&mut self, echo: Echo, now: Instant) {
        let seq = self.space.widen(echo.seq_low, self.next);
        if !self.is_outstanding(seq) {
            return;
        }
        if let Some(frame) = self.outstanding.get(seq)
            && frame.left > Instant::ORIGIN
        {
            let rtt = now.saturating_since(frame.left);
            self.policy.sample(rtt.saturating_sub(echo.held));
        }
    }

    // ---- receiver

    fn start_ack_timer(&mut self, now: Instant) {
        if self.ack_timer.is_none() && !self.ack_due {
            self.ack_timer = Some(now + self.policy.ack());
        }
    }

    /// The acknowledgment has been put on some frame.
    fn acknowledge(&mut self, header: &mut Header, now: Instant) {
        header.ack = self.expected;
        header.echo = self.newest.take().map(|(seq, came)| Echo {
            seq_low: seq as u16,
            held: now.saturating_since(came),
        });
        self.ack_timer = None;
        self.ack_due = false;
    }

    fn is_missing(&self, seq: Seq) -> bool {
        self.space.distance(seq, self.expected) < self.space.distance(self.high, self.expected)
            && self.places.get(seq).is_some_and(|p| p.packet.is_none())
    }

    fn receive(&mut self, cx: &mut Context<'_, P>, header: Header, packet: P) {
        let seq = header.seq;
        let original = header.kind == FrameKind::Data;
        if original && self.measures {
            self.newest = Some((seq, cx.now));
        }
        self.start_ack_timer(cx.now);
        let ahead = self.space.distance(seq, self.expected);
        if ahead >= self.window {
            Self::count_repeated(cx, original, &packet);
            return;
        }
        if ahead >= self.space.distance(self.high, self.expected) {
            self.miss_up_to(seq, cx.now);
            let place = Place {
                packet: Some(packet),
                asked: u32::from(!original),
                waits: false,
                since: cx.now,
            };
            self.places.insert(seq, place);
            self.high = self.space.next(seq);
        } else {
            let Some(place) = self.places.get_mut(seq) else {
                return;
            };
            if place.packet.is_some() {
                Self::count_repeated(cx, original, &packet);
                return;
            }
            place.packet = Some(packet);
            let asked = place.asked;
            self.ask_again_before(seq, asked);
        }
        self.release(cx);
    }

    fn count_repeated(cx: &mut Context<'_, P>, original: bool, packet: &P) {
        if original {
            cx.ledger.duplicates += 1;
        } else {
            cx.ledger.late += 1;
            cx.ledger.late_bytes += packet.len() as u64;
        }
    }

    /// Notes and asks for every number from `high` to before `seq`.
    fn miss_up_to(&mut self, seq: Seq, now: Instant) {
        while self.high != seq {
            let hole = Place {
                packet: None,
                asked: 1,
                waits: true,
                since: now,
            };
            self.places.insert(self.high, hole);
            self.naks.push_back(self.high);
            self.high = self.space.next(self.high);
        }
    }

    /// The rule of M2: `seq`, asked for `asked` times, has arrived; older holes asked for no more
    /// often were overtaken.
    fn ask_again_before(&mut self, seq: Seq, asked: u32) {
        let mut m = self.expected;
        while m != seq {
            if let Some(place) = self.places.get_mut(m)
                && place.packet.is_none()
                && place.asked <= asked
            {
                place.asked += 1;
                // One NAK on its way out says it all: the queue stays within the window.
                if !std::mem::replace(&mut place.waits, true) {
                    self.naks.push_back(m);
                }
            }
            m = self.space.next(m);
        }
    }

    fn release(&mut self, cx: &mut Context<'_, P>) {
        while self.expected != self.high {
            let held = self.places.get(self.expected);
            if held.is_none_or(|place| place.packet.is_none()) {
                return;
            }
            if let Some(place) = self.places.remove(self.expected)
                && let Some(packet) = place.packet
            {
                cx.deliver(packet, place.since, place.asked > 0);
            }
            self.expected = self.space.next(self.expected);
        }
    }

    /// Forgets NAKs for what has come meanwhile, so that they do not pile up on a busy link.
    fn prune_naks(&mut self) {
        while let Some(seq) = self.naks.front()
            && !self.is_missing(*seq)
        {
            self.naks.pop_front();
        }
    }
}

impl<P: Payload> Scheme<P> for SelectiveRepeat<P> {
    fn handle_frame(&mut self, cx: &mut Context<'_, P>, frame: Frame<P>) {
        let header = frame.header;
        if let Some(echo) = header.echo {
            self.sample_rtt(echo, cx.now);
        }
        self.on_ack(header.ack);
        match (header.kind, frame.payload) {
            (FrameKind::Data | FrameKind::Retransmission, Some(packet)) => {
                self.receive(cx, header, packet);
            }
            (FrameKind::Nak, None) => {
                if self.is_outstanding(header.seq) {
                    self.resend(header.seq);
                } else {
                    cx.ledger.stale_naks += 1;
                }
            }
            (FrameKind::Ack, None) => {}
            _ => cx.ledger.out_of_window += 1,
        }
        self.prune_timers();
        self.prune_naks();
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_, P>) {
        if self.ack_timer.is_some_and(|due| due <= cx.now) {
            self.ack_timer = None;
            self.ack_due = true;
        }
        let rto = self.rto();
        while let Some(timer) = self.timers.pop_expired(cx.now, rto) {
            let counts = self.is_outstanding(timer.seq)
                && self
                    .outstanding
                    .get(timer.seq)
                    .is_some_and(|frame| frame.attempt == timer.attempt && !frame.waits);
            if !counts {
                continue;
            }
            if self.timeout_resends == TimeoutResends::Base && timer.seq != self.base {
                self.timers.start(cx.now, timer.seq, timer.attempt);
            } else {
                cx.ledger.timeouts += 1;
                self.timeouts_in_a_row += 1;
                self.resend(timer.seq);
            }
        }
        self.prune_timers();
    }

    fn poll_frame(
        &mut self,
        cx: &mut Context<'_, P>,
        source: &mut dyn FnMut() -> Option<P>,
    ) -> Option<Frame<P>> {
        let mut frame = self.next_frame(source)?;
        self.acknowledge(&mut frame.header, cx.now);
        Some(frame)
    }

    fn start_timers(&mut self, header: &Header, left: Instant) {
        if !header.kind.carries_packet() {
            return;
        }
        if self.is_outstanding(header.seq)
            && let Some(frame) = self.outstanding.get_mut(header.seq)
        {
            frame.waits = false;
            if header.kind == FrameKind::Data {
                frame.left = left;
            }
            self.timers.start(left, header.seq, frame.attempt);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match (self.ack_timer, self.timers.deadline(self.rto())) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn set_timer_factor(&mut self, factor: f64) {
        self.policy.set_factor(factor);
    }

    fn reset(&mut self, cx: &mut Context<'_, P>) -> (u64, u64) {
        while self.expected != self.high {
            if let Some(place) = self.places.remove(self.expected) {
                match place.packet {
                    Some(packet) => cx.deliver(packet, place.since, place.asked > 0),
                    None => cx.ledger.lose(1, false),
                }
            }
            self.expected = self.space.next(self.expected);
        }
        let (mut packets, mut bytes) = (0, 0);
        while self.base != self.next {
            if let Some(frame) = self.outstanding.remove(self.base) {
                packets += 1;
                bytes += frame.packet.len() as u64;
            }
            self.base = self.space.next(self.base);
        }
        self.repairs.clear();
        self.timers.clear();
        self.places.clear();
        self.naks.clear();
        (self.base, self.next, self.expected, self.high) = (0, 0, 0, 0);
        (self.ack_timer, self.ack_due, self.newest) = (None, false, None);
        self.timeouts_in_a_row = 0;
        (packets, bytes)
    }

    fn is_idle(&self) -> bool {
        self.base == self.next
            && self.expected == self.high
            && self.ack_timer.is_none()
            && !self.ack_due
    }

    fn linger(&self) -> Duration {
        self.policy.rto() * LINGER_TIMEOUTS
    }

    fn srtt(&self) -> Option<Duration> {
        self.policy.srtt()
    }
}

impl<P: Payload> SelectiveRepeat<P> {
    /// NAKs first, then repairs, then what is new; an acknowledgment goes alone only if it must.
    fn next_frame(&mut self, source: &mut dyn FnMut() -> Option<P>) -> Option<Frame<P>> {
        while let Some(seq) = self.naks.pop_front() {
            if self.is_missing(seq) {
                if let Some(place) = self.places.get_mut(seq) {
                    place.waits = false;
                }
                return Some(Frame::control(FrameKind::Nak, seq));
            }
        }
        while let Some(seq) = self.repairs.pop_front() {
            if self.is_outstanding(seq)
                && let Some(frame) = self.outstanding.get_mut(seq)
            {
                frame.attempt += 1;
                let packet = frame.packet.clone();
                return Some(Frame::with_packet(FrameKind::Retransmission, seq, packet));
            }
        }
        if self.space.distance(self.next, self.base) < self.window
            && let Some(packet) = source()
        {
            let seq = self.next;
            self.next = self.space.next(seq);
            let frame = Outstanding {
                packet: packet.clone(),
                attempt: 1,
                waits: true,
                left: Instant::ORIGIN,
            };
            self.outstanding.insert(seq, frame);
            return Some(Frame::with_packet(FrameKind::Data, seq, packet));
        }
        self.ack_due
            .then(|| Frame::control(FrameKind::Ack, self.next))
    }
}
