//! The receiver of a scheme that buffers out-of-order frames, and requests missing ones.
//!
//! ```text
//! expected .. high     held or missing; `high` is next to the newest frame that has arrived
//! ```
//!
//! A stored packet is delivered when the window passes it, or earlier, where the order is kept only within
//! flows (`mechanism::lanes`). The scheme decides which holes to request, and when. A request that has become
//! unnecessary before it could leave is forgotten, and two pending requests for one hole are merged.

use std::collections::VecDeque;

use airlane_base::{Instant, Payload, Seq, SeqSpace};

use crate::context::{Context, Noted};
use crate::mechanism::ring::Ring;
use crate::wire::{Bitmap, Frame, FrameKind, Header};

/// The state of a number between `expected` and `high`.
#[derive(Clone, Debug, Hash)]
enum Content<P> {
    Missing,
    Held(P),
    /// Delivered while something earlier is missing.
    Delivered,
}

/// A number between `expected` and `high`.
#[derive(Clone, Debug, Hash)]
struct Place<P> {
    content: Content<P>,
    /// The frame to deliver as soon as this one has been delivered.
    next: Option<Seq>,
    /// Whether a repair brought it.
    repaired: bool,
    /// Number of NAKs for it, sent or pending.
    asked: u32,
    /// Whether a NAK for it has not been handed over yet.
    waits: bool,
    /// When it arrived, or when its loss was detected.
    since: Noted,
}

impl<P> Place<P> {
    const fn new(content: Content<P>, now: Instant) -> Self {
        Self {
            content,
            next: None,
            repaired: false,
            asked: 0,
            waits: false,
            since: Noted(now),
        }
    }

    const fn is_missing(&self) -> bool {
        matches!(self.content, Content::Missing)
    }
}

/// What a frame's number means to the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It is before the window, or beyond it.
    Outside,
    /// It has been received already.
    Held,
    /// It has been missing since then, and has been requested this many times.
    Missing { asked: u32, since: Instant },
    /// It is newer than all received frames.
    Newest,
}

/// The packets that cannot be delivered yet, and the holes before them.
#[derive(Clone, Debug, Hash)]
pub(crate) struct ReceiveWindow<P> {
    space: SeqSpace,
    window: u32,
    expected: Seq,
    high: Seq,
    places: Ring<Place<P>>,
    naks: VecDeque<Seq>,
    oldest_first: bool,
}

impl<P: Payload> ReceiveWindow<P> {
    pub(crate) fn new(window: u32, space: SeqSpace) -> Self {
        Self {
            space,
            window,
            expected: 0,
            high: 0,
            places: Ring::for_span(window, space),
            naks: VecDeque::with_capacity(window as usize),
            oldest_first: false,
        }
    }

    /// Requests leave in the order of their numbers, rather than in that in which they were made: the window, and what
    /// is delivered in order, waits for the oldest, and on a slow link a round through a window of losses takes
    /// seconds.
    pub(crate) fn oldest_first(self, oldest_first: bool) -> Self {
        Self {
            oldest_first,
            ..self
        }
    }

    /// The next number to deliver.
    pub(crate) fn expected(&self) -> Seq {
        self.expected
    }

    /// The number after the newest frame received.
    pub(crate) fn high(&self) -> Seq {
        self.high
    }

    /// The number after `seq`.
    pub(crate) fn after(&self, seq: Seq) -> Seq {
        self.space.next(seq)
    }

    /// This number, or the next one to deliver if that is later.
    pub(crate) fn inside(&self, seq: Seq) -> Seq {
        let span = self.space.distance(self.high, self.expected);
        match self.space.distance(seq, self.expected) <= span {
            true => seq,
            false => self.expected,
        }
    }

    /// Whether nothing is held, so that nothing is known to be missing.
    pub(crate) fn is_empty(&self) -> bool {
        self.expected == self.high
    }

