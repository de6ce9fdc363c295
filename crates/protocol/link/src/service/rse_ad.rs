//! Adaptive RSE: Reed-Solomon parity frames in portions, until the receiver has enough (section 8.3 of
//! docs/spec/multi-service.md, after the schemes that Xylomenos 1999, chapter 3, discusses and does not run).
//!
//! Packets are sent and delivered as they come. After n of them the sender computes h parities and sends the
//! first h0; it keeps the others. A receiver recognises the end of a block by its last frame, by a frame of a
//! later block or by a keepalive. If it has fewer than n of the block's frames, it requests as many parities
//! as it lacks, and the sender sends them as far as it has them. It repeats a request that is not answered
//! within T_nak, at most N times in all.
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
//! Invariants: a packet is delivered at most once; a parity leaves once; the parities of the last window / n
//! blocks are kept, and n + h frames of each of as many blocks at the receiver. No request is made that the
//! remaining parities could not satisfy. A block interrupted by silence stays open, as with XOR, and a loss
//! counts as final when later blocks close its block. Left out: interleaving; parities over fewer than n
//! packets.

mod numbering;
mod receiver;
mod sender;

use airlane_base::{Duration, Instant, Payload};

use super::scheme::{Frames, Scheme};
use crate::config::{Keepalives, RseAdConfig};
use crate::context::{Context, Origin, PortFacts, earliest};
use crate::mechanism::keepalive::Keepalive;
use crate::mechanism::reed_solomon::ReedSolomon;
use crate::mechanism::timers::{LinkTiming, TimerPolicy};
use crate::wire::{Frame, FrameKind, Header, Layout};
use numbering::Numbering;
use receiver::OpenBlocks;
use sender::Parities;

const FRAMES: Frames = Frames::new(
    &Layout::CODED,
    &[
        FrameKind::Data,
        FrameKind::Parity,
        FrameKind::Nak,
        FrameKind::Keepalive,
    ],
);

/// Reed-Solomon erasure coding with parities on request.
#[derive(Clone, Debug)]
pub(crate) struct RseAd<P> {
    numbering: Numbering,
    retries: u32,
    keepalive: Keepalive,
    code: ReedSolomon,
    sender: Parities<P>,
    receiver: OpenBlocks<P>,
}

impl<P: Payload> RseAd<P> {
    /// `config` must be resolved.
    pub(crate) fn new(config: &RseAdConfig, facts: &PortFacts) -> Self {
        let packets = config.block();
        let frames = packets + config.parity();
        let numbers = facts.space(FRAMES.layout).modulus() / u64::from(frames);
        let numbers = numbers.max(2) as u32;
        let numbering = Numbering {
            packets,
            unasked: packets + config.initial(),
            frames,
            numbers,
        };
        // A block must not be requested after its number has been reused.
        let keep = config.window.unwrap_or(127) / packets;
        let keep = keep.clamp(1, (numbers / 2).max(1)) as usize;
        let retries = config.retries.unwrap_or(3);
        let timing = LinkTiming::new(facts, FRAMES.layout);
        let policy = TimerPolicy::new(config.timers.as_ref(), &timing);
        Self {
            numbering,
            retries,
            keepalive: Keepalive::new(config.keepalives.and_then(Keepalives::limit)),
            code: ReedSolomon::new(packets, config.parity()),
            sender: Parities::new(numbering, keep),
            receiver: OpenBlocks::new(numbering, keep, retries, policy, facts.is_live()),
        }
    }
}

impl<P: Payload> Scheme<P> for RseAd<P> {
    fn frames(&self) -> Frames {
        FRAMES
    }

    fn handle_frame(&mut self, cx: &mut Context<'_, P>, frame: Frame<P>) {
        let Header { kind, seq, .. } = frame.header;
        let (number, place) = (seq / self.numbering.frames, seq % self.numbering.frames);
        let known = number < self.numbering.numbers;
        let header = frame.header;
        match (kind, frame.into_packet()) {
            (FrameKind::Data | FrameKind::Parity, Some(payload)) => {
                self.receiver.receive(cx, &mut self.code, header, payload);
            }
            (FrameKind::Nak, None) if known => self.sender.on_nak(cx, number, place),
            (FrameKind::Keepalive, None) if known => self.receiver.on_keepalive(cx, seq),
            _ => cx.ledger.out_of_window += 1,
        }
        self.receiver.prune();
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_, P>) {
        self.receiver.handle_timeout(cx.now);
        let runs = self.receiver.policy.keepalive();
        self.keepalive.handle_timeout(cx.now, runs);
    }

    /// Requests, requested parities, then the unrequested parities of the last block.
    fn poll_frame(&mut self, _cx: &mut Context<'_, P>) -> Option<Frame<P>> {
        if let Some(nak) = self.receiver.next_nak() {
            return Some(nak);
        }
        let parity = self.sender.next_requested();
        let parity = parity.or_else(|| self.sender.next_unasked())?;
        self.keepalive.on_repair();
        Some(parity)
    }

    fn send(&mut self, _cx: &mut Context<'_, P>, packet: P, _from: Origin) -> Frame<P> {
        self.keepalive.on_new();
        self.sender.send(&mut self.code, packet)
    }

    fn poll_spare(&mut self, _cx: &mut Context<'_, P>) -> Option<Frame<P>> {
        let keepalive = self.keepalive.take();
        keepalive.then(|| Frame::control(FrameKind::Keepalive, self.sender.highest()))
    }

    fn start_timers(&mut self, header: &Header, left: Instant) {
        match header.kind {
            FrameKind::Nak => self.receiver.on_nak_left(header.seq, left),
            FrameKind::Data | FrameKind::Parity | FrameKind::Keepalive => {
                self.keepalive.on_left(left);
            }
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let keepalive = self.keepalive.deadline(self.receiver.policy.keepalive());
        earliest(self.receiver.poll_timeout(), keepalive)
    }

    fn set_timer_factor(&mut self, factor: f64) {
        self.receiver.policy.set_factor(factor);
    }

    fn retime(&mut self, fresh: Self) {
        self.receiver.policy.retime(&fresh.receiver.policy);
    }

    fn reset(&mut self, cx: &mut Context<'_, P>) {
        self.receiver.reset(cx);
        self.sender.reset();
        self.keepalive.reset();
    }

    fn is_idle(&self) -> bool {
        self.sender.is_idle() && self.receiver.is_idle()
    }

    /// A keepalive reveals a tail loss, which is requested until the peer gives it up.
    fn linger(&self) -> Duration {
        let policy = &self.receiver.policy;
        policy.keepalive() + policy.nak() * (u64::from(self.retries) + 1)
    }

    fn srtt(&self) -> Option<Duration> {
        self.receiver.policy.srtt()
    }
}
