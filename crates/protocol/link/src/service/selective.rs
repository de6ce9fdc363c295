//! Selective repeat (Xylomenos 1999, section 4.3; sections 7.3 to 7.5 of docs/spec/multi-service.md) without
//! the rule by which the receiver requests missing frames. That rule distinguishes SR, SR/M1 and SR/M2, and
//! is in a file of its own for each.
//!
//! Full duplex, reliable, in order. Acknowledgments are cumulative and piggybacked on data frames, or sent
//! alone when the delayed-acknowledgment timer expires first. Each frame has a timer, started when it leaves,
//! for losses that no NAK repairs: tail losses, lost NAKs, lost repairs.
//!
//! ```text
//! sender     base .. next        outstanding, at most `window`; d(next, base) <= window
//! receiver   expected .. high    held or missing;               d(high, expected) <= window
//! frames     DATA, RETRANSMISSION (seq, ack, packet)   NAK (seq, ack)   ACK (ack)
//!            study   | service:4 type:4 | seq:8 | ack:8 |    live   see `wire`
//! ```
//!
//! Invariants: each accepted packet is delivered once and in order (of all packets, or of its flow), whatever
//! is lost; storage is bounded by the window; a number is only reused when the peer has acknowledged its last
//! use, which needs `window <= modulus / 2`. A frame may arrive late by at most `modulus - 2 window` numbers
//! without being mistaken for a new one.
//!
//! With `timeout-resends = "base"` only the timer of the oldest outstanding frame counts: the others may well
//! have been received out of order, where they cannot be acknowledged (section 7.11).
//!
//! Where round trips are measured, the sender limits the data in flight to [`PIPES`] bandwidth-delay
//! products, whatever its window: enough for a frame to be lost seven times in a row while others follow, and
//! a bound on what an outage can cost.
//!
//! Three options of the live profile detect or repair what would otherwise take the sender's timer, one frame
//! per round trip (see docs/lab/thin-flows.md):
//!
//! * `keepalives`: while something is unacknowledged and nothing leaves, KEEPALIVEs name the highest number
//!   sent, the first half a round trip after the last frame. The receiver requests what it misses up to there
//!   as if the next frame had arrived.
//! * `repeat-naks`: a frame that has not arrived within T_nak of a request is requested again.
//! * `copies`: each frame is sent again soon after it, as COPY (see `mechanism::copies`). A copy that fills a
//!   hole is a repair, but not an answer: the request rule sees it only if it is the newest frame.
//!
//! ```text
//! frames KEEPALIVE (highest seq sent, ack)   COPY (seq, ack, packet)     live, 20 bytes as all others
//! ```
//! With `order = "flow"` a packet waits only for those of its flow (see `mechanism::lanes`), and every frame
//! has two more bytes.
//!
//! Live, the receiver waits a moment before it requests a frame that may only be reordered (see
//! `mechanism::overtaken`).
//!
//! Left out: RESET frames (numbers never get out of step here).

use std::fmt::Debug;

use airlane_base::{Duration, Instant, Payload, Rate, Seq};

use super::scheme::{Frames, LINGER_TIMEOUTS, Scheme};
use crate::config::{Keepalives, Order, SrConfig, TimeoutResends};
use crate::context::{Context, Origin, PortFacts, earliest};
use crate::mechanism::copies::Copies;
use crate::mechanism::delayed_ack::DelayedAck;
use crate::mechanism::keepalive::Keepalive;
use crate::mechanism::lanes::Lanes;
use crate::mechanism::overtaken::{Later, Overtaken};
use crate::mechanism::receive_window::{Arrival, ReceiveWindow};
use crate::mechanism::send_window::SendWindow;
use crate::mechanism::started::{Started, StartedTimers};
use crate::mechanism::timers::{LinkTiming, TimerPolicy};
use crate::wire::{Body, Frame, FrameKind, Header, Layout};

