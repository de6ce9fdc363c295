//! Inputs: datagrams from the underlay and packets from the kernel; and the packets for the kernel.

use airlane_base::Instant;
use airlane_link::FrameKind;
use airlane_secure::{PeerAddress, is_handshake};
use airlane_session::{Part, StatusProbe};

use super::drops::Reason;
use super::links::Nowhere;
use super::share::{self, Pressure};
use super::{Node, tunnel_loop};
use crate::DatagramAddresses;
use crate::packet::ecn::Ecn;
use crate::packet::{Lease, LivePacket, addresses, clamp_mss, needs_clamping};

impl Node {
    /// Begins a batch of datagrams.
    pub fn begin_datagrams(&mut self) {
        self.links.iter_mut().for_each(|link| link.spent.begin());
    }

    /// Ends a batch of `taken` datagrams.
    pub fn end_datagrams(&mut self, taken: usize) {
        self.pressure = Pressure::after(taken, self.links.all.len());
    }

    /// Handles one datagram of a batch: it is accepted, or counted as a drop.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        datagram: &[u8],
        addressing: DatagramAddresses,
        mark: Ecn,
    ) {
        self.below.datagrams_received += 1;
        self.below.received_bytes += datagram.len() as u64;
        if datagram.is_empty() {
            let drops = &mut self.below.drops;
            return drops.count_of(now, Reason::Empty, &addressing.from);
        }
        let mut lease = self.pool.lease();
        let (number, length, bound) = match self.open(now, datagram, addressing, lease.bytes_mut())
        {
            Ok(Some(frame)) => frame,
            Ok(None) => return,
            Err(reason) => return self.refuse(now, addressing.from, reason, datagram),
        };
        let taken = self.on_frame(now, number, (lease, length, bound), mark, true);
        let Some(link) = self.links.get_mut(number) else {
            return;
        };
        match taken {
            Err(_) if self.below.guard.is_none() && is_handshake(datagram) => {
                self.refuse(now, addressing.from, Reason::PeerWithKeys, datagram);
            }
            // Without keys a reflected hello comes from the address that the file gives for a peer.
            Err(reason @ Reason::HelloReflected) => {
                self.refuse(now, addressing.from, reason, datagram)
            }
            Err(reason) => link.drops.count(now, reason),
            Ok(()) => {}
        }
    }

    /// Counts a refused datagram. If it shows that only one end has keys, that is the reason.
    fn refuse(&mut self, now: Instant, from: PeerAddress, reason: Reason, datagram: &[u8]) {
        let reason = reason.or_keys_at_one_end(self.below.guard.is_some(), datagram);
        let peer = self.links.expected_at(from);
        let begins = self.links.begins_at(now, from);
        self.below.refuse(now, from, reason, (peer, begins));
    }

    /// Handles one frame of a link, in the first `length` bytes of the buffer; `bound`: it is bound to our
    /// session. `sent_so`: it was not reassembled from parts.
    fn on_frame(
        &mut self,
        now: Instant,
        number: u8,
        (lease, length, bound): (Lease, usize, bool),
        mark: Ecn,
        sent_so: bool,
    ) -> Result<(), Reason> {
        let Some(link) = self.links.get_mut(number) else {
            return Ok(());
        };
        let bytes = &lease.bytes()[..length];
        let decoded = link
            .port
            .decode(bytes)
            .map_err(|error| Reason::from(&error))?;
        let is_hello = decoded.header.kind == FrameKind::Hello;
        let body = &bytes[decoded.payload_at..];
        let part = match is_hello && sent_so {
            true => Part::decode(body).map_err(|error| Reason::from(&error))?,
            false => None,
        };
        link.spent.add(match is_hello && part.is_none() {
            true => share::HELLO,
            false => 1,
        });
        if link.spent.is_all(self.pressure, link.port.deliveries()) {
            return Err(Reason::OverShare);
        }
        if !is_hello {
            return link.handle_frame(now, &decoded, (lease, length, bound), mark);
        }
        if let Some(part) = part {
            let Some(frame) = link.handle_part(now, &part)? else {
                return Ok(());
            };
            let mut lease = self.pool.lease();
            let room = lease.bytes_mut().get_mut(..frame.len());
            room.ok_or(Reason::Oversized)?.copy_from_slice(&frame);
            return self.on_frame(now, number, (lease, frame.len(), bound), mark, false);
        }
        if let Some(probe) = StatusProbe::decode(body).map_err(|error| Reason::from(&error))? {
            return self.on_status_probe(now, number, probe);
        }
        // A new session resets the port, so take what arrived before.
        self.drain(now);
        self.collect(now);
        match self.links.get_mut(number) {
            Some(link) => link.handle_hello(now, body, &mut self.below),
            None => Ok(()),
        }
    }

    /// Opens a datagram and writes its frame to `plain`. Returns the number of its link, the frame's length,
    /// and whether it is bound to our session; `None` if the datagram was for the secure session alone.
    fn open(
        &mut self,
        now: Instant,
        datagram: &[u8],
        addressing: DatagramAddresses,
        plain: &mut [u8],
    ) -> Result<Option<(u8, usize, bool)>, Reason> {
        let Self { below, links, .. } = self;
        let Some(guard) = &mut below.guard else {
            let number = links.at(addressing.from).ok_or(Reason::OtherAddress)?;
            let room = plain.get_mut(..datagram.len()).ok_or(Reason::Oversized)?;
            room.copy_from_slice(datagram);
            if let Some(link) = links.get_mut(number) {
                link.count_received(now, datagram);
                link.to.from = addressing.to;
            }
            return Ok(Some((number, datagram.len(), false)));
        };
        let opened = guard.open(now, addressing.from, datagram, plain);
        // A handshake gets an answer even if it was refused: the answer is then a cookie.
        links.send_session(now, below, Some(addressing));
        let Some(opened) = opened? else {
            return Ok(None);
        };
        let guard = below.guard.as_ref();
        let address = guard.and_then(|guard| guard.address(opened.peer));
        let number = links.of_session(opened.peer);
        let Some(link) = number.and_then(|number| links.get_mut(number)) else {
            return Ok(None);
        };
        let number = link.to.link;
        link.count_received(now, datagram);
        if let Some(tap) = below.tapped(number) {
            tap.borrow_mut().received(now, datagram);
        }
        // The broadcast address is not the address of a peer.
        let address = address.filter(|_| address != below.underlay.anyone());
        if let Some(address) = address.filter(|address| link.to.address != Some(*address)) {
            link.move_to(now, address);
        }
        if link.to.address == Some(addressing.from) {
            link.to.from = addressing.to;
        }
        Ok(opened.frame.map(|(length, bound)| (number, length, bound)))
    }

    /// Handles one packet from the kernel.
    pub fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        self.read_bytes += packet.len() as u64;
        if let Some(link) = self.way_of(now, packet) {
            self.handle_packet_for(now, link, |room| {
                room.get_mut(..packet.len())?.copy_from_slice(packet);
                Some(packet.len())
            });
        }
    }

    /// The link for a packet, or super-packet, from the kernel; a packet without one is counted.
    pub fn way_of(&mut self, now: Instant, packet: &[u8]) -> Option<u8> {
        if let Some(to) = self.own_datagram(packet) {
            self.packets_read += 1;
            self.below.drops.count_of(now, Reason::OwnDatagram, &to);
            return None;
        }
        match self.links.prefixes.toward(packet) {
            Ok(link) => Some(link),
            Err(nowhere) => {
                self.packets_read += 1;
                let drops = &mut self.below.drops;
                match nowhere {
                    Nowhere::NotIp => drops.count(now, Reason::NotIp),
                    Nowhere::NoPeer(to) => drops.count_of(now, Reason::NoPeer, &to),
                }
                None
            }
        }
    }

    /// Counts bytes that were read from the kernel at once.
    pub const fn count_read(&mut self, bytes: usize) {
        self.read_bytes += bytes as u64;
    }

    /// Counts a drop outside this node.
    pub fn count_drop(&mut self, now: Instant, reason: Reason) {
        self.below.drops.count(now, reason);
    }

    /// Counts packets and bytes that were written to the kernel.
    pub const fn count_written(&mut self, packets: u64, bytes: u64) {
        self.packets_written += packets;
        self.written_bytes += bytes;
    }

    /// The destination of a packet from the kernel, if it is one of this node's own datagrams to a peer.
    fn own_datagram(&self, packet: &[u8]) -> Option<PeerAddress> {
        let port = self.below.underlay.port()?;
        let to = PeerAddress::Udp(tunnel_loop::from_port(packet, port)?);
        let mut links = self.links.iter();
        links.any(|link| link.to.address == Some(to)).then_some(to)
    }

    /// Handles one packet from the kernel for a link (see [`Node::way_of`]); `write` copies it and returns
    /// its length. Returns the number of its service; `None` if it was dropped and counted.
    pub fn handle_packet_for(
        &mut self,
        now: Instant,
        link: u8,
        write: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Option<u8> {
        self.packets_read += 1;
        let link = self.links.get_mut(link)?;
        // A peer without a backlog may use some memory above the limit.
        let taken = self.pool.taken_bytes();
        let (most, spare) = (self.most_memory, self.most_memory / 8);
        let is_full = taken >= most && (taken >= most + spare || link.port.waiting_bytes() > 0);
        let refused = if link.session.id().is_none() {
            // The sender will retry; a queue would only age the packets.
            Some(Reason::PacketWithoutSession)
        } else if link.path.is_too_narrow() {
            Some(Reason::TooBig)
        } else {
            is_full.then_some(Reason::MemoryFull)
        };
        if let Some(reason) = refused {
            link.drops.count(now, reason);
            return None;
        }
        let mut lease = self.pool.lease();
        let Some(length) = write(lease.bytes_mut()) else {
            link.drops.count(now, Reason::Oversized);
            return None;
        };
        let within = link.longest_segment(self.mtu);
        if clamp_mss(&mut lease.bytes_mut()[..length], within) {
            self.mss_clamped += 1;
        }
        match LivePacket::from_kernel(lease, length) {
            Ok(packet) => {
                link.port.handle_packet(now, packet);
                Some(link.port.chosen())
            }
            Err(_no_packet) => {
                self.below.drops.count(now, Reason::NotIp);
                None
            }
        }
    }

    /// Number of packets for the kernel.
    pub fn deliveries(&self) -> usize {
        let links = self.links.iter().map(|link| link.port.deliveries());
        self.delivered.len() + links.sum::<usize>()
    }

    /// The next packet for the kernel, from a source address that its peer may use, and its link.
    pub fn poll_deliver(&mut self, now: Instant) -> Option<(u8, LivePacket)> {
        if self.delivered.is_empty() {
            self.collect(now);
        }
        self.delivered.pop_front()
    }

    /// Takes the packets out of the ports.
    fn collect(&mut self, now: Instant) {
        let Self {
            links,
            below,
            delivered,
            mss_clamped,
            ..
        } = self;
        let prefixes = &links.prefixes;
        for (number, link) in &mut links.all {
            let within = link.longest_segment(self.mtu);
            while let Some(packet) = link.port.poll_deliver(now) {
                link.spent.add(1);
                if !prefixes.admits(*number, packet.bytes()) {
                    match addresses(packet.bytes()) {
                        Some((from, _)) => link.drops.count_of(now, Reason::WrongSource, &from),
                        None => link.drops.count(now, Reason::WrongSource),
                    }
                    continue;
                }
                let Ok(mut packet) = packet.leaving(below.outer) else {
                    link.drops.count(now, Reason::Congested);
                    continue;
                };
                if needs_clamping(packet.bytes(), within) {
                    // The buffer may be shared, and SYNs are rare enough to be copied.
                    packet = packet.changed(|bytes| clamp_mss(bytes, within));
                    *mss_clamped += 1;
                }
                delivered.push_back((*number, packet));
            }
        }
    }
}
