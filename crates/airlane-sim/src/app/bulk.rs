//! File transfer: a greedy source over one TCP connection (the specification, 5.1).

use airlane_base::{Duration, Instant};
use airlane_link::mobility::Hint;
use airlane_transport::{TcpConfig, Transfer};

use super::Place;
use super::tcp::Connection;
use crate::packet::Packet;

/// A file on its way.
#[derive(Clone, Debug)]
pub(crate) struct Bulk {
    place: Place,
    start: Instant,
    started: bool,
    stopped: bool,
    connection: Connection,
}

impl Bulk {
    pub(crate) fn new(
        place: Place,
        start: Instant,
        config: &TcpConfig,
        transfer: Transfer,
        phase: Duration,
    ) -> Self {
        Self {
            place,
            start,
            started: false,
            stopped: false,
            connection: Connection::new(config, transfer, phase, true, 0),
        }
    }

    #[inline]
    pub(super) fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        // What still arrives after the end changes no metric: they cover the run, not the drain.
        if !self.stopped {
            self.connection.handle_packet(now, packet);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if !self.started {
            self.started = now >= self.start;
        } else if !self.stopped {
            self.connection.sender.handle_timeout(now);
        }
    }

    pub(super) fn handle_hint(&mut self, now: Instant, end: usize, hint: Hint<()>) {
        // The sender sits at the first end.
        match (end, hint) {
            (0, Hint::Disconnected(())) => self.connection.sender.freeze(now),
            (0, Hint::Connected(())) => self.connection.sender.thaw(now),
            _ => {}
        }
    }

    pub(super) fn stop(&mut self, _now: Instant) {
        self.stopped = true;
    }

    #[inline]
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        if !self.started || self.stopped {
            return None;
        }
        self.connection
            .poll_ack(&self.place, now)
            .or_else(|| self.connection.poll_segment(&self.place, now))
    }

    #[inline]
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        if !self.started {
            Some(self.start)
        } else if self.stopped {
            None
        } else {
            self.connection.sender.poll_timeout()
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.connection.sender.is_finished()
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }
}
