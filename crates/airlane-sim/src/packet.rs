//! What travels through the simulated world.

use std::net::Ipv4Addr;

use airlane_base::{Instant, Payload};
use airlane_link::FlowKey;

/// What a packet is to the flow that sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A datagram of a one-way source.
    Datagram,
    /// A segment towards the end that receives the flow's main direction, or its acknowledgment.
    Data,
    Ack,
    /// A segment of a request against the main direction, or its acknowledgment.
    Request,
    RequestAck,
}

/// A packet: sizes and identities, no bytes. Small and `Copy`, because keeping a copy for
/// retransmission must cost nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// When the application or the transport gave it out.
    pub(crate) created: Instant,
    /// Segment number or cumulative acknowledgment; a datagram's number.
    pub(crate) seq: u64,
    /// Length without link headers, bytes.
    pub(crate) len: u32,
    /// Index of the flow.
    pub(crate) flow: u32,
    /// Which connection of the flow; packets of older ones are ignored.
    pub(crate) connection: u32,
    /// Node that it goes to.
    pub(crate) to: u16,
    pub(crate) role: Role,
    pub(crate) retransmission: bool,
    /// What a classifier may read.
    pub(crate) header: Header,
}

/// The header fields that classifiers match, as they would stand in the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) src: Ipv4Addr,
    pub(crate) dst: Ipv4Addr,
    pub(crate) src_port: u16,
    pub(crate) dst_port: u16,
    pub(crate) dscp: u8,
    pub(crate) protocol: u8,
}

impl Header {
    /// The header of packets in the other direction.
    pub(crate) fn reversed(self) -> Self {
        Self {
            src: self.dst,
            dst: self.src,
            src_port: self.dst_port,
            dst_port: self.src_port,
            ..self
        }
    }
}

impl Payload for Packet {
    fn len(&self) -> usize {
        self.len as usize
    }
}

impl airlane_link::Packet for Packet {
    fn flow(&self) -> FlowKey {
        let Header {
            src,
            dst,
            src_port,
            dst_port,
            dscp,
            protocol,
        } = self.header;
        FlowKey {
            dscp,
            protocol,
            src: src.into(),
            dst: dst.into(),
            src_port,
            dst_port,
        }
    }
}

const _: () = assert!(size_of::<Packet>() <= 64, "packets are copied at every hop");
