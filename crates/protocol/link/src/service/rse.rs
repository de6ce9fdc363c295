//! RSE: Reed-Solomon parity frames after each block of packets (section 8.2 of docs/spec/multi-service.md,
//! after the schemes that Xylomenos 1999, chapter 3, discusses and does not run).
//!
//! Packets are sent and delivered as they come. After n of them follow h parities, and any n of the n + h
//! frames restore the others: h losses in a block, at any positions, are repaired without feedback.
//!
//! ```text
//! frames DATA, PARITY (seq, packet)    seq counts all frames modulo a multiple of n + h;
//!                                      block = seq div (n + h), the parities have the last places
//!        study   | service:4 type:4 | seq:8 |    live   see `wire`, coded
//! ```
//!
//! Invariants: a packet is delivered at most once; packets are recovered exactly when n frames of their block
//! have arrived; n + h frames are kept of each open block, and n of the one being sent. A block interrupted
//! by silence stays open, as with XOR. Left out: interleaving. Parities on request (8.3) are `rse-ad`.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant, Payload};

use super::scheme::{Frames, Scheme};
use crate::context::{Context, Origin, PortFacts};
use crate::mechanism::blocks::Blocks;
use crate::mechanism::kept::{self, Kept};
use crate::mechanism::reed_solomon::ReedSolomon;
use crate::wire::{Frame, FrameKind, Header, Layout};

const FRAMES: Frames = Frames::new(&Layout::CODED, &[FrameKind::Data, FrameKind::Parity]);

/// Reed-Solomon erasure coding.
#[derive(Clone, Debug)]
pub(crate) struct Rse<P> {
    /// n and n + h.
    packets: u32,
    frames: u32,
    /// Size of the block number space.
    numbers: u32,
    on_its_way: Duration,
    code: ReedSolomon,

    /// The block being sent, and its packets.
    number: u32,
    block: Vec<P>,
    parities: VecDeque<Frame<P>>,

    received: Blocks<Kept<P>>,
}

impl<P: Payload> Rse<P> {
    /// Blocks of `packets` packets and `parities` parity frames.
    pub(crate) fn new(packets: u32, parities: u32, facts: &PortFacts) -> Self {
        let frames = packets + parities;
        let numbers = (facts.space(FRAMES.layout).modulus() / u64::from(frames)).max(1) as u32;
        Self {
            packets,
            frames,
            numbers,
            on_its_way: facts.on_its_way(FRAMES.layout),
            code: ReedSolomon::new(packets, parities),
            number: 0,
            block: Vec::with_capacity(packets as usize),
            parities: VecDeque::with_capacity(parities as usize),
            received: Blocks::new(numbers, Some(packets), facts.is_live()),
        }
    }

    /// Computes the parities of the full block and begins the next.
    fn close(&mut self) {
        let mut seq = self.number * self.frames + self.packets;
        let parities = &mut self.parities;
        let made = self.code.encode(&self.block, |coded_len, parity| {
            let header = Header {
                coded_len,
                ..Header::new(FrameKind::Parity, seq)
            };
            seq += 1;
            parities.push_back(Frame::new(header, Some(parity)));
        });
        debug_assert!(made.is_ok(), "checked: blocks of this shape can be coded");
        self.number = (self.number + 1) % self.numbers;
        self.block.clear();
    }
}

impl<P: Payload> Scheme<P> for Rse<P> {
    fn frames(&self) -> Frames {
        FRAMES
    }

    fn handle_frame(&mut self, cx: &mut Context<'_, P>, frame: Frame<P>) {
        let Header { kind, seq, .. } = frame.header;
        let (number, place) = (seq / self.frames, seq % self.frames);
        let parity = kind == FrameKind::Parity;
        let fits = parity == (place >= self.packets) && number < self.numbers;
        let coded_len = frame.header.coded_len;
        let Some(payload) = frame.into_packet().filter(|_| fits) else {
            cx.ledger.out_of_window += 1;
            return;
        };
        let mut lost = 0;
        let block = self.received.find(number, place, &mut lost);
        cx.ledger.lose(lost, false);
        let Some(block) = block else {
            cx.ledger.out_of_window += 1;
            return;
        };
        if block.has(place) {
            cx.ledger.duplicates += 1;
            return;
        }
        kept::take(block, &mut self.code, cx, place, payload, coded_len);
    }

    fn handle_timeout(&mut self, _cx: &mut Context<'_, P>) {}

    fn poll_frame(&mut self, _cx: &mut Context<'_, P>) -> Option<Frame<P>> {
        self.parities.pop_front()
    }

    fn has_frames(&self) -> bool {
        !self.parities.is_empty()
    }

    fn send(&mut self, _cx: &mut Context<'_, P>, packet: P, _from: Origin) -> Frame<P> {
        let seq = self.number * self.frames + self.block.len() as u32;
        self.block.push(packet.clone());
        if self.block.len() as u32 == self.packets {
            self.close();
        }
        Frame::with_packet(FrameKind::Data, seq, packet)
    }

    fn start_timers(&mut self, _header: &Header, _left: Instant) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn set_timer_factor(&mut self, _factor: f64) {}

    fn retime(&mut self, fresh: Self) {
        self.on_its_way = fresh.on_its_way;
    }

    fn reset(&mut self, cx: &mut Context<'_, P>) {
        let lost = self.received.restart();
        cx.ledger.lose(lost, false);
        self.number = 0;
        self.block.clear();
        self.parities.clear();
    }

    fn is_idle(&self) -> bool {
        self.parities.is_empty()
    }

    fn linger(&self) -> Duration {
        self.on_its_way
    }
}
