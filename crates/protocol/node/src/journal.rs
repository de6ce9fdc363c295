//! A journal of everything that goes into a port, so that whatever it did live it does again in a test.
//!
//! A port reads no clock and draws no random number: its configuration and its inputs, in their order and
//! with their times, give the same outputs on every machine, bit for bit. The journal keeps those, and
//! checksums of the outputs to hold a [`replay`] against.
//!
//! ```text
//! file    "airjrnal"  version (1 byte)  length of the head (4, big-endian)  CRC-32 of it (4)  head  block ...
//! head    the port's configuration, JSON
//! block   length (4)  CRC-32 of the records (4)  records
//! record  what (1 byte: the names of [`Input`]), ns since the last record (varint; the first of a
//!         block: since the clock's origin), then
//!         packet, frame: length (varint) and bytes, of a frame with its header
//!         check: CRC-64 of all outputs so far (8)
//! ```
//!
//! Where the bytes go is the [`Sink`]'s business. One that takes no more ends the journal and not the link; a counter
//! says so.

mod format;
mod port;
mod replay;
mod write;

pub use format::{write_block, write_head};
pub(crate) use port::JournaledPort;
pub use replay::{JournalError, Replayed, replay};
pub use write::Sink;

#[cfg(test)]
mod tests;
