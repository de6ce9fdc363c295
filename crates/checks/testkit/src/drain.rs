//! What a driver does after every input, at its shortest.

use airlane_base::Instant;
use airlane_link::{Frame, Packet, Port};

/// Where a port's outputs go.
pub trait Sink<P> {
    /// A frame leaves for the link.
    fn transmit(&mut self, frame: Frame<P>);
    /// A packet goes up to IP.
    fn deliver(&mut self, packet: P);
}

/// Takes everything out of a port that it has to give now, and says when to come back.
pub fn drain<P: Packet>(
    port: &mut Port<P>,
    now: Instant,
    sink: &mut impl Sink<P>,
) -> Option<Instant> {
    while let Some(frame) = port.poll_transmit(now) {
        sink.transmit(frame);
    }
    while let Some(packet) = port.poll_deliver() {
        sink.deliver(packet);
    }
    port.poll_timeout()
}
