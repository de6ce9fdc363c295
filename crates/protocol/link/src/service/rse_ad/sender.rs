//! The sender of adaptive RSE: the frames that it sends unrequested, and the parities kept for requests.

use std::collections::VecDeque;

use airlane_base::{Payload, Seq};

use super::numbering::Numbering;
use crate::context::Context;
use crate::mechanism::reed_solomon::ReedSolomon;
use crate::wire::{Frame, FrameKind, Header};

/// The parities of a block that have not left.
#[derive(Clone, Debug)]
struct Spare<P> {
    parities: VecDeque<Frame<P>>,
    /// Number of requested parities among them.
    wanted: u32,
}

/// The sender: the block being filled, and the parities of earlier ones.
#[derive(Clone, Debug)]
pub(super) struct Parities<P> {
    numbering: Numbering,
    /// Number of blocks that can still be requested.
    keep: usize,
    /// The block being sent, and its packets.
    number: u32,
    block: Vec<P>,
    /// Parities that leave without a request.
    first: VecDeque<Frame<P>>,
    /// Parities of earlier blocks, the newest last.
    spare: VecDeque<Spare<P>>,
    /// Blocks with requested parities.
    requests: VecDeque<u32>,
    highest: Seq,
}

impl<P: Payload> Parities<P> {
    pub(super) fn new(numbering: Numbering, keep: usize) -> Self {
        Self {
            numbering,
            keep,
            number: 0,
            block: Vec::with_capacity(numbering.packets as usize),
            first: VecDeque::with_capacity((numbering.unasked - numbering.packets) as usize),
            spare: VecDeque::with_capacity(keep + 1),
            requests: VecDeque::with_capacity(keep),
            highest: 0,
        }
    }

    /// The highest number sent, without parities on request.
    pub(super) fn highest(&self) -> Seq {
        self.highest
    }

    /// The frame of a new packet.
    pub(super) fn send(&mut self, code: &mut ReedSolomon, packet: P) -> Frame<P> {
        let seq = self.number * self.numbering.frames + self.block.len() as u32;
        self.block.push(packet.clone());
        if self.block.len() as u32 == self.numbering.packets {
            self.close(code);
        }
        self.highest = seq;
        Frame::with_packet(FrameKind::Data, seq, packet)
    }

    /// The next unrequested parity of the last block.
    pub(super) fn next_unasked(&mut self) -> Option<Frame<P>> {
        let parity = self.first.pop_front()?;
        self.highest = parity.header.seq;
        Some(parity)
    }

    /// The next requested parity.
    pub(super) fn next_requested(&mut self) -> Option<Frame<P>> {
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

    /// Computes the parities of the full block and begins the next.
    fn close(&mut self, code: &mut ReedSolomon) {
        let first = self.number * self.numbering.frames + self.numbering.packets;
        let unasked = self.number * self.numbering.frames + self.numbering.unasked;
        let mut spare = if self.spare.len() == self.keep {
            self.spare.pop_front()
        } else {
            None
        }
        .map_or_else(VecDeque::new, |oldest| oldest.parities);
        spare.clear();
        let (mut seq, unasked_for) = (first, &mut self.first);
        let made = code.encode(&self.block, |coded_len, parity| {
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
            queue.push_back(Frame::new(header, Some(parity)));
        });
        debug_assert!(
            made.is_ok(),
            "checked: blocks of this numbering can be coded"
        );
        self.spare.push_back(Spare {
            parities: spare,
            wanted: 0,
        });
        self.number = (self.number + 1) % self.numbering.numbers;
        self.block.clear();
    }

    /// The remaining parities of a block that was sent.
    fn spare_of(&mut self, number: u32) -> Option<&mut Spare<P>> {
        let ago = if self.number >= number {
            self.number - number
        } else {
            self.number + (self.numbering.numbers - number)
        };
        let at = self.spare.len().checked_sub(ago as usize)?;
        self.spare.get_mut(at)
    }

    pub(super) fn on_nak(&mut self, cx: &mut Context<'_, P>, number: u32, short: u32) {
        match self.spare_of(number) {
            Some(spare) if short > 0 && !spare.parities.is_empty() => {
                let idle = spare.wanted == 0;
                let wanted = short.min(spare.parities.len() as u32);
                // Parities already on their way out count.
                spare.wanted = spare.wanted.max(wanted);
                if idle {
                    self.requests.push_back(number);
                }
            }
            _ => cx.ledger.stale_naks += 1,
        }
    }

    pub(super) fn reset(&mut self) {
        (self.number, self.highest) = (0, 0);
        self.block.clear();
        self.first.clear();
        self.spare.clear();
        self.requests.clear();
    }

    /// Whether no parity is owed.
    pub(super) fn is_idle(&self) -> bool {
        self.first.is_empty() && self.requests.is_empty()
    }
}
