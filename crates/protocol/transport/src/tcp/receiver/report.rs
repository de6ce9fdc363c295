//! What an acknowledgment reports besides its number: segments received out of order, and segments destroyed on a
//! link.

use crate::tcp::ranges::Ranges;
use crate::tcp::{Blocks, LossMemory, MOST_BLOCKS, Range};

/// The state of selective acknowledgments (RFC 2018, section 4).
#[derive(Clone, Debug, Default)]
pub(super) struct Sack {
    pub(super) held: Ranges,
    /// The newest segment of each recently reported block, latest first; some may have been delivered since. A block
    /// only grows, so its newest segment identifies it.
    recent: [u64; MOST_BLOCKS],
}

impl Sack {
    /// The blocks of the acknowledgment that `trigger` causes; a duplicate is reported first.
    pub(super) fn blocks(&mut self, duplicate: Option<u64>, trigger: u64) -> Blocks {
        let mut blocks = Blocks::default();
        if let Some(seq) = duplicate {
            blocks.push(Range {
                start: seq,
                end: seq + 1,
            });
        }
        let ahead = blocks.len();
        let [first, second, third] = self.recent;
        self.recent = [0; MOST_BLOCKS];
        let mut news = 0;
        for seq in [trigger, first, second, third] {
            if ahead + news == MOST_BLOCKS {
                break;
            }
            if let Some(block) = self.held.containing(seq)
                && !blocks[ahead..]
                    .iter()
                    .any(|reported| reported.covers(&block))
            {
                self.recent[news] = seq;
                news += 1;
                blocks.push(block);
            }
        }
        blocks
    }
}

/// How out-of-order segments are reported.
#[derive(Clone, Debug)]
pub(super) enum Report {
    /// Not at all: the acknowledgment only repeats its number.
    Nothing,
    /// As blocks.
    Sack(Box<Sack>),
    /// Only the segment that caused the acknowledgment (SMART, Keshav and Morgan 1997, as Balakrishnan et al. 1997
    /// simplify it).
    Trigger,
}

/// Segments that a link has destroyed and that have not arrived since: the basis of explicit loss notification
/// (Balakrishnan et al. 1997).
#[derive(Clone, Debug)]
pub(super) struct Destroyed {
    memory: LossMemory,
    segments: Ranges,
}

impl Destroyed {
    pub(super) fn new(memory: LossMemory) -> Self {
        Self {
            memory,
            segments: Ranges::default(),
        }
    }

    /// Segment `seq`, which is within the window, was destroyed.
    pub(super) fn insert(&mut self, seq: u64) {
        if self.memory == LossMemory::Last {
            self.segments.clear();
        }
        self.segments.insert(Range {
            start: seq,
            end: seq + 1,
        });
    }

    /// Whether the next expected segment was destroyed; everything below it has arrived.
    pub(super) fn holds(&mut self, rcv_nxt: u64) -> bool {
        self.segments.cut_below(rcv_nxt);
        self.segments.containing(rcv_nxt).is_some()
    }
}
