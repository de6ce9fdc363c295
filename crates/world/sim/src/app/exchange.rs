//! Requests and replies between a client at a flow's second end and a server at its first.
//!
//! A request and its reply are two transfers in opposite directions, each on a connection of its own,
//! as the agents of ns-2 have them. A fresh exchange opens both over fresh TCP state; a continued one
//! gives more to the connections that are open. Where TCP has a handshake it opens both directions at once, and the
//! end of a reply that is the last of its connection says so.
//!
//! When a fresh exchange begins, both sides forget the one before: what a sender had not heard
//! acknowledged of it.

use airlane_base::{Duration, Instant, Rng};
use airlane_link::mobility::Hint;
use airlane_transport::{Endpoint, TcpConfig};

use super::end::{End, under_way};
use super::place::FlowPlace;
use crate::packet::Packet;
use crate::scenario::Completion;

/// What opening a connection takes: one value for all connections of a flow.
#[derive(Clone, Debug)]
pub(crate) struct Opener {
    config: TcpConfig,
    /// User bytes of a full segment.
    pub(crate) segment: u32,
    /// User bytes of a request's packet, where each request is one.
    pub(crate) request: Option<u32>,
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
            request: None,
            completion,
            persistent,
            clock,
            number: 1,
        }
    }

    /// Fresh connections between both ends, server first: requests before replies.
    fn open(&mut self, [server, client]: &mut [End; 2]) {
        let [request, reply] = [(); 2].map(|()| {
            let number = self.number;
            self.number = number.wrapping_add(1).max(1);
            number
        });
        let phase = draw_phase(&mut self.clock, &self.config);
        client.open(&self.config, phase, [request, reply]);
        let phase = draw_phase(&mut self.clock, &self.config);
        server.open(&self.config, phase, [reply, request]);
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

const SERVER: usize = 0;
const CLIENT: usize = 1;

/// One client and its server, on one pair of connections at a time.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    /// The server's, the client's.
    ends: [End; 2],
    /// Whether they were ever opened.
    opened: bool,
    /// Since when each end, server first, knows that the path is down.
    frozen: [Option<Instant>; 2],
    /// What is on its way.
    waiting: Option<Completed>,
    /// Whether the server says that its reply was all.
    ends_connections: bool,
}

