//! What a driver does after every input, in its simplest form.

use airlane_base::Instant;
use airlane_link::{Frame, Packet, Port};

/// Receives the outputs of a port.
pub trait Sink<P> {
    /// A frame leaves for the link.
    fn transmit(&mut self, frame: Frame<P>);
    /// A packet goes up to IP.
    fn deliver(&mut self, packet: P);
}

/// Takes all outputs that a port has now, and returns its next deadline.
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
