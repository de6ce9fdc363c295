//! The transmit path: a packet is classified, paced or admitted, queued, and handed over as a frame when its
//! service may.

use airlane_base::Instant;

use super::Port;
use crate::classify::Way;
use crate::departure::{DepartingFrame, Token};
use crate::flow::Packet;
use crate::queue::DropReason;
use crate::schedule::Schedule;
use crate::wire::{Frame, SERVICES};

impl<P: Packet> Port<P> {
    /// Takes a packet from IP: classifies it, and queues or drops it. Drops are in the ledger.
    ///
    /// Returns whether the port may now have a frame to give, or another deadline. It does not, if the packet
    /// only waits in a queue, or is dropped, while the link is busy.
    #[inline]
    pub fn handle_packet(&mut self, now: Instant, mut packet: P) -> bool {
        let classifier = &mut self.classifier;
        if let Some(fragment) = packet.ip_fragment() {
            packet.set_flow(classifier.join(now, Way::Sent, &fragment));
        }
        let (flow, len) = (packet.flow(), packet.len());
        let choice = classifier.classify_packet(now, &flow, len, || packet.datagram());
        let number = usize::from(choice.service) % SERVICES;
        self.chosen = number as u8;
        if choice.before.is_none() && self.moving.is_empty() {
            return self.admit(now, number, packet);
        }
        match self.hold(now, &flow, choice.service, choice.before, packet) {
            Some(packet) => self.admit(now, number, packet),
            None => true,
        }
    }

    /// Takes a packet from IP and returns its frame at once, if the link is free and nothing else waits. This
    /// equals [`Port::handle_packet`] followed by [`Port::poll_transmit`], without the detour through queue
    /// and scheduler. None if the packet has to wait or be dropped: then nothing has happened, and the packet
    /// goes to [`Port::handle_packet`].
    #[inline]
    pub fn pass(&mut self, now: Instant, packet: &P) -> Option<Frame<P>> {
        let idle = now >= self.free_at
            && self.scheduler.is_empty()
            && self.under_way == 0
            && self.ready == 0;
        // A packet that may share its frame waits for others, and the classifier may learn from each packet
        // only once.
        if !idle
            || self.classifier.learns()
            || self.pacer.is_some()
            || self.estimator.is_some()
            || self.speaks
            || packet.len() > self.config.max_payload
        {
            return None;
        }
        let number = usize::from(self.classifier.classify(&packet.flow())) % SERVICES;
        let slot = self.slots[number].as_mut().filter(|slot| slot.is_clear())?;
        if let Some(shares) = &mut self.shares {
            shares.pass(number, packet.len());
        }
        slot.offer(packet);
        let mut frame = slot.send(now, &mut self.out, packet.clone());
        self.chosen = number as u8;
        frame.header.service = self.chosen;
        let len = slot.frame_len(&frame) + self.config.frame_overhead;
        self.link_idle(now);
        self.scheduler.pass(number as u8, len);
        self.under_way += 1;
        let token = Token {
            header: frame.header,
            len,
            came: Some(now),
            epoch: self.epochs[number],
        };
        self.leave(now, &token);
        Some(frame)
    }

    /// Admits a packet to a service.
    pub(super) fn admit(&mut self, now: Instant, number: usize, packet: P) -> bool {
        let Some(slot) = &mut self.slots[number] else {
            // The default service always exists.
            return now >= self.free_at;
        };
        slot.offer(&packet);
        if packet.len() > self.config.max_payload {
            slot.discard(DropReason::TooBig, packet);
            return now >= self.free_at;
        }
        if let Some(pacer) = &mut self.pacer {
            if !pacer.is_open(now) {
                let len = packet.len();
                match pacer.push(now, number, packet) {
                    Ok(()) => slot.waits_at_ip(len),
                    Err(packet) => slot.discard(DropReason::QueueFull, packet),
                }
                self.next_timer.set(None);
                return true;
            }
            pacer.pass(now, packet.len());
        }
        self.take(now, number, packet)
    }

    /// Takes an admitted packet: its service hands it over, or it is queued, or dropped and counted. Returns
    /// whether it did more than wait.
    #[inline]
    pub(super) fn take(&mut self, now: Instant, number: usize, packet: P) -> bool {
        if let Some(shares) = &mut self.shares {
            shares.pass(number, packet.len());
        }
        let limit = self.config.handed_over.limit();
        if let Some(slot) = &mut self.slots[number]
            && slot.handed_over() >= limit
            && !slot.draining
        {
            // Usually there is a queue, and this starts no timer.
            slot.wait(now, packet);
            return now >= self.free_at;
        }
        self.hand_over_frames(now, number, Some(packet));
        true
    }

    /// Lets one service hand over frames as far as it may.
    // Inlined, since usually it may not.
    #[inline(always)]
    pub(super) fn hand_over(&mut self, now: Instant, number: usize) {
        self.ready &= !(1 << number);
        let limit = self.config.handed_over.limit();
        let Some(slot) = &mut self.slots[number] else {
            return;
        };
        if slot.handed_over() < limit && slot.has_frames() {
            self.hand_over_frames(now, number, None);
        } else if slot.draining {
            slot.note_polled(now);
            self.next_timer.set(None);
        }
        if let Some(slot) = &mut self.slots[number] {
            slot.note_dry();
        }
    }

    /// Hands over frames with the queued packets, and then with the packet that is `arriving`.
    pub(super) fn hand_over_frames(
        &mut self,
        now: Instant,
        number: usize,
        mut arriving: Option<P>,
    ) {
        self.ready &= !(1 << number);
        if self.under_way == 0 && now >= self.free_at && self.scheduler.is_empty() {
            self.link_idle(now);
        }
        let limit = self.config.handed_over.limit();
        // An unknown link may not be able to carry copies.
        let spare = self
            .estimator
            .as_ref()
            .is_none_or(|estimator| estimator.knows_something());
        let Some(slot) = &mut self.slots[number] else {
            return;
        };
        if slot.is_timed() {
            self.next_timer.set(None);
        }
        let (scheduler, overhead) = (&mut self.scheduler, self.config.frame_overhead);
        let mut to = |mut departing: DepartingFrame<P>, len| {
            departing.frame.header.service = number as u8;
            scheduler.enqueue(number as u8, len + overhead, departing);
        };
        while slot.handed_over() < limit
            && slot.hand_over(now, spare, &mut self.out, &mut arriving, &mut to)
        {}
        if let Some(packet) = arriving {
            slot.wait(now, packet);
        }
        if self.process_events(now, number) {
            self.hand_over_ready(now);
        }
    }

    #[inline]
    pub(super) fn hand_over_ready(&mut self, now: Instant) {
        while self.ready != 0 {
            self.hand_over(now, self.ready.trailing_zeros() as usize);
        }
    }
}
