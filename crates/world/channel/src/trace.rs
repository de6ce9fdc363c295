//! Traces of a link: what each end sent and received, frame by frame, and the file that keeps it.
//!
//! An end sees what it sends (number, time, size, queue) and what it receives (number, time, size). A
//! number that was sent and never received is a lost frame, and the difference of the two times, less
//! the smallest one, is a frame's delay: no probe is sent, and no clock is set. A recording holds the
//! view of one end; [`Trace::join`] puts the views of both ends into one file. One view alone knows
//! the frames that were lost on their way *to* it, by the gaps in their numbers, but no delays.
//!
//! ```text
//! file    "airtrace"  version (1 byte)  length of the header (4, big-endian)  header  block ...
//! header  rate in bit/s, bytes below each datagram, start in s since 1970 (varints), name (UTF-8)
//! block   end (1 byte: 0 near, 1 far)  length (4)  CRC-32 of the records (4)  records
//! record  first byte, bit 0-1: 0 sent, 1 received, 2 key, 3 missed
//!                     bit 2:   the number is the one after the last (of a key record: of received frames)
//!                     bit 3:   as long as the last one
//!                     bit 4:   the same queue as at the last one
//!                     bit 5-7: microseconds since the last record, 7: a varint follows with 7 less
//!         then what the bits leave open: number (zigzag varint, less the one expected), length in
//!         bytes, bytes in the queue (varints)
//!         key:    names the keys that the numbers from here on belong to (varint)
//!         missed: how many records are not here, because nobody took them in time (varint)
//! ```
//!
//! Varints are LEB128. A block begins with no memory of the one before it, so a file that is cut off
//! loses its last block alone, and blocks of two files can stand in one. A frame takes 3 to 5 bytes.

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
pub use format::{block_len, whole_blocks};
pub use join::JoinError;
pub use path::{DirectionTrace, FrameOutcome, TraceSample, Way};
pub use record::{FrameId, TraceEnd, TraceHeader, TraceRecord};
pub use replay::{REACH, Replay};

/// A recording, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// About it.
    pub header: TraceHeader,
    /// What the near end saw, in the order of time.
    pub near: Vec<TraceRecord>,
    /// What the far end saw by its own clock; nothing unless two recordings were joined.
    pub far: Vec<TraceRecord>,
    /// Where the last block is cut off or damaged at its end: the recording was not ended.
    pub cut_at: Option<u64>,
}

impl Trace {
    /// The file.
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
