//! What comes in: datagrams from the underlay, packets from the kernel.

use std::io;
use std::net::SocketAddr;

use airlane_base::{Instant, Payload};
use airlane_link::{Frame, FrameKind};

use super::drops::Reason;
use super::{BATCH, Node};
use crate::device::DeviceError;
use crate::offload::checksum;
use crate::offload::join::Joined;
use crate::offload::segment::SuperPacket;
use crate::offload::vnet::{Cut, VnetHeader};
use crate::packet::ecn::Ecn;
use crate::packet::{LivePacket, clamp_mss, needs_clamping};

impl Node {
    /// Reads a batch of datagrams.
    pub(super) fn receive_frames(&mut self, now: Instant) {
        let mut received = std::mem::take(&mut self.received);
        let mut taken = 0;
        while taken < BATCH {
            match self.underlay.receive(&mut received) {
                Ok(()) => {
                    for (datagram, source, mark) in received.datagrams() {
                        self.on_datagram(now, datagram, source, mark);
                        taken += 1;
                    }
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => break,
                    io::ErrorKind::Interrupted => {}
                    // An ICMP error for something that was sent, for instance.
                    _ => {
                        self.drops.count(now, Reason::NotReceived);
                        taken += 1;
                    }
                },
            }
        }
        self.received = received;
        self.drain(now);
    }

    /// One datagram. Whatever it is, it is taken or counted.
    fn on_datagram(&mut self, now: Instant, datagram: &[u8], source: SocketAddr, mark: Ecn) {
        self.datagrams_received += 1;
        self.received_bytes += datagram.len() as u64;
        if let Err(reason) = self.try_datagram(now, datagram, source, mark) {
            self.drops.count(now, reason);
        }
    }

    fn try_datagram(
        &mut self,
        now: Instant,
        datagram: &[u8],
        source: SocketAddr,
        mark: Ecn,
    ) -> Result<(), Reason> {
        let mut lease = self.pool.lease();
        let Some(length) = self.open(now, datagram, source, lease.bytes_mut())? else {
            return Ok(());
        };
        let bytes = &lease.bytes()[..length];
        let decoded = self
            .port
            .decode(bytes)
            .map_err(|error| Reason::from(&error))?;
        let (header, payload_at) = (decoded.header, decoded.payload_at);
        if header.kind == FrameKind::Hello {
            // A new session resets the port, with what came before in it.
            self.drain(now);
            let heard = self.session.handle_hello(now, &bytes[payload_at..]);
            self.take_events(now);
            if self.session.poll_timeout() <= now {
                self.say_hello(now);
            }
            return heard.map_err(|error| Reason::from(&error));
        }
        if self.session.id().is_none() {
            return Err(Reason::FrameWithoutSession);
        }
        if !self.session.check(now, decoded.session) {
            return Err(Reason::StaleSession);
        }
        if !self.port.is_agreed(header.service) {
            return Err(Reason::ServiceNotAgreed);
        }
        if header.kind.carries_packet() != (length > payload_at) {
            return Err(Reason::BadLength);
        }
        if header.kind.is_packet()
            && let Some(packet) = lease.bytes_mut().get_mut(payload_at..length)
        {
            let left = self.outer.leave(packet, mark.bits());
            left.map_err(|_unmarkable| Reason::Congested)?;
        }
        let payload =
            (length > payload_at).then(|| LivePacket::from_link(lease.share(), payload_at, length));
        self.port.handle_frame(now, Frame { header, payload });
        Ok(())
    }

    /// Writes the frame in a datagram to `plain`: its length, none if the datagram was for the
    /// secure session alone.
    fn open(
        &mut self,
        now: Instant,
        datagram: &[u8],
        source: SocketAddr,
        plain: &mut [u8],
    ) -> Result<Option<usize>, Reason> {
        let Some(guard) = &mut self.guard else {
            if !self.underlay.is_peer(source) {
                return Err(Reason::OtherAddress);
            }
            let room = plain.get_mut(..datagram.len()).ok_or(Reason::Oversized)?;
            room.copy_from_slice(datagram);
            return Ok(Some(datagram.len()));
        };
        let opened = guard.open(now, source, datagram, plain);
        // A handshake wants its answer, also where it was refused: a cookie.
        self.send_session(now);
        let opened = opened?;
        self.recorder.received(now, datagram);
        if let Some(peer) = opened.moved_to {
            match self.underlay.peer() {
                Some(was) => tracing::info!(%was, %peer, "the peer moved"),
                None => tracing::info!(%peer, "the peer called"),
            }
            self.underlay.set_peer(peer);
            self.check_mtu(now);
        }
        Ok(opened.frame)
    }

