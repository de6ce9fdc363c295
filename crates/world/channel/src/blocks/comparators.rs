//! Traces beside a trace: with the same erasures otherwise placed, and as a model of others would draw them.
//!
//! - [`Blocks::single_burst`] has all erasures in one row: what burstiness can be worth at most.
//! - [`Mta`] is the Markov-based trace analysis of Konrad, Zhao, Joseph and Ludwig 2003. A *lossy* segment begins at an
//!   erasure and ends at the last one before a run of at least Cs clean blocks, Cs being mean and standard deviation of
//!   the bursts together; the rest are *clean* segments. The lossy ones, put together, are a Markov chain of the order at
//!   which the conditional entropy levels off; the lengths of both kinds are exponential.
//!
//! Left out of MTA: the runs test for stationarity, which decides nothing in it; empirical laws of lengths.

use airlane_base::Rng;

use super::Blocks;
use super::law;

/// Orders of the chain that are tried.
const ORDERS: std::ops::RangeInclusive<u32> = 1..=10;
/// An order more that takes off less than this part of the entropy of order 1 is not worth it.
const LEVEL: f64 = 0.005;

impl Blocks {
    /// As many blocks and erasures, with these in one row in the middle.
    #[must_use]
    pub fn single_burst(&self) -> Self {
        let clean = self.len() - self.erased();
        let mut single = Self::new(self.header.clone());
        let origin = self.header.origin.as_ref();
        single.header.origin = origin.map(|of| format!("single-burst {of}"));
        single.push(false, clean / 2);
        single.push(true, self.erased());
        single.push(false, clean - clean / 2);
        single
    }
}

/// A trace as MTA sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Mta {
    /// Cs: from so many clean blocks on a segment is clean.
    pub change_of_state: f64,
    /// Mean lengths of clean and of lossy segments.
    pub segments: [f64; 2],
    /// Order of the chain.
    pub order: u32,
    /// How probable an erasure is behind each history, the newest block in the lowest bit.
    erased: Vec<f64>,
}

impl Mta {
    /// None for a trace without an erasure, or without a clean segment.
    pub fn extract(blocks: &Blocks) -> Option<Self> {
        let lengths = || blocks.bursts().iter().map(|burst| f64::from(burst.len));
        let count = blocks.bursts().len() as f64;
        let mean = lengths().sum::<f64>() / count;
        let square = |len: f64| (len - mean) * (len - mean);
        let deviation = libm::sqrt(lengths().map(square).sum::<f64>() / count);
        let change_of_state = mean + deviation;
        let (mut series, mut lossy, mut clean) = (Vec::new(), 0_u64, [0_u64; 2]);
        for rows in blocks.rows() {
            // Clean blocks of which the next erasure says what they are.
            let mut gap = None;
            for (erased, len) in rows {
                if !erased {
                    gap = Some(len);
                    continue;
                }
                match gap.take() {
                    Some(len) if f64::from(len) < change_of_state && !series.is_empty() => {
                        series.resize(series.len() + len as usize, false);
                    }
                    Some(len) => {
                        clean = [clean[0] + 1, clean[1] + u64::from(len)];
                        lossy += 1;
                    }
                    None => lossy += 1,
                }
                series.resize(series.len() + len as usize, true);
            }
            if let Some(len) = gap {
                clean = [clean[0] + 1, clean[1] + u64::from(len)];
            }
        }
        if lossy == 0 || clean[0] == 0 {
            return None;
        }
        let entropies: Vec<f64> = ORDERS.map(|order| entropy(&series, order)).collect();
        let levels = |order: &usize| {
            let next = entropies.get(*order);
            next.is_none_or(|next| entropies[*order - 1] - next < LEVEL * entropies[0])
        };
        let order = (1..=entropies.len()).find(levels)? as u32;
        let counts = transitions(&series, order);
        let erased = counts.iter().map(|[clean, erased]| match clean + erased {
            // Such a history does not come about.
            0 => 0.0,
            all => *erased as f64 / all as f64,
        });
        Some(Self {
            change_of_state,
            segments: [
                clean[1] as f64 / clean[0] as f64,
                series.len() as f64 / lossy as f64,
            ],
            order,
            erased: erased.collect(),
        })
    }

    /// A trace like the one that this was extracted from.
    pub fn generate(&self, like: &Blocks, random: &mut Rng) -> Blocks {
        let mut drawn = Blocks::new(like.header.clone());
        let origin = like.header.origin.as_ref();
        drawn.header.origin = origin.map(|of| format!("mta {of}"));
        let mask = self.erased.len() - 1;
        let mut history = 0;
        let room = |drawn: &Blocks, len: u32| len.min(like.len() - drawn.len());
        while drawn.len() < like.len() {
            let clean = law::draw(self.segments[0], random);
            drawn.push(false, room(&drawn, clean));
            let lossy = law::draw(self.segments[1], random);
            for at in 0..room(&drawn, lossy) {
                let erased = at == 0 || random.uniform() < self.erased[history & mask];
                history = history << 1 | usize::from(erased);
                drawn.push(erased, 1);
            }
        }
        drawn
    }
}

/// How often each history of so many blocks is followed by a clean block, and by an erased one.
fn transitions(series: &[bool], order: u32) -> Vec<[u64; 2]> {
    let mask = (1 << order) - 1;
    let mut counts = vec![[0; 2]; 1 << order];
    let mut history = 0_usize;
    for (at, erased) in series.iter().enumerate() {
        if at >= order as usize {
            counts[history & mask][usize::from(*erased)] += 1;
        }
        history = history << 1 | usize::from(*erased);
    }
    counts
}

/// H(k): what a history of so many blocks leaves open about the next one, in bits.
fn entropy(series: &[bool], order: u32) -> f64 {
    let counts = transitions(series, order);
    let all = counts.iter().flatten().sum::<u64>() as f64;
    let open = counts.iter().map(|both| {
        let sum = (both[0] + both[1]) as f64;
        let part = |count: u64| match count {
            0 => 0.0,
            count => -(count as f64) * libm::log2(count as f64 / sum),
        };
        part(both[0]) + part(both[1])
    });
    open.sum::<f64>() / all
}
