//! Finds which model made a trace of erased blocks, and whether any did; and which link a recording
//! shows ([`LinkFit`]).
//!
//! For each family of models, [`fit`] finds the maximum-likelihood model of a trace, says how
//! precisely the trace determines its parameters, and then compares the trace with traces that the
//! model makes. The best of several models need not be good, and a model that nothing contradicts
//! may only mean that the trace is short; the [`Verdict`] keeps these cases apart.
//!
//! | family | found by | free parameters |
//! |---|---|---|
//! | Bernoulli | the share of erased blocks | 1 |
//! | Gilbert | transitions, counted | 2 |
//! | Gilbert-Elliott, hidden Markov of n states | simplex search (Nelder and Mead 1965) over rows of blocks, several starts | n n |
//! | on-off | expectation and maximisation (Dempster et al. 1977), components by BIC (Schwarz 1978) | 2 for each component but 1 less a law |
//!
//! Intervals come from the curvature of the likelihood at its maximum.

#![forbid(unsafe_code)]

mod family;
mod goodness;
mod interval;
mod likelihood;
mod mixture;
mod recording;
mod search;
mod simplex;

use airlane_base::Duration;
use airlane_channel::blocks::{Blocks, Generator};

pub use family::Family;
pub use goodness::{Deviation, Options};
pub use interval::{Parameter, WIDEST};
pub use likelihood::log_likelihood;
pub use recording::{
    Capacity, LEAST_COVERED, LEAST_EVENTS, LEAST_FRAMES, LinkFit, LossModel, Note, RecordingError,
    WayFit,
};

/// Significance level: a model is refused if at most this share of its own traces deviates as much.
pub const SIGNIFICANT: f64 = 0.01;
/// With fewer bursts nothing can be said about their distribution.
pub const LEAST_BURSTS: usize = 30;
/// The best model of a family.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The family.
    pub family: Family,
    /// The maximum-likelihood model of the family.
    pub model: Generator,
    /// Its parameters with their 95 % confidence intervals.
    pub parameters: Vec<Parameter>,
    /// Natural logarithm of the probability of the trace.
    pub log_likelihood: f64,
    /// Bayesian information criterion; lower is better.
    pub bic: f64,
    /// Log-likelihood gain over the Bernoulli model on the second half of the trace, with both
    /// fitted to the first half, in nats per 1000 blocks. `None` if a half has no erasure.
    pub held_out: Option<f64>,
    /// Share of the model's own traces that deviate more than this one.
    pub p_value: f64,
    /// The statistics in which the trace deviates most from the traces of the model, in their
    /// standard deviations.
    pub deviations: Vec<Deviation>,
    /// The conclusion.
    pub verdict: Verdict,
}

/// Whether a model fits a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// No statistic distinguishes the trace from those of the model, and it is long enough to
    /// decide.
    Good,
    /// The model did not make the trace.
    Poor,
    /// Nothing contradicts the model, but the trace is too short to determine its parameters; a
    /// trace of about this length would, if it continues alike.
    TooShort(Duration),
}

/// Why a trace cannot be fitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// No block was erased, or all were.
    #[error(
        "{erased} of {blocks} blocks are erased; a model can be fitted where some are and some are not"
    )]
    Constant {
        /// Erased blocks.
        erased: u32,
        /// All blocks.
        blocks: u32,
    },
    /// A chain with a number of states that cannot be fitted.
    #[error("a hidden chain of {0} states; 2 to 4 can be fitted")]
    States(usize),
}

/// Fits a family of models to a trace, and compares the trace with those of the best model.
///
/// # Errors
/// If no block is erased or all are, or the family cannot be fitted.
pub fn fit(blocks: &Blocks, family: Family, options: Options) -> Result<Fit, FitError> {
    let erased = blocks.erased();
    if erased == 0 || erased == blocks.len() {
        return Err(FitError::Constant {
            erased,
            blocks: blocks.len(),
        });
    }
    if let Family::Hidden(states) = family
        && !(2..=4).contains(&states)
    {
        return Err(FitError::States(states));
    }
    let best = search::best(blocks, family);
    let model = best.model();
    let log_likelihood = log_likelihood(&model, blocks);
    let parameters = interval::parameters(blocks, &best);
    let free = best.point.len() as f64;
    let judged = goodness::judge(blocks, &model, options);
    let verdict = verdict(blocks, &parameters, judged.p_value);
    Ok(Fit {
        family,
        model,
        parameters,
        log_likelihood,
        bic: free * libm::log(f64::from(blocks.len())) - 2.0 * log_likelihood,
        held_out: held_out(blocks, family),
        p_value: judged.p_value,
        deviations: judged.deviations,
        verdict,
    })
}

fn held_out(blocks: &Blocks, family: Family) -> Option<f64> {
    let [first, second] = blocks.split(blocks.len() / 2);
    let known = |half: &Blocks| half.erased() > 0 && half.erased() < half.len();
    if !known(&first) || !known(&second) {
        return None;
    }
    let of = |family| log_likelihood(&search::best(&first, family).model(), &second);
    Some((of(family) - of(Family::Bernoulli)) * 1000.0 / f64::from(second.len()))
}

fn verdict(blocks: &Blocks, parameters: &[Parameter], p_value: f64) -> Verdict {
    if p_value <= SIGNIFICANT {
        return Verdict::Poor;
    }
    let bursts = blocks.bursts().len();
    let mut factor = LEAST_BURSTS as f64 / bursts as f64;
    for parameter in parameters {
        factor = factor.max(parameter.longer());
    }
    if factor <= 1.0 {
        return Verdict::Good;
    }
    // An interval narrows with the square root of the length; an unbounded one counts as ten times
    // too wide.
    let seconds = blocks.duration().as_secs_f64() * factor.min(100.0);
    Verdict::TooShort(Duration::from_secs_f64(seconds))
}

/// The best of the good fits: the one with the lowest criterion.
pub fn choose(fits: &[Fit]) -> Option<&Fit> {
    let good = fits.iter().filter(|fit| fit.verdict == Verdict::Good);
    good.min_by(|a, b| a.bic.total_cmp(&b.bic))
}

#[cfg(test)]
mod tests;
