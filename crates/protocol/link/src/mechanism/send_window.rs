//! The sender of a scheme with a window: packets are kept until the peer acknowledges them.
//!
//! ```text
//! base .. next    outstanding, at most `window`; a number is reused only after its acknowledgment
//! ```
//!
//! The scheme decides which frames to retransmit, and when.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant, Payload, Seq, SeqSpace};

use crate::context::Noted;
use crate::mechanism::ring::Ring;
use crate::wire::{Echo, Frame, FrameKind, Header};

/// An unacknowledged frame.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Outstanding<P> {
    pub(crate) packet: P,
    /// Number of transmissions handed over so far.
    pub(crate) attempt: u32,
    /// Whether a transmission is requested or under way; meanwhile no timer runs.
    pub(crate) waits: bool,
    /// When the original left, for round trip samples.
    pub(crate) left: Noted,
    /// The `back` field of its header.
    back: u16,
}

impl<P: Payload> Outstanding<P> {
    /// A frame with its packet.
    fn frame(&self, kind: FrameKind, seq: Seq) -> Frame<P> {
        let mut frame = Frame::with_packet(kind, seq, self.packet.clone());
        frame.header.back = self.back;
        frame
    }
}

/// What has been sent and not been acknowledged.
#[derive(Clone, Debug, Hash)]
pub(crate) struct SendWindow<P> {
    space: SeqSpace,
    window: u32,
    base: Seq,
    next: Seq,
    /// Bytes of the packets kept.
    bytes: usize,
    frames: Ring<Outstanding<P>>,
    repairs: VecDeque<Seq>,
    /// Number of repairs handed over that have not left yet.
    repairs_under_way: u32,
}

impl<P: Payload> SendWindow<P> {
    pub(crate) fn new(window: u32, space: SeqSpace) -> Self {
        Self {
            space,
            window,
            base: 0,
            next: 0,
            bytes: 0,
            frames: Ring::for_span(window, space),
            repairs: VecDeque::with_capacity(window as usize),
            repairs_under_way: 0,
        }
    }

    /// The oldest unacknowledged number.
    pub(crate) fn base(&self) -> Seq {
        self.base
    }

    /// The number of the next new packet.
    pub(crate) fn next(&self) -> Seq {
        self.next
    }

    /// The highest number sent.
    pub(crate) fn highest(&self) -> Seq {
        self.space.sub(self.next, 1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.base == self.next
    }

    /// Distance from an outstanding frame to the number of the next packet; none if it is not outstanding.
    pub(crate) fn behind_next(&self, seq: Seq) -> Option<u32> {
        self.spans(seq).then(|| self.space.distance(self.next, seq))
    }

    fn spans(&self, seq: Seq) -> bool {
        self.space.distance(seq, self.base) < self.space.distance(self.next, self.base)
    }

    /// The frame, if it is outstanding.
    pub(crate) fn get(&self, seq: Seq) -> Option<&Outstanding<P>> {
        self.spans(seq).then(|| self.frames.get(seq)).flatten()
    }

    fn get_mut(&mut self, seq: Seq) -> Option<&mut Outstanding<P>> {
        self.spans(seq).then(|| self.frames.get_mut(seq)).flatten()
    }

    /// The peer has everything before `ack`. Returns whether that is news.
    pub(crate) fn acknowledge(&mut self, ack: Seq) -> bool {
        self.acknowledge_each(ack, |_| ())
    }

    /// Like [`acknowledge`](Self::acknowledge), and calls `freed` with each frame that was outstanding until
    /// now.
    pub(crate) fn acknowledge_each(&mut self, ack: Seq, mut freed: impl FnMut(Seq)) -> bool {
        let count = self.space.distance(ack, self.base);
        if count == 0 || count > self.space.distance(self.next, self.base) {
            return false;
        }
        while self.base != ack {
            if self.forget(self.base) {
                freed(self.base);
            }
            self.base = self.space.next(self.base);
        }
        true
    }

    /// The peer has this frame, but perhaps not the earlier ones. Returns whether that is news.
    pub(crate) fn acknowledge_one(&mut self, seq: Seq) -> bool {
        let news = self.spans(seq) && self.forget(seq);
        // The base is always an outstanding frame.
        while self.base != self.next && self.frames.get(self.base).is_none() {
            self.base = self.space.next(self.base);
        }
        news
    }

    fn forget(&mut self, seq: Seq) -> bool {
        let frame = self.frames.remove(seq);
        self.bytes -= frame.as_ref().map_or(0, |frame| frame.packet.len());
        frame.is_some()
    }

    /// Bytes of the unacknowledged packets.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Requests a retransmission, unless one is requested or under way.
    pub(crate) fn repeat(&mut self, seq: Seq) {
        if let Some(frame) = self.get_mut(seq)
            && !frame.waits
        {
            frame.waits = true;
            self.repairs.push_back(seq);
        }
    }

    /// Requests a retransmission of all outstanding frames, in order.
    pub(crate) fn repeat_all(&mut self) {
        self.repairs.clear();
        let mut seq = self.base;
        while seq != self.next {
            self.repairs.push_back(seq);
            seq = self.space.next(seq);
        }
    }

    /// Whether repairs are pending.
    pub(crate) fn has_repairs(&self) -> bool {
        !self.repairs.is_empty()
    }

    /// The next repair to hand over.
    pub(crate) fn next_repair(&mut self) -> Option<Frame<P>> {
        while let Some(seq) = self.repairs.pop_front() {
            if let Some(frame) = self.get_mut(seq) {
                frame.attempt += 1;
                frame.waits = true;
                let again = frame.frame(FrameKind::Retransmission, seq);
                self.repairs_under_way += 1;
                return Some(again);
            }
        }
        None
    }

    /// Whether the window has room for a new packet.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.space.distance(self.next, self.base) < self.window
    }

