//! Losses of one direction as a hidden Markov chain in continuous time, with one state unless the likelihood asks for two.
//!
//! The chain changes its state whether or not frames are sent, so the correlation of two fates depends on the time between
//! the frames. The forward recursion gives the likelihood, with the chain's transition probabilities in closed form.

use airlane_base::{Duration, Probability};
use airlane_channel::ErrorModelConfig;

use super::frames::Frame;
use crate::simplex;

/// A model of loss.
#[derive(Clone, Debug, PartialEq)]
pub enum LossModel {
    /// No frame was lost.
    None,
    /// One state.
    Uniform {
        /// A frame is lost with this probability.
        rate: f64,
    },
    /// Two alternating states.
    TwoState {
        /// Mean duration of the good state.
        good: Duration,
        /// Mean duration of the bad state.
        bad: Duration,
        /// A frame is lost with this probability in the good state,
        loss_good: f64,
        /// and with this in the bad one.
        loss_bad: f64,
    },
}

impl LossModel {
    /// Mean fraction of frames lost.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::None => 0.0,
            Self::Uniform { rate } => rate,
            Self::TwoState {
                good,
                bad,
                loss_good,
                loss_bad,
            } => {
                let (good, bad) = (good.as_secs_f64(), bad.as_secs_f64());
                (good * loss_good + bad * loss_bad) / (good + bad)
            }
        }
    }

    /// The error model of a scenario.
    pub fn errors(&self) -> ErrorModelConfig {
        let p = |value: f64| {
            // No recording is more precise than six digits.
            let rounded = libm::round(value.clamp(0.0, 1.0) * 1e6) / 1e6;
            Probability::new(rounded).expect("within 0 and 1")
        };
        match *self {
            Self::None => ErrorModelConfig::None,
            Self::Uniform { rate } => ErrorModelConfig::Uniform { rate: p(rate) },
            Self::TwoState {
                good,
                bad,
                loss_good,
                loss_bad,
            } => ErrorModelConfig::TwoStateLoss {
                good,
                bad,
                loss_good: p(loss_good),
                loss_bad: p(loss_bad),
            },
        }
    }
}

/// Maximum number of frames that the search uses, in pieces from all over the recording.
const SEARCHED: usize = 60_000;
const PIECES: usize = 12;
/// Durations of the bad state from which the search starts, s.
const STARTS: [f64; 5] = [0.002, 0.01, 0.05, 0.25, 1.5];
const SHORTEST: f64 = 0.000_2;
/// Number of parts of the recording that give the standard error.
const PARTS: usize = 20;

/// Fits the model, and returns it with the standard error of its mean. `bursts`: whether frames are close enough to show
/// bursts.
pub(super) fn fit(frames: &[Frame], bursts: bool) -> (LossModel, f64) {
    let all = frames.len() as f64;
    let lost = frames.iter().filter(|frame| frame.lost).count();
    let mean = lost as f64 / all.max(1.0);
    if lost == 0 {
        // With no loss in n frames, the upper 95 % bound of the mean is 3 / n.
        return (LossModel::None, 1.5 / all.max(1.0));
    }
    let one = LossModel::Uniform { rate: mean };
    let error = scatter(frames, mean);
    if lost == frames.len() || !bursts {
        return (one, error);
    }
    let pieces = pieces(frames);
    let seen: usize = pieces.iter().map(|piece| piece.len()).sum();
    let lost = pieces.iter().copied().flatten().filter(|f| f.lost).count();
    let part = lost as f64 / seen as f64;
    if lost == 0 {
        return (one, error);
    }
    let one_state = lost as f64 * libm::log(part) + (seen - lost) as f64 * libm::log1p(-part);
    let span = frames[frames.len() - 1].at - frames[0].at;
    let cost = |point: &[f64]| -likelihood(&pieces, &Chain::at(point, span));
    let mut starts: Vec<(f64, Vec<f64>)> = vec![];
    for bad in STARTS.into_iter().filter(|bad| *bad < span / 4.0) {
        for loss_bad in [0.3_f64, 0.9] {
            let share = (0.7 * mean / loss_bad).clamp(1e-6, 0.9);
            let light = 0.3 * mean / loss_bad;
            let point = vec![libm::log(bad), logit(share), logit(loss_bad), logit(light)];
            starts.push((cost(&point), point));
        }
    }
    starts.sort_by(|a, b| a.0.total_cmp(&b.0));
    let found = starts.into_iter().take(2).map(|(_, start)| {
        let mut corners = vec![start.clone()];
        for axis in 0..start.len() {
            let mut corner = start.clone();
            corner[axis] += 0.7;
            corners.push(corner);
        }
        simplex::descend(corners, 0.01, 250, cost)
    });
    let best = found.min_by(|a, b| a.1.total_cmp(&b.1));
    let Some((point, cost)) = best else {
        return (one, error);
    };
    // Three more parameters.
    let asked = 2.0 * (-cost - one_state) > 3.0 * libm::log(seen as f64);
    if !asked {
        return (one, error);
    }
    let chain = Chain::at(&point, span);
    let good = chain.bad * (1.0 - chain.share) / chain.share;
    let whole = |s: f64| Duration::from_micros((s * 1e6).max(1.0) as u64);
    let model = LossModel::TwoState {
        good: whole(good),
        bad: whole(chain.bad),
        loss_good: chain.loss[0],
        loss_bad: chain.loss[1],
    };
    (model, error)
}

