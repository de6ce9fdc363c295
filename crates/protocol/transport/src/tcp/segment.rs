//! What two ends of TCP exchange, in segments.

use std::num::NonZeroU32;

use airlane_base::{Duration, Instant};

use super::ecn::Ecn;
use super::ranges::Range;

/// A time as the timestamp option carries it (RFC 7323, section 3): microseconds, which begin anew after 71 minutes.
/// The RFC proposes at least a millisecond, for sequence numbers that wrap; those here do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp(NonZeroU32);

impl Timestamp {
    /// Behind a longer time the order of two of them says nothing: half of the range.
    pub const COMPARABLE: Duration = Duration::from_micros(1 << 31);

    /// What the option says at `now`; no option says 0.
    #[inline]
    pub fn of(now: Instant) -> Self {
        let micros = now.saturating_since(Instant::ORIGIN).as_nanos() / 1_000;
        Self(NonZeroU32::new(micros as u32).unwrap_or(NonZeroU32::MIN))
    }

    /// As it stands in a header.
    pub const fn number(self) -> u32 {
        self.0.get()
    }

    /// What a header says; none where there is no such option.
    pub fn from_number(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    /// Whether this is an earlier time than the other, half of the range at most.
    #[inline]
    pub const fn is_before(self, other: Self) -> bool {
        (self.0.get().wrapping_sub(other.0.get()) as i32) < 0
    }

    /// The time from then to `now`; none if that is later.
    pub fn until(self, now: Instant) -> Option<Duration> {
        let now = Self::of(now);
        let micros = now.0.get().wrapping_sub(self.0.get());
        (!now.is_before(self)).then(|| Duration::from_nanos(u64::from(micros) * 1_000))
    }
}

/// One data segment. Numbers count segments from 0, as in the agents of ns-2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Segment number.
    pub seq: u64,
    /// User bytes carried; headers are not counted. One without any is the end of the data (FIN).
    pub len: u32,
    /// Whether these bytes were sent before.
    pub retransmission: bool,
    /// What its IP header says of congestion.
    pub ecn: Ecn,
    /// Whether its sender has cut its window for a mark (RFC 3168's CWR).
    pub cut: bool,
    /// When it left (RFC 7323's TSval), where the connection has timestamps.
    pub stamp: Option<Timestamp>,
}

/// A cumulative acknowledgment: every segment below `ack` has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// The next segment expected (`rcv_nxt`).
    pub ack: u64,
    /// What has arrived beyond it, where that is reported (RFC 2018), behind what has come twice (RFC 2883).
    pub blocks: Blocks,
    /// Segments from `ack` on that the receiver has room for.
    pub window: u32,
    /// Whether the segment at `ack` is known to have been destroyed on a link, and not dropped by a queue
    /// (explicit loss notification, Balakrishnan et al. 1997).
    pub eln: bool,
    /// When the segment left that it answers (RFC 7323's TSecr), where the connection has timestamps.
    pub stamp: Option<Timestamp>,
    /// Whether a segment was marked that its sender has not cut its window for (RFC 3168's ECN-Echo).
    pub echo: bool,
}

/// As many blocks as an acknowledgment with other options has room for.
pub const MOST_BLOCKS: usize = 3;

/// Bytes of the option that reports so many blocks (RFC 2018, section 3), with two that align it.
pub const fn sack_option_len(blocks: usize) -> u32 {
    match blocks {
        0 => 0,
        _ => 4 + 8 * blocks as u32,
    }
}

/// Ranges of segments that arrived ahead of a hole: that of the segment which caused the
/// acknowledgment, then those that were reported last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// Those behind the last are empty.
    list: [Range; MOST_BLOCKS],
    len: u8,
}

impl Blocks {
    /// Adds a block behind the others, while there is room.
    pub fn push(&mut self, block: Range) {
        if let Some(free) = self.list.get_mut(usize::from(self.len)) {
            *free = block;
            self.len += 1;
        }
    }
}

impl Ack {
    /// What the first block reports as having come once more, if it does (RFC 2883, section 5).
    pub fn duplicate(&self) -> Option<Range> {
        let first = *self.blocks.first()?;
        let repeats = first.end <= self.ack;
        let within = self
            .blocks
            .get(1)
            .is_some_and(|next| next.start <= first.start && first.end <= next.end);
        (repeats || within).then_some(first)
    }
}

impl std::ops::Deref for Blocks {
    type Target = [Range];

    #[inline]
    fn deref(&self) -> &[Range] {
        &self.list[..usize::from(self.len)]
    }
}

/// What two ends of TCP exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// From a sender to the receiver of the other end.
    Data(Data),
    /// From a receiver to the sender of the other end.
    Ack(Ack),
    /// The beginning of a connection (SYN), or with `answers` the agreement to one (SYN and ACK).
    Syn {
        /// Whether it answers one.
        answers: bool,
    },
    /// One byte of this segment, which is beyond a shut window: the receiver answers with an acknowledgment and
    /// does not keep it (RFC 9293, section 3.8.6.1).
    Probe(u64),
}
