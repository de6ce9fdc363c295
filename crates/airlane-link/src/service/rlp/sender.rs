//! What RLP keeps of what it has sent, and the answers to requests for it.

use std::collections::VecDeque;

use airlane_base::{Payload, Seq, SeqSpace};

use crate::mechanism::ring::Ring;
use crate::service::Context;
use crate::service::hybrid::Combining;
use crate::wire::{Frame, FrameKind};

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

/// The sender: the last `window` frames, whoever has them.
#[derive(Clone, Debug)]
pub(super) struct Sender<P> {
    space: SeqSpace,
    window: u32,
    next: Seq,
    kept: Ring<Kept<P>>,
    repairs: VecDeque<Seq>,
}

impl<P: Payload> Sender<P> {
    pub(super) fn new(window: u32, space: SeqSpace) -> Self {
        Self {
            space,
            window,
            next: 0,
            kept: Ring::for_window(window, space),
            repairs: VecDeque::with_capacity(window as usize),
        }
    }

    /// The frame of a new packet.
    pub(super) fn send(&mut self, packet: P) -> Frame<P> {
        let seq = self.next;
        self.next = self.space.next(seq);
        let kept = Kept {
            packet: packet.clone(),
            waits: false,
            short: 0,
            repair: 0,
        };
        self.kept.insert(seq, kept);
        Frame::with_packet(FrameKind::Data, seq, packet)
    }

    /// The highest number sent.
    pub(super) fn highest(&self) -> Seq {
        self.space.add(self.next, u32::MAX)
    }

    pub(super) fn on_nak(&mut self, cx: &mut Context<'_, P>, seq: Seq, short: u8) {
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

    /// The next answer to a request.
    pub(super) fn next_repair(&mut self, combining: &impl Combining<P>) -> Option<Frame<P>> {
        while let Some(seq) = self.repairs.pop_front() {
            let age = self.space.distance(self.next, seq);
            if let Some(kept) = self.kept.get_mut(seq)
                && kept.waits
                && age <= self.window
            {
                let (packet, sent) = (kept.packet.clone(), &mut kept.repair);
                return Some(combining.answer(seq, packet, kept.short, sent));
            }
        }
        None
    }

    /// An answer has left: it can be asked for again.
    pub(super) fn on_repair_left(&mut self, seq: Seq) {
        if let Some(kept) = self.kept.get_mut(seq) {
            kept.waits = false;
        }
    }

    pub(super) fn reset(&mut self) {
        self.kept.clear();
        self.repairs.clear();
        self.next = 0;
    }

    /// Whether no answer is owed.
    pub(super) fn is_idle(&self) -> bool {
        self.repairs.is_empty()
    }
}
