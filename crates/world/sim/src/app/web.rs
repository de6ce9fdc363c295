//! World Wide Web traffic by Mah's empirical model (docs/spec/multi-service.md, 5.2).
//!
//! One transaction: the client requests a page, the server returns it, the client requests each of the page's
//! embedded objects, the server returns them. The next transaction starts when the last object has arrived, or a
//! think time later. Up to `parallel` connections carry objects at once; each requests its next object as soon as it
//! has the current one.
//!
//! Sizes are drawn from one stream in the order in which they are needed: a request when it is sent, a reply when its
//! request has arrived, the number of objects when the page has arrived. The stream is the same in every repetition,
//! but the order in which requests arrive may differ.
//!
//! As in ns-2's HTTP module, a draw of zero bytes stands for 1000, and a reply fills whole packets. A request has its
//! drawn length; it takes several packets if it is too large for one, unless `requests = "one"` makes it a single
//! packet. With `bundle`, one request asks for all objects of a page, and one reply has the sum of their lengths, as
//! in the module's persistent mode. The server takes no time.

use std::sync::Arc;

use airlane_base::{Duration, Instant, Rng};
use airlane_link::mobility::Hint;

use super::exchange::{Completed, Exchange, Opener, Totals};
use super::place::FlowPlace;
use crate::packet::Packet;
use crate::probe::DelayProbe;
use crate::scenario::{FilesPerPage, WebTables};

/// Bytes that a draw of zero stands for.
const FOR_ZERO: u64 = 1_000;

/// How the client behaves.
#[derive(Clone, Debug)]
pub(crate) struct Browsing {
    pub(crate) tables: Arc<WebTables>,
    pub(crate) files: FilesPerPage,
    pub(crate) parallel: usize,
    pub(crate) think: Duration,
    pub(crate) count: Option<u64>,
    /// Whether one request asks for all objects of a page, and one reply has them all.
    pub(crate) bundle: bool,
}

/// A transaction in progress.
#[derive(Clone, Copy, Debug)]
struct Transaction {
    began: Instant,
    /// Whether the page itself has arrived; until then the number of its objects is unknown.
    page_here: bool,
    /// Objects in one reply: all objects of the page if they are bundled, else one.
    in_reply: u64,
    /// Objects not yet requested.
    to_request: u64,
    /// Replies not yet received.
    to_come: u64,
    /// Bytes of its replies.
    bytes: u64,
}

/// One client and its server.
#[derive(Clone, Debug)]
pub(crate) struct Web {
    place: FlowPlace,
    opener: Opener,
    browsing: Browsing,
    sizes: Rng,
    pub(super) exchanges: Vec<Exchange>,
    transaction: Option<Transaction>,
    /// When the next transaction begins.
    next: Option<Instant>,
    stopped: bool,
    first: Option<Instant>,
    last: Option<Instant>,
    /// Bytes of completed transactions, server to client.
    bytes: u64,

    pub(crate) times: DelayProbe,
}

impl Web {
    pub(crate) fn new(
        place: FlowPlace,
        start: Instant,
        opener: Opener,
        browsing: Browsing,
        sizes: Rng,
    ) -> Self {
        Self {
            place,
            exchanges: (0..browsing.parallel)
                .map(|slot| Exchange::new(&opener, place, slot as u8))
                .collect(),
            opener,
            browsing,
            sizes,
            transaction: None,
            next: Some(start),
            stopped: false,
            first: None,
            last: None,
            bytes: 0,
            times: DelayProbe::default(),
        }
    }