    /// Reads a batch of packets from the kernel.
    ///
    /// # Errors
    /// If the interface is gone.
    pub(super) fn receive_packets(&mut self, now: Instant) -> Result<(), DeviceError> {
        let mut buffer = std::mem::take(&mut self.read);
        let mut taken = 0;
        let gone = loop {
            if taken >= BATCH {
                break None;
            }
            match self.tun.read(&mut buffer) {
                Ok((left, packet)) => taken += self.on_read(now, left, packet),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => break None,
                    io::ErrorKind::Interrupted => {}
                    _ => break Some(error),
                },
            }
        };
        self.read = buffer;
        self.drain(now);
        match gone {
            Some(error) => Err(DeviceError::new(self.tun.name(), "read a packet", error)),
            None => Ok(()),
        }
    }

    /// One packet or super-packet, with what the kernel left to do: how many packets it was.
    fn on_read(&mut self, now: Instant, left: VnetHeader, packet: &mut [u8]) -> usize {
        self.read_bytes += packet.len() as u64;
        let transport = match left.cut() {
            Cut::Whole => {
                let (start, offset) = (left.csum_start.into(), left.csum_offset.into());
                if left.needs_checksum && !checksum::complete(packet, start, offset) {
                    self.drops.count(now, Reason::NotIp);
                } else {
                    self.on_packet(now, |room| {
                        room.get_mut(..packet.len())?.copy_from_slice(packet);
                        Some(packet.len())
                    });
                }
                return 1;
            }
            Cut::Segments(transport) => transport,
            Cut::Unknown => {
                self.drops.count(now, Reason::NotSegmentable);
                return 1;
            }
        };
        let Ok(whole) = SuperPacket::parse(packet, 0, transport, left.gso_size.into()) else {
            self.drops.count(now, Reason::NotSegmentable);
            return 1;
        };
        let segments = whole.segments();
        for i in 0..segments {
            self.on_packet(now, |room| whole.write(i, room));
        }
        segments
    }

    /// One packet of the kernel, which `write` writes and tells the length of.
    fn on_packet(&mut self, now: Instant, write: impl FnOnce(&mut [u8]) -> Option<usize>) {
        self.packets_read += 1;
        if self.session.id().is_none() {
            // Its sender will try again; a queue would only make the packets old.
            self.drops.count(now, Reason::PacketWithoutSession);
            return;
        }
        let mut lease = self.pool.lease();
        let Some(length) = write(lease.bytes_mut()) else {
            self.drops.count(now, Reason::Oversized);
            return;
        };
        if clamp_mss(&mut lease.bytes_mut()[..length], self.mtu) {
            self.mss_clamped += 1;
        }
        match LivePacket::from_kernel(lease, length) {
            Ok(packet) => self.port.handle_packet(now, packet),
            Err(_no_packet) => self.drops.count(now, Reason::NotIp),
        }
    }

    /// Gives the kernel the packets that came over the link.
    pub(super) fn deliver(&mut self, now: Instant) {
        let Self {
            port,
            joiner,
            tun,
            drops,
            ..
        } = self;
        let (mut packets, mut bytes) = (0, 0);
        let mut write = |joined: &Joined<'_, LivePacket>| {
            let pieces = joined.pieces();
            match joined.write(|parts| tun.write(parts)) {
                Ok(()) => {
                    packets += pieces.len() as u64;
                    bytes += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
                }
                Err(_) => {
                    for _ in pieces {
                        drops.count(now, Reason::NotDelivered);
                    }
                }
            }
        };
        while let Some(mut packet) = port.poll_deliver(now) {
            if needs_clamping(packet.bytes(), self.mtu) {
                // A SYN; the buffer may be shared, and they are rare enough to be copied.
                packet = packet.changed(|bytes| clamp_mss(bytes, self.mtu));
                self.mss_clamped += 1;
            }
            joiner.push(packet, &mut write);
        }
        joiner.flush(&mut write);
        self.packets_written += packets;
        self.written_bytes += bytes;
    }
}
