//! The RLP sender: the frames kept for retransmission, and the answers to requests.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant, Payload, Seq, SeqSpace};

use crate::context::{Ages, Context, Noted, Origin};
use crate::mechanism::ring::Ring;
use crate::wire::{Frame, FrameKind, Header};

/// A frame kept for retransmission.
#[derive(Clone, Debug, Hash)]
struct Outgoing<P> {
    packet: P,
    /// When its packet must have arrived to be of use; none: no limit.
    until: Option<Instant>,
    /// When it left; none: not yet.
    left: Option<Instant>,
    /// Whether a repair has been requested.
    asked: bool,
    /// Whether a repair is requested and has not left yet.
    waits: bool,
}

impl<P> Outgoing<P> {
    /// Whether a frame that leaves now would arrive too late.
    fn is_too_old(&self, now: Instant, delay: Duration) -> bool {
        self.until.is_some_and(|until| until < now + delay)
    }
}

/// The sender: the last `window` frames, whether the peer has them or not.
#[derive(Clone, Debug, Hash)]
pub(super) struct RlpSender<P> {
    space: SeqSpace,
    window: u32,
    ages: Ages,
    next: Seq,
    /// When the last frame left, of any kind.
    left: Noted,
    kept: Ring<Outgoing<P>>,
    repairs: VecDeque<Seq>,
    newest_first: bool,
}

impl<P: Payload> RlpSender<P> {
    pub(super) fn new(window: u32, ages: Ages, space: SeqSpace) -> Self {
        Self {
            space,
            window,
            ages,
            next: 0,
            left: Noted(Instant::ORIGIN),
            kept: Ring::for_span(window, space),
            repairs: VecDeque::with_capacity(window as usize),
            newest_first: false,
        }
    }

    /// The newest request is answered first: where requests wait for longer than the peer repeats them, answers in
    /// their order would all come after it has given up, and nothing new would ever be sent.
    pub(super) fn newest_first(self, newest_first: bool) -> Self {
        Self {
            newest_first,
            ..self
        }
    }

    /// The frame of a new packet.
    pub(super) fn send(&mut self, packet: P, from: Origin) -> Frame<P> {
        let seq = self.next;
        self.next = self.space.next(seq);
        // The peer can no longer request it.
        self.kept.remove(self.space.sub(seq, self.window));
        let kept = Outgoing {
            packet: packet.clone(),
            until: self.ages.end(&from),
            left: None,
            asked: false,
            waits: false,
        };
        self.kept.insert(seq, kept);
        Frame::with_packet(FrameKind::Data, seq, packet)
    }

    /// The highest number sent.
    pub(super) fn highest(&self) -> Seq {
        self.space.sub(self.next, 1)
    }

    /// A frame has left, or has been handed over.
    pub(super) fn on_left(&mut self, header: &Header, left: Instant) {
        self.left = Noted(left);
        if let Some(kept) = self.kept.get_mut(header.seq) {
            match header.kind {
                FrameKind::Data => kept.left = Some(left),
                FrameKind::Retransmission => kept.waits = false,
                _ => {}
            }
        }
    }

    /// The packet of a frame that can still be requested, and has not been.
    pub(super) fn kept(&self, now: Instant, seq: Seq, delay: Duration) -> Option<P> {
        let age = self.space.distance(self.next, seq);
        let kept = self.kept.get(seq)?;
        if kept.asked || kept.is_too_old(now, delay) {
            return None;
        }
        (1..=self.window)
            .contains(&age)
            .then(|| kept.packet.clone())
    }

    /// Takes a request. Returns when the frame left, if it is the first request for it.
    pub(super) fn on_nak(
        &mut self,
        cx: &mut Context<'_, P>,
        seq: Seq,
        delay: Duration,
    ) -> Option<Instant> {
        let age = self.space.distance(self.next, seq);
        match self.kept.get_mut(seq) {
            Some(kept) if (1..=self.window).contains(&age) => {
                let first = !std::mem::replace(&mut kept.asked, true);
                if kept.is_too_old(cx.now, delay) {
                    cx.ledger.too_old_naks += 1;
                } else if !kept.waits {
                    kept.waits = true;
                    self.repairs.push_back(seq);
                }
                kept.left.filter(|_| first)
            }
            _ => {
                cx.ledger.stale_naks += 1;
                None
            }
        }
    }

    /// The next answer to a request that still arrives in time.
    pub(super) fn next_repair(&mut self, now: Instant, delay: Duration) -> Option<Frame<P>> {
        while let Some(seq) = match self.newest_first {
            true => self.repairs.pop_back(),
            false => self.repairs.pop_front(),
        } {
            let age = self.space.distance(self.next, seq);
            if let Some(kept) = self.kept.get(seq)
                && kept.waits
                && age <= self.window
                && !kept.is_too_old(now, delay)
            {
                let packet = kept.packet.clone();
                return Some(Frame::with_packet(FrameKind::Retransmission, seq, packet));
            }
        }
        None
    }

    /// When the last frames need no longer be kept; none if something waits to leave.
    pub(super) fn forgets_at(&self, patience: Duration) -> Option<Instant> {
        let newest = self.kept.get(self.highest())?;
        let waits = newest.left.is_none() || !self.repairs.is_empty();
        (!waits).then(|| self.left.0 + patience)
    }

    /// Forgets all frames: the peer has had time to request them.
    pub(super) fn forget(&mut self) {
        self.kept.clear();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Output;
    use crate::flow::Lane;
    use crate::ledger::ServiceLedger;

    const BUDGET: Duration = Duration::from_millis(100);

    /// The repairs that leave at `now`, after three frames of packets that came at `ORIGIN` were requested in order.
    fn repairs(newest_first: bool, now: Instant) -> Vec<Seq> {
        let ages = Ages::new(Some(BUDGET), None);
        let sender = RlpSender::new(8, ages, SeqSpace::new(16));
        let mut sender = sender.newest_first(newest_first);
        let came = Origin {
            came: Some(Instant::ORIGIN),
            lane: Lane::default(),
            endures: false,
        };
        for at in 0..3 {
            sender.send(vec![at], came);
        }
        let (mut out, mut ledger) = (Output::default(), ServiceLedger::default());
        let mut cx = Context::new(Instant::ORIGIN, &mut out, &mut ledger);
        for seq in 0..3 {
            sender.on_nak(&mut cx, seq, Duration::ZERO);
        }
        std::iter::from_fn(|| sender.next_repair(now, Duration::ZERO))
            .map(|frame| frame.header.seq)
            .collect()
    }

    #[test]
    fn the_newest_request_is_answered_first_where_that_is_asked() {
        assert_eq!(repairs(true, Instant::ORIGIN), [2, 1, 0]);
        assert_eq!(repairs(false, Instant::ORIGIN), [0, 1, 2]);
    }

    #[test]
    fn a_repair_that_waited_until_it_was_too_old_does_not_leave() {
        let late = Instant::ORIGIN + BUDGET + Duration::from_millis(1);
        assert_eq!(repairs(true, late), [0; 0]);
    }
}
