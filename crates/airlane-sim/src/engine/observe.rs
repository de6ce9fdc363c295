//! What can be watched while the engine runs: packets and frames on links, and flows, as they happen.
//!
//! The engine is generic over its observer. Without one the calls are empty and leave nothing
//! behind, so watching costs only those who watch. An observer sees the world and cannot change it.

use airlane_base::Instant;
use airlane_link::{DropReason, Frame, Port};

use crate::app::Flow;
use crate::packet::Packet;

/// Why something that left does not arrive whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The error model said so.
    Errors,
    /// It arrives, with bytes changed.
    Damaged,
    /// The link was down.
    Outage,
    /// A node had left the link.
    Handoff,
}

/// What became of something that was given to a transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// The queue in front of it was full.
    Dropped,
    /// Its first bit leaves at `start`, its last at `departs`; it arrives whole unless `lost`.
    Sent {
        start: Instant,
        departs: Instant,
        lost: Option<Loss>,
    },
}

/// Somebody who watches. Directions, flows and nodes are numbered as in the engine.
pub(crate) trait Observer {
    /// Whether anybody watches at all.
    const WATCHES: bool = true;
    /// Whether the run is to end now, before its time; asked after every event.
    #[inline]
    fn is_over(&self) -> bool {
        false
    }
    /// IP hands a packet to a link without services.
    #[inline]
    fn on_packet(&mut self, _: Instant, _direction: usize, _: &Packet, _: Departure) {}
    /// IP hands a packet to the port at the near end of a direction.
    #[inline]
    fn on_port(&mut self, _: Instant, _direction: usize, _: &Port<Packet>, _: &Packet) {}
    /// The port at the near end of a direction drops a packet of a service.
    #[inline]
    fn on_drop(&mut self, _: Instant, _direction: usize, _service: u8, _: DropReason, _: &Packet) {}
    /// There is no way for a packet.
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
    /// A frame arrives at the port at the far end of a direction.
    #[inline]
    fn on_frame_arrival(
        &mut self,
        _: Instant,
        _direction: usize,
        _: &Port<Packet>,
        _: &Frame<Packet>,
        _damaged: bool,
    ) {
    }
    /// A packet arrives at the far end of a direction without services; IP gets it at once.
    #[inline]
    fn on_packet_arrival(&mut self, _: Instant, _direction: usize, _: &Packet) {}
    /// IP at the far end of a direction gets a packet.
    #[inline]
    fn on_arrival(&mut self, _: Instant, _direction: usize, _: &Packet) {}
    /// A host sends a packet.
    #[inline]
    fn on_transmit(&mut self, _: Instant, _: &Packet) {}
    /// A host gets a packet for one of its flows.
    #[inline]
    fn on_receive(&mut self, _: Instant, _: &Packet) {}
    /// A flow has had an input, and has not yet sent what follows from it.
    #[inline]
    fn on_flow(&mut self, _: Instant, _index: usize, _: &Flow) {}
}

/// Nobody.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nobody;

impl Observer for Nobody {
    const WATCHES: bool = false;
}