    pub(super) fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        if self.stopped {
            return;
        }
        for slot in 0..self.exchanges.len() {
            match self.exchanges[slot].handle_packet(&self.opener, now, packet) {
                Some(Completed::Request) => self.answer(slot),
                Some(Completed::Reply) => self.on_reply(now, slot),
                None => {}
            }
        }
    }

    pub(super) fn handle_destroyed(&mut self, packet: &Packet) {
        for exchange in &mut self.exchanges {
            exchange.handle_destroyed(packet);
        }
    }

    fn begin(&mut self, now: Instant) {
        self.first.get_or_insert(now);
        self.next = None;
        self.transaction = Some(Transaction {
            began: now,
            page_here: false,
            in_reply: 1,
            to_request: 0,
            to_come: 1,
            bytes: 0,
        });
        self.ask(0);
    }

    fn ask(&mut self, slot: usize) {
        let drawn = self.browsing.tables.request.draw_whole(&mut self.sizes);
        let bytes = or_for_zero(drawn);
        let most = self.opener.request.map_or(u64::MAX, u64::from);
        self.exchanges[slot].ask(&mut self.opener, bytes.min(most));
    }

    fn answer(&mut self, slot: usize) {
        let objects = self
            .transaction
            .map_or(1, |transaction| transaction.in_reply);
        let reply = &self.browsing.tables.reply;
        let drawn = (0..objects)
            .map(|_| reply.draw_whole(&mut self.sizes))
            .sum();
        let packet = u64::from(self.opener.segment);
        let bytes = or_for_zero(drawn).div_ceil(packet) * packet;
        if let Some(transaction) = &mut self.transaction {
            transaction.bytes += bytes;
        }
        self.exchanges[slot].answer(bytes);
    }

    fn on_reply(&mut self, now: Instant, slot: usize) {
        let Some(transaction) = &mut self.transaction else {
            return;
        };
        transaction.to_come -= 1;
        let idle = if transaction.page_here {
            slot..slot + 1
        } else {
            transaction.page_here = true;
            let drawn = self.browsing.tables.files.draw_whole(&mut self.sizes);
            let objects = match self.browsing.files {
                FilesPerPage::Additional => drawn,
                FilesPerPage::Total => drawn.saturating_sub(1),
            };
            if self.browsing.bundle && objects > 0 {
                transaction.in_reply = objects;
            }
            transaction.to_request = objects / transaction.in_reply;
            transaction.to_come = transaction.to_request;
            0..self.exchanges.len()
        };
        if transaction.to_come == 0 {
            self.complete(now);
            return;
        }
        for slot in idle {
            if let Some(transaction) = &mut self.transaction
                && transaction.to_request > 0
            {
                transaction.to_request -= 1;
                self.ask(slot);
            }
        }
    }

    fn complete(&mut self, now: Instant) {
        let Some(transaction) = self.transaction.take() else {
            return;
        };
        self.bytes += transaction.bytes;
        self.last = Some(now);
        self.times.record(now.saturating_since(transaction.began));
        if self.is_finished() {
            self.stopped = true;
        } else if self.browsing.think == Duration::ZERO {
            self.begin(now);
        } else {
            self.next = Some(now + self.browsing.think);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.stopped {
            return;
        }
        if self.next.is_some_and(|next| next <= now) {
            self.begin(now);
        }
        for exchange in &mut self.exchanges {
            exchange.handle_timeout(now);
        }
    }

    pub(super) fn handle_hint(&mut self, now: Instant, end: usize, hint: Hint<()>) {
        for exchange in &mut self.exchanges {
            exchange.handle_hint(now, end, hint);
        }
    }

    pub(super) fn stop(&mut self, _now: Instant) {
        self.stopped = true;
    }

    pub(super) fn poll_transmit(&mut self, now: Instant, packet: &mut Packet) -> bool {
        let mut exchanges = self.exchanges.iter_mut();
        !self.stopped && exchanges.any(|exchange| exchange.poll_transmit(now, packet))
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        if self.stopped {
            return None;
        }
        let timers = self.exchanges.iter().filter_map(Exchange::poll_timeout);
        timers.chain(self.next).min()
    }

    pub(super) fn is_finished(&self) -> bool {
        self.browsing.count.is_some_and(|n| self.times.count() >= n)
    }

    pub(super) fn place(&self) -> &FlowPlace {
        &self.place
    }

    /// When the first request was sent, if any, and when the last transaction was complete, if any.
    pub(crate) fn period(&self) -> Option<(Instant, Option<Instant>)> {
        Some((self.first?, self.last))
    }

    /// Bytes of the replies of completed transactions.
    pub(crate) fn completed_bytes(&self) -> u64 {
        self.bytes
    }

    /// Counters of all connections so far.
    pub(crate) fn totals(&self) -> Totals {
        let all = self.exchanges.iter().map(Exchange::totals);
        all.fold(Totals::default(), Totals::and)
    }
}

fn or_for_zero(drawn: u64) -> u64 {
    if drawn == 0 { FOR_ZERO } else { drawn }
}
