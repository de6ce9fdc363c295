//! A client at a flow's second end and a server at its first, on one [`Exchange`]: the common part of pages, mail and
//! terminals. A [`Script`] decides what they send, and when.

use airlane_base::Instant;
use airlane_link::mobility::Hint;

use super::exchange::{Completed, Exchange, Opener, Totals};
use super::place::FlowPlace;
use crate::packet::Packet;
use crate::probe::DelayProbe;

/// What client and server send.
pub(crate) trait Script {
    /// The time in [`Line::next`] has come for the client.
    fn begin(&mut self, now: Instant, line: &mut Line);

    /// A packet has arrived, and may have completed a transfer.
    fn follow(&mut self, now: Instant, completed: Option<Completed>, line: &mut Line);
}

/// The exchange that a script runs on, and its state.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(super) opener: Opener,
    pub(super) exchange: Exchange,
    /// When the client next begins by itself.
    pub(super) next: Option<Instant>,
    /// Durations of the transactions that count.
    pub(crate) times: DelayProbe,
    /// The number of transactions; without it, they go on until the stop.
    pub(super) count: Option<u64>,
}

impl Line {
    /// The client sends `bytes` and waits until they are complete.
    pub(super) fn ask(&mut self, bytes: u64) {
        self.exchange.ask(&mut self.opener, bytes);
    }

    fn is_finished(&self) -> bool {
        self.count.is_some_and(|count| self.times.count() >= count)
    }
}

/// One client and its server.
#[derive(Clone, Debug)]
pub(crate) struct Talk<S> {
    place: FlowPlace,
    pub(crate) line: Line,
    pub(crate) script: S,
    stopped: bool,
}

impl<S: Script> Talk<S> {
    /// Begins at `start` and ends after `count` transactions.
    pub(crate) fn new(
        place: FlowPlace,
        start: Instant,
        opener: Opener,
        count: Option<u64>,
        script: S,
    ) -> Self {
        Self {
            place,
            line: Line {
                exchange: Exchange::new(&opener, place, 0),
                opener,
                next: Some(start),
                times: DelayProbe::default(),
                count,
            },
            script,
            stopped: false,
        }
    }

    pub(super) fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        if self.stopped {
            return;
        }
        let line = &mut self.line;
        let completed = line.exchange.handle_packet(&line.opener, now, packet);
        self.script.follow(now, completed, line);
        self.stopped = self.is_finished();
    }

    pub(super) fn handle_destroyed(&mut self, packet: &Packet) {
        self.line.exchange.handle_destroyed(packet);
    }

    pub(super) fn handle_hint(&mut self, now: Instant, end: usize, hint: Hint<()>) {
        self.line.exchange.handle_hint(now, end, hint);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.stopped {
            return;
        }
        if self.line.next.take_if(|next| *next <= now).is_some() {
            self.script.begin(now, &mut self.line);
        }
        self.line.exchange.handle_timeout(now);
    }

    pub(super) fn stop(&mut self, _now: Instant) {
        self.stopped = true;
    }

    pub(super) fn poll_transmit(&mut self, now: Instant, packet: &mut Packet) -> bool {
        !self.stopped && self.line.exchange.poll_transmit(now, packet)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        if self.stopped {
            return None;
        }
        let timers = [self.line.next, self.line.exchange.poll_timeout()];
        timers.into_iter().flatten().min()
    }

    pub(super) fn is_finished(&self) -> bool {
        self.line.is_finished()
    }

    pub(super) fn place(&self) -> &FlowPlace {
        &self.place
    }

    /// Counters of all connections so far.
    pub(crate) fn totals(&self) -> Totals {
        self.line.exchange.totals()
    }
}