/// The kinds of frames of all three schemes.
const KINDS: &[FrameKind] = &[
    FrameKind::Data,
    FrameKind::Copy,
    FrameKind::Retransmission,
    FrameKind::Nak,
    FrameKind::Keepalive,
    FrameKind::Ack,
];
const FRAMES: Frames = Frames::new(&Layout::SEQ_ACK, KINDS);
const FRAMES_OF_FLOWS: Frames = Frames::new(&Layout::LANES, KINDS);
/// Bandwidth-delay products that may be unacknowledged.
const PIPES: u64 = 8;
/// Full frames that may always be unacknowledged, however short the link.
const AT_LEAST: usize = 64;

/// The rule by which the receiver requests missing frames.
pub(crate) trait Asking: Clone + Debug + Default {
    /// Whether a NAK acknowledges everything before its frame.
    const NAK_ACKNOWLEDGES: bool = false;

    /// The newest frame, `seq`, has arrived; everything from `from` to before it is missing.
    fn on_newest<P: Payload>(&mut self, _window: &mut ReceiveWindow<P>, _from: Seq, _seq: Seq) {}

    /// A missing frame has arrived that had been requested `asked` times.
    fn on_missing<P: Payload>(&mut self, _window: &mut ReceiveWindow<P>, _seq: Seq, _asked: u32) {}

    /// A frame inside the window has been processed; `moved`: it has moved the window.
    fn on_settled<P: Payload>(&mut self, _window: &mut ReceiveWindow<P>, _moved: bool) {}
}

/// Selective repeat with a request rule.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct SelectiveRepeat<P, A> {
    policy: TimerPolicy,
    timeout_resends: TimeoutResends,
    measures: bool,
    rate: Rate,
    max_payload: usize,

    pub(super) sent: SendWindow<P>,
    timers: StartedTimers,
    /// The last frame that a timer retransmitted, when it first left and when again.
    resent: Option<(Seq, [Instant; 2])>,
    keepalive: Option<Keepalive>,
    copies: Option<Copies>,
    /// Without lanes all packets keep their order.
    lanes: Option<Lanes>,

    pub(super) received: ReceiveWindow<P>,
    asking: A,
    overtaken: Overtaken,
    /// Timers of requests, where they are repeated.
    nak_timers: Option<StartedTimers>,
    /// Response time of the last answer, while others are awaited: they arrive in the order of requests, so
    /// the last of many take longer than a round trip.
    answered: Duration,
    /// The repetition of requests.
    again: Again,
    ack: DelayedAck,
}

/// Limits repeated requests, so that a peer that does not answer is not asked ever more often, and one that answers
/// slowly is asked at most twice as often as it answers. Requests leave before data, and would fill a slow link.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(test, derive(Hash))]
struct Again {
    /// Consecutive rounds in which requests timed out and no missing frame arrived.
    rounds: u32,
    /// When the last round began, and the requests repeated and missing frames received since.
    since: Instant,
    asked: u32,
    came: u32,
    /// How many requests this round may repeat.
    most: u32,
}

impl Again {
    const NONE: Self = Self {
        rounds: 0,
        since: Instant::ORIGIN,
        asked: 0,
        came: 0,
        most: u32::MAX,
    };

    /// Whether one more request may be repeated, given the time for an answer. The first round repeats all that time
    /// out, since nothing is known yet of how fast they are answered.
    fn may(&mut self, now: Instant, runs: Duration) -> bool {
        const AT_LEAST: u32 = 16;
        if now >= self.since + runs {
            self.most = match (self.rounds, self.came) {
                (0, 0) => u32::MAX,
                (_, came) => AT_LEAST.max(came.saturating_mul(2)),
            };
            (self.rounds, self.since) = (self.rounds + 1, now);
            (self.asked, self.came) = (0, 0);
        }
        self.asked += 1;
        self.asked <= self.most
    }

    fn note_came(&mut self) {
        self.rounds = 0;
        self.came = self.came.saturating_add(1);
    }
}

