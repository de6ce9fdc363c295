//! The RLP receiver: the missing frames, the held ones, and the requests.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant, Payload, Seq, SeqSpace};

use super::persistence::Asks;
use crate::context::{Context, Noted};
use crate::mechanism::overtaken::Overtaken;
use crate::mechanism::ring::Ring;
use crate::mechanism::started::StartedTimers;
use crate::mechanism::timers::TimerPolicy;
use crate::wire::{Frame, FrameKind};

/// The order of delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Order {
    /// RLP.
    InOrder,
    /// RLP/OOS.
    AsReceived,
}

/// A frame has not arrived after the maximum number of requests.
const GAVE_UP: &str = "gave-up";
/// A frame was given up earlier, because its repair would have exceeded the packet's budget.
const TOO_LATE: &str = "too-late";
/// A frame was given up earlier because the buffer was full: the buffer constraint of section 7.6 is
/// violated.
const OVERRUN: &str = "overrun";
/// Half of the number space was lost, and the receiver has resynchronised.
const RESYNC: &str = "resync";

/// A missing frame.
#[derive(Clone, Copy, Debug, Hash)]
struct Hole {
    /// Number of attempts, including one about to be made; none if the first could not have left in time.
    tries: u32,
    /// Whether the NAK has not left yet; meanwhile the timer does not run.
    waits: bool,
    /// When the last NAK left.
    asked: Noted,
    /// When the loss was detected.
    since: Noted,
}

/// A frame held out of order.
#[derive(Clone, Debug, Hash)]
struct Early<P> {
    packet: P,
    since: Noted,
    recovered: bool,
}

/// The receiver: the holes between `base` and `high`, and the frames held because of them.
#[derive(Clone, Debug, Hash)]
pub(super) struct RlpReceiver<P> {
    /// Kept by the receiver, because round trips are measured from answers to NAKs.
    pub(super) policy: TimerPolicy,
    space: SeqSpace,
    order: Order,
    live: bool,
    delay: Duration,
    window: u32,
    asks: Asks,
    /// Maximum age of a packet when it arrives; none: no limit.
    budget: Option<Duration>,
    base: Seq,
    high: Seq,
    holes: Ring<Hole>,
    hole_count: u32,
    held: Ring<Early<P>>,
    naks: VecDeque<Seq>,
    overtaken: Overtaken,
    nak_timers: StartedTimers,
}

/// The parameters of a receiver.
pub(super) struct Terms {
    pub(super) space: SeqSpace,
    pub(super) order: Order,
    pub(super) live: bool,
    pub(super) window: u32,
    pub(super) asks: Asks,
    pub(super) budget: Option<Duration>,
    pub(super) delay: Duration,
}

impl<P: Payload> RlpReceiver<P> {
    pub(super) fn new(policy: TimerPolicy, terms: Terms) -> Self {
        let Terms {
            space,
            order,
            live,
            window,
            asks,
            budget,
            delay,
        } = terms;
        Self {
            policy,
            space,
            order,
            live,
            delay,
            window,
            asks,
            budget,
            base: 0,
            high: 0,
            holes: Ring::for_span(window, space),
            hole_count: 0,
            held: Ring::for_span(window, space),
            naks: VecDeque::with_capacity(window as usize),
            overtaken: Overtaken::default(),
            nak_timers: StartedTimers::with_capacity(window),
        }
    }

    fn hole(&self, seq: Seq) -> Option<&Hole> {
        let inside =
            self.space.distance(seq, self.base) < self.space.distance(self.high, self.base);
        inside.then(|| self.holes.get(seq)).flatten()
    }

    fn close(&mut self, seq: Seq) -> Option<Hole> {
        self.hole(seq)?;
        self.hole_count -= 1;
        self.holes.remove(seq)
    }

    pub(super) fn on_data(&mut self, cx: &mut Context<'_, P>, seq: Seq, packet: P) {
        if self.space.distance(seq, self.high) < self.space.half() {
            self.on_newest(cx, seq, packet, false);
        } else if !self.live {
            self.resync(cx, seq, packet);
        } else if let Some(hole) = self.close(seq) {
            // It was only reordered, and not lost.
            cx.ledger.overtaken += 1;
            let (late, asked) = (cx.now.saturating_since(hole.since.0), !hole.waits);
            self.overtaken.note_late(cx.now, late, asked);
            self.accept(cx, seq, packet, hole.since.0, false);
        } else {
            cx.ledger.duplicates += 1;
        }
    }

    /// Takes a copy: it is redundant, or a repair without a request.
    pub(super) fn on_copy(&mut self, cx: &mut Context<'_, P>, seq: Seq, packet: P) {
        if self.space.distance(seq, self.high) < self.space.half() {
            self.on_newest(cx, seq, packet, true);
        } else if let Some(hole) = self.close(seq) {
            self.accept(cx, seq, packet, hole.since.0, true);
        } else {
            cx.ledger.duplicates += 1;
        }
    }

