//! Traces to compare a trace with: the same erasures placed differently, and traces drawn from a fitted model.
//!
//! - [`Blocks::single_burst`] has all erasures in one run: the most that burstiness can be worth.
//! - [`Mta`] is the Markov-based trace analysis of Konrad, Zhao, Joseph and Ludwig 2003. A *lossy* segment begins at an
//!   erasure and ends at the last one before a run of at least Cs clean blocks, where Cs is the mean plus the standard
//!   deviation of the burst lengths. The rest are *clean* segments. The concatenated lossy segments form a Markov chain
//!   of the order at which the conditional entropy levels off; the lengths of both kinds of segments are exponential.
//!
//! Left out of MTA: the runs test for stationarity, which does not affect the result; empirical length distributions.

use airlane_base::Rng;

use super::Blocks;
use super::law;

/// Orders of the chain that are tried.
const ORDERS: std::ops::RangeInclusive<u32> = 1..=10;
/// A higher order must lower the entropy by at least this share of that of order 1.
const LEVEL: f64 = 0.005;

impl Blocks {
    /// The same number of blocks and erasures, with all erasures in one run in the middle.
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

/// The parameters that MTA extracts from a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Mta {
    /// Cs: a segment is clean from this many clean blocks on.
    pub change_of_state: f64,
    /// Mean lengths of clean and of lossy segments, blocks.
    pub segments: [f64; 2],
    /// Order of the chain.
    pub order: u32,
    /// Probability of an erasure after each history, with the newest block in the lowest bit.
    erased: Vec<f64>,
}

impl Mta {
    /// `None` for a trace without an erasure, or without a clean segment.
    pub fn extract(blocks: &Blocks) -> Option<Self> {
        let lengths = || blocks.bursts().iter().map(|burst| f64::from(burst.len));
        let count = blocks.bursts().len() as f64;
        let mean = lengths().sum::<f64>() / count;
        let square = |len: f64| (len - mean) * (len - mean);
        let deviation = libm::sqrt(lengths().map(square).sum::<f64>() / count);
        let change_of_state = mean + deviation;
        let (mut series, mut lossy, mut clean) = (Vec::new(), 0_u64, [0_u64; 2]);
        for rows in blocks.rows() {
            // Clean blocks whose segment is known only once the next erasure comes.
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
            // This history never occurs.
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

    /// Draws a trace of the same length and parts as the one these parameters come from.
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

/// How often each history of `order` blocks is followed by a clean and by an erased block.
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

/// H(k): conditional entropy of the next block given the `order` blocks before it, bits.
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
