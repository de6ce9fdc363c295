//! What can be observed while the engine runs: packets and frames on links, and flows, as events occur.
//!
//! The engine is generic over its observer. Without one, the calls are empty and compile to nothing, so only observed
//! runs pay for observation. An observer sees the world and cannot change it.

use airlane_base::Instant;
use airlane_link::{DropReason, Frame, Port, ServiceEvent};
use airlane_wifi::Aired;

use super::medium::Datagram;
use super::radio::Carried;
use crate::app::Flow;
use crate::packet::Packet;

/// Why something that left does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The error model dropped it.
    Errors,
    /// The link was down.
    Outage,
    /// A node had left the link.
    Handoff,
    /// A policer dropped it.
    Policed,
}

/// What happened to something handed to a transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// The queue before the transmitter was full.
    Dropped,
    /// Its first bit leaves at `start`, its last at `departs`; it arrives unless `lost`.
    Sent {
        start: Instant,
        departs: Instant,
        lost: Option<Loss>,
    },
}

/// An observer. Directions, flows and nodes are numbered as in the engine.
pub(crate) trait Observer {
    /// Whether anything is observed at all.
    const WATCHES: bool = true;
    /// Whether to end the run now; asked after every event.
    #[inline]
    fn is_over(&self) -> bool {
        false
    }
    /// IP hands a packet to a link without services, where it may wait for its turn.
    #[inline]
    fn on_entry(&mut self, _: Instant, _direction: usize, _: &Packet) {}
    /// A packet was handed to the transmitter of a link without services; it may have been dropped.
    #[inline]
    fn on_packet(&mut self, _: Instant, _direction: usize, _: &Packet, _: Departure) {}
    /// IP hands a packet to the port at the near end of a direction, which assigns it to a service.
    #[inline]
    fn on_port(&mut self, _: Instant, _direction: usize, _service: u8, _: &Packet) {}
    /// The port at the near end of a direction drops a packet of a service.
    #[inline]
    fn on_drop(&mut self, _: Instant, _direction: usize, _service: u8, _: DropReason, _: &Packet) {}
    /// A service of the port at the near end of a direction reports an event.
    #[inline]
    fn on_told(&mut self, _: Instant, _direction: usize, _: ServiceEvent) {}
    /// There is no route for a packet.
    #[inline]
    fn on_unroutable(&mut self, _: Instant, _: &Packet) {}
    /// A port's frame goes onto the link.
    #[inline]
    fn on_frame(
        &mut self,
        _: Instant,
        _direction: usize,
        _: &Port<Packet>,
        _: &Frame<Packet>,
        _: Departure,
    ) {
    }
    /// A datagram was handed to the transmitter of a link between live nodes; it may have been dropped.
    #[inline]
    fn on_datagram(&mut self, _direction: usize, _: &Datagram, _: Departure) {}
    /// A frame arrives at the port at the far end of a direction.
    #[inline]
    fn on_frame_arrival(
        &mut self,
        _: Instant,
        _direction: usize,
        _: &Port<Packet>,
        _: &Frame<Packet>,
    ) {
    }
    /// A packet arrives at the far end of a direction without services; IP gets it at once.
    #[inline]
    fn on_packet_arrival(&mut self, _: Instant, _direction: usize, _: &Packet) {}
    /// The far end of a direction drops a packet whose headers it cannot restore.
    #[inline]
    fn on_out_of_step(&mut self, _: Instant, _direction: usize, _: &Packet) {}
    /// IP at the far end of a direction gets a packet.
    #[inline]
    fn on_arrival(&mut self, _: Instant, _direction: usize, _: &Packet) {}
    /// A frame on a radio channel has ended; with the port that sent it, if a port did.
    #[inline]
    fn on_air(&mut self, _radio: usize, _: &Aired<Carried>, _: Option<&Port<Packet>>) {}
    /// A host sends a packet.
    #[inline]
    fn on_transmit(&mut self, _: Instant, _: &Packet) {}
    /// A host receives a packet for one of its flows.
    #[inline]
    fn on_receive(&mut self, _: Instant, _: &Packet) {}
    /// A flow has had an input, and its outputs have not been polled yet.
    #[inline]
    fn on_flow(&mut self, _: Instant, _index: usize, _: &Flow) {}
}

