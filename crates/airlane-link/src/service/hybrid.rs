//! Hybrid ARQ, type I and type II (sections 8.4 and 8.5 of the specification, after the schemes that
//! Xylomenos 1999, chapter 3, discusses and does not run): RLP over links that hand damaged frames
//! up, and what is left of such frames put to use.
//!
//! Type I: every frame carries r repair symbols of its own. What they cannot repair is asked for
//! again. Type II: frames carry none. A damaged copy is kept, and the receiver says how many symbols
//! it is short; so many repair symbols follow, which it joins with the copy; and so on. When a frame
//! has been lost whole, when its copy turns out to be wrong, or when its h repair symbols have all
//! been sent, it is sent again.
//!
//! ```text
//! frames DATA, RETRANSMISSION (seq, k symbols [, r repair symbols])
//!        PARITY (seq, index, repair symbols from that index on)                        type II
//!        NAK (seq, index)      index: symbols that are short, 0: the whole frame
//!        KEEPALIVE (highest seq sent)
//!        study   | service:4 type:4 | seq:8 | index:8 | check:16 |    live   see `wire`
//! symbols and their checks: see `mechanism::symbols`
//! ```
//!
//! Windows, requests, timers, keepalives, order and giving up are RLP's, with these additions. A
//! damaged frame whose header is whole reveals its own number at once, not only when a later frame
//! arrives, if the number is not further ahead than the window. When an answer has brought a copy
//! forward and is not enough, the next request goes at once and is no new attempt: there are at most
//! as many as the copy has symbols. When it has brought nothing, the next goes after T_nak, or a fade
//! would use all attempts up. What is computed counts only if the CRC-32 of the
//! frame holds: nothing wrong goes up. Frames without a packet are dropped when damaged.
//!
//! Invariants: those of RLP; one copy is kept of each missing frame, with at most h repair symbols.
//! Left out: RCPC (8.6).

use airlane_base::{Damage, Payload, Seq};

use crate::context::PortFacts;
use crate::mechanism::ring::Ring;
use crate::mechanism::symbols::{Pieces, Shape, Symbols};
use crate::wire::{Frame, FrameKind, Layout};

/// What RLP does with damaged frames, and how it answers requests.
pub(crate) trait Combining<P: Payload> {
    /// Whether PARITY frames mean anything.
    const PARITY: bool = false;
    /// Whether damaged frames are of use, so that a frame may be missed by itself.
    const DAMAGED: bool = true;

    /// A frame of a number that is missing has come, damaged or with redundancy. Its packet, if it
    /// can be had now.
    fn combine(&mut self, _frame: &Frame<P>, _seq: Seq, _damage: Option<&Damage>) -> Combined<P> {
        Combined::Useless
    }

    /// What a request for this number says.
    fn short(&self, _seq: Seq) -> u8 {
        0
    }

    /// The answer to a request for a frame of which `short` symbols are short and `sent` repair
    /// symbols have been sent.
    fn answer(&self, seq: Seq, packet: P, _short: u8, _sent: &mut u8) -> Frame<P> {
        Frame::with_packet(FrameKind::Retransmission, seq, packet)
    }

    /// The number is no longer missing.
    fn forget(&mut self, _seq: Seq) {}
}

/// What came of a frame.
#[derive(Clone, Debug)]
pub(crate) enum Combined<P> {
    /// Its packet.
    Whole(P),
    /// A copy, or a better one.
    Kept,
    /// Nothing.
    Useless,
}

/// RLP as it is: only whole frames.
#[derive(Clone, Debug)]
pub(crate) struct Plain;

impl<P: Payload> Combining<P> for Plain {
    const DAMAGED: bool = false;
}

/// Hybrid ARQ type I.
#[derive(Clone, Debug)]
pub(crate) struct Inside {
    symbols: Symbols,
    at: usize,
}

/// Hybrid ARQ type II.
#[derive(Clone, Debug)]
pub(crate) struct Increments {
    symbols: Symbols,
    most: u8,
    at: usize,
    copies: Ring<Pieces>,
}

fn header_len(facts: &PortFacts) -> usize {
    facts.codec.header_len(Layout::Symbols)
}

impl Inside {
    pub(crate) fn new(shape: Shape, facts: &PortFacts) -> Self {
        Self {
            symbols: Symbols::new(shape),
            at: header_len(facts),
        }
    }
}

impl<P: Payload> Combining<P> for Inside {
    fn combine(&mut self, frame: &Frame<P>, seq: Seq, damage: Option<&Damage>) -> Combined<P> {
        let joined = || {
            let pieces = self.symbols.received(frame, self.at, damage)?;
            let lender = frame.packet()?;
            self.symbols.join(seq, &pieces, lender)
        };
        joined().map_or(Combined::Useless, Combined::Whole)
    }
}

impl Increments {
    pub(crate) fn new(shape: Shape, window: u32, facts: &PortFacts) -> Self {
        Self {
            symbols: Symbols::new(shape),
            most: shape.most.min(255) as u8,
            at: header_len(facts),
            // A damaged frame may be a window ahead of the newest, and holes a window behind it.
            copies: Ring::for_span(2 * window, facts.space(Layout::Symbols)),
        }
    }
}

impl<P: Payload> Combining<P> for Increments {
    const PARITY: bool = true;

    fn combine(&mut self, frame: &Frame<P>, seq: Seq, damage: Option<&Damage>) -> Combined<P> {
        let Some(lender) = frame.packet() else {
            return Combined::Useless;
        };
        let Some(new) = self.symbols.received(frame, self.at, damage) else {
            return Combined::Useless;
        };
        match self.copies.get_mut(seq) {
            Some(copy) => {
                let before = copy.short();
                copy.add(new);
                if copy.short() == before {
                    return Combined::Useless;
                }
            }
            // Repair symbols alone do not tell how long their frame is.
            None if frame.header.kind == FrameKind::Parity => return Combined::Useless,
            None => self.copies.insert(seq, new),
        }
        let Some(copy) = self.copies.get(seq).filter(|copy| copy.short() == 0) else {
            return Combined::Kept;
        };
        match self.symbols.join(seq, copy, lender) {
            Some(packet) => {
                self.copies.remove(seq);
                Combined::Whole(packet)
            }
            None => {
                // A check has failed to find an error: whatever is added, it stays wrong.
                self.copies.remove(seq);
                Combined::Useless
            }
        }
    }

    fn short(&self, seq: Seq) -> u8 {
        let copy = self.copies.get(seq);
        copy.map_or(0, |copy| copy.short().min(255) as u8)
    }

    fn answer(&self, seq: Seq, packet: P, short: u8, sent: &mut u8) -> Frame<P> {
        let left = self.most - *sent;
        if short == 0 || short > left {
            return Frame::with_packet(FrameKind::Retransmission, seq, packet);
        }
        // The frame has the packet in it until its bytes are needed.
        let mut frame = Frame::with_packet(FrameKind::Parity, seq, packet);
        frame.header.index = *sent;
        frame.header.coded_len = u16::from(short);
        *sent += short;
        frame
    }

    fn forget(&mut self, seq: Seq) {
        self.copies.remove(seq);
    }
}
