//! The reset and removal of a service: what happens to packets in flight and in the queue, and when a removed
//! service may go.

use airlane_base::{Duration, Instant};

use super::{Slot, count_drop};
use crate::context::{Context, Output};
use crate::flow::Packet;
use crate::ledger::ServiceLedger;
use crate::queue::DropReason;
use crate::wire::{Frame, Role};

/// A removed service stays at least this long: its number is not needed at once, and the peer's timers may be
/// longer than ours, which become shorter with each service removed.
const LINGER_AT_LEAST: Duration = Duration::from_secs(5);

impl<P: Packet> Slot<P> {
    /// A new epoch: packets in flight are lost, queued ones stay.
    pub(in crate::port) fn reset(&mut self, now: Instant, out: &mut Output<P>) {
        let mut cx = Context::new(now, out, &mut self.ledger);
        self.service.scheme_mut().reset(&mut cx);
        self.unpacker
            .reset(now, &mut out.payloads, &mut out.up, &mut self.ledger);
        let mut lost = std::mem::take(&mut self.forgotten);
        out.lost.drain(..).for_each(|payload| lost.add(&payload));
        self.packer.reset(&mut lost);
        if let Some(lengths) = &mut self.lengths {
            lengths.reset();
        }
        lost.count(&mut self.ledger);
        self.handed_over = 0;
    }

    /// The link is disconnected: queued packets are dropped as well.
    pub(in crate::port) fn drop_waiting(&mut self) {
        self.drop_all(DropReason::Disconnected);
    }

    fn drop_all(&mut self, reason: DropReason) {
        if let Some(packet) = self.packer.take_held_if(|_, _| true) {
            self.discard(reason, packet);
        }
        let (ledger, dropped) = (&mut self.ledger, &mut self.dropped);
        self.queue
            .drain(&mut |packet| count_drop(ledger, dropped, reason, packet));
    }

    /// A new epoch has removed this frame from the scheduler.
    pub(in crate::port) fn forget(&mut self, frame: &Frame<P>) {
        // A reliable scheme still holds its packets, and has counted them.
        if frame.header.kind.role() == Role::Original
            && !self.config.scheme.is_reliable()
            && let Some(payload) = frame.packet()
        {
            self.forgotten.add(payload);
        }
    }

    /// Begins to remove the service. Frames of the peer are still in flight.
    pub(in crate::port) fn drain(&mut self, now: Instant) {
        self.draining = true;
        self.active_at = self.active_at.max(now);
        self.progress_at = self.progress_at.max(now);
    }

    /// When a service that is being removed may go: it is empty, and the peer has had time to request what it
    /// missed; or the peer has been silent for so long that it no longer has the service, and the packets
    /// left here cannot be sent.
    pub(in crate::port) fn retires_at(&self) -> Option<Instant> {
        // Packets that wait at IP will arrive, whatever the peer does.
        if !self.draining || self.handed_over != 0 || self.at_ip.0 != 0 {
            return None;
        }
        let linger = self.service.scheme().linger().max(LINGER_AT_LEAST);
        let waits = !self.queue.is_empty() || !self.packer.is_empty();
        let done = !waits && self.service.scheme().is_idle();
        let at = if done {
            self.active_at + linger
        } else {
            self.progress_at + linger * 4
        };
        // The frame just polled may have been the last. A time in the past would be a deadline that no driver
        // can meet.
        Some(at.max(self.polled_at + Duration::from_nanos(1)))
    }

    /// Ends the service. Unsent packets are counted as dropped or lost.
    pub(in crate::port) fn retire(
        mut self,
        now: Instant,
        out: &mut Output<P>,
    ) -> (String, ServiceLedger) {
        self.reset(now, out);
        self.drop_all(DropReason::WindowFull);
        (self.config.name, self.ledger)
    }
}
