//! Requests and replies between a client at a flow's second end and a server at its first.
//!
//! A request and its reply are two transfers in opposite directions, each on a connection of its own, as the agents
//! of ns-2 do. A fresh exchange opens both with fresh TCP state; a continued one writes to the connections that are
//! open. If TCP has a handshake, it opens both directions at once, and the end of a connection's last reply is marked
//! as such.
//!
//! When a fresh exchange begins, both sides drop the state of the previous one, including data that the sender has no
//! acknowledgment for.

use airlane_base::{Duration, Instant, Rng};
use airlane_link::mobility::Hint;
use airlane_transport::{Endpoint, TcpConfig};

use super::end::{End, under_way};
use super::place::FlowPlace;
use crate::packet::Packet;
use crate::scenario::Completion;

/// What it takes to open a connection; one value for all connections of a flow.
#[derive(Clone, Debug)]
pub(crate) struct Opener {
    config: TcpConfig,
    /// User bytes of a full segment.
    pub(crate) segment: u32,
    /// User bytes of a request's packet, if each request is one packet.
    pub(crate) request: Option<u32>,
    pub(crate) completion: Completion,
    /// Whether connections stay open and are reused.
    persistent: bool,
    /// Phases of the hosts' clocks, drawn anew for each connection.
    clock: Rng,
    /// Number of the next connection; 0 stands for a connection that was never opened.
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

    /// Opens fresh connections between both ends, server first: requests before replies.
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
    /// The request is complete: the server may reply.
    Request,
    /// The reply is complete: the client may go on.
    Reply,
}

const SERVER: usize = 0;
const CLIENT: usize = 1;

/// One client and its server, with one pair of connections at a time.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    /// Server, client.
    ends: [End; 2],
    /// Whether they were ever opened.
    opened: bool,
    /// Since when each end, server first, has known that the path is down.
    frozen: [Option<Instant>; 2],
    /// The transfer in progress.
    waiting: Option<Completed>,
    /// Whether the server marks the end of its reply.
    ends_connections: bool,
}

impl Exchange {
    /// An exchange with nothing in progress, on the given endpoints of the flow.
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

    /// The client sends `bytes` and waits until they are complete.
    pub(crate) fn ask(&mut self, opener: &mut Opener, bytes: u64) {
        self.waiting = Some(Completed::Request);
        self.give_request(opener, bytes);
    }

    /// The server sends `bytes`, and the client waits until they are complete.
    pub(crate) fn answer(&mut self, bytes: u64) {
        self.waiting = Some(Completed::Reply);
        self.give_reply(bytes);
        if self.ends_connections {
            self.ends[SERVER].close();
        }
    }

    /// The client sends `bytes`, whatever else is in progress.
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

    /// One end learns that a link of the path went down or came back.
    pub(crate) fn handle_hint(&mut self, now: Instant, end: usize, hint: Hint<()>) {
        match hint {
            Hint::Disconnected(()) => _ = self.frozen[end].get_or_insert(now),
            Hint::Connected(()) => self.frozen[end] = None,
        }
        self.ends[end].handle_hint(now, hint);
    }

    /// The server sends `bytes`, whatever else is in progress.
    pub(crate) fn give_reply(&mut self, bytes: u64) {
        self.ends[SERVER].write(bytes);
    }

    /// The next request opens fresh connections.
    pub(crate) fn close(&mut self) {
        self.opened = false;
    }

    /// Whether everything sent is acknowledged: requests, replies.
    pub(crate) fn is_idle(&self) -> [bool; 2] {
        self.client_and_server()
            .map(|end| end.endpoint().is_acknowledged())
    }

    /// Bytes received in order: of requests, of replies.
    pub(crate) fn arrived(&self) -> [u64; 2] {
        self.ends.each_ref().map(|end| end.endpoint().received())
    }

    /// Whether everything that `from` has written is complete, as `rule` defines it.
    fn is_over(&self, from: usize, rule: Completion) -> bool {
        let [sender, receiver] = [from, 1 - from].map(|end| self.ends[end].endpoint());
        match rule {
            Completion::Delivered => receiver.received() >= sender.written(),
            Completion::Acknowledged => sender.is_acknowledged(),
        }
    }

    /// Handles a packet of the flow; those of other connections are ignored.
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

    /// A packet of the flow has arrived corrupted.
    pub(crate) fn handle_destroyed(&mut self, packet: &Packet) {
        self.ends[End::of(packet)].handle_destroyed(packet);
    }

    /// Time has passed; an early call does nothing.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        for end in &mut self.ends {
            end.handle_timeout(now);
        }
    }

    /// Writes the next packet of either side into `packet`, and returns whether there was one.
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

    /// Both ends: the one that sends requests, the one that sends replies.
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

/// Sums over all connections of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) segments_sent: u64,
    pub(crate) segments_received: u64,
    /// Segments that the other end has not received yet.
    pub(crate) under_way: u64,
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u64,
    /// User bytes of replies, incomplete ones included.
    pub(crate) delivered_bytes: u64,
}

impl Totals {
    /// Adds the counters of an end's sender.
    pub(super) fn count(&mut self, end: &End) {
        let stats = end.endpoint().sender().stats();
        self.segments_sent += stats.segments_sent;
        self.retransmissions += stats.retransmissions;
        self.timeouts += stats.timeouts;
    }

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

/// Draws where within a tick of the host's clock a connection begins.
pub(crate) fn draw_phase(random: &mut Rng, config: &TcpConfig) -> Duration {
    config.tick.mul_f64(random.uniform())
}
