//! What an end of a link sees, and what is known of its recording.

use airlane_base::{Duration, Instant};

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
pub enum TraceEnd {
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
pub enum TraceRecord {
    /// A frame left.
    Sent {
        /// When it was.
        at: Duration,
        /// Which frame it was.
        frame: FrameId,
        /// Its length, bytes.
        len: u32,
        /// What waited in the port behind it, bytes.
        queue: u32,
    },
    /// A frame came.
    Received {
        /// When it was.
        at: Duration,
        /// Which frame it was.
        frame: FrameId,
        /// Its length, bytes.
        len: u32,
    },
    /// Records before this are missing.
    Missed {
        /// When recording went on.
        at: Duration,
        /// How many are missing.
        records: u64,
    },
}

impl TraceRecord {
    /// When it was.
    pub const fn at(&self) -> Duration {
        match *self {
            Self::Sent { at, .. } | Self::Received { at, .. } | Self::Missed { at, .. } => at,
        }
    }
}

/// Time as a trace has it.
pub(super) fn whole_us(since: Instant, now: Instant) -> Duration {
    Duration::from_micros(now.saturating_since(since).as_nanos() / 1_000)
}
