//! A journal of all inputs of a port, from which a test repeats what the port did live.
//!
//! A port reads no clock and draws no random number: its configuration and its inputs, in their order and
//! with their times, give the same outputs on every machine, bit for bit. The journal keeps those, and
//! checksums of the outputs, which [`replay`] compares.
//!
//! ```text
//! file    "airjrnal"  version (1 byte)  length of the head (4, big-endian)  CRC-32 of it (4)  head  block ...
//! head    the port's configuration, JSON
//! block   length (4)  CRC-32 of the records (4)  records
//! record  type (1 byte, see [`Input`]), ns since the last record (varint; the first of a
//!         block: since the clock's origin), then
//!         packet, frame: length (varint) and bytes, of a frame with its header
//!         check: CRC-64 of all outputs so far (8)
//! ```
//!
//! A [`Sink`] stores the bytes. If it refuses more, the journal ends and the link goes on; a counter reports
//! it.

mod format;
mod port;
mod replay;
mod write;

pub use format::{MAGIC, write_block, write_head};
pub(crate) use port::JournaledPort;
pub use replay::{JournalError, Replayed, replay};
pub use write::Sink;

#[cfg(test)]
mod tests;
