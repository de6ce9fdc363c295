//! Links whose ends compress headers: what is sent is shorter, and what cannot be restored is dropped.

use airlane_base::Instant;

use super::Engine;
use super::medium::{Medium, ShrunkLink};
use super::observe::{Departure, Observer};
use super::transmit::transmit;
use crate::packet::Packet;

impl ShrunkLink {
    fn send<O: Observer>(&mut self, now: Instant, packet: &Packet) -> Departure {
        let shrunk = self.headers.shrink(packet);
        let sent = transmit::<O, _>(&mut self.channel, now, shrunk.len(), shrunk);
        if sent != Departure::Dropped {
            self.headers.took(&shrunk);
        }
        sent
    }
}

impl Engine {
    /// Hands a packet to such a link; a full queue drops and counts it.
    pub(super) fn send_shrunk<O: Observer>(
        &mut self,
        index: usize,
        packet: &Packet,
        observer: &mut O,
    ) {
        let Medium::Shrunk(link) = &mut self.directions[index].medium else {
            return;
        };
        let sent = link.send::<O>(self.now, packet);
        observer.on_packet(self.now, index, packet, sent);
        self.deadlines.set(index, link.channel.poll_timeout());
    }

    /// A packet arrives over such a link.
    pub(super) fn on_shrunk<O: Observer>(&mut self, index: usize, observer: &mut O) {
        let direction = &mut self.directions[index];
        let Medium::Shrunk(link) = &mut direction.medium else {
            return;
        };
        let came = link.channel.poll_deliver(self.now);
        let destroyed = link.channel.poll_destroyed(self.now);
        self.deadlines.set(index, link.channel.poll_timeout());
        let node = direction.to;
        let restored = came.is_some_and(|shrunk| link.headers.expand(&shrunk));
        if let Some(shrunk) = destroyed {
            self.on_destroyed(node, &shrunk.packet);
        }
        let Some(shrunk) = came else {
            return;
        };
        observer.on_packet_arrival(self.now, index, &shrunk.packet);
        if restored {
            observer.on_arrival(self.now, index, &shrunk.packet);
            self.arrive(node, &shrunk.packet, observer);
        } else {
            observer.on_out_of_step(self.now, index, &shrunk.packet);
        }
    }
}
