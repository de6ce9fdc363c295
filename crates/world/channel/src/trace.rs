//! Recordings of a link: what each end sent and received, frame by frame, and their file format.
//!
//! An end sees what it sends (number, time, size, queue) and what it receives (number, time, size). A number that was
//! sent and never received is a lost frame. The difference of the two times, less the smallest such difference, is the
//! frame's queueing delay: no probes and no synchronised clocks are needed. A recording holds the view of one end;
//! [`Trace::join`] merges the views of both ends into one file. A single view shows the frames lost on their way *to*
//! it, by the gaps in their numbers, but no delays.
//!
//! ```text
//! file    "airtrace"  version (1 byte)  length of the header (4, big-endian)  header  block ...
//! header  rate in bit/s, bytes below each datagram, start in s since 1970 (varints), name (UTF-8)
//! block   end (1 byte: 0 near, 1 far)  length (4)  CRC-32 of the records (4)  records
//! record  first byte, bit 0-1: 0 sent, 1 received, 2 key, 3 missed
//!                     bit 2:   the number follows the last one (of a key record: of received frames)
//!                     bit 3:   same length as the last one
//!                     bit 4:   same queue as the last one
//!                     bit 5-7: microseconds since the last record; 7: a varint follows, reduced by 7
//!         then what the bits leave open: number (zigzag varint, less the expected one), length in
//!         bytes, bytes in the queue (varints)
//!         key:    names the keys under which the following frames are numbered (varint)
//!         missed: how many records are missing because they were not collected in time (varint)
//! ```
//!
//! Varints are LEB128. Each block is decoded independently, so a truncated file loses only its last block, and a file
//! can hold the blocks of two recordings. A frame takes 3 to 5 bytes.

mod captures;
mod config;
mod decode;
mod encode;
mod format;
mod join;
mod lateness;
mod path;
mod record;
mod replay;
#[cfg(test)]
mod tests;

pub use captures::CapturesError;
pub use config::{TraceConfig, TraceFileError, TraceStart};
pub use decode::TraceError;
pub use encode::{Encoder, write_block};
pub use format::{MAGIC, block_len, whole_blocks};
pub use join::JoinError;
pub use path::{DirectionTrace, FrameOutcome, TraceSample, Way};
pub use record::{FrameId, TraceEnd, TraceHeader, TraceRecord};
pub use replay::{REACH, Replay};

/// A decoded recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The header.
    pub header: TraceHeader,
    /// The near end's records, in order of time.
    pub near: Vec<TraceRecord>,
    /// The far end's records by its own clock; empty unless two recordings were joined.
    pub far: Vec<TraceRecord>,
    /// Where a truncated or damaged last block begins: the recording was not closed.
    pub cut_at: Option<u64>,
}

impl Trace {
    /// Encodes the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.header.encode(&mut out);
        for (end, records) in [(TraceEnd::Near, &self.near), (TraceEnd::Far, &self.far)] {
            let mut encoder = Encoder::new(end);
            for record in records {
                encoder.push(record);
                if encoder.is_full() {
                    encoder.finish_block(&mut out);
                }
            }
            encoder.finish_block(&mut out);
        }
        out
    }
}
