//! Events at the stations of radio channels.

use airlane_link::Outcome;
use airlane_wifi::Done;

use super::Engine;
use super::medium::Medium;
use super::observe::{Departure, Loss, Observer};
use super::radio::Carried;
use crate::app::clap::write_probe;
use crate::packet::Packet;

impl Engine {
    /// A radio is due: frames have been received, stations have finished frames.
    pub(super) fn on_radio<O: Observer>(&mut self, index: usize, observer: &mut O) {
        self.radios[index].radio.handle_timeout(self.now);
        while let Some(delivery) = self.radios[index].radio.poll_deliver() {
            match delivery.packet {
                Carried::Packet(packet) => {
                    let node = self.radios[index].nodes[delivery.to];
                    self.delivered.push_back((node, packet));
                }
                Carried::Frame(direction, frame) => {
                    let attached = &mut self.radios[index].attached[delivery.from];
                    if let Some(leaving) = &mut attached.leaving {
                        leaving.came = true;
                    }
                    self.on_frame(direction as usize, Some(frame), observer);
                }
            }
        }
        while let Some(done) = self.radios[index].radio.poll_done() {
            self.on_done(index, done, observer);
        }
        while let Some(aired) = self.radios[index].radio.poll_aired() {
            // The two directions of a link have adjacent indices: the port that receives the frames of one sends over
            // the other.
            let near = match aired.packet {
                Some(Carried::Frame(out, _)) => self.directions[out as usize ^ 1].port,
                _ => None,
            };
            let near = near.map(|near| &self.ports[near as usize].port);
            observer.on_air(index, &aired, near);
        }
        self.schedule_radio(index);
    }

    /// A station has finished a frame: its port learns the outcome, and the next port gets its turn.
    fn on_done<O: Observer>(&mut self, radio: usize, done: Done<Carried>, observer: &mut O) {
        let Done {
            station,
            began,
            acknowledged,
            packet,
        } = done;
        if let Carried::Frame(direction, frame) = packet
            && let Some(leaving) = self.radios[radio].attached[station].leaving.take()
            && let Medium::Station(link) = &mut self.directions[direction as usize].medium
        {
            let port = &mut self.ports[link.near as usize].port;
            let len = port.frame_len(&frame);
            match leaving.came {
                true => link.stats.delivered.add(len),
                false => link.stats.lost_air.add(len),
            }
            let sent = Departure::Sent {
                start: began,
                departs: self.now,
                lost: (!leaving.came).then_some(Loss::Errors),
            };
            observer.on_frame(self.now, direction as usize, port, &frame, sent);
            let outcome = match acknowledged {
                true => Outcome::Sent(began),
                false => Outcome::Failed,
            };
            port.frame_done(leaving.token, self.now, outcome);
        }
        // The port whose frame it was has its turn last, but has an outcome to handle.
        let attached = &self.radios[radio].attached[station];
        let (first, turns) = (attached.next, attached.ports.len());
        for turn in 0..turns {
            let port = self.radios[radio].attached[station].port(first + turn);
            self.drain_port(port, observer);
        }
    }

    #[inline]
    pub(super) fn schedule_radio(&mut self, index: usize) {
        let due = self.radios[index].radio.poll_timeout();
        self.deadlines.set(self.slots.radios + index, due);
    }

    /// A flow's path probe leaves through a station, which adds what it offers.
    pub(super) fn write_status(&self, [radio, station]: [u16; 2], packet: &mut Packet) {
        if self.daemons.is_empty() {
            return;
        }
        let flow = &self.flows[packet.flow as usize];
        if packet.is_open_probe(flow.place())
            && let Some(own) = self.daemons.status(radio, station)
        {
            write_probe(packet, own);
        }
    }

    pub(super) fn schedule_daemons(&mut self) {
        if self.daemons.is_empty() {
            return;
        }
        self.deadlines
            .set(self.slots.daemons, self.daemons.poll_timeout());
    }
}
