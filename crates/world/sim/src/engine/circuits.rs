//! Circuits of GSM's data service: their frames, and what happens to them when a node moves.

use airlane_base::Instant;

use super::Engine;
use super::circuit::Circuit;
use super::medium::Medium;
use super::observe::{Departure, Observer};

impl Engine {
    /// A frame of a circuit arrives, or its station may send.
    pub(super) fn on_circuit<O: Observer>(&mut self, index: usize, observer: &mut O) {
        // The two directions of a link have adjacent indices.
        let [down, up] = &mut self.directions[index & !1..][..2] else {
            return;
        };
        let (near, far) = if index & 1 == 0 {
            (down, up)
        } else {
            (up, down)
        };
        let node = near.to;
        let (Medium::Circuit(near), Medium::Circuit(far)) = (&mut near.medium, &mut far.medium)
        else {
            return;
        };
        if let Some(frame) = near.channel.poll_deliver(self.now) {
            near.read(self.now, far, frame, |packet, restored| {
                observer.on_packet_arrival(self.now, index, &packet);
                if restored {
                    observer.on_arrival(self.now, index, &packet);
                    self.delivered.push_back((node, packet));
                } else {
                    observer.on_out_of_step(self.now, index, &packet);
                }
            });
            self.deadlines.set(index ^ 1, far.poll_timeout());
        } else {
            send_block(near, self.now, index, observer);
        }
        self.deadlines.set(index, near.poll_timeout());
    }

    /// Circuits lose what they have in flight, or others take it over.
    pub(super) fn move_circuits(&mut self, left: &[usize], carried: &[[usize; 2]]) {
        for index in left {
            if let Medium::Circuit(circuit) = &mut self.directions[*index].medium {
                circuit.leave(self.now);
                self.deadlines.set(*index, circuit.poll_timeout());
            }
        }
        for both in carried {
            let Ok([from, to]) = self.directions.get_disjoint_mut(*both) else {
                continue;
            };
            if let (Medium::Circuit(from), Medium::Circuit(to)) = (&mut from.medium, &mut to.medium)
            {
                to.take_over(self.now, from);
                self.deadlines.set(both[0], from.poll_timeout());
                self.deadlines.set(both[1], to.poll_timeout());
            }
        }
    }
}

/// Lets a circuit's station send if it is due: a packet leaves with its last octet.
fn send_block<O: Observer>(circuit: &mut Circuit, now: Instant, index: usize, observer: &mut O) {
    let mut ended = Vec::new();
    let departs = circuit.transmit(now, |packet| {
        if O::WATCHES {
            ended.push(*packet);
        }
    });
    for packet in ended {
        let sent = Departure::Sent {
            start: now,
            departs: departs.unwrap_or(now),
            lost: None,
        };
        observer.on_packet(now, index, &packet, sent);
    }
}
