//! Moves a flow to another service without reordering its packets.
//!
//! Earlier packets of the flow may still be queued in the old service, in flight, or under repair. So its
//! next packets are held until none is queued there and either that service has nothing in flight or a round
//! trip has passed; at most for [`HOLD`], and at most [`PACKETS`] of all flows. A flow that has paused for
//! that long moves at once, and one that fills the link is held for a round trip, once.
//!
//! Left out: packets that the old service repairs later than that arrive after the held ones.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant, Payload};

/// Longest time that a packet is held.
const HOLD: Duration = Duration::from_millis(300);
/// Interval of checks whether a flow can be released.
const CHECK: Duration = Duration::from_millis(2);
/// Maximum number of held packets of all flows, and of flows.
const PACKETS: usize = 1024;
const FLOWS: usize = 64;

/// Flows whose packets are held.
#[derive(Clone, Debug)]
pub(crate) struct Moving<P> {
    flows: Vec<Flow<P>>,
    packets: usize,
    bytes: usize,
    check_at: Instant,
}

/// A flow that is moving to another service.
#[derive(Clone, Debug)]
pub(crate) struct Flow<P> {
    hash: u64,
    /// The service that it leaves.
    pub(crate) from: u8,
    /// Its new service, as chosen for its last packet.
    pub(crate) to: u8,
    /// When the first packet was held, and when the last may still have been in the old service's queue.
    since: Instant,
    pub(crate) waited_at: Instant,
    pub(crate) packets: VecDeque<P>,
}

impl<P: Payload> Moving<P> {
    pub(crate) const fn new() -> Self {
        Self {
            flows: Vec::new(),
            packets: 0,
            bytes: 0,
            check_at: Instant::ORIGIN,
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        (!self.flows.is_empty()).then_some(self.check_at)
    }

    /// Holds a packet if its flow is moving, or returns it.
    pub(crate) fn follow(&mut self, hash: u64, to: u8, packet: P) -> Option<P> {
        let Some(flow) = self.flows.iter_mut().find(|flow| flow.hash == hash) else {
            return Some(packet);
        };
        self.packets += 1;
        self.bytes += packet.len();
        flow.to = to;
        flow.packets.push_back(packet);
        None
    }

    /// Holds the first packet of a flow that moves, where there is room, or returns it.
    pub(crate) fn begin(
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

    /// Takes out a flow to release: one for which `clear` holds, or that was held for too long, or any if too
    /// much is held.
    pub(crate) fn release(
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

    /// Whether a check is due.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        !self.flows.is_empty() && (now >= self.check_at || self.packets >= PACKETS)
    }

    /// Records that the check was made now.
    pub(crate) fn checked(&mut self, now: Instant) {
        self.check_at = now + CHECK;
    }

    /// Takes all held flows, in the order in which they began to move.
    pub(crate) fn take(&mut self) -> Vec<Flow<P>> {
        (self.packets, self.bytes) = (0, 0);
        std::mem::take(&mut self.flows)
    }
}
