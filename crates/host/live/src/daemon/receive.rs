//! Input: datagrams from the underlay and packets from the kernel.

use std::io;

use airlane_base::{Instant, Payload};
use airlane_node::{BATCH, Reason};

use super::Daemon;
use crate::clock;
use crate::device::DeviceError;
use crate::offload::checksum;
use crate::offload::join::Joined;
use crate::offload::segment::SuperPacket;
use crate::offload::vnet::{Cut, VnetHeader};
use crate::packet::LivePacket;

impl Daemon {
    /// Reads a batch of datagrams. Returns the time of the last one: what has arrived since `now` did not arrive
    /// then, and a delay that seems too short would make all others look like a queue.
    pub(super) fn receive_frames(&mut self, mut now: Instant) -> Instant {
        let mut received = self.received.take().unwrap_or_default();
        let mut taken = 0;
        self.node.begin_datagrams();
        while taken < BATCH {
            match self.underlay.receive(&mut received) {
                Ok(()) => {
                    now = clock::now();
                    received.for_each(|datagram, addressing, mark| {
                        self.node.handle_datagram(now, datagram, addressing, mark);
                        taken += 1;
                        // Each frame may hold many packets, each of which has a buffer, so they are delivered
                        // before the batch ends.
                        if self.node.deliveries() >= BATCH {
                            self.deliver(now);
                        }
                    });
                    if !received.is_full() {
                        // The socket was emptied; another call would find nothing.
                        break;
                    }
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => break,
                    io::ErrorKind::Interrupted => {}
                    // For instance an ICMP error for a sent datagram.
                    _ => {
                        self.node.count_drop(now, Reason::NotReceived);
                        taken += 1;
                    }
                },
            }
        }
        self.received = Some(received);
        self.node.end_datagrams(taken);
        self.deliver(now);
        now
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
        match gone {
            Some(error) => Err(DeviceError::new(self.tun.name(), "read a packet", error)),
            None => Ok(()),
        }
    }

    /// Handles one packet or super-packet with its offload header. Returns the number of packets.
    fn on_read(&mut self, now: Instant, left: VnetHeader, packet: &mut [u8]) -> usize {
        self.node.count_read(packet.len());
        let Some(link) = self.node.way_of(now, packet) else {
            return 1;
        };
        let transport = match left.cut() {
            Cut::Whole => {
                let (start, offset) = (left.csum_start.into(), left.csum_offset.into());
                if left.needs_checksum && !checksum::complete(packet, start, offset) {
                    self.node.count_drop(now, Reason::NotIp);
                } else {
                    self.node.handle_packet_for(now, link, |room| {
                        room.get_mut(..packet.len())?.copy_from_slice(packet);
                        Some(packet.len())
                    });
                }
                return 1;
            }
            Cut::Segments(transport) => transport,
            Cut::Unknown => {
                self.node.count_drop(now, Reason::NotSegmentable);
                return 1;
            }
        };
        let Ok(whole) = SuperPacket::parse(packet, 0, transport, left.gso_size.into()) else {
            self.node.count_drop(now, Reason::NotSegmentable);
            return 1;
        };
        let segments = whole.segments();
        for i in 0..segments {
            self.node
                .handle_packet_for(now, link, |room| whole.write(i, room));
        }
        segments
    }

    /// Writes the packets received over the links to the kernel.
    pub(super) fn deliver(&mut self, now: Instant) {
        let Self {
            node, joiner, tun, ..
        } = self;
        let (mut packets, mut bytes, mut refused) = (0, 0, 0);
        let mut write = |joined: &Joined<'_, LivePacket>| {
            let pieces = joined.pieces();
            match joined.write(|parts| tun.write(parts)) {
                Ok(()) => {
                    packets += pieces.len() as u64;
                    bytes += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
                }
                Err(_) => refused += pieces.len(),
            }
        };
        while let Some((_link, packet)) = node.poll_deliver(now) {
            joiner.push(packet, &mut write);
        }
        joiner.flush(&mut write);
        node.count_written(packets, bytes);
        for _ in 0..refused {
            node.count_drop(now, Reason::NotDelivered);
        }
    }
}
