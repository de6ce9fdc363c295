//! The segments that two TCP ends exchange.

use std::num::NonZeroU32;

use airlane_base::{Duration, Instant};

use super::ecn::Ecn;
use super::ranges::Range;

/// A timestamp as the option carries it (RFC 7323, section 3): microseconds, which wrap after 71 minutes. The RFC
/// proposes at least a millisecond because sequence numbers wrap; those here do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp(NonZeroU32);

impl Timestamp {
    /// The largest time between two timestamps that can be ordered: half of the range.
    pub const COMPARABLE: Duration = Duration::from_micros(1 << 31);

    /// The timestamp of `now`; it is never 0.
    #[inline]
    pub fn of(now: Instant) -> Self {
        let micros = now.saturating_since(Instant::ORIGIN).as_nanos() / 1_000;
        Self(NonZeroU32::new(micros as u32).unwrap_or(NonZeroU32::MIN))
    }

    /// Its number in a header.
    pub const fn number(self) -> u32 {
        self.0.get()
    }

    /// The timestamp from its number in a header; none for 0, when there is no such option.
    pub fn from_number(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    /// Whether this is earlier than the other, by at most half of the range.
    #[inline]
    pub const fn is_before(self, other: Self) -> bool {
        (self.0.get().wrapping_sub(other.0.get()) as i32) < 0
    }

    /// The time from this timestamp to `now`; none if it is later than `now`.
    pub fn until(self, now: Instant) -> Option<Duration> {
        let now = Self::of(now);
        let micros = now.0.get().wrapping_sub(self.0.get());
        (!now.is_before(self)).then(|| Duration::from_nanos(u64::from(micros) * 1_000))
    }
}

/// A data segment. Numbers count segments from 0, as in the agents of ns-2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Segment number.
    pub seq: u64,
    /// User bytes carried, without headers; 0 in a FIN, the end of the data.
    pub len: u32,
    /// Whether these bytes were sent before.
    pub retransmission: bool,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// Whether its sender has cut its window for a mark (CWR, RFC 3168).
    pub cut: bool,
    /// When it was sent (TSval, RFC 7323), if the connection has timestamps.
    pub stamp: Option<Timestamp>,
}

/// A cumulative acknowledgment: every segment below `ack` has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// The next segment expected (`rcv_nxt`).
    pub ack: u64,
    /// Segments received beyond it, if reported (RFC 2018); a duplicate comes first (RFC 2883).
    pub blocks: Blocks,
    /// Segments from `ack` on that the receiver has room for.
    pub window: u32,
    /// Whether the segment at `ack` is known to have been destroyed on a link, not dropped by a queue (explicit loss
    /// notification, Balakrishnan et al. 1997).
    pub eln: bool,
    /// When the segment that it answers was sent (TSecr, RFC 7323), if the connection has timestamps.
    pub stamp: Option<Timestamp>,
    /// Whether a marked segment arrived for which the sender has not announced a cut yet (ECN-Echo, RFC 3168).
    pub echo: bool,
}

/// The most blocks that fit into an acknowledgment with other options.
pub const MOST_BLOCKS: usize = 3;

/// Length of an option with this many blocks (RFC 2018, section 3), plus two bytes of alignment.
pub const fn sack_option_len(blocks: usize) -> u32 {
    match blocks {
        0 => 0,
        _ => 4 + 8 * blocks as u32,
    }
}

/// Ranges of segments received out of order: first that of the segment which caused the acknowledgment, then those
/// reported most recently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// Unused entries at the end are empty.
    list: [Range; MOST_BLOCKS],
    len: u8,
}

impl Blocks {
    /// Appends a block if there is room.
    pub fn push(&mut self, block: Range) {
        if let Some(free) = self.list.get_mut(usize::from(self.len)) {
            *free = block;
            self.len += 1;
        }
    }
}

impl Ack {
    /// The duplicate that the first block reports, if it does (RFC 2883, section 5).
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

/// Anything that two TCP ends exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// From a sender to the receiver of the other end.
    Data(Data),
    /// From a receiver to the sender of the other end.
    Ack(Ack),
    /// The beginning of a connection (SYN), or its acceptance (SYN and ACK).
    Syn {
        /// Whether it answers a SYN.
        answers: bool,
    },
    /// One byte of this segment, which is beyond a zero window. The receiver acknowledges it and does not keep it
    /// (RFC 9293, section 3.8.6.1).
    Probe(u64),
}
