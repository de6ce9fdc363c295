//! A client at a flow's second end and a server at its first, on one [`Exchange`]: what pages, mail and terminals have
//! in common. What they say, and when, is a [`Script`] of each.

use airlane_base::Instant;
use airlane_link::mobility::Hint;

use super::exchange::{Completed, Exchange, Opener, Totals};
use super::place::FlowPlace;
use crate::packet::Packet;
use crate::probe::DelayProbe;

/// What client and server say.
pub(crate) trait Script {
    /// The client's time has come, see [`Line::next`].
    fn begin(&mut self, now: Instant, line: &mut Line);

    /// A packet has come, and may have completed something.
    fn follow(&mut self, now: Instant, completed: Option<Completed>, line: &mut Line);
}

/// What a script speaks over.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(super) opener: Opener,
    pub(super) exchange: Exchange,
    /// When the client begins of its own accord.
    pub(super) next: Option<Instant>,
    /// How long each took of those that are counted.
    pub(crate) times: DelayProbe,
    /// So many are all; without it there is no end.
    pub(super) count: Option<u64>,
}

impl Line {
    /// The client sends `bytes` and waits for them to be over.
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
    /// One that begins at `start` and ends with `count` times.
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
