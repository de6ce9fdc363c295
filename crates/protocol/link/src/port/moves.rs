//! Holds the packets of a flow that changes its service, and releases them.

use airlane_base::{Duration, Instant};

use super::Port;
use crate::flow::{FlowKey, Packet};
use crate::queue::{Flow, Moving};
use crate::wire::SERVICES;

/// Assumed variation of a round trip.
const MARGIN: Duration = Duration::from_millis(5);

impl<P: Packet> Port<P> {
    /// Holds a packet of a flow that changes its service, or returns it if it can go on.
    #[cold]
    pub(super) fn hold(
        &mut self,
        now: Instant,
        flow: &FlowKey,
        to: u8,
        before: Option<(u8, Instant)>,
        packet: P,
    ) -> Option<P> {
        let hash = flow.hash(self.config.flow_salt);
        self.next_timer.set(None);
        let packet = self.moving.follow(hash, to, packet);
        let held = match (packet, before) {
            (Some(packet), Some((from, at))) if !self.has_left(now, from, at, &packet) => {
                self.moving.begin(now, hash, (from, to), packet)
            }
            (packet, _) => packet,
        };
        if self.moving.is_due(now) {
            self.release(now);
        }
        held
    }

    /// Whether a service holds nothing more of this packet's flow, whose last packet came `at` that time.
    fn has_left(&self, now: Instant, number: u8, at: Instant, packet: &P) -> bool {
        let Some(slot) = &self.slots[usize::from(number) % SERVICES] else {
            return true;
        };
        if slot.is_quiet() {
            return true;
        }
        let round_trip = slot.service.scheme().srtt().unwrap_or(self.facts.delay * 2);
        let most = round_trip + round_trip / 4 + MARGIN;
        !slot.may_hold_flow_of(packet) && now.saturating_since(at) >= most
    }

    /// Releases held packets of flows that have left their old services.
    pub(super) fn release(&mut self, now: Instant) {
        let mut moving = std::mem::replace(&mut self.moving, Moving::new());
        while let Some(flow) = moving.release(now, |flow| self.may_go(now, flow)) {
            let to = usize::from(flow.to) % SERVICES;
            // The new service may have been removed meanwhile; the default one always exists.
            let to = if self.slots[to].is_some() { to } else { 0 };
            for packet in flow.packets {
                self.admit(now, to, packet);
            }
        }
        moving.checked(now);
        self.moving = moving;
        self.next_timer.set(None);
    }

    fn may_go(&self, now: Instant, flow: &mut Flow<P>) -> bool {
        let Some(first) = flow.packets.front() else {
            return true;
        };
        let slot = self.slots[usize::from(flow.from) % SERVICES].as_ref();
        if slot.is_some_and(|slot| slot.may_hold_flow_of(first)) {
            flow.waited_at = now;
        }
        self.has_left(now, flow.from, flow.waited_at, first)
    }
}
