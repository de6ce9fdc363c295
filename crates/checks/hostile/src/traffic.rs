//! The packets that applications send and receive.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use crate::draw::Draw;

/// Header bytes of IPv4 and UDP, and the smallest packet.
const HEADERS: usize = 28;
pub(crate) const LEAST: usize = HEADERS + 16;

/// Numbered packets from one end to another.
#[derive(Debug)]
pub(crate) struct Flow {
    number: u16,
    /// The ends.
    pub(crate) from: usize,
    pub(crate) to: usize,
    ports: [u16; 2],
    /// Mean time between packets, ns, and the range of their lengths.
    pub(crate) every: u64,
    lengths: (usize, usize),
    pub(crate) sent: u64,
    got: HashSet<u64>,
    /// When the last new packet arrived, ns.
    pub(crate) last: u64,
}

/// A wrong delivery to an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// No application sends such a packet.
    Unknown,
    /// It has been delivered before.
    Twice { flow: u16, number: u64 },
    /// It belongs to another end.
    Elsewhere { flow: u16 },
    /// Its bytes differ.
    Altered { flow: u16, number: u64 },
}

impl Flow {
    pub(crate) fn draw(number: u16, from: usize, to: usize, draw: &mut Draw) -> Self {
        let lengths = *draw.of(&[(60, 200), (200, 200), (1_200, 1_200), (60, 1_200)]);
        let port = *draw.of(&[53, 443, 5_004, 27_015, 60_001]);
        Self::new(number, (from, to), port, draw.ms(4, 200), lengths)
    }

    /// Packets of these lengths, one per `every` ns on average.
    pub(crate) fn new(
        number: u16,
        (from, to): (usize, usize),
        port: u16,
        every: u64,
        (least, most): (usize, usize),
    ) -> Self {
        Self {
            number,
            from,
            to,
            ports: [20_000 + number, port],
            every,
            lengths: (least.max(LEAST), most),
            sent: 0,
            got: HashSet::new(),
            last: 0,
        }
    }

    /// Its offered load.
    pub(crate) const fn bits_per_second(&self) -> u64 {
        (self.lengths.0 + self.lengths.1) as u64 * 4_000_000_000 / self.every
    }

    /// The next packet.
    pub(crate) fn next(&mut self, addresses: &[Ipv4Addr]) -> Vec<u8> {
        let packet = self.packet(self.sent, addresses);
        self.sent += 1;
        packet
    }

    /// The packet of a number, which determines its length and bytes.
    fn packet(&self, number: u64, addresses: &[Ipv4Addr]) -> Vec<u8> {
        let mut draw = Draw::new(number, "packet");
        let (least, most) = self.lengths;
        let length = draw.within(least as u64, most as u64 + 1) as usize;
        let mut packet = vec![0; length];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(length as u16).to_be_bytes());
        packet[4..6].copy_from_slice(&(number as u16).to_be_bytes());
        (packet[8], packet[9]) = (64, 17);
        packet[12..16].copy_from_slice(&addresses[self.from].octets());
        packet[16..20].copy_from_slice(&addresses[self.to].octets());
        let sum = checksum(&packet[..20]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet[20..22].copy_from_slice(&self.ports[0].to_be_bytes());
        packet[22..24].copy_from_slice(&self.ports[1].to_be_bytes());
        packet[24..26].copy_from_slice(&((length - 20) as u16).to_be_bytes());
        packet[28..30].copy_from_slice(&self.number.to_be_bytes());
        packet[30..38].copy_from_slice(&number.to_be_bytes());
        for byte in &mut packet[38..] {
            *byte = draw.bits() as u8;
        }
        packet
    }
}

fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2);
    let sum: u32 = words
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// Checks a packet that was delivered to the end `at`.
pub(crate) fn take(
    flows: &mut [Flow],
    at: usize,
    packet: &[u8],
    now: u64,
    addresses: &[Ipv4Addr],
) -> Result<(), Wrong> {
    let field = packet.get(28..38).ok_or(Wrong::Unknown)?;
    let flow = u16::from_be_bytes([field[0], field[1]]);
    let number = field[2..]
        .iter()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let of = flows.get_mut(usize::from(flow)).ok_or(Wrong::Unknown)?;
    if of.to != at {
        return Err(Wrong::Elsewhere { flow });
    }
    if number >= of.sent {
        return Err(Wrong::Unknown);
    }
    // The ECN field may change on the way, and the checksum with it.
    let expected = of.packet(number, addresses);
    let same = |a: &[u8], b: &[u8]| a[2..10] == b[2..10] && a[12..] == b[12..];
    if packet.len() != expected.len() || !same(packet, &expected) {
        return Err(Wrong::Altered { flow, number });
    }
    if !of.got.insert(number) {
        return Err(Wrong::Twice { flow, number });
    }
    of.last = now;
    Ok(())
}