impl Exchange {
    /// An exchange with nothing on its way, on the given endpoints of the flow.
    pub(crate) fn new(opener: &Opener, place: FlowPlace, endpoints: u8) -> Self {
        let config = &opener.config;
        let segments = [opener.segment, opener.request.unwrap_or(opener.segment)];
        Self {
            ends: [SERVER, CLIENT]
                .map(|end| End::new(config, place, segments[end], Duration::ZERO, end, endpoints)),
            opened: false,
            frozen: [None; 2],
            waiting: None,
            ends_connections: config.handshake.unwrap_or_default() && !opener.persistent,
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
        if self.ends_connections {
            self.ends[SERVER].close();
        }
    }

    /// The client sends `bytes`, whatever else is on its way.
    pub(crate) fn give_request(&mut self, opener: &mut Opener, bytes: u64) {
        if !(opener.persistent && self.opened) {
            self.opened = true;
            opener.open(&mut self.ends);
            for (end, frozen) in self.ends.iter_mut().zip(self.frozen) {
                if let Some(since) = frozen {
                    end.handle_hint(since, Hint::Disconnected(()));
                }
            }
        }
        self.ends[CLIENT].write(bytes);
    }

    /// One end hears that a link of the path went down or came back.
    pub(crate) fn handle_hint(&mut self, now: Instant, end: usize, hint: Hint<()>) {
        match hint {
            Hint::Disconnected(()) => _ = self.frozen[end].get_or_insert(now),
            Hint::Connected(()) => self.frozen[end] = None,
        }
        self.ends[end].handle_hint(now, hint);
    }

    /// The server sends `bytes`, whatever else is on its way.
    pub(crate) fn give_reply(&mut self, bytes: u64) {
        self.ends[SERVER].write(bytes);
    }

    /// The next request opens fresh connections.
    pub(crate) fn close(&mut self) {
        self.opened = false;
    }

    /// Whether everything is acknowledged that was given: of requests, of replies.
    pub(crate) fn is_idle(&self) -> [bool; 2] {
        self.client_and_server()
            .map(|end| end.endpoint().is_acknowledged())
    }

    /// Bytes that have arrived in order: of requests, of replies.
    pub(crate) fn arrived(&self) -> [u64; 2] {
        self.ends.each_ref().map(|end| end.endpoint().received())
    }

    /// Whether all that `from` has written has come over, as `rule` sees it.
    fn is_over(&self, from: usize, rule: Completion) -> bool {
        let [sender, receiver] = [from, 1 - from].map(|end| self.ends[end].endpoint());
        match rule {
            Completion::Delivered => receiver.received() >= sender.written(),
            Completion::Acknowledged => sender.is_acknowledged(),
        }
    }

    /// A packet of the flow; those of other connections are ignored.
    #[inline]
    pub(crate) fn handle_packet(
        &mut self,
        opener: &Opener,
        now: Instant,
        packet: &Packet,
    ) -> Option<Completed> {
        let end = &mut self.ends[End::of(packet)];
        end.handle_packet(now, packet);
        end.read();
        let from = match self.waiting? {
            Completed::Request => CLIENT,
            Completed::Reply => SERVER,
        };
        let over = self.is_over(from, opener.completion);
        if over { self.waiting.take() } else { None }
    }

    /// A packet of the flow has come destroyed.
    pub(crate) fn handle_destroyed(&mut self, packet: &Packet) {
        self.ends[End::of(packet)].handle_destroyed(packet);
    }

    /// Time has passed; an early call does nothing.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        for end in &mut self.ends {
            end.handle_timeout(now);
        }
    }

    /// Puts the next packet of either side in the place of `packet`, if there is one.
    #[inline]
    pub(crate) fn poll_transmit(&mut self, now: Instant, packet: &mut Packet) -> bool {
        let [server, client] = &mut self.ends;
        client.poll_transmit(now, packet) || server.poll_transmit(now, packet)
    }

    /// When `handle_timeout` is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let timers = self.ends.iter().map(|end| end.poll_timeout());
        timers.flatten().min()
    }

    /// Both ends: that of requests, that of replies.
    pub(crate) fn client_and_server(&self) -> [&End; 2] {
        [&self.ends[CLIENT], &self.ends[SERVER]]
    }

    /// Counters of all connections so far.
    pub(crate) fn totals(&self) -> Totals {
        let [server, client] = &self.ends;
        let mut all = Totals {
            under_way: under_way(server, client) + under_way(client, server),
            ..Totals::default()
        };
        for end in &self.ends {
            all.count(end);
            all.segments_received += end.endpoint().receiver().stats().segments_received;
        }
        all.delivered_bytes = client.endpoint().receiver().stats().delivered_bytes;
        all
    }
}

/// What all connections of a flow counted together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) segments_sent: u64,
    pub(crate) segments_received: u64,
    /// Those of which the other end has none yet.
    pub(crate) under_way: u64,
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u64,
    /// User bytes of replies, those of incomplete ones included.
    pub(crate) delivered_bytes: u64,
}

impl Totals {
    /// Adds what an end's sender counted.
    pub(super) fn count(&mut self, end: &End) {
        let stats = end.endpoint().sender().stats();
        self.segments_sent += stats.segments_sent;
        self.retransmissions += stats.retransmissions;
        self.timeouts += stats.timeouts;
    }

    /// The sum of both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            segments_sent: self.segments_sent + other.segments_sent,
            segments_received: self.segments_received + other.segments_received,
            under_way: self.under_way + other.under_way,
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
