//! The receiver of adaptive RSE: the open blocks, and the requests.

use std::collections::VecDeque;

use airlane_base::{Instant, Payload, Seq};

use super::numbering::Numbering;
use crate::context::Context;
use crate::mechanism::blocks::{Block, Blocks};
use crate::mechanism::kept::{self, Kept};
use crate::mechanism::reed_solomon::ReedSolomon;
use crate::mechanism::started::StartedTimers;
use crate::mechanism::timers::TimerPolicy;
use crate::wire::{Frame, FrameKind, Header};

/// The progress of the requests for a block.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// Whether the sender has sent all that it sends without a request.
    over: bool,
    /// Number of requests, including one about to be sent.
    tries: u32,
    /// Whether a request has not left yet; meanwhile the timer does not run.
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

/// The number of frames that a block lacks; none if nothing is missing, or if the sender has too few left.
fn short<P>(numbering: Numbering, block: &Block<Kept<P, Asked>>) -> Option<u32> {
    let left = numbering.frames - block.end().max(numbering.unasked);
    let short = numbering.packets.saturating_sub(block.store.frames());
    (block.here < numbering.packets && (1..=left).contains(&short)).then_some(short)
}

/// The receiver: the open blocks, and the requests for completed ones.
#[derive(Clone, Debug)]
pub(super) struct OpenBlocks<P> {
    numbering: Numbering,
    retries: u32,
    /// Kept by the receiver, because round trips are measured from answers to requests.
    pub(super) policy: TimerPolicy,
    received: Blocks<Kept<P, Asked>>,
    naks: VecDeque<u32>,
    nak_timers: StartedTimers,
}

impl<P: Payload> OpenBlocks<P> {
    /// A receiver that may request parities of `keep` blocks.
    pub(super) fn new(
        numbering: Numbering,
        keep: usize,
        retries: u32,
        policy: TimerPolicy,
        live: bool,
    ) -> Self {
        let received = Blocks::new(numbering.numbers, Some(numbering.packets), live);
        Self {
            numbering,
            retries,
            policy,
            received: received.keeping(keep + 1),
            naks: VecDeque::with_capacity(keep + 1),
            nak_timers: StartedTimers::with_capacity(keep as u32 + 1),
        }
    }

    /// Takes a frame with a packet or a parity.
    pub(super) fn receive(
        &mut self,
        cx: &mut Context<'_, P>,
        code: &mut ReedSolomon,
        header: Header,
        payload: P,
    ) {
        let Numbering {
            packets,
            unasked,
            frames,
            numbers,
        } = self.numbering;
        let (number, place) = (header.seq / frames, header.seq % frames);
        let parity = header.kind == FrameKind::Parity;
        if parity != (place >= packets) || number >= numbers {
            cx.ledger.out_of_window += 1;
            return;
        }
        let before = self.received.newest();
        let mut lost = 0;
        let block = if place < unasked {
            self.received.find(number, place, &mut lost)
        } else {
            // An answer never opens a block.
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
        kept::take(block, code, cx, place, payload, header.coded_len);
        block.store.note.over |= block.end() >= unasked;
        if block.store.note.over || self.received.newest() != before {
            self.ask();
        }
    }

    /// Requests parities of every block that is complete at the sender, misses packets, and has not been
    /// requested.
    fn ask(&mut self) {
        let newest = self.received.newest();
        let numbering = self.numbering;
        for block in self.received.open_mut() {
            let number = block.number();
            let lacking = short(numbering, block);
            let asked = &mut block.store.note;
            asked.over |= newest != Some(number);
            if asked.over && asked.tries == 0 && lacking.is_some() {
                (asked.tries, asked.waits) = (1, true);
                self.naks.push_back(number);
            }
        }
    }

    /// The number of parities to request, if a request for this block still has to leave.
    fn request(&self, number: u32) -> Option<u32> {
        let block = self.received.get(number)?;
        let waits = block.store.note.waits;
        short(self.numbering, block).filter(|_| waits)
    }

    pub(super) fn prune(&mut self) {
        while let Some(number) = self.naks.front()
            && self.request(*number).is_none()
        {
            self.naks.pop_front();
        }
        let (received, numbering) = (&self.received, self.numbering);
        self.nak_timers.prune(|timer| {
            received.get(timer.seq).is_some_and(|block| {
                let asked = block.store.note;
                short(numbering, block).is_some() && asked.tries == timer.attempt && !asked.waits
            })
        });
    }

    /// The peer has sent everything up to `seq`.
    pub(super) fn on_keepalive(&mut self, cx: &mut Context<'_, P>, seq: Seq) {
        let (number, place) = (seq / self.numbering.frames, seq % self.numbering.frames);
        let mut lost = 0;
        self.received.reach(number, &mut lost);
        cx.ledger.lose(lost, false);
        let unasked = self.numbering.unasked;
        if let Some(block) = self.received.get_mut(number) {
            block.store.note.over |= place + 1 >= unasked;
        }
        self.ask();
    }

    /// Repeats requests that have timed out.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let runs = self.policy.nak();
        while let Some(timer) = self.nak_timers.pop_expired(now, runs) {
            let (numbering, retries) = (self.numbering, self.retries);
            if let Some(block) = self.received.get_mut(timer.seq)
                && short(numbering, block).is_some()
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
    }

    /// The next request.
    pub(super) fn next_nak(&mut self) -> Option<Frame<P>> {
        while let Some(number) = self.naks.pop_front() {
            if let Some(short) = self.request(number) {
                let seq = number * self.numbering.frames + short;
                return Some(Frame::control(FrameKind::Nak, seq));
            }
        }
        None
    }

    /// A request has left, or has been handed over.
    pub(super) fn on_nak_left(&mut self, seq: Seq, left: Instant) {
        let number = seq / self.numbering.frames;
        if let Some(block) = self.received.get_mut(number) {
            let asked = &mut block.store.note;
            (asked.waits, asked.at) = (false, left);
            self.nak_timers.start(left, number, asked.tries);
        }
    }

    /// When the next request times out.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.nak_timers.deadline(|| self.policy.nak())
    }

    pub(super) fn reset(&mut self, cx: &mut Context<'_, P>) {
        let lost = self.received.restart();
        cx.ledger.lose(lost, false);
        self.naks.clear();
        self.nak_timers.clear();
    }

    /// Whether no request is pending or unanswered.
    pub(super) fn is_idle(&self) -> bool {
        self.naks.is_empty() && self.nak_timers.is_empty()
    }
}
