//! The queue of packets that a service cannot take yet: bounded, per flow, with a reason for every drop.
//!
//! A service with a full window accepts nothing more, and a shaped port sends no faster than its link.
//! Packets that arrive meanwhile wait here and never in the kernel below, so that the flows share the service
//! fairly and the queueing delay stays short.
//!
//! - `none`: no queue at all, as in the services of Xylomenos 1999, which drop new packets when the window is
//!   full (docs/spec/multi-service.md, section 7.5).
//! - `drop-tail`: one FIFO queue, the hold-back queue of section 7.11 there.
//! - `fq-codel`: RFC 8290, one queue for each flow, each under CoDel (RFC 8289).
//!
//! Invariants: a queue never holds more than its limit; packets of one flow leave in order; each packet
//! leaves exactly once, by `pop`, by `drain` or to the drop handler; a queue allocates nothing beyond its
//! highest occupancy.

mod codel;
mod config;
mod drops;
mod fq;
mod moving;
mod pacer;

use std::collections::VecDeque;

use airlane_base::{Duration, Instant, QueueLimit, Rate};

pub use config::QueueConfig;
use config::{USUAL, default_limit};
pub use drops::DropReason;
pub(crate) use moving::{Flow, Moving};
pub(crate) use pacer::Pacer;

use crate::flow::Packet;
use codel::Parameters;
use fq::{FqCodel, charge};

/// The queue of one service.
///
/// Equal inputs give equal outputs: the hash is salted, but stable.
#[derive(Clone, Debug)]
pub struct IngressQueue<P> {
    kind: Kind<P>,
}

#[derive(Clone, Debug)]
enum Kind<P> {
    None,
    DropTail {
        limit: QueueLimit,
        bytes: usize,
        /// Each packet with its arrival time.
        packets: VecDeque<(P, Instant)>,
    },
    FqCodel(Box<FqCodel<P>>),
}

impl<P: Packet> IngressQueue<P> {
    /// An empty queue. `mtu` is the length of the largest usual packet in bytes: the quantum of the round
    /// robin, and the backlog below which CoDel never drops. `salt` is a number that outsiders do not know,
    /// or a constant where results must be reproducible.
    pub fn new(config: &QueueConfig, mtu: usize, salt: u64) -> Self {
        let kind = match *config {
            QueueConfig::None {} => Kind::None,
            QueueConfig::DropTail { limit } => Kind::DropTail {
                limit,
                bytes: 0,
                packets: VecDeque::new(),
            },
            QueueConfig::FqCodel {
                limit,
                target,
                interval,
                flows,
            } => {
                let codel = Parameters {
                    target: target.unwrap_or(USUAL.0),
                    interval: interval.unwrap_or(USUAL.1),
                    mtu,
                };
                let fits = limit.is_none();
                let limit = limit.unwrap_or_else(default_limit);
                Kind::FqCodel(Box::new(FqCodel::new(limit, codel, flows, salt, fits)))
            }
        };
        Self { kind }
    }

    /// Sets the bounds that the configuration leaves out, from an estimated rate and round trip.
    pub(crate) fn fit(&mut self, rate: Rate, round_trip: Duration) {
        if let Kind::FqCodel(queue) = &mut self.kind {
            queue.fit(rate, round_trip);
        }
    }

    /// Enqueues a packet that the service cannot take now.
    ///
    /// What does not fit goes to `dropped`: this packet or, from `fq-codel`, the oldest packets of the flow
    /// with the longest backlog. Under a limit in bytes a long packet may push out several short ones, hence
    /// a handler and not a return value.
    pub fn push(&mut self, now: Instant, packet: P, dropped: &mut impl FnMut(DropReason, P)) {
        match &mut self.kind {
            Kind::None => dropped(DropReason::WindowFull, packet),
            Kind::DropTail {
                limit,
                bytes,
                packets,
            } => {
                let len = charge(&packet);
                if limit.admits(packets.len(), *bytes, len) {
                    *bytes += len;
                    packets.push_back((packet, now));
                } else {
                    dropped(DropReason::QueueFull, packet);
                }
            }
            Kind::FqCodel(queue) => queue.push(now, packet, dropped),
        }
    }

    /// The next packet and its arrival time. CoDel may first drop others of its flow, but never the last
    /// packet: unless the queue is empty, this returns a packet.
    #[inline]
    pub fn pop(
        &mut self,
        now: Instant,
        dropped: &mut impl FnMut(DropReason, P),
    ) -> Option<(P, Instant)> {
        match &mut self.kind {
            Kind::None => None,
            Kind::DropTail { bytes, packets, .. } => {
                *bytes -= packets.front().map_or(0, |(packet, _)| charge(packet));
                packets.pop_front()
            }
            Kind::FqCodel(queue) => queue.pop(now, dropped),
        }
    }

    /// Empties the queue without drops, flow by flow, each in order.
    pub fn drain(&mut self, take: &mut impl FnMut(P)) {
        match &mut self.kind {
            Kind::None => {}
            Kind::DropTail { bytes, packets, .. } => {
                *bytes = 0;
                packets.drain(..).for_each(|(packet, _)| take(packet));
            }
            Kind::FqCodel(queue) => queue.drain(take),
        }
    }

    /// The longest standing queue in bytes: the limit, for packets of up to `longest` bytes, and under CoDel
    /// no more than the rate carries within the target.
    pub fn stands(&self, rate: Rate, longest: u64) -> u64 {
        let most = |limit| match limit {
            QueueLimit::Packets(packets) => packets.saturating_mul(longest),
            QueueLimit::Bytes(bytes) => bytes,
        };
        match &self.kind {
            Kind::None => 0,
            Kind::DropTail { limit, .. } => most(*limit),
            Kind::FqCodel(queue) => {
                let (limit, target) = queue.bounds();
                // CoDel never drops the last packet, nor the one being sent.
                most(limit).min((rate.bytes_within(target) as u64).max(2 * longest))
            }
        }
    }

    /// Number of packets in the queue.
    pub fn len(&self) -> usize {
        match &self.kind {
            Kind::None => 0,
            Kind::DropTail { packets, .. } => packets.len(),
            Kind::FqCodel(queue) => queue.len(),
        }
    }

    /// Bytes in the queue; an empty packet counts as one, so that a limit in bytes bounds memory.
    pub fn bytes(&self) -> usize {
        match &self.kind {
            Kind::None => 0,
            Kind::DropTail { bytes, .. } => *bytes,
            Kind::FqCodel(queue) => queue.bytes(),
        }
    }

    /// Whether the queue may hold packets of this packet's flow.
    pub(crate) fn may_hold_flow_of(&self, packet: &P) -> bool {
        match &self.kind {
            Kind::FqCodel(queue) => queue.holds_flow_of(packet),
            Kind::None | Kind::DropTail { .. } => !self.is_empty(),
        }
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests;
