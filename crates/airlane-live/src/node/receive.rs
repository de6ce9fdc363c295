//! What comes in: datagrams from the underlay, packets from the kernel.

use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;

use airlane_base::{Instant, Payload};
use airlane_link::{Frame, FrameKind};

use super::drops::Reason;
use super::{BATCH, Node};
use crate::device::DeviceError;
use crate::packet::{Lease, LivePacket, clamp_mss, needs_clamping};

impl Node {
    /// Reads a batch of datagrams.
    pub(super) fn receive_frames(&mut self, now: Instant) {
        for _ in 0..BATCH {
            let mut lease = self.pool.lease();
            match self.underlay.receive(lease.bytes_mut()) {
                Ok((length, source)) => self.on_datagram(now, lease, length, source),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return,
                    io::ErrorKind::Interrupted => {}
                    // An ICMP error for something that was sent, for instance.
                    _ => self.drops.count(now, Reason::NotReceived),
                },
            }
        }
    }

    /// One datagram. Whatever it is, it is taken or counted.
    fn on_datagram(&mut self, now: Instant, lease: Lease, length: usize, source: SocketAddr) {
        self.datagrams_received += 1;
        self.received_bytes += length as u64;
        if let Err(reason) = self.try_datagram(now, lease, length, source) {
            self.drops.count(now, reason);
        }
    }

    fn try_datagram(
        &mut self,
        now: Instant,
        lease: Lease,
        length: usize,
        source: SocketAddr,
    ) -> Result<(), Reason> {
        let Some((lease, length)) = self.open(now, lease, length, source)? else {
            return Ok(());
        };
        let bytes = lease.bytes().get(..length).ok_or(Reason::Oversized)?;
        let decoded = self
            .port
            .decode(bytes)
            .map_err(|error| Reason::from(&error))?;
        let (header, payload_at) = (decoded.header, decoded.payload_at);
        if header.kind == FrameKind::Hello {
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
        let payload =
            (length > payload_at).then(|| LivePacket::from_link(lease.share(), payload_at, length));
        self.port.handle_frame(now, Frame { header, payload });
        self.drain(now);
        Ok(())
    }

    /// The frame in a datagram; none if it was for the secure session alone.
    fn open(
        &mut self,
        now: Instant,
        lease: Lease,
        length: usize,
        source: SocketAddr,
    ) -> Result<Option<(Lease, usize)>, Reason> {
        let Some(guard) = &mut self.guard else {
            let from_peer = self.underlay.is_peer(source);
            return from_peer
                .then_some(Some((lease, length)))
                .ok_or(Reason::OtherAddress);
        };
        let sealed = lease.bytes().get(..length).ok_or(Reason::Oversized)?;
        let mut plain = self.pool.lease();
        let opened = guard.open(now, source, sealed, plain.bytes_mut());
        // A handshake wants its answer, also where it was refused: a cookie.
        self.send_session(now);
        let opened = opened?;
        if let Some(peer) = opened.moved_to {
            let was = self.underlay.peer();
            tracing::info!(%was, %peer, "the peer moved");
            self.underlay.set_peer(peer);
            self.check_mtu(now);
        }
        Ok(opened.frame.map(|length| (plain, length)))
    }

    /// Reads a batch of packets from the kernel.
    ///
    /// # Errors
    /// If the interface is gone.
    pub(super) fn receive_packets(&mut self, now: Instant) -> Result<(), DeviceError> {
        for _ in 0..BATCH {
            let mut lease = self.pool.lease();
            match self.tun.read(lease.bytes_mut()) {
                Ok(length) => self.on_packet(now, lease, length),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => break,
                    io::ErrorKind::Interrupted => {}
                    _ => return Err(DeviceError::new(self.tun.name(), "read a packet", error)),
                },
            }
        }
        Ok(())
    }

    fn on_packet(&mut self, now: Instant, mut lease: Lease, length: usize) {
        self.packets_read += 1;
        self.read_bytes += length as u64;
        if self.session.id().is_none() {
            // Its sender will try again; a queue would only make the packets old.
            self.drops.count(now, Reason::PacketWithoutSession);
            return;
        }
        if let Some(packet) = lease.bytes_mut().get_mut(..length)
            && clamp_mss(packet, self.mtu)
        {
            self.mss_clamped += 1;
        }
        match LivePacket::from_kernel(lease, length) {
            Ok(packet) => {
                self.port.handle_packet(now, packet);
                self.drain(now);
            }
            Err(_no_packet) => self.drops.count(now, Reason::NotIp),
        }
    }

    /// Gives the kernel a packet that came over the link.
    pub(super) fn deliver(&mut self, now: Instant, packet: &LivePacket) {
        let mut bytes = Cow::from(packet.bytes());
        if needs_clamping(&bytes, self.mtu) {
            // A SYN; the buffer may be shared, and they are rare enough to be copied.
            clamp_mss(bytes.to_mut(), self.mtu);
            self.mss_clamped += 1;
        }
        match self.tun.write(&bytes) {
            Ok(()) => {
                self.packets_written += 1;
                self.written_bytes += packet.len() as u64;
            }
            Err(_) => self.drops.count(now, Reason::NotDelivered),
        }
    }
}
