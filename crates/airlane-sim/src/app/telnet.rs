//! A terminal session: keystrokes and their echoes (Xylomenos 1999, section 9.2: interactive TCP).
//!
//! A client at the second end sends a keystroke as it is typed, and the server at the first end
//! echoes it as soon as it has arrived in order. One connection in each direction carries the whole
//! session. While a segment is not acknowledged, what comes behind it waits and leaves in one segment
//! (RFC 896), at the client and at the server. What is measured is the time from a keystroke to its
//! echo.
//!
//! When keys are typed does not depend on the echoes and not on the repetition.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant, Rng};

use super::exchange::{Exchange, Opener, Totals};
use super::place::FlowPlace;
use crate::packet::Packet;
use crate::probe::DelayProbe;

/// How somebody types.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Typing {
    /// Bytes of a segment with one key; each further one adds a byte.
    pub(crate) keystroke: u64,
    /// Mean time between keystrokes; exponential.
    pub(crate) interval: Duration,
    pub(crate) count: Option<u64>,
}

/// Keys in one direction: typed ones, or their echoes.
#[derive(Clone, Debug, Default)]
struct Keys {
    /// Not sent yet.
    waiting: u64,
    /// Keys of each segment that has not arrived yet, and where it ends among all bytes sent.
    segments: VecDeque<(u64, u64)>,
    /// Bytes sent.
    sent: u64,
}

impl Keys {
    /// Bytes of the next segment, with as many of the waiting keys as a segment of `most` bytes takes;
    /// one key alone takes `one`.
    fn send(&mut self, one: u64, most: u64) -> u64 {
        let keys = self.waiting.min(most - one + 1);
        let bytes = one + keys - 1;
        self.waiting -= keys;
        self.sent += bytes;
        self.segments.push_back((keys, self.sent));
        bytes
    }

    /// Keys in the segments that have arrived since the last call, of `bytes` in all.
    fn arrive(&mut self, bytes: u64) -> u64 {
        let mut new = 0;
        while let Some((keys, _)) = self.segments.pop_front_if(|(_, end)| *end <= bytes) {
            new += keys;
        }
        new
    }
}

/// One terminal and its host.
#[derive(Clone, Debug)]
pub(crate) struct Telnet {
    place: FlowPlace,
    opener: Opener,
    typing: Typing,
    random: Rng,
    pub(super) exchange: Exchange,
    /// When the next key is typed.
    next: Option<Instant>,
    typed: u64,
    keys: Keys,
    echoes: Keys,
    /// When the keys without an echo were typed, oldest first.
    unanswered: VecDeque<Instant>,
    stopped: bool,
    pub(crate) times: DelayProbe,
}

impl Telnet {
    pub(crate) fn new(
        place: FlowPlace,
        start: Instant,
        opener: Opener,
        typing: Typing,
        random: Rng,
    ) -> Self {
        Self {
            place,
            exchange: Exchange::new(&opener, 0),
            opener,
            typing,
            random,
            next: Some(start),
            typed: 0,
            keys: Keys::default(),
            echoes: Keys::default(),
            unanswered: VecDeque::new(),
            stopped: false,
            times: DelayProbe::default(),
        }
    }

    pub(super) fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        if self.stopped {
            return;
        }
        self.exchange.handle_packet(&self.opener, now, packet);
        let [keys, echoes] = self.exchange.arrived();
        self.echoes.waiting += self.keys.arrive(keys);
        for _ in 0..self.echoes.arrive(echoes) {
            if let Some(typed) = self.unanswered.pop_front() {
                self.times.record(now.saturating_since(typed));
            }
        }
        self.send();
        self.stopped = self.is_finished();
    }

    /// Lets both sides send what waits, unless a segment of theirs is on its way.
    fn send(&mut self) {
        let one = self.typing.keystroke;
        let most = u64::from(self.opener.segment);
        let [client_idle, server_idle] = self.exchange.is_idle();
        if self.keys.waiting > 0 && client_idle {
            let bytes = self.keys.send(one, most);
            self.exchange.give_request(&mut self.opener, bytes);
        }
        if self.echoes.waiting > 0 && server_idle {
            let bytes = self.echoes.send(one, most);
            self.exchange.give_reply(bytes);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.stopped {
            return;
        }
        if let Some(next) = self.next
            && next <= now
        {
            self.keys.waiting += 1;
            self.unanswered.push_back(now);
            self.typed += 1;
            self.send();
            let mean = self.typing.interval.as_secs_f64();
            let interval = Duration::from_secs_f64(self.random.exponential(mean));
            let more = self.typing.count.is_none_or(|count| self.typed < count);
            // Never two at one instant: each is an event of its own.
            self.next = more.then(|| next + interval.max(Duration::from_nanos(1)));
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
        self.typing.count.is_some_and(|n| self.times.count() >= n)
    }

    pub(super) fn place(&self) -> &FlowPlace {
        &self.place
    }

    /// Counters of both connections.
    pub(crate) fn totals(&self) -> Totals {
        self.exchange.totals()
    }
}