    fn place(&self, seq: Seq) -> Option<&Place<P>> {
        let ahead = self.space.distance(seq, self.expected);
        let inside = ahead < self.space.distance(self.high, self.expected);
        inside.then(|| self.places.get(seq)).flatten()
    }

    fn is_missing(&self, seq: Seq) -> bool {
        self.place(seq).is_some_and(Place::is_missing)
    }

    /// Classifies a frame by its number.
    pub(crate) fn arrival(&self, seq: Seq) -> Arrival {
        let ahead = self.space.distance(seq, self.expected);
        if ahead >= self.window {
            return Arrival::Outside;
        }
        if ahead >= self.space.distance(self.high, self.expected) {
            return Arrival::Newest;
        }
        match self.places.get(seq) {
            Some(place) if place.is_missing() => Arrival::Missing {
                asked: place.asked,
                since: place.since.0,
            },
            _ => Arrival::Held,
        }
    }

    /// Marks everything from `high` to before `seq` as missing.
    pub(crate) fn miss_up_to(&mut self, seq: Seq, now: Instant) {
        while self.high != seq {
            self.places
                .insert(self.high, Place::new(Content::Missing, now));
            self.high = self.space.next(self.high);
        }
    }

    /// Stores a missing frame, or the newest with nothing missing between it and `high`.
    pub(crate) fn store(&mut self, seq: Seq, packet: P, original: bool, now: Instant) {
        if seq == self.high {
            let mut place = Place::new(Content::Held(packet), now);
            place.repaired = !original;
            self.places.insert(seq, place);
            self.high = self.space.next(seq);
        } else if let Some(place) = self.places.get_mut(seq) {
            place.content = Content::Held(packet);
            place.repaired = !original;
        }
    }

    /// Delivers a frame that has just been stored and those waiting for it, unless the frame `back` before it
    /// must be delivered first and has not been.
    pub(crate) fn give_behind(&mut self, cx: &mut Context<'_, P>, seq: Seq, back: u16) {
        if back == Header::BEHIND_ALL {
            return;
        }
        let (ahead, back) = (self.space.distance(seq, self.expected), u32::from(back));
        if back != 0 && back <= ahead {
            let before = self.space.sub(seq, back);
            if let Some(place) = self.places.get_mut(before)
                && !matches!(place.content, Content::Delivered)
            {
                // A correct sender names each predecessor once. Any further frame waits for all earlier ones.
                place.next.get_or_insert(seq);
                return;
            }
        }
        self.give(cx, seq);
    }

    /// Delivers a held frame, and then the chain of frames that wait for it.
    fn give(&mut self, cx: &mut Context<'_, P>, seq: Seq) {
        let mut next = Some(seq);
        while let Some(place) = next.and_then(|seq| self.places.get_mut(seq))
            && matches!(place.content, Content::Held(_))
        {
            if let Content::Held(packet) = std::mem::replace(&mut place.content, Content::Delivered)
            {
                cx.deliver(packet, place.since.0, place.repaired);
            }
            next = place.next.take();
        }
    }

    /// Delivers the next frame at once if nothing before it is missing and nothing after it is held, as is
    /// the rule. Otherwise returns the packet.
    #[inline]
    pub(crate) fn pass(
        &mut self,
        cx: &mut Context<'_, P>,
        seq: Seq,
        packet: P,
        original: bool,
    ) -> Option<P> {
        if seq != self.expected || seq != self.high {
            return Some(packet);
        }
        cx.deliver(packet, cx.now, !original);
        self.expected = self.space.next(seq);
        self.high = self.expected;
        None
    }

    /// Requests a missing frame.
    pub(crate) fn ask(&mut self, seq: Seq) {
        if self.is_missing(seq)
            && let Some(place) = self.places.get_mut(seq)
        {
            place.asked += 1;
            // One pending NAK suffices: the queue stays within the window.
            if !std::mem::replace(&mut place.waits, true) {
                let later = match self.oldest_first {
                    true => self.waiting_after(seq),
                    false => 0,
                };
                self.naks.insert(self.naks.len() - later, seq);
            }
        }
    }

