//! Adaptive RSE: Reed-Solomon parities piece by piece, until the receiver has enough (section 8.3 of
//! the specification, after the schemes that Xylomenos 1999, chapter 3, discusses and does not run).
//!
//! Packets leave and go up as they come. After n of them the sender computes h parities and sends
//! the first h0; the others wait. A receiver that finds a block over, by its last frame, by a frame
//! of a later block or by a keepalive, and has fewer than n of its frames says how many it is short;
//! that many parities more follow, as far as there are any. It says so again when what it asked for
//! has not come within T_nak, at most N times.
//!
//! ```text
//! frames DATA, PARITY (seq, packet)    seq counts the places of all blocks modulo a multiple of
//!                                      n + h; block = seq div (n + h), place = seq mod (n + h):
//!                                      n packets, h0 parities, h - h0 parities on request
//!        NAK (seq)                     block = seq div (n + h), short = seq mod (n + h), 1 to n
//!        KEEPALIVE (seq)               the highest number sent, without parities on request
//!        study   | service:4 type:4 | seq:8 |    live   see `wire`, coded
//! ```
//!
//! Invariants: at most one delivery of a packet; a parity leaves once; the parities of the last
//! window / n blocks are kept, and n + h frames of each of as many blocks at the receiver. A request
//! that more parities than are left could not serve is not made. A block interrupted by silence
//! stays open, as with XOR, and a loss counts as final when its block is closed by later ones.
//! Left out: interleaving; parities over fewer than n packets.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant, Payload, Seq};

use super::{Context, PortFacts, Scheme, earliest};
use crate::config::{Keepalives, RseAdConfig};
use crate::mechanism::blocks::{Block, Blocks};
use crate::mechanism::keepalive::Keepalive;
use crate::mechanism::kept::{self, Kept};
use crate::mechanism::reed_solomon::ReedSolomon;
use crate::mechanism::started::StartedTimers;
use crate::mechanism::timers::{LinkTiming, TimerPolicy};
use crate::wire::{Frame, FrameKind, Header};

/// How far the receiver has come with asking for a block.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// The sender has sent all that it sends without being asked.
    over: bool,
    /// Requests sent or about to be.
    tries: u32,
    /// A request has not left yet; the timer does not run.
    waits: bool,
    /// When the last request left.
    at: Instant,
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            over: false,
            tries: 0,
            waits: false,
            at: Instant::ORIGIN,
        }
    }
}

/// The parities of a block that have not left.
#[derive(Clone, Debug)]
struct Spare<P> {
    parities: VecDeque<Frame<P>>,
    /// How many of them are asked for.
    wanted: u32,
}

/// Reed-Solomon erasure coding with parities on request.
#[derive(Clone, Debug)]
pub(crate) struct RseAd<P> {
    shape: Shape,
    /// How many blocks have a number of their own.
    numbers: u32,
    /// How many blocks may still be asked for.
    keep: usize,
    retries: u32,
    policy: TimerPolicy,
    keepalive: Keepalive,
    code: ReedSolomon,

    /// The block being sent, and its packets.
    number: u32,
    block: Vec<P>,
    /// Parities that leave without being asked for.
    first: VecDeque<Frame<P>>,
    /// Of the blocks before, the newest last.
    spare: VecDeque<Spare<P>>,
    /// Blocks of which parities are asked for.
    requests: VecDeque<u32>,
    highest: Seq,

    received: Blocks<Kept<P, Asked>>,
    naks: VecDeque<u32>,
    nak_timers: StartedTimers,
}

/// n, n + h0 and n + h.
#[derive(Clone, Copy, Debug)]
struct Shape {
    packets: u32,
    unasked: u32,
    frames: u32,
}

impl Shape {
    /// How many frames of a block are lacking that the sender can still send; none if that is not
    /// enough, or nothing is lacking.
    fn short<P>(self, block: &Block<Kept<P, Asked>>) -> Option<u32> {
        let left = self.frames - block.end().max(self.unasked);
        let short = self.packets.saturating_sub(block.store.frames());
        (block.here < self.packets && (1..=left).contains(&short)).then_some(short)
    }
}

impl<P: Payload> RseAd<P> {
    /// `config` must be resolved.
    pub(crate) fn new(config: &RseAdConfig, facts: &PortFacts, timing: &LinkTiming) -> Self {
        let packets = config.block();
        let shape = Shape {
            packets,
            unasked: packets + config.initial(),
            frames: packets + config.parity(),
        };
        let numbers = facts.space().modulus() / u64::from(shape.frames);
        let numbers = numbers.max(2) as u32;
        // A block must not be asked for when its number means another one.
        let keep = config.window.unwrap_or(127) / packets;
        let keep = keep.clamp(1, (numbers / 2).max(1)) as usize;
        Self {
            shape,
            numbers,
            keep,
            retries: config.retries.unwrap_or(3),
            policy: TimerPolicy::new(config.timers.as_ref(), timing),
            keepalive: Keepalive::new(config.keepalives.and_then(Keepalives::limit)),
            code: ReedSolomon::new(packets, config.parity()),
            number: 0,
            block: Vec::with_capacity(packets as usize),
            first: VecDeque::with_capacity(config.initial() as usize),
            spare: VecDeque::with_capacity(keep + 1),
            requests: VecDeque::with_capacity(keep),
            highest: 0,
            received: Blocks::new(numbers, Some(packets), facts.is_live()).keeping(keep + 1),
            naks: VecDeque::with_capacity(keep + 1),
            nak_timers: StartedTimers::with_capacity(keep as u32 + 1),
        }
    }