impl<P: Payload, A: Asking> SelectiveRepeat<P, A> {
    /// `config` must be resolved.
    pub(crate) fn new(config: &SrConfig, facts: &PortFacts) -> Self {
        let lanes = (config.order == Order::Flow).then(Lanes::default);
        let layout = frames(lanes.as_ref()).layout;
        let timing = &LinkTiming::new(facts, layout);
        let space = facts.space(layout);
        // The window of a selective repeat scheme is at most half the sequence space.
        let window = config.window.unwrap_or(127).min(space.half());
        Self {
            policy: TimerPolicy::new(config.timers.as_ref(), timing),
            timeout_resends: config.timeout_resends.unwrap_or(TimeoutResends::Base),
            measures: facts.is_live(),
            rate: facts.rate,
            max_payload: facts.max_payload,
            sent: SendWindow::new(window, space),
            timers: StartedTimers::with_capacity(window),
            resent: None,
            keepalive: config.keepalives.map(Keepalives::limit).map(Keepalive::new),
            copies: config
                .copies
                .as_ref()
                .map(|copies| Copies::new(copies, facts, layout)),
            lanes,
            received: ReceiveWindow::new(window, space).oldest_first(facts.is_live()),
            asking: A::default(),
            overtaken: Overtaken::default(),
            nak_timers: config
                .repeat_naks
                .then(|| StartedTimers::with_capacity(window)),
            answered: Duration::ZERO,
            again: Again::NONE,
            ack: DelayedAck::default(),
        }
    }

    // ---- sender

    fn on_ack(&mut self, ack: Seq, now: Instant) {
        if self.sent.acknowledge(ack) {
            self.policy.on_progress();
            if let Some((_, [left, again])) =
                (self.resent).take_if(|(seq, _)| self.sent.get(*seq).is_none())
                && let Some(srtt) = self.policy.srtt()
                && now.saturating_since(again) < srtt / 2
            {
                self.policy.on_needless(now.saturating_since(left), now);
            }
            self.prune_timers();
            if let Some(keepalive) = &mut self.keepalive {
                if self.sent.is_empty() {
                    keepalive.reset();
                } else {
                    keepalive.on_progress();
                }
            }
        }
    }

    fn prune_timers(&mut self) {
        let sent = &self.sent;
        self.timers.prune(|timer| counts(sent, timer));
    }

    /// Whether the link can hold more than is in flight.
    fn link_has_room(&self) -> bool {
        let Some(srtt) = self.policy.srtt().filter(|_| self.measures) else {
            return true;
        };
        let holds = self.rate.bytes_within((srtt + self.policy.ack()) * PIPES);
        self.sent.bytes() < holds.max(self.max_payload * AT_LEAST)
    }

    fn next_copy(&mut self, now: Instant) -> Option<Frame<P>> {
        let sent = &self.sent;
        let copies = self.copies.as_mut()?;
        copies.next(now, |seq| sent.copy(seq))
    }

    fn next_keepalive(&mut self) -> Option<Frame<P>> {
        let due = self.keepalive.as_mut()?.take() && !self.sent.is_empty();
        due.then(|| Frame::control(FrameKind::Keepalive, self.sent.highest()))
    }

    /// A frame is handed over: the owed acknowledgment is piggybacked on it.
    #[inline]
    fn on_handed_over(&mut self, now: Instant, header: &mut Header) {
        if let Some(keepalive) = &mut self.keepalive {
            match header.kind {
                FrameKind::Data => keepalive.on_new(),
                kind if kind.carries_packet() => keepalive.on_repair(),
                _ => {}
            }
        }
        let expected = self.received.expected();
        self.ack.ride(header, expected, now);
    }

    // ---- receiver

    fn prune_nak_timers(&mut self) {
        let received = &self.received;
        if let Some(timers) = &mut self.nak_timers {
            timers.prune(|timer| received.asked(timer.seq) == Some(timer.attempt));
            if timers.is_empty() {
                (self.answered, self.again) = (Duration::ZERO, Again::NONE);
            }
        }
    }

    /// The time to wait for an answer. It grows while the peer does not answer, as a sender's timers back
    /// off: requests for a hundred frames every few milliseconds would fill a link on which the peer can send
    /// one.
    fn nak_runs(&self) -> Duration {
        const AT_MOST: Duration = Duration::from_millis(500);
        let runs = self.policy.nak_behind(self.answered);
        match self.measures {
            true => {
                (runs * (1 << self.again.rounds.saturating_sub(1).min(8))).min(AT_MOST.max(runs))
            }
            false => runs,
        }
    }

