//! A file over a split connection (Balakrishnan et al. 1997, SPLIT and SPLIT-SMART): a relay on the path terminates
//! the source's connection and opens one of its own to the receiver.
//!
//! ```text
//! source ──── first leg ────► relay: pool ──── second leg ────► receiver
//! ```
//!
//! Each leg has its own windows, timers and options. The relay reads in-order data while its pool has room; the rest
//! stays in the first leg's receiver, whose window closes and stops the source. The source gets acknowledgments for
//! data that the receiver may not have yet: `early_bytes` says how much.
//!
//! Invariant: the relay holds at most the pool and one window of the first leg.

use airlane_base::{Duration, Instant};
use airlane_transport::{Endpoint, TcpConfig};

use super::end::{End, under_way};
use super::place::FlowPlace;
use crate::packet::{Packet, Role};
use crate::probe::DelayProbe;

/// The ends, in path order.
const SOURCE: usize = 0;
const IN: usize = 1;
const OUT: usize = 2;
const RECEIVER: usize = 3;

/// A file transfer in progress over two connections.
#[derive(Clone, Debug)]
pub(crate) struct Split {
    /// The place of each leg.
    places: [FlowPlace; 2],
    start: Instant,
    started: bool,
    stopped: bool,
    pool: u64,
    ends: [End; 4],
    /// The most bytes that were acknowledged to the source before the receiver had them.
    pub(crate) early_bytes: u64,
    /// The most bytes that the relay held.
    pub(crate) held_bytes: u64,
    /// From sending to arrival, for each segment of the second leg that arrived.
    pub(crate) delays: DelayProbe,
}

impl Split {
    pub(crate) fn new(
        places: [FlowPlace; 2],
        start: Instant,
        legs: [&TcpConfig; 2],
        segment: u32,
        bytes: Option<u64>,
        pool: u64,
        phases: [Duration; 4],
    ) -> Self {
        let mut ends = [SOURCE, IN, OUT, RECEIVER].map(|end| {
            let leg = end / 2;
            End::new(
                legs[leg],
                places[leg],
                segment,
                phases[end],
                end % 2,
                leg as u8,
            )
        });
        ends[SOURCE].write(bytes.unwrap_or(u64::MAX));
        Self {
            places,
            start,
            started: false,
            stopped: false,
            pool,
            ends,
            early_bytes: 0,
            held_bytes: 0,
            delays: DelayProbe::default(),
        }
    }

    /// Starts measuring the source's windows; `segment` is as in [`new`](Self::new).
    pub(crate) fn watch(&mut self, segment: u32, level: Option<f64>) {
        self.ends[SOURCE].watch(segment, level);
    }

    pub(super) fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        if self.stopped {
            return;
        }
        let end = Self::end_of(packet);
        if end == RECEIVER && packet.role() == Role::Data && packet.asks().is_none() {
            self.delays.record(now.saturating_since(packet.created));
        }
        self.ends[end].handle_packet(now, packet);
        if end == RECEIVER {
            self.ends[RECEIVER].read();
        }
        self.relay();
    }

    /// Forwards received data while the pool has room.
    fn relay(&mut self) {
        let out = self.ends[OUT].endpoint();
        let held = out.written() - out.acknowledged();
        if held < self.pool
            && let Some(bytes) = self.ends[IN].read()
        {
            self.ends[OUT].write(bytes);
            self.held_bytes = self.held_bytes.max(held + bytes);
        }
        let acknowledged = self.ends[SOURCE].endpoint().acknowledged();
        let received = self.ends[RECEIVER].endpoint().received();
        self.early_bytes = self.early_bytes.max(acknowledged.saturating_sub(received));
    }

    fn end_of(packet: &Packet) -> usize {
        2 * usize::from(packet.endpoints).min(1) + End::of(packet)
    }

    pub(super) fn handle_destroyed(&mut self, packet: &Packet) {
        self.ends[Self::end_of(packet)].handle_destroyed(packet);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if !self.started {
            self.started = now >= self.start;
        } else if !self.stopped {
            for end in &mut self.ends {
                end.handle_timeout(now);
            }
            self.relay();
        }
    }

    pub(super) fn stop(&mut self, _now: Instant) {
        self.stopped = true;
    }

    pub(super) fn poll_transmit(&mut self, now: Instant, packet: &mut Packet) -> bool {
        if !self.started || self.stopped {
            return false;
        }
        let mut order = [RECEIVER, IN, OUT, SOURCE].into_iter();
        order.any(|end| self.ends[end].poll_transmit(now, packet))
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        if self.stopped {
            return None;
        }
        if !self.started {
            return Some(self.start);
        }
        self.ends.iter().filter_map(|end| end.poll_timeout()).min()
    }

    pub(super) fn is_finished(&self) -> bool {
        let [source, _, out, _] = self.ends.each_ref().map(End::endpoint);
        out.written() == source.written() && out.is_acknowledged()
    }

    pub(super) fn place(&self) -> &FlowPlace {
        &self.places[0]
    }

    /// The node where a packet of this flow enters the network.
    pub(super) fn origin(&self, packet: &Packet) -> u16 {
        self.places[usize::from(packet.endpoints).min(1)].origin(packet)
    }

    /// Segments of both legs that were sent, first or again, and have not arrived.
    pub(crate) fn under_way(&self) -> u64 {
        let [source, relay, out, receiver] = &self.ends;
        under_way(source, relay) + under_way(out, receiver)
    }

    /// Source, the relay's two ends, receiver.
    pub(crate) const fn ends(&self) -> &[End; 4] {
        &self.ends
    }
}
