//! A terminal session: keystrokes and their echoes (Xylomenos 1999, section 9.2: interactive TCP).
//!
//! A client at the second end sends each keystroke as it is typed, and the server at the first end echoes it as soon
//! as it has arrived in order. One connection in each direction carries the whole session. While a segment is not
//! acknowledged, later data waits and then leaves in one segment (RFC 896), at the client and at the server. The
//! metric is the time from a keystroke to its echo.
//!
//! The typing times depend neither on the echoes nor on the repetition.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant, Rng};

use super::exchange::Completed;
use super::talk::{Line, Script};

/// How the user types.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Typing {
    /// Bytes of a segment with one key; each further key adds one byte.
    pub(crate) keystroke: u64,
    /// Mean time between keystrokes; exponential.
    pub(crate) interval: Duration,
}

/// Keys in one direction: typed keys, or their echoes.
#[derive(Clone, Debug, Default)]
struct Keys {
    /// Keys that have not been sent yet.
    waiting: u64,
    /// For each segment that has not arrived yet: its keys, and the offset of its end in the byte stream.
    segments: VecDeque<(u64, u64)>,
    /// Bytes sent.
    sent: u64,
}

impl Keys {
    /// Bytes of the next segment, with as many of the waiting keys as a segment of `most` bytes can take; a single
    /// key takes `one` bytes.
    fn send(&mut self, one: u64, most: u64) -> u64 {
        let keys = self.waiting.min(most - one + 1);
        let bytes = one + keys - 1;
        self.waiting -= keys;
        self.sent += bytes;
        self.segments.push_back((keys, self.sent));
        bytes
    }

    /// Keys in the segments that have arrived since the last call; `bytes` is the total received so far.
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
    typing: Typing,
    random: Rng,
    typed: u64,
    keys: Keys,
    echoes: Keys,
    /// When the keys without an echo were typed, oldest first.
    unanswered: VecDeque<Instant>,
}

impl Telnet {
    pub(crate) fn new(typing: Typing, random: Rng) -> Self {
        Self {
            typing,
            random,
            typed: 0,
            keys: Keys::default(),
            echoes: Keys::default(),
            unanswered: VecDeque::new(),
        }
    }

    /// Lets each side send its waiting keys, unless it has a segment in flight.
    fn send(&mut self, line: &mut Line) {
        let one = self.typing.keystroke;
        let most = u64::from(line.opener.segment);
        let [client_idle, server_idle] = line.exchange.is_idle();
        if self.keys.waiting > 0 && client_idle {
            let bytes = self.keys.send(one, most);
            line.exchange.give_request(&mut line.opener, bytes);
        }
        if self.echoes.waiting > 0 && server_idle {
            let bytes = self.echoes.send(one, most);
            line.exchange.give_reply(bytes);
        }
    }
}

impl Script for Telnet {
    /// A key is typed.
    fn begin(&mut self, now: Instant, line: &mut Line) {
        self.keys.waiting += 1;
        self.unanswered.push_back(now);
        self.typed += 1;
        self.send(line);
        let mean = self.typing.interval.as_secs_f64();
        let interval = Duration::from_secs_f64(self.random.exponential(mean));
        let more = line.count.is_none_or(|count| self.typed < count);
        // No two keys at one instant: each is an event of its own.
        line.next = more.then(|| now + interval.max(Duration::from_nanos(1)));
    }

    /// Keys and echoes go on when the segment before them is acknowledged, whatever that completes.
    fn follow(&mut self, now: Instant, _completed: Option<Completed>, line: &mut Line) {
        let [keys, echoes] = line.exchange.arrived();
        self.echoes.waiting += self.keys.arrive(keys);
        for _ in 0..self.echoes.arrive(echoes) {
            if let Some(typed) = self.unanswered.pop_front() {
                line.times.record(now.saturating_since(typed));
            }
        }
        self.send(line);
    }
}
