//! What all packets of a flow have in common.

use airlane_base::Instant;

use crate::packet::{Header, Packet, Role};

/// The first dynamic port, and the number of dynamic ports (RFC 6335).
pub(crate) const DYNAMIC_PORTS: u16 = 49_152;
const DYNAMIC: u32 = 16_384;
/// Port difference between consecutive connections; odd, so that it reaches every port.
const STEP: u32 = 613;

/// Where a flow sits, and the headers of its packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowPlace {
    /// Index of the flow.
    pub(crate) flow: u16,
    /// Source and destination of the main direction.
    pub(crate) nodes: [u16; 2],
    /// Header of packets in the main direction.
    pub(crate) header: Header,
}

impl FlowPlace {
    /// A packet of the main direction.
    pub(crate) fn forward(&self, now: Instant, role: Role, seq: u64, len: u32) -> Packet {
        Packet {
            created: now,
            seq,
            len,
            flow: self.flow,
            to: self.nodes[1],
            role_code: role as u8,
            header: self.header,
            ..Packet::BLANK
        }
    }

    /// A packet against the main direction.
    pub(crate) fn backward(&self, now: Instant, role: Role, seq: u64, len: u32) -> Packet {
        Packet {
            to: self.nodes[0],
            header: self.header.reversed(),
            ..self.forward(now, role, seq, len)
        }
    }

    /// The fields that all packets of one kind share on connection `number`, which has its own port at the client.
    pub(super) fn blank(&self, role: Role, number: u32, endpoints: u8) -> Packet {
        let port = self.client_port(number);
        let mut packet = match role {
            Role::Data | Role::RequestAck => self.forward(Instant::ORIGIN, role, 0, 0),
            _ => self.backward(Instant::ORIGIN, role, 0, 0),
        };
        match role {
            Role::Data | Role::RequestAck => packet.header.dst_port = port,
            _ => packet.header.src_port = port,
        }
        packet.connection = number;
        packet.endpoints = endpoints;
        packet
    }

    /// The port of connection `number` at the second end. Connections go through all dynamic ports before one is
    /// reused.
    pub(crate) fn client_port(&self, number: u32) -> u16 {
        let first = u32::from(self.header.dst_port - DYNAMIC_PORTS);
        DYNAMIC_PORTS + (number.wrapping_mul(STEP).wrapping_add(first) % DYNAMIC) as u16
    }

    /// The port of the connection before the one with `port`.
    pub(crate) fn port_before(port: u16) -> u16 {
        let place = u32::from(port.wrapping_sub(DYNAMIC_PORTS)).wrapping_sub(STEP);
        DYNAMIC_PORTS + (place % DYNAMIC) as u16
    }

    /// The node where a packet of this flow enters the network.
    pub(crate) fn origin(&self, packet: &Packet) -> u16 {
        if packet.to == self.nodes[1] {
            self.nodes[0]
        } else {
            self.nodes[1]
        }
    }
}