    /// Repeats requests that have timed out.
    fn repeat_naks(&mut self, now: Instant) {
        let runs = self.nak_runs();
        let Some(timers) = &mut self.nak_timers else {
            return;
        };
        while let Some(timer) = timers.pop_expired(now, runs) {
            if self.received.asked(timer.seq) == Some(timer.attempt) {
                // The window waits for the oldest.
                let oldest = timer.seq == self.received.expected();
                match !self.measures || oldest || self.again.may(now, runs) {
                    true => self.received.ask(timer.seq),
                    false => timers.start(now, timer.seq, timer.attempt),
                }
            }
        }
        self.prune_nak_timers();
    }

    fn receive(&mut self, cx: &mut Context<'_, P>, header: Header, packet: P) {
        let seq = header.seq;
        let original = header.kind == FrameKind::Data;
        // A copy repairs, but does not answer a request.
        let unasked = header.kind != FrameKind::Retransmission;
        if original && self.measures {
            self.ack.note_original(seq, cx.now);
        }
        self.ack.owe(cx.now, self.policy.ack());
        let window = &mut self.received;
        let Some(packet) = window.pass(cx, seq, packet, original) else {
            self.settle(true);
            return;
        };
        match window.arrival(seq) {
            Arrival::Outside => {
                cx.ledger.repeat(unasked, packet.len());
                return;
            }
            Arrival::Held => {
                cx.ledger.repeat(unasked, packet.len());
                self.settle(false);
                return;
            }
            Arrival::Newest => {
                self.miss_up_to(seq, cx.now);
                self.received.store(seq, packet, original, cx.now);
            }
            Arrival::Missing { asked, since } => {
                window.store(seq, packet, original, cx.now);
                self.again.note_came();
                if original {
                    cx.ledger.overtaken += 1;
                    let late = cx.now.saturating_since(since);
                    self.overtaken.note_late(cx.now, late, asked > 0);
                }
                if header.kind == FrameKind::Retransmission {
                    let timers = self.nak_timers.as_ref();
                    if let Some(left) = timers.and_then(|t| t.started_at(seq, asked)) {
                        self.answered = cx.now.saturating_since(left);
                    }
                    self.overtaken.note_repaired();
                }
                // The works take any frame for an answer. Live, an original that was late is not one.
                if header.kind == FrameKind::Retransmission || (original && !self.measures) {
                    self.ask(cx.now, [self.received.expected(), seq], Some(asked));
                }
            }
        }
        if self.lanes.is_some() {
            self.received.give_behind(cx, seq, header.back);
        }
        let moved = self.received.release(cx);
        self.settle(moved);
    }

    /// Marks everything before `seq` that has not arrived as missing.
    fn miss_up_to(&mut self, seq: Seq, now: Instant) {
        let from = self.received.high();
        self.received.miss_up_to(seq, now);
        self.ask(now, [from, seq], None);
    }

    /// Requests what is missing between two numbers, or defers it, if the frames may still be in flight.
    fn ask(&mut self, now: Instant, [from, upto]: [Seq; 2], again: Option<u32>) {
        if from == upto {
            return;
        }
        let round_trip = self.policy.round_trip();
        let missed = [from, upto];
        if !self.measures || !self.overtaken.defer(now, round_trip, missed, again) {
            let window = &mut self.received;
            match again {
                None => self.asking.on_newest(window, from, upto),
                Some(asked) => self.asking.on_missing(window, upto, asked),
            }
        }
    }

    /// Sends deferred requests for frames that have not arrived in time.
    fn ask_late(&mut self, now: Instant) {
        while let Some(later) = self.overtaken.pop(now, || self.policy.round_trip()) {
            let Later {
                from, upto, again, ..
            } = later;
            let window = &mut self.received;
            match again {
                None => self
                    .asking
                    .on_newest(window, window.inside(from), window.inside(upto)),
                Some(asked) => self.asking.on_missing(window, window.inside(upto), asked),
            }
            self.settle(false);
        }
    }

    /// The earlier of `due` and the time of the next deferred request.
    // Not inlined, since it would slow down every call of the caller.
    #[inline(never)]
    fn asks_by(&self, due: Option<Instant>) -> Option<Instant> {
        earliest(due, self.overtaken.deadline(|| self.policy.round_trip()))
    }

