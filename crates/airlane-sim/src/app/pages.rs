//! Page fetches of fixed sizes: request and reply, each over fresh TCP state, one page at a time.
//!
//! A client at the second end sends a request against the main direction; when the server at the
//! first end has all of it, the reply comes back at once (no processing time). A page is complete
//! when the client has the whole reply; after a pause the next request goes out.
//!
//! The empirical model with embedded objects is [`web`](super::web).

use airlane_base::{Duration, Instant};

use super::exchange::{Completed, Exchange, Opener, Totals};
use super::place::FlowPlace;
use crate::packet::Packet;
use crate::probe::DelayProbe;

/// What one page takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    /// Bytes.
    pub(crate) request: u64,
    /// Bytes.
    pub(crate) reply: u64,
    pub(crate) pause: Duration,
    pub(crate) count: Option<u64>,
}

/// One client and its server.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    place: FlowPlace,
    opener: Opener,
    page: Page,
    pub(super) exchange: Exchange,
    /// When the next request goes out.
    next: Option<Instant>,
    stopped: bool,
    asked: Instant,
    first: Option<Instant>,
    last: Option<Instant>,
    pub(crate) times: DelayProbe,
}

impl Pages {
    pub(crate) fn new(place: FlowPlace, start: Instant, opener: Opener, page: Page) -> Self {
        Self {
            place,
            exchange: Exchange::new(&opener, 0),
            opener,
            page,
            next: Some(start),
            stopped: false,
            asked: start,
            first: None,
            last: None,
            times: DelayProbe::default(),
        }
    }

    pub(super) fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        if self.stopped {
            return;
        }
        match self.exchange.handle_packet(&self.opener, now, packet) {
            Some(Completed::Request) => self.exchange.answer(self.page.reply),
            Some(Completed::Reply) => {
                self.times.record(now.saturating_since(self.asked));
                self.last = Some(now);
                self.next = Some(now + self.page.pause);
                self.stopped = self.is_finished();
            }
            None => {}
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.stopped {
            return;
        }
        if self.next.is_some_and(|next| next <= now) {
            self.next = None;
            self.first.get_or_insert(now);
            self.asked = now;
            self.exchange.ask(&mut self.opener, self.page.request);
        }
        self.exchange.handle_timeout(now);
    }

    pub(super) fn stop(&mut self, _now: Instant) {
        self.stopped = true;
    }

    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        if self.stopped {
            return None;
        }
        self.exchange.poll_transmit(&self.place, now)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        if self.stopped {
            return None;
        }
        let timers = [self.next, self.exchange.poll_timeout()];
        timers.into_iter().flatten().min()
    }

    pub(super) fn is_finished(&self) -> bool {
        self.page.count.is_some_and(|n| self.times.count() >= n)
    }

    pub(super) fn place(&self) -> &FlowPlace {
        &self.place
    }

    /// Time from the first request to the last complete reply, and the bytes of complete replies.
    pub(crate) fn completed(&self) -> Option<(Duration, u64)> {
        let bytes = self.page.reply * self.times.count();
        Some((self.last?.saturating_since(self.first?), bytes))
    }

    /// Counters of all connections so far.
    pub(crate) fn totals(&self) -> Totals {
        self.exchange.totals()
    }
}
