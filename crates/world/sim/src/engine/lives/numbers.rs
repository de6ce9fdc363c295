//! Maps bytes back to the simulated packet. IPv4's identification counts the packets of each 5-tuple, as a host does,
//! so it identifies the last 65,536 of them.

use std::collections::{HashMap, VecDeque};
use std::net::Ipv4Addr;

use crate::headers::CaptureHeaders;
use crate::packet::Packet;

/// Connections that are remembered; older ones have nothing in flight.
const CONNECTIONS: usize = 16_384;
/// Values of the identification field.
const NUMBERS: usize = 1 << 16;

/// The 5-tuple as its fields appear in a packet.
type Tuple = (Ipv4Addr, Ipv4Addr, u8, u32);

/// The packets of one 5-tuple, by identification.
#[derive(Debug, Default)]
struct Connection {
    packets: Vec<Packet>,
    next: usize,
}

/// All packets that travel, or have travelled, as bytes.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    connections: HashMap<Tuple, Connection>,
    order: VecDeque<Tuple>,
}

impl Numbers {
    /// Appends the bytes of a packet, and remembers the packet.
    pub(crate) fn write(
        &mut self,
        headers: &mut CaptureHeaders,
        packet: &Packet,
        bytes: &mut Vec<u8>,
    ) {
        headers.write(packet, bytes);
        let Some((tuple, _)) = parse(bytes) else {
            return;
        };
        if !self.connections.contains_key(&tuple) {
            if self.order.len() >= CONNECTIONS
                && let Some(oldest) = self.order.pop_front()
            {
                self.connections.remove(&oldest);
            }
            self.order.push_back(tuple);
        }
        let connection = self.connections.entry(tuple).or_default();
        let number = connection.next % NUMBERS;
        connection.next += 1;
        match connection.packets.get_mut(number) {
            Some(old) => *old = *packet,
            None => connection.packets.push(*packet),
        }
        set_number(bytes, number as u16);
    }

    /// The packet that these bytes stand for, with the ECN mark that a queue has set; none if unknown.
    pub(crate) fn read(&self, bytes: &[u8]) -> Option<Packet> {
        let (tuple, number) = parse(bytes)?;
        let packet = self
            .connections
            .get(&tuple)?
            .packets
            .get(usize::from(number))?;
        let marked = bytes[1] & 0b11 == 0b11;
        Some(if marked { packet.marked() } else { *packet })
    }
}

/// The 5-tuple and the identification of a packet.
fn parse(bytes: &[u8]) -> Option<(Tuple, u16)> {
    let word = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    let header = usize::from(bytes.first()? & 0xf) * 4;
    let number = (word(4)? >> 16) as u16;
    let address = |at: usize| Some(Ipv4Addr::from_bits(word(at)?));
    // The ports, or the same bytes of another protocol.
    let ports = word(header).unwrap_or(0);
    Some(((address(12)?, address(16)?, *bytes.get(9)?, ports), number))
}

/// Sets the identification of a packet that has none, and updates the header checksum (RFC 1624).
fn set_number(bytes: &mut [u8], number: u16) {
    bytes[4..6].copy_from_slice(&number.to_be_bytes());
    let old = u16::from_be_bytes([bytes[10], bytes[11]]);
    let sum = u32::from(!old) + u32::from(number);
    let sum = (sum & 0xffff) + (sum >> 16);
    bytes[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}
