//! Requests and replies between a client at a flow's second end and a server at its first.
//!
//! A request and its reply are two transfers in opposite directions, each with its own sender and
//! receiver, as the agents of ns-2 have them. A fresh exchange opens both over fresh TCP state; a
//! continued one gives more to the connections that are open. There is no handshake and no release.
//!
//! When a fresh exchange begins, both sides forget the one before: what a sender had not heard
//! acknowledged of it.

use airlane_base::{Duration, Instant, Rng};
use airlane_link::mobility::Hint;
use airlane_transport::{TcpConfig, Transfer};

use super::Place;
use super::tcp::Connection;
use crate::packet::Packet;
use crate::scenario::Completion;

/// What opening a connection takes: one value for all connections of a flow.
#[derive(Clone, Debug)]
pub(crate) struct Opener {
    config: TcpConfig,
    /// User bytes of a full segment.
    pub(crate) segment: u32,
    pub(crate) completion: Completion,
    /// Whether connections stay open and are used again.
    persistent: bool,
    /// Phases of the hosts' clocks, drawn afresh for each connection.
    clock: Rng,
    /// Number of the next connection; 0 is that of connections that were never opened.
    number: u32,
}

impl Opener {
    pub(crate) fn new(
        config: &TcpConfig,
        segment: u32,
        completion: Completion,
        persistent: bool,
        clock: Rng,
    ) -> Self {
        Self {
            config: config.clone(),
            segment,
            completion,
            persistent,
            clock,
            number: 1,
        }
    }

    fn open(&mut self, connection: &mut Connection, bytes: u64) {
        let transfer = Transfer {
            bytes: Some(bytes),
            segment: self.segment,
        };
        let phase = draw_phase(&mut self.clock, &self.config);
        connection.open(&self.config, transfer, phase, self.number);
        self.number = self.number.wrapping_add(1).max(1);
    }
}

/// What a packet has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completed {
    /// The request is over: the server may reply.
    Request,
    /// The reply is over: the client may go on.
    Reply,
}

/// One client and its server, on one connection at a time.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    request: Connection,
    reply: Connection,
    /// Whether they were ever opened.
    opened: bool,
    /// Since when each end, server first, knows that the path is down.
    frozen: [Option<Instant>; 2],
    /// What is on its way.
    waiting: Option<Completed>,
    /// What the senders of earlier connections counted.
    retired: Totals,
}

impl Exchange {
    /// An exchange with nothing on its way, on the given endpoints of the flow.
    pub(crate) fn new(opener: &Opener, endpoints: u8) -> Self {
        let closed =
            |forward| Connection::closed(&opener.config, opener.segment, forward, endpoints);
        Self {
            request: closed(false),
            reply: closed(true),
            opened: false,
            frozen: [None; 2],
            waiting: None,
            retired: Totals::default(),
        }
    }

    /// The client sends `bytes` and waits for them to be over.
    pub(crate) fn ask(&mut self, opener: &mut Opener, bytes: u64) {
        self.waiting = Some(Completed::Request);
        self.give_request(opener, bytes);
    }

    /// The server sends `bytes`, and the client waits for them to be over.
    pub(crate) fn answer(&mut self, bytes: u64) {
        self.waiting = Some(Completed::Reply);
        self.give_reply(bytes);
    }

    /// The client sends `bytes`, whatever else is on its way.
    pub(crate) fn give_request(&mut self, opener: &mut Opener, bytes: u64) {
        if opener.persistent && self.opened {
            self.request.sender.extend(bytes);
            return;
        }
        self.opened = true;
        for (connection, bytes) in [(&mut self.request, bytes), (&mut self.reply, 0)] {
            self.retired.count(connection);
            opener.open(connection, bytes);
        }
        let senders = [&mut self.reply.sender, &mut self.request.sender];
        for (sender, frozen) in senders.into_iter().zip(self.frozen) {
            if let Some(since) = frozen {
                sender.freeze(since);
            }
        }
    }

