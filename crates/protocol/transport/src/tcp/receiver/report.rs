//! What an acknowledgment says beside its number: which segments have come ahead of a hole, and which were
//! destroyed on a link.

use crate::tcp::ranges::Ranges;
use crate::tcp::{Blocks, LossMemory, MOST_BLOCKS, Range};

/// What is reported of segments ahead of a hole (RFC 2018, section 4).
#[derive(Clone, Debug, Default)]
pub(super) struct Sack {
    pub(super) held: Ranges,
    /// The newest segment of each block that was reported last, the latest first; some may have been
    /// delivered since. A block only grows, so this finds it again.
    recent: [u64; MOST_BLOCKS],
}

impl Sack {
    /// The blocks of the acknowledgment that `trigger` causes, behind the segment that has come once more.
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
                && !blocks[ahead..].iter().any(|told| told.covers(&block))
            {
                self.recent[news] = seq;
                news += 1;
                blocks.push(block);
            }
        }
        blocks
    }
}

/// How segments ahead of a hole are reported.
#[derive(Clone, Debug)]
pub(super) enum Report {
    /// Not at all: the acknowledgment repeats its number.
    Nothing,
    /// As blocks.
    Sack(Box<Sack>),
    /// The one that caused the acknowledgment, and no other (SMART, Keshav and Morgan 1997, as Balakrishnan et
    /// al. 1997 simplify it).
    Trigger,
}

/// Segments that a link has destroyed and that have not come since: what an explicit loss notification rests
/// on (Balakrishnan et al. 1997).
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

    /// Segment `seq`, which the window has room for, was destroyed.
    pub(super) fn insert(&mut self, seq: u64) {
        if self.memory == LossMemory::Last {
            self.segments.clear();
        }
        self.segments.insert(Range {
            start: seq,
            end: seq + 1,
        });
    }

    /// Whether the next segment that is expected was destroyed; what is below has come.
    pub(super) fn holds(&mut self, rcv_nxt: u64) -> bool {
        self.segments.cut_below(rcv_nxt);
        self.segments.containing(rcv_nxt).is_some()
    }
}