    /// A frame has been processed.
    fn settle(&mut self, moved: bool) {
        if moved || !self.overtaken.waits() {
            self.asking.on_settled(&mut self.received, moved);
        }
    }

    /// The peer has sent everything up to `seq`.
    fn on_keepalive(&mut self, cx: &mut Context<'_, P>, seq: Seq) {
        // The peer asks for an acknowledgment, whatever has arrived.
        self.ack.owe(cx.now, self.policy.ack());
        if self.received.arrival(seq) == Arrival::Newest {
            self.miss_up_to(self.received.after(seq), cx.now);
            self.settle(false);
        }
    }
}

const fn frames(lanes: Option<&Lanes>) -> Frames {
    match lanes {
        None => FRAMES,
        Some(_) => FRAMES_OF_FLOWS,
    }
}

/// Whether a timer belongs to the latest transmission of an outstanding frame.
fn counts<P: Payload>(sent: &SendWindow<P>, timer: &Started) -> bool {
    sent.get(timer.seq)
        .is_some_and(|frame| frame.attempt == timer.attempt && !frame.waits)
}

impl<P: Payload, A: Asking> Scheme<P> for SelectiveRepeat<P, A> {
    fn frames(&self) -> Frames {
        frames(self.lanes.as_ref())
    }

    fn handle_frame(&mut self, cx: &mut Context<'_, P>, frame: Frame<P>) {
        let header = frame.header;
        if let Some(round_trip) = self.sent.round_trip(&header, cx.now) {
            self.policy.sample(round_trip);
        }
        self.on_ack(header.ack, cx.now);
        match (header.kind, frame.body) {
            (
                FrameKind::Data | FrameKind::Copy | FrameKind::Retransmission,
                Body::Packet(packet),
            ) => self.receive(cx, header, packet),
            (FrameKind::Nak, Body::Empty) => {
                if A::NAK_ACKNOWLEDGES {
                    self.on_ack(header.seq, cx.now);
                }
                if let Some(frame) = self.sent.get(header.seq) {
                    if let Some(copies) = &mut self.copies
                        && frame.attempt == 1
                        && !frame.waits
                    {
                        copies.on_lost();
                    }
                    self.sent.repeat(header.seq);
                    self.prune_timers();
                } else {
                    cx.ledger.stale_naks += 1;
                }
            }
            (FrameKind::Keepalive, Body::Empty) => self.on_keepalive(cx, header.seq),
            (FrameKind::Ack, Body::Empty) => {}
            _ => cx.ledger.malformed += 1,
        }
        if self.received.has_naks() {
            self.received.prune_naks();
        }
        self.prune_nak_timers();
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_, P>) {
        self.ack.handle_timeout(cx.now);
        self.policy.forget_late(cx.now);
        let rto = self.policy.rto_now();
        while let Some(timer) = self.timers.pop_expired(cx.now, rto) {
            if !counts(&self.sent, &timer) {
                continue;
            }
            if self.timeout_resends == TimeoutResends::Base && timer.seq != self.sent.base() {
                self.timers.start(cx.now, timer.seq, timer.attempt);
            } else {
                cx.ledger.timeouts += 1;
                self.policy.on_timeout(timer.at, cx.now);
                if let Some(frame) = self.sent.get(timer.seq).filter(|_| self.measures) {
                    let first = frame.attempt == 1;
                    self.resent = first.then_some((timer.seq, [frame.left.0, cx.now]));
                }
                self.sent.repeat(timer.seq);
            }
        }
        self.prune_timers();
        self.ask_late(cx.now);
        self.repeat_naks(cx.now);
        let runs = self.policy.keepalive();
        if let Some(keepalive) = &mut self.keepalive {
            keepalive.handle_timeout(cx.now, runs);
        }
        if let Some(copies) = &mut self.copies {
            copies.handle_timeout(cx.now);
        }
    }

    /// NAKs first, then repairs.
    fn poll_frame(&mut self, cx: &mut Context<'_, P>) -> Option<Frame<P>> {
        if !self.received.has_naks() && !self.sent.has_repairs() {
            return None;
        }
        let nak = self.received.next_nak();
        let mut frame = nak.or_else(|| self.sent.next_repair())?;
        self.on_handed_over(cx.now, &mut frame.header);
        Some(frame)
    }