/// Two observers of the same run; it ends when either of them is done.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn is_over(&self) -> bool {
        self.0.is_over() || self.1.is_over()
    }

    fn on_entry(&mut self, now: Instant, direction: usize, packet: &Packet) {
        self.0.on_entry(now, direction, packet);
        self.1.on_entry(now, direction, packet);
    }

    fn on_packet(&mut self, now: Instant, direction: usize, packet: &Packet, what: Departure) {
        self.0.on_packet(now, direction, packet, what);
        self.1.on_packet(now, direction, packet, what);
    }

    fn on_port(&mut self, now: Instant, direction: usize, service: u8, packet: &Packet) {
        self.0.on_port(now, direction, service, packet);
        self.1.on_port(now, direction, service, packet);
    }

    fn on_drop(
        &mut self,
        now: Instant,
        direction: usize,
        service: u8,
        reason: DropReason,
        packet: &Packet,
    ) {
        self.0.on_drop(now, direction, service, reason, packet);
        self.1.on_drop(now, direction, service, reason, packet);
    }

    fn on_told(&mut self, now: Instant, direction: usize, event: ServiceEvent) {
        self.0.on_told(now, direction, event);
        self.1.on_told(now, direction, event);
    }

    fn on_unroutable(&mut self, now: Instant, packet: &Packet) {
        self.0.on_unroutable(now, packet);
        self.1.on_unroutable(now, packet);
    }

    fn on_frame(
        &mut self,
        now: Instant,
        direction: usize,
        port: &Port<Packet>,
        frame: &Frame<Packet>,
        what: Departure,
    ) {
        self.0.on_frame(now, direction, port, frame, what);
        self.1.on_frame(now, direction, port, frame, what);
    }

    fn on_datagram(&mut self, direction: usize, datagram: &Datagram, what: Departure) {
        self.0.on_datagram(direction, datagram, what);
        self.1.on_datagram(direction, datagram, what);
    }

    fn on_frame_arrival(
        &mut self,
        now: Instant,
        direction: usize,
        port: &Port<Packet>,
        frame: &Frame<Packet>,
    ) {
        self.0.on_frame_arrival(now, direction, port, frame);
        self.1.on_frame_arrival(now, direction, port, frame);
    }

    fn on_packet_arrival(&mut self, now: Instant, direction: usize, packet: &Packet) {
        self.0.on_packet_arrival(now, direction, packet);
        self.1.on_packet_arrival(now, direction, packet);
    }

    fn on_out_of_step(&mut self, now: Instant, direction: usize, packet: &Packet) {
        self.0.on_out_of_step(now, direction, packet);
        self.1.on_out_of_step(now, direction, packet);
    }

    fn on_arrival(&mut self, now: Instant, direction: usize, packet: &Packet) {
        self.0.on_arrival(now, direction, packet);
        self.1.on_arrival(now, direction, packet);
    }

    fn on_air(&mut self, radio: usize, aired: &Aired<Carried>, port: Option<&Port<Packet>>) {
        self.0.on_air(radio, aired, port);
        self.1.on_air(radio, aired, port);
    }

    fn on_transmit(&mut self, now: Instant, packet: &Packet) {
        self.0.on_transmit(now, packet);
        self.1.on_transmit(now, packet);
    }

    fn on_receive(&mut self, now: Instant, packet: &Packet) {
        self.0.on_receive(now, packet);
        self.1.on_receive(now, packet);
    }

    fn on_flow(&mut self, now: Instant, index: usize, flow: &Flow) {
        self.0.on_flow(now, index, flow);
        self.1.on_flow(now, index, flow);
    }
}

/// No observer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nobody;

impl Observer for Nobody {
    const WATCHES: bool = false;
}