    /// A copy of a frame that has been sent once, and that the peer has not requested.
    pub(crate) fn copy(&self, seq: Seq) -> Option<Frame<P>> {
        let frame = self.get(seq).filter(|f| f.attempt == 1 && !f.waits)?;
        Some(frame.frame(FrameKind::Copy, seq))
    }

    /// The frame of a new packet; the window must have room.
    pub(crate) fn send(&mut self, packet: P) -> Frame<P> {
        self.send_behind(packet, 0)
    }

    /// The frame of a new packet that must be delivered after the frame `back` before it.
    pub(crate) fn send_behind(&mut self, packet: P, back: u16) -> Frame<P> {
        debug_assert!(self.has_room(), "asked before");
        let seq = self.next;
        self.next = self.space.next(seq);
        let mut first = Frame::with_packet(FrameKind::Data, seq, packet.clone());
        first.header.back = back;
        self.bytes += packet.len();
        let frame = Outstanding {
            packet,
            attempt: 1,
            waits: true,
            left: Noted(Instant::ORIGIN),
            back,
        };
        self.frames.insert(seq, frame);
        first
    }

    /// A frame has left, or has been handed over. Returns its attempt, if it carries an outstanding packet.
    pub(crate) fn started(&mut self, header: &Header, left: Instant) -> Option<u32> {
        if header.kind == FrameKind::Retransmission {
            self.repairs_under_way = self.repairs_under_way.saturating_sub(1);
        } else if header.kind != FrameKind::Data {
            return None;
        }
        let frame = self.get_mut(header.seq)?;
        frame.waits = false;
        if header.kind == FrameKind::Data {
            frame.left = Noted(left);
        }
        Some(frame.attempt)
    }

    /// Whether repairs are pending or under way.
    pub(crate) fn repairs_pending(&self) -> bool {
        self.repairs_under_way > 0 || !self.repairs.is_empty()
    }

    /// The round trip of the link, from the echo in the header of the peer's frame.
    #[inline]
    pub(crate) fn round_trip(&self, header: &Header, now: Instant) -> Option<Duration> {
        header.echo.and_then(|echo| self.since_echoed(echo, now))
    }

    fn since_echoed(&self, echo: Echo, now: Instant) -> Option<Duration> {
        let frame = self.get(self.space.widen(echo.seq_low, self.next))?;
        (frame.left.0 > Instant::ORIGIN).then(|| {
            let round_trip = now.saturating_since(frame.left.0);
            round_trip.saturating_sub(echo.held())
        })
    }

    /// Forgets everything; what was outstanding is lost.
    pub(crate) fn reset(&mut self, lost: &mut Vec<P>) {
        while self.base != self.next {
            if let Some(frame) = self.frames.remove(self.base) {
                lost.push(frame.packet);
            }
            self.base = self.space.next(self.base);
        }
        self.repairs.clear();
        (self.base, self.next, self.bytes, self.repairs_under_way) = (0, 0, 0, 0);
    }
}

#[cfg(test)]
impl<P: Payload> SendWindow<P> {
    /// The packets kept.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &P> {
        self.outstanding().map(|frame| &frame.packet)
    }

    /// The largest number of transmissions of one frame.
    pub(crate) fn attempts(&self) -> u32 {
        let attempts = self.outstanding().map(|frame| frame.attempt);
        attempts.max().unwrap_or(0)
    }

    fn outstanding(&self) -> impl Iterator<Item = &Outstanding<P>> {
        let count = self.space.distance(self.next, self.base);
        (0..count).filter_map(|at| self.frames.get(self.space.add(self.base, at)))
    }
}