    /// How many requests at the end of the queue are for later numbers.
    fn waiting_after(&self, seq: Seq) -> usize {
        let ahead = |of| self.space.distance(of, self.expected);
        // Frames that have arrived meanwhile may be before the window, which looks like far ahead of it.
        let is_later = |other: &&Seq| (ahead(seq) + 1..self.window).contains(&ahead(**other));
        self.naks.iter().rev().take_while(is_later).count()
    }

    /// Requests every missing frame before `seq` for which `wanted` holds, given the number of its requests
    /// so far; ascending.
    pub(crate) fn ask_before(&mut self, from: Seq, seq: Seq, wanted: impl Fn(u32) -> bool) {
        let mut m = from;
        while m != seq {
            if let Some(place) = self.places.get(m)
                && place.is_missing()
                && wanted(place.asked)
            {
                self.ask(m);
            }
            m = self.space.next(m);
        }
    }

    /// Delivers everything before the first hole. Returns whether the window has moved.
    pub(crate) fn release(&mut self, cx: &mut Context<'_, P>) -> bool {
        let before = self.expected;
        while self.expected != self.high {
            let seq = self.expected;
            if self.places.get(seq).is_none_or(Place::is_missing) {
                break;
            }
            self.give(cx, seq);
            self.places.remove(seq);
            self.expected = self.space.next(seq);
        }
        self.expected != before
    }

    /// Which frames from `from` on are held.
    pub(crate) fn bitmap(&self, from: Seq) -> Bitmap {
        let mut bitmap = Bitmap::EMPTY;
        let span = self.space.distance(self.high, from).min(Bitmap::SPAN);
        for at in 0..span {
            let place = self.places.get(self.space.add(from, at));
            if place.is_some_and(|place| !place.is_missing()) {
                bitmap.set(at);
            }
        }
        bitmap
    }

    /// The number of requests for a missing frame, unless one is pending.
    pub(crate) fn asked(&self, seq: Seq) -> Option<u32> {
        let place = self.place(seq)?;
        (place.is_missing() && !place.waits).then_some(place.asked)
    }

    /// Whether requests are pending.
    pub(crate) fn has_naks(&self) -> bool {
        !self.naks.is_empty()
    }

    /// The next request to hand over.
    pub(crate) fn next_nak(&mut self) -> Option<Frame<P>> {
        while let Some(seq) = self.naks.pop_front() {
            if self.is_missing(seq) {
                if let Some(place) = self.places.get_mut(seq) {
                    place.waits = false;
                }
                return Some(Frame::control(FrameKind::Nak, seq));
            }
        }
        None
    }

    /// Forgets NAKs for frames that have arrived meanwhile, so that they do not pile up on a busy link.
    pub(crate) fn prune_naks(&mut self) {
        while let Some(seq) = self.naks.front()
            && !self.is_missing(*seq)
        {
            self.naks.pop_front();
        }
    }

    /// Forgets all numbers. Held packets are delivered, missing ones are lost.
    pub(crate) fn reset(&mut self, cx: &mut Context<'_, P>) {
        while self.expected != self.high {
            if let Some(place) = self.places.remove(self.expected) {
                match place.content {
                    Content::Held(packet) => cx.deliver(packet, place.since.0, place.repaired),
                    Content::Missing => cx.ledger.lose(1, false),
                    Content::Delivered => {}
                }
            }
            self.expected = self.space.next(self.expected);
        }
        self.places.clear();
        self.naks.clear();
        (self.expected, self.high) = (0, 0);
    }
}

#[cfg(test)]
impl<P: Payload> ReceiveWindow<P> {
    /// The packets that are held out of order.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &P> {
        let count = self.space.distance(self.high, self.expected);
        let places = (0..count).map(|at| self.places.get(self.space.add(self.expected, at)));
        places.filter_map(|place| match &place?.content {
            Content::Held(packet) => Some(packet),
            Content::Missing | Content::Delivered => None,
        })
    }
}
