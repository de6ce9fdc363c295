//! The distribution of erasures over a trace.

use std::collections::BTreeMap;

use super::Blocks;

/// A histogram: how many runs have each length.
pub type Lengths = BTreeMap<u32, u64>;

impl Blocks {
    /// Lengths of the bursts.
    pub fn burst_lengths(&self) -> Lengths {
        counted(self.bursts().iter().map(|burst| burst.len))
    }

    /// Lengths of the gaps between two bursts of one part. Gaps at the edges of a part are left out, since their full
    /// length is unknown.
    pub fn gap_lengths(&self) -> Lengths {
        let inner = self.rows().flat_map(|rows| {
            let last = rows.len().saturating_sub(1);
            let inner = rows.into_iter().enumerate();
            inner.filter(move |(at, (erased, _))| !erased && *at > 0 && *at < last)
        });
        counted(inner.map(|(_, (_, len))| len))
    }

    /// The share of erased blocks in each piece of `len` blocks; a shorter remainder of a part is left out.
    pub fn pieces(&self, len: u32) -> Vec<f64> {
        let len = len.max(1);
        let mut bursts = self.bursts().iter().copied().peekable();
        let mut rates = Vec::new();
        for [start, end] in self.parts() {
            for piece in 0..(end - start) / len {
                let [from, to] = [start + piece * len, start + (piece + 1) * len];
                let mut erased = 0;
                while let Some(burst) = bursts.peek() {
                    let inside = burst.end().min(to).saturating_sub(burst.start.max(from));
                    erased += inside;
                    if burst.end() > to {
                        break;
                    }
                    bursts.next();
                }
                rates.push(f64::from(erased) / f64::from(len));
            }
            while bursts.next_if(|burst| burst.start < end).is_some() {}
        }
        rates
    }

    /// Like [`pieces`](Self::pieces), with pieces of one minute.
    pub fn minutes(&self) -> Vec<f64> {
        let minute = airlane_base::Duration::from_secs(60).as_nanos();
        let blocks = minute / self.header.block.as_nanos().max(1);
        self.pieces(u32::try_from(blocks).unwrap_or(u32::MAX))
    }

    /// F(n): the share of windows of `n` blocks within a part that have an erasure, which is the loss probability of a
    /// frame of `n` blocks. NaN if every part is shorter.
    pub fn frame_erasure_rate(&self, n: u32) -> f64 {
        let n = n.max(1);
        let windows = |len: u32| u64::from(len.saturating_sub(n - 1));
        let all: u64 = self.parts().map(|[start, end]| windows(end - start)).sum();
        let clean = self.rows().flatten().filter(|(erased, _)| !erased);
        let clean: u64 = clean.map(|(_, len)| windows(len)).sum();
        (all - clean) as f64 / all as f64
    }
}

/// The share of lengths above `len`; 0 if there are none.
pub fn share_above(lengths: &Lengths, len: u32) -> f64 {
    let above: u64 = lengths.range(len.saturating_add(1)..).map(|(_, n)| n).sum();
    above as f64 / total(lengths).max(1) as f64
}

/// The number of runs.
pub fn total(lengths: &Lengths) -> u64 {
    lengths.values().sum()
}

/// The mean length; NaN if there are none.
pub fn mean(lengths: &Lengths) -> f64 {
    let sum: u64 = lengths.iter().map(|(len, n)| u64::from(*len) * n).sum();
    sum as f64 / total(lengths) as f64
}

/// The smallest length that at least the share `q` does not exceed; `None` if there are none.
pub fn quantile(lengths: &Lengths, q: f64) -> Option<u32> {
    let all = total(lengths) as f64;
    let mut until = 0;
    let found = lengths.iter().find(|(_, n)| {
        until += **n;
        until as f64 >= q * all
    });
    found.map(|(len, _)| *len)
}

fn counted(lengths: impl Iterator<Item = u32>) -> Lengths {
    let mut counts = Lengths::new();
    for len in lengths {
        *counts.entry(len).or_default() += 1;
    }
    counts
}
