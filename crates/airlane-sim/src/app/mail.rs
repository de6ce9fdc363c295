//! Mail checks in the manner of POP3 (RFC 1939; Xylomenos 1999, section 9.2): not interactive, but
//! bidirectional.
//!
//! A client at the second end takes turns with a server at the first: short commands and responses
//! (log in, ask what there is), then one command for each message and the message itself, and a last
//! short turn. Each check has fresh TCP state, its turns share it. What is measured is the time from
//! the first command to the last response.
//!
//! Message sizes are exponential and drawn when the command for them arrives; they do not change with
//! the repetition.

use airlane_base::{Duration, Instant, Rng};

use super::exchange::{Completed, Exchange, Opener, Totals};
use super::place::FlowPlace;
use crate::packet::Packet;
use crate::probe::DelayProbe;

/// What a check takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MailCheck {
    /// Short turns, the last of them after the messages.
    pub(crate) turns: u32,
    /// Bytes.
    pub(crate) command: u64,
    /// Bytes.
    pub(crate) response: u64,
    pub(crate) messages: u32,
    /// Mean bytes of a message.
    pub(crate) message: u64,
    pub(crate) pause: Duration,
    pub(crate) count: Option<u64>,
}

impl MailCheck {
    /// Whether turn `turn`, from 0, brings a message.
    fn is_message(&self, turn: u32) -> bool {
        let first = self.turns - 1;
        (first..first + self.messages).contains(&turn)
    }
}

/// One mail reader and its server.
#[derive(Clone, Debug)]
pub(crate) struct Mail {
    place: FlowPlace,
    opener: Opener,
    check: MailCheck,
    sizes: Rng,
    pub(super) exchange: Exchange,
    /// When the next check begins.
    next: Option<Instant>,
    began: Instant,
    /// The turn on its way.
    turn: u32,
    stopped: bool,
    pub(crate) times: DelayProbe,
}

impl Mail {
    pub(crate) fn new(
        place: FlowPlace,
        start: Instant,
        opener: Opener,
        check: MailCheck,
        sizes: Rng,
    ) -> Self {
        Self {
            place,
            exchange: Exchange::new(&opener, 0),
            opener,
            check,
            sizes,
            next: Some(start),
            began: start,
            turn: 0,
            stopped: false,
            times: DelayProbe::default(),
        }
    }

    pub(super) fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        if self.stopped {
            return;
        }
        match self.exchange.handle_packet(&self.opener, now, packet) {
            Some(Completed::Request) => {
                let bytes = if self.check.is_message(self.turn) {
                    let drawn = self.sizes.exponential(self.check.message as f64);
                    (drawn as u64).max(1)
                } else {
                    self.check.response
                };
                self.exchange.answer(bytes);
            }
            Some(Completed::Reply) => {
                self.turn += 1;
                if self.turn < self.check.turns + self.check.messages {
                    self.exchange.ask(&mut self.opener, self.check.command);
                    return;
                }
                self.times.record(now.saturating_since(self.began));
                self.exchange.close();
                self.next = Some(now + self.check.pause);
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
            self.began = now;
            self.turn = 0;
            self.exchange.ask(&mut self.opener, self.check.command);
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
        self.check.count.is_some_and(|n| self.times.count() >= n)
    }

    pub(super) fn place(&self) -> &FlowPlace {
        &self.place
    }

    /// Counters of all connections so far.
    pub(crate) fn totals(&self) -> Totals {
        self.exchange.totals()
    }
}
