//! What an end of a link sees, and the header of its recording.

use airlane_base::{Duration, Instant};

/// The header of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceHeader {
    /// Name of the link.
    pub name: String,
    /// Rate to which the link was shaped, bit/s.
    pub rate_bps: u64,
    /// Bytes below each datagram; lengths in the trace do not include them.
    pub overhead_bytes: u32,
    /// Start of the recording, s since 1970.
    pub started_unix_s: u64,
}

/// An end of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceEnd {
    /// The one that recorded, or the first of two.
    Near = 0,
    /// The other end.
    Far = 1,
}

/// Identifies a frame: a secure session numbers all datagrams under one pair of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameId {
    /// The receiver's index of the keys.
    pub key: u32,
    /// Its number under these keys.
    pub number: u64,
}

/// What an end saw. Times count from the start of its recording, in whole microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceRecord {
    /// A frame left.
    Sent {
        /// When the frame left.
        at: Duration,
        /// Which frame.
        frame: FrameId,
        /// Its length, bytes.
        len: u32,
        /// Bytes queued in the port after it.
        queue: u32,
    },
    /// A frame arrived.
    Received {
        /// When the frame arrived.
        at: Duration,
        /// Which frame.
        frame: FrameId,
        /// Its length, bytes.
        len: u32,
    },
    /// Records before this one are missing.
    Missed {
        /// When recording resumed.
        at: Duration,
        /// How many records are missing.
        records: u64,
    },
}

impl TraceRecord {
    /// The time of the record.
    pub const fn at(&self) -> Duration {
        match *self {
            Self::Sent { at, .. } | Self::Received { at, .. } | Self::Missed { at, .. } => at,
        }
    }
}

/// A time in the trace's resolution.
pub(super) fn whole_us(since: Instant, now: Instant) -> Duration {
    Duration::from_micros(now.saturating_since(since).as_nanos() / 1_000)
}