/// Parameters of two states.
#[derive(Clone, Copy, Debug)]
struct Chain {
    /// Mean duration of the bad state, s.
    bad: f64,
    /// Its share of the time.
    share: f64,
    loss: [f64; 2],
}

impl Chain {
    /// From an unconstrained point.
    fn at(point: &[f64], span: f64) -> Self {
        let share = sigmoid(point[1]).clamp(1e-7, 0.999);
        let bad = libm::exp(point[0]).clamp(SHORTEST, span);
        let loss_bad = sigmoid(point[2]).clamp(1e-7, 1.0 - 1e-7);
        let loss_good = loss_bad * sigmoid(point[3]);
        Self {
            bad,
            share,
            loss: [loss_good, loss_bad],
        }
    }
}

fn logit(p: f64) -> f64 {
    libm::log(p) - libm::log1p(-p)
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

fn pieces(frames: &[Frame]) -> Vec<&[Frame]> {
    if frames.len() <= SEARCHED {
        return vec![frames];
    }
    let (piece, step) = (SEARCHED / PIECES, frames.len() / PIECES);
    let begins = (0..PIECES).map(|i| i * step);
    begins.map(|at| &frames[at..at + piece]).collect()
}

fn likelihood(pieces: &[&[Frame]], chain: &Chain) -> f64 {
    // Of a two-state chain: p(t) = share + (p(0) - share) exp(-t (1/good + 1/bad)), and 1/good + 1/bad is this.
    let rate = 1.0 / (chain.bad * (1.0 - chain.share));
    let [good, bad] = chain.loss;
    let mut sum = 0.0;
    for piece in pieces {
        let mut p = chain.share;
        let mut last = piece.first().map_or(0.0, |frame| frame.at);
        let mut product = 1.0;
        for frame in *piece {
            p = chain.share + (p - chain.share) * libm::exp(-rate * (frame.at - last));
            last = frame.at;
            let (of_bad, of_good) = match frame.lost {
                true => (p * bad, (1.0 - p) * good),
                false => (p * (1.0 - bad), (1.0 - p) * (1.0 - good)),
            };
            let all = (of_bad + of_good).max(1e-300);
            p = of_bad / all;
            product *= all;
            // Logarithms are expensive, and a product has room for many factors.
            if product < 1e-200 {
                sum += libm::log(product);
                product = 1.0;
            }
        }
        sum += libm::log(product);
    }
    sum
}

/// Standard error of the mean from parts of the recording, which accounts for bursts.
fn scatter(frames: &[Frame], mean: f64) -> f64 {
    let parts = frames.chunks(frames.len().div_ceil(PARTS).max(1));
    let squares = parts.map(|part| {
        let lost = part.iter().filter(|frame| frame.lost).count() as f64;
        let beyond = lost - mean * part.len() as f64;
        beyond * beyond
    });
    let all = frames.len() as f64;
    let parts = PARTS as f64;
    let by_parts = libm::sqrt(squares.sum::<f64>() * parts / (parts - 1.0)) / all;
    by_parts.max(libm::sqrt(mean * (1.0 - mean) / all))
}
