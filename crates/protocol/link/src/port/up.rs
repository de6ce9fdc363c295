//! The receive path: a frame goes to its service, and its payloads are opened when the next packet is
//! requested.

use airlane_base::Instant;

use super::Port;
use crate::classify::Way;
use crate::context::DeliveredPayload;
use crate::flow::Packet;
use crate::wire::{Frame, SERVICES};

/// Number of packets opened ahead of requests.
const OPEN_AHEAD: usize = 64;

impl<P: Packet> Port<P> {
    /// Takes a decoded frame from the link.
    ///
    /// Returns whether the port may now have another frame to give, or another deadline. It may have packets
    /// for IP in any case.
    // Inlined, since a frame is slow to move.
    #[inline(always)]
    pub fn handle_frame(&mut self, now: Instant, frame: Frame<P>) -> bool {
        if frame.header.kind.is_of_ports() {
            self.handle_from_port(now, &frame);
            return true;
        }
        let number = usize::from(frame.header.service) % SERVICES;
        let Some(slot) = &mut self.slots[number] else {
            // The decoder knows the services, and has counted it.
            return false;
        };
        let timed = slot.is_timed();
        if timed {
            self.next_timer.set(None);
        }
        let len = slot.frame_len(&frame);
        self.received_bytes += (len + self.config.frame_overhead) as u64;
        self.out.service = number as u8;
        // Packets that the classifier learns from must be opened, and a frame that ends an interval counts in
        // the next.
        let plain = !slot.opens_timed() && !self.classifier.learns() && now < self.interval_ends;
        slot.handle_frame(now, &mut self.out, (frame, len), plain);
        self.process_events(now, number);
        self.open_some(now);
        // The raw service has nothing to answer, and its packets are handed over when others leave.
        if timed {
            self.hand_over(now, number);
        }
        // An end that only receives may never send, nor have a timer.
        self.measure(now);
        timed
    }

    /// The approximate number of packets that [`Port::poll_deliver`] has; exact if zero. An unopened payload
    /// counts as one, whatever it contains.
    pub fn deliveries(&self) -> usize {
        self.out.up.len() + self.out.payloads.len()
    }

    /// The next packet for IP.
    #[inline]
    pub fn poll_deliver(&mut self) -> Option<P> {
        if self.out.up.is_empty() && !self.out.payloads.is_empty() {
            return self.open_next();
        }
        self.out.up.pop_front()
    }

    /// Opens payloads until there is a packet.
    fn open_next(&mut self) -> Option<P> {
        while let Some(delivered) = self.out.payloads.pop_front() {
            let packet = self.open(delivered).or_else(|| self.out.up.pop_front());
            if packet.is_some() {
                return packet;
            }
        }
        None
    }

    /// Opens the payloads of an input, unless they are too many packets at once.
    #[inline]
    pub(super) fn open_some(&mut self, now: Instant) {
        self.produced_at = now;
        while P::DIVISIBLE && self.out.up.len() < OPEN_AHEAD {
            let Some(delivered) = self.out.payloads.pop_front() else {
                return;
            };
            let packet = self.open(delivered);
            self.out.up.extend(packet);
        }
    }

    /// Opens a payload: returns its packet, unless it holds several, or the packet is held.
    #[inline]
    pub(super) fn open(&mut self, delivered: DeliveredPayload<P>) -> Option<P> {
        let (now, service, before) = (self.produced_at, delivered.service, self.out.up.len());
        let slot = self.slots[usize::from(service) % SERVICES].as_mut()?;
        if slot.opens_timed() {
            // Incomplete and held packets have deadlines.
            self.next_timer.set(None);
        }
        let packet = slot.open(now, delivered, &mut self.out.up);
        if self.classifier.learns() {
            self.note_received(now, service, before, packet.as_ref());
        }
        packet
    }

    /// Shows the classifier what a service has delivered: a packet, and those in `up` after the first
    /// `before`.
    pub(super) fn note_received(
        &mut self,
        now: Instant,
        service: u8,
        before: usize,
        packet: Option<&P>,
    ) {
        for packet in packet.into_iter().chain(self.out.up.range(before..)) {
            let flow = match packet.ip_fragment() {
                Some(fragment) => self.classifier.join(now, Way::Received, &fragment),
                None => packet.flow(),
            };
            let (len, datagram) = (packet.len(), || packet.datagram());
            self.classifier
                .note_received(now, service, &flow, len, datagram);
        }
    }

    /// Opens everything: later input must not mix with earlier payloads.
    pub(super) fn open_all(&mut self) {
        while let Some(delivered) = self.out.payloads.pop_front() {
            let packet = self.open(delivered);
            self.out.up.extend(packet);
        }
    }
}
