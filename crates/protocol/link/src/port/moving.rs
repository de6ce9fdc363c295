//! A flow that changes its service, without its packets overtaking each other.
//!
//! What it sent by the old service may still wait there, be on its way, or be repaired. So its next packets are held
//! until nothing of it waits in the old service's queue and either that service has nothing on its way or a round trip
//! has passed; at most [`HOLD`], and [`PACKETS`] of all flows. A flow that has paused for so long moves at once, and one
//! that fills the link is held for a round trip, once.
//!
//! Left out: what an old service repairs for longer than that comes behind what was held.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant, Payload};

/// Longest time that a packet is held.
const HOLD: Duration = Duration::from_millis(300);
/// How often it is asked whether one may go.
const CHECK: Duration = Duration::from_millis(2);
/// Packets that are held, of all flows, and flows.
const PACKETS: usize = 1024;
const FLOWS: usize = 64;

/// Flows whose packets are held.
#[derive(Clone, Debug)]
pub(super) struct Moving<P> {
    flows: Vec<Flow<P>>,
    packets: usize,
    bytes: usize,
    check_at: Instant,
}

/// A flow on its way to another service.
#[derive(Clone, Debug)]
pub(super) struct Flow<P> {
    hash: u64,
    /// Which service it leaves.
    pub(super) from: u8,
    /// Where it goes, as its last packet was told.
    pub(super) to: u8,
    /// When the first packet was held, and when the last may still have been in the old service's queue.
    since: Instant,
    pub(super) waited_at: Instant,
    pub(super) packets: VecDeque<P>,
}

impl<P: Payload> Moving<P> {
    pub(super) const fn new() -> Self {
        Self {
            flows: Vec::new(),
            packets: 0,
            bytes: 0,
            check_at: Instant::ORIGIN,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Bytes that are held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        (!self.flows.is_empty()).then_some(self.check_at)
    }

    /// Holds a packet of a flow that is held, or gives it back.
    pub(super) fn follow(&mut self, hash: u64, to: u8, packet: P) -> Option<P> {
        let Some(flow) = self.flows.iter_mut().find(|flow| flow.hash == hash) else {
            return Some(packet);
        };
        self.packets += 1;
        self.bytes += packet.len();
        flow.to = to;
        flow.packets.push_back(packet);
        None
    }

    /// Holds the first packet of a flow that moves, where there is room, or gives it back.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        hash: u64,
        (from, to): (u8, u8),
        packet: P,
    ) -> Option<P> {
        if self.flows.len() >= FLOWS {
            return Some(packet);
        }
        if self.flows.is_empty() {
            self.check_at = now + CHECK;
        }
        self.flows.push(Flow {
            hash,
            from,
            to,
            since: now,
            waited_at: now,
            packets: VecDeque::new(),
        });
        self.follow(hash, to, packet)
    }

    /// Takes out a flow whose packets may go: `clear` says so of each, unless it was held for too long, or too much is.
    pub(super) fn release(
        &mut self,
        now: Instant,
        mut clear: impl FnMut(&mut Flow<P>) -> bool,
    ) -> Option<Flow<P>> {
        let full = self.packets >= PACKETS;
        let may_go =
            |flow: &mut Flow<P>| full || now.saturating_since(flow.since) >= HOLD || clear(flow);
        let at = self.flows.iter_mut().position(may_go)?;
        let flow = self.flows.remove(at);
        self.packets -= flow.packets.len();
        self.bytes -= flow.packets.iter().map(Payload::len).sum::<usize>();
        Some(flow)
    }

    /// Whether it is time to ask.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        !self.flows.is_empty() && (now >= self.check_at || self.packets >= PACKETS)
    }

    /// It was asked now.
    pub(super) fn checked(&mut self, now: Instant) {
        self.check_at = now + CHECK;
    }

    /// Everything that is held, in the order in which flows began to move.
    pub(super) fn take(&mut self) -> Vec<Flow<P>> {
        (self.packets, self.bytes) = (0, 0);
        std::mem::take(&mut self.flows)
    }
}