    // ---- sender

    /// Makes the parities of the full block and begins the next.
    fn close(&mut self) {
        let first = self.number * self.shape.frames + self.shape.packets;
        let unasked = self.number * self.shape.frames + self.shape.unasked;
        let mut spare = if self.spare.len() == self.keep {
            self.spare.pop_front()
        } else {
            None
        }
        .map_or_else(VecDeque::new, |oldest| oldest.parities);
        spare.clear();
        let (mut seq, unasked_for) = (first, &mut self.first);
        let made = self.code.encode(&self.block, |coded_len, parity| {
            let header = Header {
                coded_len,
                ..Header::new(FrameKind::Parity, seq)
            };
            let queue = if seq < unasked {
                &mut *unasked_for
            } else {
                &mut spare
            };
            seq += 1;
            queue.push_back(Frame {
                header,
                payload: Some(parity),
            });
        });
        debug_assert!(made.is_ok(), "checked: blocks of this shape can be coded");
        self.spare.push_back(Spare {
            parities: spare,
            wanted: 0,
        });
        self.number = (self.number + 1) % self.numbers;
        self.block.clear();
    }

    /// What is left of a block that was sent.
    fn spare_of(&mut self, number: u32) -> Option<&mut Spare<P>> {
        let ago = if self.number >= number {
            self.number - number
        } else {
            self.number + (self.numbers - number)
        };
        let at = self.spare.len().checked_sub(ago as usize)?;
        self.spare.get_mut(at)
    }

    fn on_nak(&mut self, cx: &mut Context<'_, P>, number: u32, short: u32) {
        match self.spare_of(number) {
            Some(spare) if short > 0 && !spare.parities.is_empty() => {
                let idle = spare.wanted == 0;
                let wanted = short.min(spare.parities.len() as u32);
                // What is on its way out already counts.
                spare.wanted = spare.wanted.max(wanted);
                if idle {
                    self.requests.push_back(number);
                }
            }
            _ => cx.ledger.stale_naks += 1,
        }
    }

    fn next_requested(&mut self) -> Option<Frame<P>> {
        while let Some(number) = self.requests.front().copied() {
            if let Some(spare) = self.spare_of(number)
                && spare.wanted > 0
                && let Some(parity) = spare.parities.pop_front()
            {
                spare.wanted -= 1;
                return Some(parity);
            }
            self.requests.pop_front();
        }
        None
    }

    // ---- receiver

    fn receive(&mut self, cx: &mut Context<'_, P>, header: Header, payload: P) {
        let Shape {
            packets,
            unasked,
            frames,
        } = self.shape;
        let (number, place) = (header.seq / frames, header.seq % frames);
        let parity = header.kind == FrameKind::Parity;
        if parity != (place >= packets) || number >= self.numbers {
            cx.ledger.out_of_window += 1;
            return;
        }
        let before = self.received.newest();
        let mut lost = 0;
        let block = if place < unasked {
            self.received.find(number, place, &mut lost)
        } else {
            // An answer: it never begins a block.
            self.received.get_mut(number)
        };
        cx.ledger.lose(lost, false);
        let Some(block) = block else {
            cx.ledger.repeat(place < unasked, payload.len());
            return;
        };
        if block.has(place) {
            cx.ledger.repeat(place < unasked, payload.len());
            return;
        }
        let asked = block.store.note;
        if place >= unasked && asked.tries == 1 && !asked.waits {
            self.policy.sample(cx.now.saturating_since(asked.at));
        }
        kept::take(block, &mut self.code, cx, place, payload, header.coded_len);
        block.store.note.over |= block.end() >= unasked;
        if block.store.note.over || self.received.newest() != before {
            self.ask();
        }
    }

    /// Asks for every block that is over, misses packets, and has not been asked for.
    fn ask(&mut self) {
        let newest = self.received.newest();
        let shape = self.shape;
        for block in self.received.open_mut() {
            let number = block.number();
            let short = shape.short(block);
            let asked = &mut block.store.note;
            asked.over |= newest != Some(number);
            if asked.over && asked.tries == 0 && short.is_some() {
                (asked.tries, asked.waits) = (1, true);
                self.naks.push_back(number);
            }
        }
    }

