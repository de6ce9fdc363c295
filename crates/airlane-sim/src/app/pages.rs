//! Page fetches: request and reply, each over fresh TCP state, one page at a time.
//!
//! A client at the second end sends a request against the main direction; when the server at the
//! first end has all of it, the reply comes back at once (no processing time). A page is complete
//! when the client has the whole reply; after a pause the next request goes out. Every transfer
//! has its own sender and receiver, as the specification's separate connections do (5.2).
//!
//! Left out: parallel connections, embedded objects, distributions of sizes; and the tail of an
//! old connection: what a sender had not heard acknowledged when the next page began, it forgets.

use airlane_base::{Duration, Instant, Rng};
use airlane_transport::{TcpConfig, Transfer};

use super::Place;
use super::tcp::Connection;
use crate::packet::Packet;
use crate::probe::DelayProbe;

/// What one page takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub(crate) request: Transfer,
    pub(crate) reply: Transfer,
    pub(crate) pause: Duration,
    pub(crate) count: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The next request goes out at this time.
    Pausing(Instant),
    /// The request is on its way.
    Requesting,
    /// The reply is on its way.
    Replying,
    Stopped,
}

/// One client and its server.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    place: Place,
    config: TcpConfig,
    page: Page,
    /// Phases of the two hosts' clocks, drawn afresh for each connection.
    clock: Rng,
    phase: Phase,
    number: u32,
    request: Connection,
    reply: Connection,
    /// User bytes of the current transfer that its receiver has.
    received: u64,
    asked: Instant,
    first: Option<Instant>,
    last: Option<Instant>,
    pub(crate) times: DelayProbe,
    /// What the senders of earlier pages counted.
    retired: Totals,
}

impl Pages {
    pub(crate) fn new(
        place: Place,
        start: Instant,
        config: &TcpConfig,
        page: Page,
        mut clock: Rng,
    ) -> Self {
        let phases = [0, 1].map(|_| draw_phase(&mut clock, config));
        Self {
            place,
            config: config.clone(),
            page,
            phase: Phase::Pausing(start),
            number: 0,
            request: Connection::new(config, page.request, phases[0], false, 0),
            reply: Connection::new(config, page.reply, phases[1], true, 0),
            clock,
            received: 0,
            asked: start,
            first: None,
            last: None,
            times: DelayProbe::default(),
            retired: Totals::default(),
        }
    }

    pub(super) fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        if self.phase == Phase::Stopped {
            return;
        }
        self.request.handle_packet(now, packet);
        self.reply.handle_packet(now, packet);
        match self.phase {
            Phase::Requesting => {
                self.received += self.request.receiver.poll_deliver().unwrap_or(0);
                if Some(self.received) == self.page.request.bytes {
                    self.received = 0;
                    self.phase = Phase::Replying;
                }
            }
            Phase::Replying => {
                self.received += self.reply.receiver.poll_deliver().unwrap_or(0);
                if Some(self.received) == self.page.reply.bytes {
                    self.times.record(now.saturating_since(self.asked));
                    self.last = Some(now);
                    self.phase = if self.is_finished() {
                        Phase::Stopped
                    } else {
                        Phase::Pausing(now + self.page.pause)
                    };
                }
            }
            Phase::Pausing(_) | Phase::Stopped => {}
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if let Phase::Pausing(until) = self.phase
            && until <= now
        {
            self.ask(now);
        }
        if self.phase != Phase::Stopped {
            self.request.sender.handle_timeout(now);
            self.reply.sender.handle_timeout(now);
        }
    }

    fn ask(&mut self, now: Instant) {
        if self.first.is_some() {
            self.retire();
            self.number = self.number.wrapping_add(1);
            let phases = [0, 1].map(|_| draw_phase(&mut self.clock, &self.config));
            self.request
                .restart(&self.config, self.page.request, phases[0], self.number);
            self.reply
                .restart(&self.config, self.page.reply, phases[1], self.number);
        }
        self.first.get_or_insert(now);
        self.asked = now;
        self.received = 0;
        self.phase = Phase::Requesting;
    }

    fn retire(&mut self) {
        for sender in [&self.request.sender, &self.reply.sender] {
            let stats = sender.stats();
            self.retired.segments_sent += stats.segments_sent;
            self.retired.retransmissions += stats.retransmissions;
            self.retired.timeouts += stats.timeouts;
        }
    }

    pub(super) fn stop(&mut self, _now: Instant) {
        self.phase = Phase::Stopped;
    }

    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        match self.phase {
            Phase::Stopped => return None,
            // Before the first request nothing is open.
            Phase::Pausing(_) if self.first.is_none() => return None,
            _ => {}
        }
        let place = &self.place;
        let owed = self.request.poll_ack(place, now);
        let owed = owed.or_else(|| self.reply.poll_ack(place, now));
        let out = owed.or_else(|| self.request.poll_segment(place, now));
        // The server has nothing to say until it has the whole request.
        if self.phase == Phase::Requesting {
            return out;
        }
        out.or_else(|| self.reply.poll_segment(place, now))
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let pause = match self.phase {
            Phase::Stopped => return None,
            Phase::Pausing(until) => Some(until),
            Phase::Requesting | Phase::Replying => None,
        };
        let timers = [
            pause,
            self.request.sender.poll_timeout(),
            self.reply.sender.poll_timeout(),
        ];
        timers.into_iter().flatten().min()
    }

    pub(super) fn is_finished(&self) -> bool {
        self.page.count.is_some_and(|n| self.times.count() >= n)
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Time from the first request to the last complete reply, and the bytes of complete replies.
    pub(crate) fn completed(&self) -> Option<(Duration, u64)> {
        let bytes = self.page.reply.bytes? * self.times.count();
        Some((self.last?.saturating_since(self.first?), bytes))
    }

    /// Counters of all connections so far.
    pub(crate) fn totals(&self) -> Totals {
        let mut all = self.clone();
        all.retire();
        let [request, reply] = [&self.request, &self.reply].map(|c| *c.receiver.stats());
        Totals {
            segments_received: request.segments_received + reply.segments_received,
            delivered_bytes: reply.delivered_bytes,
            ..all.retired
        }
    }

    /// Whether all pages that were asked for are here.
    pub(crate) fn is_done(&self) -> bool {
        self.is_finished()
    }
}

/// What all connections of the flow counted together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) segments_sent: u64,
    pub(crate) segments_received: u64,
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u64,
    /// User bytes of replies, those of an incomplete page included.
    pub(crate) delivered_bytes: u64,
}

/// A host's clock ticks anywhere in a tick against the connection's beginning.
pub(crate) fn draw_phase(random: &mut Rng, config: &TcpConfig) -> Duration {
    config.tick.mul_f64(random.uniform())
}
