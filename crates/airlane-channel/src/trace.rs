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

mod config;
mod decode;
mod encode;
mod lateness;
mod path;
mod replay;
#[cfg(test)]
mod tests;
mod varint;

use airlane_base::{Duration, Instant};

pub use config::{TraceConfig, TraceFileError, TraceStart};
pub use decode::TraceError;
pub use encode::{Encoder, write_block};
pub use path::{Outcome, Path, Sample, Way};
pub use replay::{REACH, Replay};

/// What a trace begins with.
const MAGIC: &[u8; 8] = b"airtrace";
const VERSION: u8 = 1;
/// Bytes in front of a block's records: end, length, checksum.
const BLOCK_HEAD: usize = 9;
/// Longest header and longest block that are read.
const LONGEST_HEADER: usize = 1 << 16;
const LONGEST_BLOCK: usize = 1 << 20;
/// Latest time of a record: nine years, far below where nanoseconds end.
const LATEST_US: u64 = 1 << 48;
/// Longest frame.
const LONGEST_FRAME: u64 = 1 << 16;

const CRC: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC);

/// About a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceHeader {
    /// What its link is called.
    pub name: String,
    /// Rate that the link was shaped to.
    pub rate_bps: u64,
    /// What lies below each datagram, bytes: lengths in the trace are without it.
    pub overhead_bytes: u32,
    /// When it began, s since 1970.
    pub started_unix_s: u64,
}

/// An end of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The one that recorded, or the first of two.
    Near = 0,
    /// The other one.
    Far = 1,
}

/// Names a frame: the secure session numbers all datagrams under one pair of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameId {
    /// The receiver's index of the keys.
    pub key: u32,
    /// Its number under them.
    pub number: u64,
}

/// What an end saw. Times count from the start of its recording, in whole microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// A frame left.
    Sent {
        /// When.
        at: Duration,
        /// Which.
        frame: FrameId,
        /// Its length, bytes.
        len: u32,
        /// What waited in the port behind it, bytes.
        queue: u32,
    },
    /// A frame came.
    Received {
        /// When.
        at: Duration,
        /// Which.
        frame: FrameId,
        /// Its length, bytes.
        len: u32,
    },
    /// Records before this are missing.
    Missed {
        /// When recording went on.
        at: Duration,
        /// How many.
        records: u64,
    },
}

impl Record {
    /// When it was.
    pub const fn at(&self) -> Duration {
        match *self {
            Self::Sent { at, .. } | Self::Received { at, .. } | Self::Missed { at, .. } => at,
        }
    }
}

/// Time as a trace has it.
pub(crate) fn whole_us(since: Instant, now: Instant) -> Duration {
    Duration::from_micros(now.saturating_since(since).as_nanos() / 1_000)
}

/// A recording, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// About it.
    pub header: TraceHeader,
    /// What the near end saw, in the order of time.
    pub near: Vec<Record>,
    /// What the far end saw by its own clock; nothing unless two recordings were joined.
    pub far: Vec<Record>,
    /// Where the last block is cut off or damaged at its end: the recording was not ended.
    pub cut_at: Option<u64>,
}

/// Why two recordings cannot be joined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// One of them has both ends.
    #[error("\"{name}\" has the views of both ends already; join the recordings of single ends")]
    Joined {
        /// Name of the recording.
        name: String,
    },
    /// They have nothing in common.
    #[error(
        "no frame that one end sent was received in the other's recording, either way; record both ends of \
         one link at the same time"
    )]
    Strangers,
}

/// Bytes of the block that stands at the front, checksum not looked at; none if it is cut off.
pub fn block_len(bytes: &[u8]) -> Option<usize> {
    let [_, l0, l1, l2, l3, ..] = *bytes.first_chunk::<BLOCK_HEAD>()?;
    let len = BLOCK_HEAD + u32::from_be_bytes([l0, l1, l2, l3]) as usize;
    (len <= bytes.len()).then_some(len)
}

/// Bytes of the whole blocks at the front.
pub fn whole_blocks(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(len) = block_len(&bytes[at..]) {
        at += len;
    }
    at
}

impl Trace {
    /// One trace from the recordings of the two ends.
    ///
    /// # Errors
    /// If they are not the two ends of one link at one time.
    pub fn join(near: Self, far: Self) -> Result<Self, JoinError> {
        if let Some(both) = [&near, &far].into_iter().find(|t| !t.far.is_empty()) {
            let name = both.header.name.clone();
            return Err(JoinError::Joined { name });
        }
        let joined = Self {
            header: TraceHeader {
                name: format!("{} and {}", near.header.name, far.header.name),
                ..near.header
            },
            near: near.near,
            far: far.near,
            cut_at: None,
        };
        let common = [Way::In, Way::Out].into_iter().any(|way| {
            let path = joined.path(way);
            path.is_some_and(|path| path.received > 0)
        });
        if !common {
            return Err(JoinError::Strangers);
        }
        Ok(joined)
    }

    /// The file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.header.encode(&mut out);
        for (end, records) in [(End::Near, &self.near), (End::Far, &self.far)] {
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