    /// How many parities to ask for, if a request for this block still has to leave.
    fn request(&self, number: u32) -> Option<u32> {
        let block = self.received.get(number)?;
        let waits = block.store.note.waits;
        self.shape.short(block).filter(|_| waits)
    }

    fn prune(&mut self) {
        while let Some(number) = self.naks.front()
            && self.request(*number).is_none()
        {
            self.naks.pop_front();
        }
        let (received, shape) = (&self.received, self.shape);
        self.nak_timers.prune(|timer| {
            received.get(timer.seq).is_some_and(|block| {
                let asked = block.store.note;
                shape.short(block).is_some() && asked.tries == timer.attempt && !asked.waits
            })
        });
    }
}

impl<P: Payload> Scheme<P> for RseAd<P> {
    fn handle_frame(&mut self, cx: &mut Context<'_, P>, frame: Frame<P>) {
        let Header { kind, seq, .. } = frame.header;
        let (number, place) = (seq / self.shape.frames, seq % self.shape.frames);
        match (kind, frame.payload) {
            (FrameKind::Data | FrameKind::Parity, Some(payload)) => {
                self.receive(cx, frame.header, payload);
            }
            (FrameKind::Nak, None) if number < self.numbers => self.on_nak(cx, number, place),
            (FrameKind::Keepalive, None) if number < self.numbers => {
                let mut lost = 0;
                self.received.reach(number, &mut lost);
                cx.ledger.lose(lost, false);
                let unasked = self.shape.unasked;
                if let Some(block) = self.received.get_mut(number) {
                    block.store.note.over |= place + 1 >= unasked;
                }
                self.ask();
            }
            _ => cx.ledger.out_of_window += 1,
        }
        self.prune();
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_, P>) {
        let runs = self.policy.nak();
        while let Some(timer) = self.nak_timers.pop_expired(cx.now, runs) {
            let (shape, retries) = (self.shape, self.retries);
            if let Some(block) = self.received.get_mut(timer.seq)
                && shape.short(block).is_some()
            {
                let asked = &mut block.store.note;
                if asked.tries == timer.attempt && !asked.waits && asked.tries < retries {
                    asked.tries += 1;
                    asked.waits = true;
                    self.naks.push_back(timer.seq);
                }
            }
        }
        self.prune();
        let runs = self.policy.keepalive();
        self.keepalive.handle_timeout(cx.now, runs);
    }

    /// Requests, parities that were asked for, what is due of the last block, then what is new.
    fn poll_frame(
        &mut self,
        _cx: &mut Context<'_, P>,
        source: &mut dyn FnMut() -> Option<P>,
    ) -> Option<Frame<P>> {
        while let Some(number) = self.naks.pop_front() {
            if let Some(short) = self.request(number) {
                let seq = number * self.shape.frames + short;
                return Some(Frame::control(FrameKind::Nak, seq));
            }
        }
        if let Some(parity) = self.next_requested() {
            self.keepalive.on_repair();
            return Some(parity);
        }
        if let Some(parity) = self.first.pop_front() {
            self.keepalive.on_repair();
            self.highest = parity.header.seq;
            return Some(parity);
        }
        if let Some(packet) = source() {
            let seq = self.number * self.shape.frames + self.block.len() as u32;
            self.block.push(packet.clone());
            if self.block.len() as u32 == self.shape.packets {
                self.close();
            }
            self.highest = seq;
            self.keepalive.on_new();
            return Some(Frame::with_packet(FrameKind::Data, seq, packet));
        }
        let keepalive = self.keepalive.take();
        keepalive.then(|| Frame::control(FrameKind::Keepalive, self.highest))
    }

    fn start_timers(&mut self, header: &Header, left: Instant) {
        match header.kind {
            FrameKind::Nak => {
                let number = header.seq / self.shape.frames;
                if let Some(block) = self.received.get_mut(number) {
                    let asked = &mut block.store.note;
                    (asked.waits, asked.at) = (false, left);
                    self.nak_timers.start(left, number, asked.tries);
                }
            }
            FrameKind::Data | FrameKind::Parity | FrameKind::Keepalive => {
                self.keepalive.on_left(left);
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
        let lost = self.received.restart();
        cx.ledger.lose(lost, false);
        (self.number, self.highest) = (0, 0);
        self.block.clear();
        self.first.clear();
        self.spare.clear();
        self.requests.clear();
        self.naks.clear();
        self.nak_timers.clear();
        self.keepalive.reset();
        (0, 0)
    }

    fn is_idle(&self) -> bool {
        let asks = !self.naks.is_empty() || self.nak_timers.deadline(Duration::ZERO).is_some();
        self.first.is_empty() && self.requests.is_empty() && !asks
    }

    /// A lost tail is noticed by a keepalive, and asked for until the peer gives it up.
    fn linger(&self) -> Duration {
        self.policy.keepalive() + self.policy.nak() * (u64::from(self.retries) + 1)
    }

    fn srtt(&self) -> Option<Duration> {
        self.policy.srtt()
    }
}
