//! What can be watched while the engine runs: packets and frames on links, as they happen.
//!
//! The engine is generic over its observer. Without one the calls are empty and leave nothing
//! behind, so watching costs only those who watch.

use airlane_base::Instant;
use airlane_link::{Frame, Port};

use crate::packet::Packet;

/// What became of something that was given to a transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// The queue in front of it was full.
    Dropped,
    /// Its first bit leaves at `start`; `lost` says whether it arrives whole at the other end.
    Sent { start: Instant, lost: bool },
}

/// Somebody who watches links. Directions are numbered as in the engine.
pub(crate) trait Observer {
    /// Whether anybody watches at all.
    const WATCHES: bool;
    /// IP hands a packet to a link without services.
    fn on_packet(&mut self, now: Instant, direction: usize, packet: &Packet, what: Departure);
    /// IP hands a packet to the port at the near end of a direction.
    fn on_port(&mut self, now: Instant, direction: usize, packet: &Packet);
    /// A port's frame goes onto the link.
    fn on_frame(
        &mut self,
        direction: usize,
        port: &Port<Packet>,
        frame: &Frame<Packet>,
        what: Departure,
    );
    /// IP at the far end of a direction gets a packet.
    fn on_arrival(&mut self, now: Instant, direction: usize, packet: &Packet);
}

/// Nobody.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nobody;

impl Observer for Nobody {
    const WATCHES: bool = false;
    #[inline]
    fn on_packet(&mut self, _: Instant, _: usize, _: &Packet, _: Departure) {}
    #[inline]
    fn on_port(&mut self, _: Instant, _: usize, _: &Packet) {}
    #[inline]
    fn on_frame(&mut self, _: usize, _: &Port<Packet>, _: &Frame<Packet>, _: Departure) {}
    #[inline]
    fn on_arrival(&mut self, _: Instant, _: usize, _: &Packet) {}
}
