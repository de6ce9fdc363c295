//! Both ends of one TCP connection, with its packets on either side.

use airlane_base::{Duration, Instant};
use airlane_transport::{Ack, Receiver, Segment, Sender, TcpConfig, Transfer};

use super::Place;
use crate::packet::{Packet, Role};
use crate::scenario::Completion;

/// A transfer in one direction: a sender at one node, a receiver at the other.
///
/// The two only meet through packets; they stand in one value because they belong to one flow.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    ack_len: u32,
    /// Whether data goes from the flow's first end to its second.
    forward: bool,
    /// Packets of other connections of the flow are ignored.
    pub(crate) number: u32,
    /// Which endpoints of the flow it runs on, of those that it has.
    endpoints: u8,
    /// The receiver answers every segment at once, so one place is enough.
    ack: Option<Ack>,
}

impl Connection {
    pub(crate) fn new(
        config: &TcpConfig,
        transfer: Transfer,
        phase: Duration,
        forward: bool,
        number: u32,
    ) -> Self {
        Self {
            sender: Sender::new(config, transfer, phase),
            receiver: Receiver::new(config),
            ack_len: config.ack_size.as_bytes() as u32,
            forward,
            number,
            endpoints: 0,
            ack: None,
        }
    }

    /// A connection that carries nothing yet: [`open`](Self::open) it.
    pub(crate) fn closed(config: &TcpConfig, segment: u32, forward: bool, endpoints: u8) -> Self {
        let nothing = Transfer {
            bytes: Some(0),
            segment,
        };
        Self {
            endpoints,
            ..Self::new(config, nothing, Duration::ZERO, forward, 0)
        }
    }

    /// The next transfer over fresh state; counters of the receiver go on, memory is kept.
    pub(crate) fn open(
        &mut self,
        config: &TcpConfig,
        transfer: Transfer,
        phase: Duration,
        number: u32,
    ) {
        self.sender.restart(config, transfer, phase);
        self.receiver.restart();
        self.number = number;
        self.ack = None;
    }

    /// Whether everything that was given to the connection has come over, as `rule` sees it.
    pub(crate) fn is_over(&self, rule: Completion) -> bool {
        match rule {
            Completion::Delivered => self.receiver.rcv_nxt() >= self.sender.segments(),
            Completion::Acknowledged => self.sender.is_finished(),
        }
    }

    /// What its segments are.
    pub(crate) const fn data_role(&self) -> Role {
        if self.forward {
            Role::Data
        } else {
            Role::Request
        }
    }

    const fn ack_role(&self) -> Role {
        if self.forward {
            Role::Ack
        } else {
            Role::RequestAck
        }
    }

    /// Takes the packet in, if it belongs to this connection.
    #[inline]
    pub(crate) fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        if packet.connection != self.number {
            return;
        }
        if packet.role == self.data_role() {
            self.ack = Some(self.receiver.handle_segment(Segment {
                seq: packet.seq,
                len: packet.len,
                retransmission: packet.retransmission,
            }));
        } else if packet.role == self.ack_role() {
            self.sender.handle_ack(now, Ack { ack: packet.seq });
        }
    }

    /// The acknowledgment that the receiver owes.
    #[inline]
    pub(crate) fn poll_ack(&mut self, place: &Place, now: Instant) -> Option<Packet> {
        let ack = self.ack.take()?.ack;
        let mut packet = if self.forward {
            place.backward(now, Role::Ack, ack, self.ack_len)
        } else {
            place.forward(now, Role::RequestAck, ack, self.ack_len)
        };
        self.sign(place, &mut packet);
        Some(packet)
    }

    /// The next segment that the sender may send.
    #[inline]
    pub(crate) fn poll_segment(&mut self, place: &Place, now: Instant) -> Option<Packet> {
        let segment = self.sender.poll_transmit(now)?;
        let mut packet = if self.forward {
            place.forward(now, Role::Data, segment.seq, segment.len)
        } else {
            place.backward(now, Role::Request, segment.seq, segment.len)
        };
        self.sign(place, &mut packet);
        packet.retransmission = segment.retransmission;
        Some(packet)
    }

    /// Every connection has a port of its own at the client.
    #[inline]
    fn sign(&self, place: &Place, packet: &mut Packet) {
        packet.connection = self.number;
        packet.endpoints = self.endpoints;
        let port = place.client_port(self.number);
        if packet.to == place.nodes[1] {
            packet.header.dst_port = port;
        } else {
            packet.header.src_port = port;
        }
    }
}