    /// One end hears that a link of the path went down or came back.
    pub(crate) fn handle_hint(&mut self, now: Instant, end: usize, hint: Hint<()>) {
        let sender = match end {
            0 => &mut self.reply.sender,
            _ => &mut self.request.sender,
        };
        match hint {
            Hint::Disconnected(()) => {
                self.frozen[end].get_or_insert(now);
                sender.freeze(now);
            }
            Hint::Connected(()) => {
                self.frozen[end] = None;
                sender.thaw(now);
            }
        }
    }

    /// The server sends `bytes`, whatever else is on its way.
    pub(crate) fn give_reply(&mut self, bytes: u64) {
        self.reply.sender.extend(bytes);
    }

    /// The next request opens fresh connections.
    pub(crate) fn close(&mut self) {
        self.opened = false;
    }

    /// Whether everything is acknowledged that was given: of requests, of replies.
    pub(crate) fn is_idle(&self) -> [bool; 2] {
        [&self.request, &self.reply].map(|c| c.sender.is_finished())
    }

    /// Segments that have arrived in order: of requests, of replies.
    pub(crate) fn arrived(&self) -> [u64; 2] {
        [&self.request, &self.reply].map(|c| c.receiver.rcv_nxt())
    }

    /// A packet of the flow; those of other connections are ignored.
    #[inline]
    pub(crate) fn handle_packet(
        &mut self,
        opener: &Opener,
        now: Instant,
        packet: &Packet,
    ) -> Option<Completed> {
        self.request.handle_packet(now, packet);
        self.reply.handle_packet(now, packet);
        let over = match self.waiting? {
            Completed::Request => self.request.is_over(opener.completion),
            Completed::Reply => self.reply.is_over(opener.completion),
        };
        if over { self.waiting.take() } else { None }
    }

    /// Time has passed; an early call does nothing.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.request.sender.handle_timeout(now);
        self.reply.sender.handle_timeout(now);
    }

    /// The next packet of either side: acknowledgments first.
    #[inline]
    pub(crate) fn poll_transmit(&mut self, place: &Place, now: Instant) -> Option<Packet> {
        self.request
            .poll_ack(place, now)
            .or_else(|| self.reply.poll_ack(place, now))
            .or_else(|| self.request.poll_segment(place, now))
            .or_else(|| self.reply.poll_segment(place, now))
    }

    /// When `handle_timeout` is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let timers = [&self.request, &self.reply].map(|c| c.sender.poll_timeout());
        timers.into_iter().flatten().min()
    }

    /// Both connections.
    pub(crate) fn connections(&self) -> [&Connection; 2] {
        [&self.request, &self.reply]
    }

    /// Counters of all connections so far.
    pub(crate) fn totals(&self) -> Totals {
        let mut all = self.retired;
        for connection in [&self.request, &self.reply] {
            all.count(connection);
            all.segments_received += connection.receiver.stats().segments_received;
        }
        all.delivered_bytes = self.reply.receiver.stats().delivered_bytes;
        all
    }
}

/// What all connections of a flow counted together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) segments_sent: u64,
    pub(crate) segments_received: u64,
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u64,
    /// User bytes of replies, those of incomplete ones included.
    pub(crate) delivered_bytes: u64,
}

impl Totals {
    /// Adds what the connection's sender counted.
    pub(super) fn count(&mut self, connection: &Connection) {
        let stats = connection.sender.stats();
        self.segments_sent += stats.segments_sent;
        self.retransmissions += stats.retransmissions;
        self.timeouts += stats.timeouts;
    }

    /// The sum of both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            segments_sent: self.segments_sent + other.segments_sent,
            segments_received: self.segments_received + other.segments_received,
            retransmissions: self.retransmissions + other.retransmissions,
            timeouts: self.timeouts + other.timeouts,
            delivered_bytes: self.delivered_bytes + other.delivered_bytes,
        }
    }
}

/// A host's clock ticks anywhere in a tick against the connection's beginning.
pub(crate) fn draw_phase(random: &mut Rng, config: &TcpConfig) -> Duration {
    config.tick.mul_f64(random.uniform())
}
