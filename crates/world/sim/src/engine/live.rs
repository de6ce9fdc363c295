//! Live nodes in the simulator: packets enter as bytes, and datagrams of their real length cross the links between
//! them.
//!
//! ```text
//! packet ─► bytes, numbered ─► node ─► datagram ─► pipe ─► node ─► bytes ─► the packet of that number
//! ```
//!
//! A node is driven as `airlane up` drives it, without scheduling delay: one input, then all outputs, then its next
//! deadline. Interfaces keep their MTU: on a narrower path, nodes fragment packets, since simulated packets cannot be
//! shortened.

use std::net::SocketAddr;

use airlane_base::{Duration, Instant};
use airlane_node::packet::ecn::Ecn;
use airlane_node::{DatagramAddresses, PathFacts, Request};
use airlane_secure::{PeerAddress, Wall};

use super::Engine;
use super::lives::LiveEnd;
use super::medium::{Datagram, Medium};
use super::observe::{Departure, Observer};
use super::transmit::transmit;
use crate::packet::Packet;

/// Wall clock time at the start of a run, since 1970.
const WALL: Duration = Duration::from_secs(1_800_000_000);
/// Delay before handling a deadline that is due again at once.
const TURN: Duration = Duration::from_micros(10);

impl Engine {
    /// Starts the activity of live nodes that needs no input.
    pub(super) fn begin_lives(&mut self) {
        for index in 0..self.lives.ends.len() {
            self.schedule_live(index);
        }
    }

    /// Hands a packet to the live node at the near end of a direction.
    pub(super) fn enter_live<O: Observer>(
        &mut self,
        direction: usize,
        packet: &Packet,
        observer: &mut O,
    ) {
        let Some([end, peer]) = self.lives.near[direction] else {
            return;
        };
        let mut bytes = self.lives.buffers.pop().unwrap_or_default();
        bytes.clear();
        if let Some(headers) = &mut self.lives.headers[direction / 2] {
            self.lives.numbers.write(headers, packet, &mut bytes);
        }
        let live = &mut self.lives.ends[end];
        let link = live.peers[peer].link;
        let service = live.node.handle_packet_for(self.now, link, |room| {
            room.get_mut(..bytes.len())?.copy_from_slice(&bytes);
            Some(bytes.len())
        });
        self.lives.buffers.push(bytes);
        match service {
            Some(service) => {
                self.served[packet.flow as usize].add(direction, service);
                observer.on_port(self.now, direction, service, packet);
            }
            None => observer.on_packet(self.now, direction, packet, Departure::Dropped),
        }
        self.drain_live(end, observer);
    }

    /// A datagram or packet arrives over a link between live nodes.
    pub(super) fn on_datagram<O: Observer>(&mut self, index: usize, observer: &mut O) {
        let Medium::Datagrams(channel) = &mut self.directions[index].medium else {
            return;
        };
        let datagram = channel.poll_deliver(self.now);
        channel.poll_destroyed(self.now);
        self.deadlines.set(index, channel.poll_timeout());
        // The two directions of a link have adjacent indices: the end that sends over one receives from the other.
        let (Some(datagram), Some([end, _])) = (datagram, self.lives.near[index ^ 1]) else {
            return;
        };
        let node = &mut self.lives.ends[end].node;
        let addressing = DatagramAddresses {
            from: PeerAddress::Udp(datagram.from),
            to: Some(datagram.to),
        };
        node.begin_datagrams();
        node.handle_datagram(self.now, &datagram.bytes, addressing, Ecn::NotEct);
        node.end_datagrams(1);
        self.lives.buffers.push(datagram.bytes);
        self.drain_live(end, observer);
    }

    pub(super) fn on_live_timer<O: Observer>(&mut self, index: usize, observer: &mut O) {
        let wall = WALL + self.now.saturating_since(Instant::ORIGIN);
        let node = &mut self.lives.ends[index].node;
        node.handle_timeout(self.now, Wall::from_unix(wall));
        self.drain_live(index, observer);
    }

    /// Polls everything that a live node has for its host and its peers, then its deadline.
    fn drain_live<O: Observer>(&mut self, index: usize, observer: &mut O) {
        self.answer_requests(index);
        self.take_delivered(index, observer);
        while let Some(datagram) = self.lives.ends[index].node.poll_datagram(self.now) {
            let PeerAddress::Udp(to) = datagram.to else {
                continue;
            };
            let chosen = datagram.from;
            let mut bytes = self.lives.buffers.pop().unwrap_or_default();
            bytes.clear();
            bytes.extend_from_slice(datagram.bytes);
            let len = bytes.len() + Datagram::HEADERS;
            let Some(path) = self.lives.way(self.now, index, to.ip()) else {
                self.unroutable.add(len);
                continue;
            };
            let (direction, own) = (path.direction, path.own);
            if !path.takes(self.now, len) {
                self.lives.too_long[direction].add(len);
                continue;
            }
            let listen = self.lives.ends[index].listen;
            // A moving end has no other address than that of its current link.
            let chosen = chosen.filter(|_| listen.ip() == own);
            let datagram = Datagram {
                from: SocketAddr::new(chosen.unwrap_or(own.into()), listen.port()),
                to: to.ip(),
                bytes,
            };
            if let Medium::Datagrams(channel) = &mut self.directions[direction].medium {
                let watched = O::WATCHES.then(|| datagram.clone());
                let departure = transmit::<O, _>(channel, self.now, len, datagram);
                if let Some(datagram) = watched {
                    observer.on_datagram(direction, &datagram, departure);
                }
                self.deadlines.set(direction, channel.poll_timeout());
            }
        }
        self.take_delivered(index, observer);
        self.schedule_live(index);
    }

    fn take_delivered<O: Observer>(&mut self, index: usize, observer: &mut O) {
        let LiveEnd {
            node, at, peers, ..
        } = &mut self.lives.ends[index];
        while let Some((link, bytes)) = node.poll_deliver(self.now) {
            let Some(packet) = self.lives.numbers.read(bytes.bytes()) else {
                self.unroutable.add(bytes.bytes().len());
                continue;
            };
            if O::WATCHES {
                // If several links lead to one peer, the packet came over the one that exists now.
                let peer = peers.iter().find(|peer| peer.link == link);
                let mut paths = peer.into_iter().flat_map(|peer| &peer.paths);
                if let Some(path) = paths.find(|path| path.is_there(self.now)) {
                    observer.on_arrival(self.now, path.direction ^ 1, &packet);
                }
            }
            self.delivered.push_back((*at, packet));
        }
    }

    fn answer_requests(&mut self, index: usize) {
        let LiveEnd { node, listen, .. } = &mut self.lives.ends[index];
        while let Some(request) = node.poll_request() {
            match request {
                Request::Path { link, .. } => {
                    node.handle_path(self.now, link, PathFacts::UNKNOWN);
                }
                Request::Port(_) => node.handle_port(self.now, Ok(*listen)),
                // Packets keep their length, and peers have no DNS names.
                Request::Mtu(_) | Request::LookUp(_) => {}
            }
        }
    }

    fn schedule_live(&mut self, index: usize) {
        let due = self.lives.ends[index].node.poll_timeout(self.now);
        let due = match due {
            Instant::FAR_FUTURE => None,
            due if due > self.now => Some(due),
            _ => Some(self.now + TURN),
        };
        self.deadlines.set(self.slots.lives + index, due);
    }
}
