//! Turns on shared transmitters.

use airlane_base::Payload as _;

use super::Engine;
use super::medium::{Direction, Medium};
use super::observe::{Departure, Observer};
use super::transmit::loss;

impl Engine {
    /// Sends the next packet that waits for a shared transmitter, if it is free.
    pub(super) fn send_queued<O: Observer>(&mut self, index: usize, observer: &mut O) {
        let Direction { medium, air, .. } = &mut self.directions[index];
        let (Medium::Queued(link), Some(air)) = (medium, air) else {
            return;
        };
        let air = &mut self.airs[*air as usize];
        if air.busy {
            return;
        }
        let Some(packet) = link.pop() else {
            return;
        };
        let before = *link.channel.stats();
        let departs = link.channel.send_at(self.now, packet.len(), packet);
        let sent = Departure::Sent {
            start: self.now,
            departs,
            lost: loss(&before, link.channel.stats()),
        };
        observer.on_packet(self.now, index, &packet, sent);
        air.busy = true;
        link.leaving = Some(departs);
        self.deadlines.set(index, link.poll_timeout());
    }

    /// A direction's frame has left: all others on the same transmitter have their turn before it.
    pub(super) fn pass_turn<O: Observer>(&mut self, index: usize, observer: &mut O) {
        let Direction { air, turn, .. } = self.directions[index];
        let Some(air) = air else {
            return;
        };
        let (air, turn) = (air as usize, turn as usize);
        self.airs[air].busy = false;
        let mut turns = 1..;
        while !self.airs[air].busy
            && let Some(other) = turns.next().and_then(|n| self.airs[air].after(turn, n))
        {
            match &self.directions[other].medium {
                Medium::Driving(link) => self.drain_port(link.near as usize, observer),
                _ => self.send_queued(other, observer),
            }
        }
    }
}