    fn has_room(&self) -> bool {
        self.sent.has_room() && self.link_has_room()
    }

    fn send(&mut self, cx: &mut Context<'_, P>, packet: P, from: Origin) -> Frame<P> {
        let lanes = self.lanes.as_mut();
        let back = lanes.map_or(0, |lanes| lanes.next(from.lane, &self.sent));
        let mut frame = self.sent.send_behind(packet, back);
        self.on_handed_over(cx.now, &mut frame.header);
        frame
    }

    /// Copies; an acknowledgment or a keepalive is sent alone only if it must be.
    fn poll_spare(&mut self, cx: &mut Context<'_, P>) -> Option<Frame<P>> {
        let mut frame = self
            .next_copy(cx.now)
            .or_else(|| self.next_keepalive())
            .or_else(|| self.ack.alone(self.sent.next()))?;
        self.on_handed_over(cx.now, &mut frame.header);
        Some(frame)
    }

    fn has_frames(&self) -> bool {
        let own = self.received.has_naks() || self.sent.has_repairs() || self.ack.is_due();
        own || self.copies.is_some() || self.keepalive.is_some()
    }

    fn start_timers(&mut self, header: &Header, left: Instant) {
        if let Some(attempt) = self.sent.started(header, left) {
            self.timers.start(left, header.seq, attempt);
        }
        if let Some(timers) = &mut self.nak_timers
            && header.kind == FrameKind::Nak
            && let Some(asked) = self.received.asked(header.seq)
        {
            timers.start(left, header.seq, asked);
        }
        if let Some(keepalive) = &mut self.keepalive
            && (header.kind.carries_packet() || header.kind == FrameKind::Keepalive)
            && !self.sent.is_empty()
        {
            keepalive.on_left(left);
        }
        if let Some(copies) = &mut self.copies
            && header.kind == FrameKind::Data
        {
            copies.on_left(header.seq, left);
        }
    }

    fn handle_failure(&mut self, header: &Header) {
        if header.kind.carries_packet() {
            self.sent.repeat(header.seq);
            self.prune_timers();
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let resend = self.timers.deadline(|| self.policy.rto_now());
        let mut due = earliest(self.ack.deadline(), resend);
        if let Some(keepalive) = &self.keepalive {
            due = earliest(due, keepalive.deadline(self.policy.keepalive()));
        }
        if let Some(copies) = &self.copies {
            due = earliest(due, copies.deadline());
        }
        if let Some(timers) = &self.nak_timers {
            let runs = || self.nak_runs();
            due = earliest(due, timers.deadline(runs));
        }
        match self.overtaken.waits() {
            false => due,
            true => self.asks_by(due),
        }
    }

    fn set_timer_factor(&mut self, factor: f64) {
        self.policy.set_factor(factor);
    }

    fn retime(&mut self, fresh: Self) {
        self.rate = fresh.rate;
        self.policy.retime(&fresh.policy);
        if let Some((copies, fresh)) = self.copies.as_mut().zip(fresh.copies) {
            copies.retime(&fresh);
        }
    }

    fn reset(&mut self, cx: &mut Context<'_, P>) {
        self.received.reset(cx);
        self.asking = A::default();
        self.overtaken.clear();
        self.ack = DelayedAck::default();
        self.timers.clear();
        self.resent = None;
        if let Some(keepalive) = &mut self.keepalive {
            keepalive.reset();
        }
        if let Some(copies) = &mut self.copies {
            copies.reset();
        }
        if let Some(timers) = &mut self.nak_timers {
            timers.clear();
            (self.answered, self.again) = (Duration::ZERO, Again::NONE);
        }
        self.policy.on_progress();
        self.sent.reset(&mut cx.out.lost);
        self.lanes = self.lanes.take().map(|_| Lanes::default());
    }

    fn is_idle(&self) -> bool {
        self.sent.is_empty() && self.received.is_empty() && self.ack.is_idle()
    }

    fn linger(&self) -> Duration {
        self.policy.rto() * LINGER_TIMEOUTS
    }

    fn srtt(&self) -> Option<Duration> {
        self.policy.srtt()
    }
}

#[cfg(test)]
mod tests;