    pub(super) fn on_retransmission(&mut self, cx: &mut Context<'_, P>, seq: Seq, packet: P) {
        let Some(hole) = self.close(seq) else {
            cx.ledger.late += 1;
            cx.ledger.late_bytes += packet.len() as u64;
            return;
        };
        // Karn's rule: only the first NAK has an unambiguous answer.
        if hole.tries == 1 && !hole.waits {
            self.policy.sample(cx.now.saturating_since(hole.asked.0));
        }
        self.asks.note_request(false);
        self.overtaken.note_repaired();
        self.accept(cx, seq, packet, hole.since.0, true);
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
            // Usually it is the next frame.
            Order::InOrder if seq == self.base => {
                cx.deliver(packet, since, recovered);
                self.base = self.space.next(seq);
            }
            Order::InOrder => {
                self.make_room(cx, seq);
                let held = Early {
                    packet,
                    since: Noted(since),
                    recovered,
                };
                self.held.insert(seq, held);
            }
        }
        if self.base != self.high {
            self.release(cx);
        }
    }

    /// Takes a frame beyond all earlier ones.
    fn on_newest(&mut self, cx: &mut Context<'_, P>, seq: Seq, packet: P, recovered: bool) {
        if seq != self.high {
            self.miss_up_to(cx, seq);
        }
        self.asks.note_frame(false);
        self.high = self.space.next(seq);
        self.accept(cx, seq, packet, cx.now, recovered);
    }

    /// Marks every number from `high` to before `upto` as missing, and requests it.
    fn miss_up_to(&mut self, cx: &mut Context<'_, P>, upto: Seq) {
        let missed = self.space.distance(upto, self.high);
        if missed > self.window {
            // The peer keeps only a window of frames: earlier ones are lost, however long the silence was.
            self.flush(cx);
            cx.ledger.lose(u64::from(missed - self.window), false);
            self.base = self.space.add(self.high, missed - self.window);
            self.high = self.base;
        }
        let round_trip = self.policy.round_trip();
        let missed = [self.high, upto];
        let later = self.live && self.overtaken.defer(cx.now, round_trip, missed, None);
        while self.high != upto {
            self.make_room(cx, self.high);
            let hole = Hole {
                tries: 1,
                waits: true,
                asked: Noted(cx.now),
                since: Noted(cx.now),
            };
            self.holes.insert(self.high, hole);
            self.hole_count += 1;
            self.asks.note_frame(true);
            if !later {
                self.naks.push_back(self.high);
            }
            self.high = self.space.next(self.high);
            self.release(cx);
        }
    }

    /// Gives up the oldest hole if it is a window before `seq`, whose place it would need.
    fn make_room(&mut self, cx: &mut Context<'_, P>, seq: Seq) {
        if self.space.distance(seq, self.base) >= self.window {
            cx.tell(OVERRUN);
            self.give_up(cx, self.base);
            self.base = self.space.next(self.base);
        }
    }

    fn give_up(&mut self, cx: &mut Context<'_, P>, seq: Seq) {
        if self.close(seq).is_some() {
            cx.ledger.lose(1, true);
        }
    }

    /// Moves `base` over everything that is done. Afterwards `base` is missing, and within the window.
    fn release(&mut self, cx: &mut Context<'_, P>) {
        while self.base != self.high {
            if let Some(held) = self.held.remove(self.base) {
                cx.deliver(held.packet, held.since.0, held.recovered);
            } else if self.hole(self.base).is_some() {
                if self.space.distance(self.high, self.base) <= self.window {
                    return;
                }
                cx.tell(OVERRUN);
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
        self.overtaken.clear();
        self.naks.clear();
        self.nak_timers.clear();
    }

    /// Section 7.6: the receiver resynchronises on its own.
    fn resync(&mut self, cx: &mut Context<'_, P>, seq: Seq, packet: P) {
        cx.ledger.resyncs += 1;
        cx.tell(RESYNC);
        self.flush(cx);
        self.base = seq;
        self.high = self.space.next(seq);
        self.accept(cx, seq, packet, cx.now, false);
    }

    /// Forgets NAKs for closed holes, so that they do not pile up on a busy link.
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
                    .is_some_and(|hole| hole.tries == timer.attempt && !hole.waits)
        });
    }

    // ---- for the scheme

    /// The peer has sent everything up to `seq`.
    pub(super) fn on_keepalive(&mut self, cx: &mut Context<'_, P>, seq: Seq) {
        let upto = self.space.next(seq);
        let ahead = self.space.distance(upto, self.high);
        if (1..self.space.half()).contains(&ahead) {
            self.miss_up_to(cx, upto);
            self.release(cx);
        }
    }

    /// Forgets NAKs and timers of closed holes.
    pub(super) fn prune(&mut self) {
        self.prune_timers();
        self.prune_naks();
    }

    /// One-way delay of a frame: half of the response time, once that is known.
    pub(super) fn delay(&self) -> Duration {
        self.policy.srtt().map_or(self.delay, |srtt| srtt / 2)
    }

    /// Response time of a request.
    pub(super) fn answered(&self) -> Duration {
        self.policy.srtt().unwrap_or(self.delay * 2)
    }

    /// How long an answer may still arrive: until the last request has timed out.
    pub(super) fn patience(&self) -> Duration {
        self.policy.nak() * (u64::from(self.asks.ever()) + 1)
    }

    /// Sends deferred requests for frames that have not arrived in time.
    fn ask_late(&mut self, now: Instant) {
        while let Some(later) = self.overtaken.pop(now, || self.policy.round_trip()) {
            let mut seq = later.from;
            while seq != later.upto {
                if self.hole(seq).is_some_and(|hole| hole.waits) {
                    self.naks.push_back(seq);
                }
                seq = self.space.next(seq);
            }
        }
    }

    /// Repeats requests that have timed out, or gives up.
    pub(super) fn handle_timeout(&mut self, cx: &mut Context<'_, P>) {
        self.ask_late(cx.now);
        let runs = self.policy.nak();
        let late = self.answers_late(cx.now);
        while let Some(timer) = self.nak_timers.pop_expired(cx.now, runs) {
            let retries = self.asks.at_most();
            let inside = self.hole(timer.seq).is_some();
            let Some(hole) = self.holes.get_mut(timer.seq).filter(|_| inside) else {
                continue;
            };
            if hole.tries != timer.attempt || hole.waits {
                continue;
            }
            if hole.tries > 0 {
                self.asks.note_request(true);
            }
            if hole.tries < retries && late.is_none_or(|since| hole.since.0 >= since) {
                hole.tries += 1;
                hole.waits = true;
                self.naks.push_back(timer.seq);
            } else {
                let early = hole.tries < retries;
                cx.ledger.given_up_too_old += u64::from(early);
                cx.tell(if early { TOO_LATE } else { GAVE_UP });
                self.give_up(cx, timer.seq);
                self.release(cx);
            }
        }
        self.prune_timers();
    }

    /// For holes detected before that time, the answer to a request that leaves now exceeds the budget.
    fn answers_late(&self, now: Instant) -> Option<Instant> {
        let budget = self.budget?.saturating_sub(self.delay());
        Some(now + self.answered() - budget)
    }

    /// Whether requests are pending.
    pub(super) fn has_naks(&self) -> bool {
        !self.naks.is_empty()
    }

    /// The next request. After an outage of many frames on a slow link, requests wait until they are useless
    /// and would only delay new packets. Those that have waited for less than a round trip leave
    /// nevertheless, because they tell the sender of losses. A copy may still arrive for as long as an answer
    /// would.
    pub(super) fn next_nak(&mut self, now: Instant) -> Option<Frame<P>> {
        let late = self.answers_late(now);
        let in_vain = late.map(|late| late.min(now - self.answered()));
        while let Some(seq) = self.naks.pop_front() {
            let inside = self.hole(seq).is_some();
            let hole = self.holes.get_mut(seq).filter(|_| inside);
            let Some(hole) = hole.filter(|hole| hole.waits) else {
                continue;
            };
            if in_vain.is_some_and(|before| hole.since.0 < before) {
                hole.tries = 0;
                self.on_nak_left(seq, now);
                continue;
            }
            return Some(Frame::control(FrameKind::Nak, seq));
        }
        None
    }

    /// A request has left, or has been handed over.
    pub(super) fn on_nak_left(&mut self, seq: Seq, left: Instant) {
        let inside = self.hole(seq).is_some();
        if let Some(hole) = self.holes.get_mut(seq).filter(|_| inside) {
            hole.waits = false;
            hole.asked = Noted(left);
            self.nak_timers.start(left, seq, hole.tries);
        }
    }

    /// When the next request times out.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.nak_timers.deadline(|| self.policy.nak())
    }

    /// When a deferred request is due.
    pub(super) fn asks_at(&self) -> Option<Instant> {
        self.overtaken.deadline(|| self.policy.round_trip())
    }

    pub(super) fn reset(&mut self, cx: &mut Context<'_, P>) {
        self.flush(cx);
        (self.base, self.high) = (0, 0);
    }

    /// Whether nothing is missing.
    pub(super) fn is_idle(&self) -> bool {
        self.hole_count == 0
    }
}
