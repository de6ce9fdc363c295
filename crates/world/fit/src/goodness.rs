//! Tests whether a model could have made a trace: compares it with traces that the model makes
//! (parametric bootstrap; Efron and Tibshirani 1993, chapter 16).
//!
//! The test statistic combines losses of frames of many lengths, tails of bursts and gaps, and how
//! the share of erasures varies from one piece of the trace to the next: it is the largest
//! deviation among them, and the p-value is how often the model's own traces deviate as much. Since
//! the model was fitted to the trace and not to each of its own, the test errs towards accepting a
//! bad model rather than refusing a good one.

use airlane_base::Streams;
use airlane_channel::blocks::statistics::share_above;
use airlane_channel::blocks::{Blocks, Generator};

/// How a trace is compared with a model.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of traces of each model to compare with the one that it was fitted to; with fewer
    /// than 99, no deviation can be significant.
    pub samples: u32,
    /// Seed of these traces.
    pub seed: u64,
}

/// Enough samples to resolve a probability of one in a hundred.
impl Default for Options {
    fn default() -> Self {
        Self {
            samples: 99,
            seed: 1,
        }
    }
}

/// A statistic in which a trace differs from those of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Deviation {
    /// The statistic, such as `F(20)`.
    pub of: String,
    /// Its value for the trace.
    pub trace: f64,
    /// Its mean over the model's traces.
    pub model: f64,
    /// The difference in standard deviations of the model's traces.
    pub deviations: f64,
}

pub(crate) struct Judged {
    pub(crate) p_value: f64,
    /// In descending order.
    pub(crate) deviations: Vec<Deviation>,
}

const FRAMES: [u32; 9] = [1, 2, 3, 5, 10, 20, 50, 100, 300];
const BURSTS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
const GAPS: [u32; 9] = [1, 2, 5, 10, 30, 100, 300, 1000, 3000];
const PIECES: [u32; 3] = [30, 300, 3000];
/// With fewer pieces, their variation says nothing.
const LEAST_PIECES: usize = 10;

fn names() -> impl Iterator<Item = String> {
    let frames = FRAMES.iter().map(|n| format!("F({n})"));
    let bursts = BURSTS.iter().map(|n| format!("P(burst > {n})"));
    let gaps = GAPS.iter().map(|n| format!("P(gap > {n})"));
    let pieces = PIECES.iter().map(|n| format!("swing over {n} blocks"));
    frames.chain(bursts).chain(gaps).chain(pieces)
}

fn signature(blocks: &Blocks) -> Vec<f64> {
    let frames = FRAMES.iter().map(|n| blocks.frame_erasure_rate(*n));
    let (bursts, gaps) = (blocks.burst_lengths(), blocks.gap_lengths());
    let bursts = BURSTS.iter().map(|n| share_above(&bursts, *n));
    let gaps = GAPS.iter().map(|n| share_above(&gaps, *n));
    let pieces = PIECES.iter().map(|len| {
        let rates = blocks.pieces(*len);
        match rates.len() >= LEAST_PIECES {
            true => moments(&rates).1,
            false => 0.0,
        }
    });
    let all = frames.chain(bursts).chain(gaps).chain(pieces);
    // A trace that is too short for a length has nothing to compare.
    all.map(|value| if value.is_finite() { value } else { 0.0 })
        .collect()
}

/// Mean and standard deviation.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values
        .iter()
        .map(|value| (value - mean) * (value - mean))
        .sum();
    (mean, libm::sqrt(squares / (n - 1.0).max(1.0)))
}

pub(crate) fn judge(blocks: &Blocks, model: &Generator, options: Options) -> Judged {
    let own = signature(blocks);
    let streams = Streams::new(options.seed, 0);
    let samples: Vec<Vec<f64>> = (0..options.samples.max(1))
        .map(|sample| {
            let mut random = streams.stream(&format!("sample.{sample}"));
            let mut made = Blocks::new(blocks.header.clone());
            for [start, end] in blocks.parts() {
                made.end_part();
                let part = model.generate(end - start, blocks.header.clone(), &mut random);
                for (erased, len) in part.rows().flatten() {
                    made.push(erased, len);
                }
            }
            signature(&made)
        })
        .collect();
    let column = |at: usize| {
        samples
            .iter()
            .map(|sample| sample[at])
            .collect::<Vec<f64>>()
    };
    let spread: Vec<(f64, f64)> = (0..own.len()).map(|at| moments(&column(at))).collect();
    let apart = |signature: &[f64]| -> Vec<f64> {
        let all = signature.iter().zip(&spread);
        // A statistic that is constant among the samples may differ by rounding alone.
        all.map(|(value, (mean, sd))| (value - mean) / sd.max(1e-9))
            .collect()
    };
    let most = |apart: &[f64]| apart.iter().fold(0.0, |most: f64, z| most.max(z.abs()));
    let own_apart = apart(&own);
    let own_most = most(&own_apart);
    let as_far = samples
        .iter()
        .filter(|sample| most(&apart(sample)) >= own_most);
    let p_value = (1 + as_far.count()) as f64 / (samples.len() + 1) as f64;
    let mut deviations: Vec<Deviation> = names()
        .enumerate()
        .map(|(at, of)| Deviation {
            of,
            trace: own[at],
            model: spread[at].0,
            deviations: own_apart[at],
        })
        .collect();
    deviations.sort_by(|a, b| b.deviations.abs().total_cmp(&a.deviations.abs()));
    Judged {
        p_value,
        deviations,
    }
}
