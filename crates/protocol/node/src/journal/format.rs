//! The format of a journal, for writing and reading.

use airlane_base::{Instant, varint};
use airlane_link::wire::LIVE_HEADER_ROOM;
use airlane_link::{Frame, Port, PortConfig};
use crc::{CRC_32_ISO_HDLC, CRC_64_XZ, Crc, Digest};

use crate::packet::LivePacket;

/// What every journal begins with.
pub const MAGIC: &[u8; 8] = b"airjrnal";
pub(super) const VERSION: u8 = 2;
/// Bytes before a block's records: length and checksum.
pub(super) const BLOCK_HEAD: usize = 8;
/// Longest head and longest block that the reader accepts, bytes.
pub(super) const LONGEST: usize = 1 << 24;

pub(super) const BLOCK_CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);
static OUTPUT_CRC: Crc<u64> = Crc::<u64>::new(&CRC_64_XZ);

/// An input of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Input {
    /// A packet from the kernel.
    Packet = 0,
    /// A frame from the link.
    Frame = 1,
    /// A timeout.
    Timeout = 2,
    /// A poll for a frame.
    Transmit = 3,
    /// A poll for a packet.
    Deliver = 4,
    /// A new session.
    Reset = 5,
    /// No input: the checksum of the outputs so far.
    Check = 6,
    /// A new service table: JSON of services and classes.
    Services = 7,
    /// The peer's offers at the start of a session: JSON.
    Agreement = 8,
    /// The peer's later offers: JSON.
    Offers = 9,
    /// A new limit on the payload of a frame, bytes.
    Room = 10,
    /// A new rate of the link, bit/s.
    Rate = 11,
    /// The port's share of a bottleneck, bit/s.
    Share = 12,
    /// The path MTU changed.
    Path = 13,
}

impl Input {
    pub(super) const fn of(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Packet,
            1 => Self::Frame,
            2 => Self::Timeout,
            3 => Self::Transmit,
            4 => Self::Deliver,
            5 => Self::Reset,
            6 => Self::Check,
            7 => Self::Services,
            8 => Self::Agreement,
            9 => Self::Offers,
            10 => Self::Room,
            11 => Self::Rate,
            12 => Self::Share,
            13 => Self::Path,
            _ => return None,
        })
    }
}

/// A checksum of all outputs of a port.
#[derive(Clone)]
pub(super) struct Outputs {
    crc: Digest<'static, u64>,
    pub(super) frames: u64,
    pub(super) packets: u64,
}

impl std::fmt::Debug for Outputs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outputs")
            .field("frames", &self.frames)
            .field("packets", &self.packets)
            .finish_non_exhaustive()
    }
}

impl Outputs {
    pub(super) fn new() -> Self {
        Self {
            crc: OUTPUT_CRC.digest(),
            frames: 0,
            packets: 0,
        }
    }

    /// Adds a frame, or that a poll returned none.
    pub(super) fn transmitted(
        &mut self,
        port: &Port<LivePacket>,
        frame: Option<&Frame<LivePacket>>,
    ) {
        let Some(frame) = frame else {
            self.crc.update(&[0]);
            return;
        };
        self.frames += 1;
        let mut header = [0; LIVE_HEADER_ROOM];
        let length = header_of(port, frame, &mut header);
        self.crc.update(&[1]);
        self.crc.update(&header[..length]);
        self.bytes(frame.packet().map_or(&[], LivePacket::bytes));
    }

    /// Adds a packet, or that a poll returned none.
    pub(super) fn delivered(&mut self, packet: Option<&LivePacket>) {
        self.crc.update(&[2 + u8::from(packet.is_some())]);
        if let Some(packet) = packet {
            self.packets += 1;
            self.bytes(packet.bytes());
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.crc.update(&(bytes.len() as u64).to_be_bytes());
        self.crc.update(bytes);
    }

    pub(super) fn checksum(&self) -> u64 {
        self.crc.clone().finalize()
    }
}

/// Begins a journal: writes what precedes its blocks, for a port with this configuration.
///
/// # Errors
/// If the configuration cannot be written as JSON.
pub fn write_head(config: &PortConfig, out: &mut Vec<u8>) -> serde_json::Result<()> {
    let json = serde_json::to_vec(config)?;
    out.extend_from_slice(MAGIC);
    out.push(VERSION);
    write_checked(&json, out);
    Ok(())
}

/// Appends a block of these records.
pub fn write_block(records: &[u8], out: &mut Vec<u8>) {
    write_checked(records, out);
}

fn write_checked(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(&BLOCK_CRC.checksum(bytes).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Writes a frame's header and returns its length; 0 for a service that does not exist.
pub(super) fn header_of(
    port: &Port<LivePacket>,
    frame: &Frame<LivePacket>,
    header: &mut [u8; LIVE_HEADER_ROOM],
) -> usize {
    port.encode_header(frame, 0, header).unwrap_or(0)
}

/// Records of one block.
#[derive(Debug)]
pub(super) struct JournalBlock {
    pub(super) records: Vec<u8>,
    last: Instant,
}

impl JournalBlock {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            records: Vec::with_capacity(capacity),
            last: Instant::ORIGIN,
        }
    }

    pub(super) fn begin(&mut self, what: Input, now: Instant) {
        self.records.push(what as u8);
        let passed = now.saturating_since(self.last);
        varint::write(&mut self.records, passed.as_nanos());
        self.last = self.last.max(now);
    }

    pub(super) fn bytes(&mut self, parts: [&[u8]; 2]) {
        let length = parts.iter().map(|part| part.len() as u64).sum();
        varint::write(&mut self.records, length);
        parts
            .iter()
            .for_each(|part| self.records.extend_from_slice(part));
    }

    /// Takes the block in the file's format and leaves an empty one.
    pub(super) fn take(&mut self, capacity: usize) -> Vec<u8> {
        let records = std::mem::replace(self, Self::new(capacity)).records;
        let mut block = Vec::with_capacity(BLOCK_HEAD + records.len());
        write_block(&records, &mut block);
        block
    }
}
