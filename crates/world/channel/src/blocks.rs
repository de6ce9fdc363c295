//! Traces of erased blocks (Ludwig, Konrad, Joseph and Katz 1999): the fate of every block of a radio link.
//!
//! A radio sends blocks of a fixed duration, whether or not it has data. A block arrives or is *erased*; a *burst* is a
//! run of erased blocks, and a *gap* is the run of clean blocks between two bursts. Such a trace tells what frames of
//! any length would have met on the link; recordings of frames ([`trace`](crate::trace)) cannot.
//!
//! ```text
//! # airlane blocks 1
//! # block = "20 ms"  size = "30 B"  direction = "down"  origin = "onoff-c"  seed = 17  parts = [132000]
//! 0000000001100000...               one character per block: 1 erased, 0 not
//! r 12 1 40 2                       or run lengths, of clean and erased blocks in turn, clean ones first
//! ```
//! White space is ignored. Lines that begin with `#` are comments, except for the first two. `parts` are the lengths of
//! concatenated recordings: no burst continues from one into the next. The second line needs only `block` and `size`.
//!
//! [`statistics`] describes how erasures are distributed, [`Generator`] draws such traces from the models in use, and
//! [`retrace`] computes the best that a link layer could have achieved on them.

pub mod adaptive;
pub mod comparators;
mod generator;
mod law;
mod replay;
pub mod retrace;
pub mod statistics;
#[cfg(test)]
mod tests;
mod text;

use airlane_base::{Duration, Size};

pub use generator::{Chain, Generator, GeneratorError, Process};
pub use law::{Geometrics, LawError};
pub use replay::{BlocksConfig, BlocksReplay};
pub use text::BlocksError;

/// Longest trace, blocks.
pub const MOST_BLOCKS: u32 = 100_000_000;

/// The header of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlocksHeader {
    /// Duration of a block on the air.
    pub block: Duration,
    /// Bytes that a block carries.
    pub size: Size,
    /// `down` or `up`, if the recording states it.
    pub direction: Option<String>,
    /// Origin of the trace: a model or a recording.
    pub origin: Option<String>,
    /// The seed of a generated trace.
    pub seed: Option<u64>,
}

/// The radio blocks of GSM circuit-switched data: 30 B every 20 ms.
impl Default for BlocksHeader {
    fn default() -> Self {
        Self {
            block: Duration::from_millis(20),
            size: Size::from_bytes(30),
            direction: None,
            origin: None,
            seed: None,
        }
    }
}

/// A run of erased blocks between clean ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Its first block, counted from the beginning of the trace.
    pub start: u32,
    /// Number of blocks.
    pub len: u32,
}

impl Burst {
    /// The first block after it.
    pub const fn end(self) -> u32 {
        self.start + self.len
    }
}

/// A trace of erased blocks. Its memory grows with the number of bursts, not of blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// The header.
    pub header: BlocksHeader,
    /// Bursts in order; none crosses from one part into the next.
    bursts: Vec<Burst>,
    /// The end of each part; the last one is the length of the trace.
    ends: Vec<u32>,
}

impl Blocks {
    /// An empty trace, to add blocks to.
    pub const fn new(header: BlocksHeader) -> Self {
        Self {
            header,
            bursts: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Collects a trace from one flag per block, up to the longest trace.
    pub fn from_blocks(header: BlocksHeader, erased: impl IntoIterator<Item = bool>) -> Self {
        let mut blocks = Self::new(header);
        for erased in erased.into_iter().take(MOST_BLOCKS as usize) {
            blocks.push(erased, 1);
        }
        blocks
    }

    /// Appends a run of blocks to the last part, up to the longest trace.
    pub fn push(&mut self, erased: bool, len: u32) {
        let start = self.len();
        let len = len.min(MOST_BLOCKS - start);
        if len == 0 {
            return;
        }
        let part_began = self.ends.len().checked_sub(2).map_or(0, |at| self.ends[at]);
        match self.ends.last_mut() {
            Some(end) => *end += len,
            None => self.ends.push(len),
        }
        if !erased {
            return;
        }
        match self.bursts.last_mut() {
            Some(last) if last.end() == start && start > part_began => last.len += len,
            _ => self.bursts.push(Burst { start, len }),
        }
    }

    /// Ends the current part; later blocks belong to a new one.
    pub fn end_part(&mut self) {
        let last = self.ends.len().checked_sub(2).map_or(0, |at| self.ends[at]);
        if self.len() > last {
            self.ends.push(self.len());
        }
    }

    /// Number of blocks.
    pub fn len(&self) -> u32 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Whether it has no blocks.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Duration of the trace.
    pub fn duration(&self) -> Duration {
        self.header.block * u64::from(self.len())
    }

    /// The runs of erased blocks, in order.
    pub fn bursts(&self) -> &[Burst] {
        &self.bursts
    }

    /// Number of erased blocks.
    pub fn erased(&self) -> u32 {
        self.bursts.iter().map(|burst| burst.len).sum()
    }

    /// The block error rate: the share of erased blocks; 0 for an empty trace.
    pub fn erasure_rate(&self) -> f64 {
        f64::from(self.erased()) / f64::from(self.len().max(1))
    }

    /// First block and end of each part.
    pub fn parts(&self) -> impl Iterator<Item = [u32; 2]> + '_ {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let all = starts.zip(&self.ends).map(|(start, end)| [start, *end]);
        all.filter(|[start, end]| start < end)
    }

    /// The runs of each part: whether the blocks are erased, and how many.
    pub fn rows(&self) -> impl Iterator<Item = Vec<(bool, u32)>> + '_ {
        let mut bursts = self.bursts.iter().peekable();
        self.parts().map(move |[mut at, end]| {
            let mut rows = Vec::new();
            while let Some(burst) = bursts.next_if(|burst| burst.start < end) {
                if burst.start > at {
                    rows.push((false, burst.start - at));
                }
                rows.push((true, burst.len));
                at = burst.end();
            }
            if at < end {
                rows.push((false, end - at));
            }
            rows
        })
    }

    /// A trace of the same length with as many erasures, each alone and as far apart as possible: this trace without its
    /// burstiness (Ludwig et al. 1999, section 4.3).
    #[must_use]
    pub fn even(&self) -> Self {
        let (len, erased) = (u64::from(self.len()), u64::from(self.erased()));
        let mut even = Self::new(self.header.clone());
        even.header.origin = self.header.origin.as_ref().map(|of| format!("even {of}"));
        for k in 0..erased {
            // Both are below 2^27, so the product fits.
            let at = (k * len / erased) as u32;
            even.push(false, at - even.len());
            even.push(true, 1);
        }
        even.push(false, self.len() - even.len());
        even
    }

    /// The first `at` blocks, and the rest.
    #[must_use]
    pub fn split(&self, at: u32) -> [Self; 2] {
        let mut halves = [(); 2].map(|()| Self::new(self.header.clone()));
        for rows in self.rows() {
            for half in &mut halves {
                half.end_part();
            }
            for (erased, len) in rows {
                let left = at.saturating_sub(halves[0].len()).min(len);
                halves[0].push(erased, left);
                halves[1].push(erased, len - left);
            }
        }
        halves
    }
}
