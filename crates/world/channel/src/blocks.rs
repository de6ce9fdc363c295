//! Traces of erased blocks (Ludwig, Konrad, Joseph and Katz 1999): what a radio link did, block by block.
//!
//! A radio sends blocks of one duration, whether or not there is something to carry. A block arrives or is
//! *erased*; a *burst* is a row of erased blocks, and a *gap* what is clean between two bursts. Recorded so, a
//! link can be asked what frames of any length would have met on it, which recordings of frames cannot tell
//! ([`trace`](crate::trace) has those).
//!
//! ```text
//! # airlane blocks 1
//! # block = "20 ms"  size = "30 B"  direction = "down"  origin = "onoff-c"  seed = 17  parts = [132000]
//! 0000000001100000...       one character a block: 1 erased, 0 not
//! r 12 1 40 2               or lengths of rows, of blocks that are not erased first, then of those that are
//! ```
//! White space means nothing, and lines that begin with `#` are comments, but for the first two. `parts` are the
//! lengths of recordings that stand one behind the other: a burst does not go on from one into the next. All of
//! the second line but `block` and `size` may be left out.
//!
//! [`statistics`] says how erasures are distributed, [`Generator`] makes such traces by the models that are in use,
//! and [`retrace`] computes what a link layer would
//! have made of it at best.

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

/// No trace has more blocks.
pub const MOST_BLOCKS: u32 = 100_000_000;

/// About a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlocksHeader {
    /// A block is on the air for so long.
    pub block: Duration,
    /// A block carries so much.
    pub size: Size,
    /// `down` or `up`, where somebody has said it.
    pub direction: Option<String>,
    /// Where it comes from.
    pub origin: Option<String>,
    /// The seed that it was made with.
    pub seed: Option<u64>,
}

/// The radio blocks of GSM's circuit-switched data: 30 B every 20 ms.
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

/// A row of erased blocks that others surround.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// The first of them, counted from the beginning of the trace.
    pub start: u32,
    /// How many.
    pub len: u32,
}

impl Burst {
    /// The first block behind it.
    pub const fn end(self) -> u32 {
        self.start + self.len
    }
}

/// A trace of erased blocks. It takes memory for its bursts alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// About it.
    pub header: BlocksHeader,
    /// Bursts in their order, none of which goes from one part into another.
    bursts: Vec<Burst>,
    /// Where each part ends; the last one is the length of the trace.
    ends: Vec<u32>,
}

impl Blocks {
    /// A trace without blocks, to which they are added.
    pub const fn new(header: BlocksHeader) -> Self {
        Self {
            header,
            bursts: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Makes a trace of what `erased` says of each of `len` blocks.
    pub fn from_blocks(header: BlocksHeader, erased: impl IntoIterator<Item = bool>) -> Self {
        let mut blocks = Self::new(header);
        for erased in erased.into_iter().take(MOST_BLOCKS as usize) {
            blocks.push(erased, 1);
        }
        blocks
    }

    /// Adds a row of blocks to the last part, as far as a trace may be long.
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

    /// Ends a part; what is added from now on belongs to another one.
    pub fn end_part(&mut self) {
        let last = self.ends.len().checked_sub(2).map_or(0, |at| self.ends[at]);
        if self.len() > last {
            self.ends.push(self.len());
        }
    }

    /// How many blocks it has.
    pub fn len(&self) -> u32 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How long it takes.
    pub fn duration(&self) -> Duration {
        self.header.block * u64::from(self.len())
    }

    /// Rows of erased blocks, in their order.
    pub fn bursts(&self) -> &[Burst] {
        &self.bursts
    }

    /// How many blocks are erased.
    pub fn erased(&self) -> u32 {
        self.bursts.iter().map(|burst| burst.len).sum()
    }

    /// The share of blocks that are erased, the block error rate; 0 without blocks.
    pub fn erasure_rate(&self) -> f64 {
        f64::from(self.erased()) / f64::from(self.len().max(1))
    }

    /// First block and end of each part.
    pub fn parts(&self) -> impl Iterator<Item = [u32; 2]> + '_ {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let all = starts.zip(&self.ends).map(|(start, end)| [start, *end]);
        all.filter(|[start, end]| start < end)
    }

    /// Rows of blocks of each part: whether they are erased, and how many.
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

    /// The trace of the same length with as many erasures, each alone and all as far apart as can be: what the
    /// first one would be without its bursts (Ludwig et al. 1999, section 4.3).
    #[must_use]
    pub fn even(&self) -> Self {
        let (len, erased) = (u64::from(self.len()), u64::from(self.erased()));
        let mut even = Self::new(self.header.clone());
        even.header.origin = self.header.origin.as_ref().map(|of| format!("even {of}"));
        for k in 0..erased {
            // Both are below 2^27, so that the product fits.
            let at = (k * len / erased) as u32;
            even.push(false, at - even.len());
            even.push(true, 1);
        }
        even.push(false, self.len() - even.len());
        even
    }

    /// The first so many blocks, and what follows them.
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
