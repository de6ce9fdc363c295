//! Which model made a trace of erased blocks, and whether any did; and which link a recording shows ([`LinkFit`]).
//!
//! [`fit`] finds for each family of models the one that most probably made a trace (maximum likelihood), says how
//! exactly the trace fixes its parameters, and then holds the trace against traces that the model makes. That the best of
//! some models is found does not say that it is good, and that nothing contradicts a model may only say that
//! the trace is short; the [`Verdict`] keeps these apart.
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

/// Of a model's own traces so few are as far from it as one that is called another's.
pub const SIGNIFICANT: f64 = 0.01;
/// With fewer bursts nothing can be said of how they are distributed.
pub const LEAST_BURSTS: usize = 30;
/// The best model of a family.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The family.
    pub family: Family,
    /// The most probable of its models.
    pub model: Generator,
    /// Its parameters, with intervals that hold the true value 95 times in 100.
    pub parameters: Vec<Parameter>,
    /// Natural logarithm of the probability of the trace.
    pub log_likelihood: f64,
    /// Bayesian information criterion: the lowest has the best of fit and simplicity.
    pub bic: f64,
    /// Fitted to the first half of the trace: by how much it foretells the second half better than the Bernoulli model
    /// of the first half does, in natural units for 1000 blocks. None where a half has no erasure.
    pub held_out: Option<f64>,
    /// How often the model makes a trace that is further from its own kind than this one.
    pub p_value: f64,
    /// In what the trace differs most from the traces of the model, in their standard deviations.
    pub deviations: Vec<Deviation>,
    /// What that comes to.
    pub verdict: Verdict,
}

/// Whether a model is that of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Nothing that was looked at tells the trace from those of the model, and it is long enough to tell.
    Good,
    /// The trace is not of this model.
    Poor,
    /// Nothing contradicts the model, but the trace is too short to fix its parameters; one about this long
    /// would, if it goes on as it does.
    TooShort(Duration),
}

/// Why nothing can be fitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// Nothing was erased, or everything.
    #[error(
        "{erased} of {blocks} blocks are erased; a model can be fitted where some are and some are not"
    )]
    Constant {
        /// Erased blocks.
        erased: u32,
        /// All blocks.
        blocks: u32,
    },
    /// A chain that cannot be fitted.
    #[error("a hidden chain of {0} states; 2 to 4 can be fitted")]
    States(usize),
}

/// Fits models of a family to a trace, and holds it against what the best one makes.
///
/// # Errors
/// If the trace has no erasure or nothing else, or the family cannot be fitted.
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
    // An interval narrows with the square root of the length; one without bounds is as good as ten times as long.
    let seconds = blocks.duration().as_secs_f64() * factor.min(100.0);
    Verdict::TooShort(Duration::from_secs_f64(seconds))
}

/// The best of the good ones: that with the lowest criterion.
pub fn choose(fits: &[Fit]) -> Option<&Fit> {
    let good = fits.iter().filter(|fit| fit.verdict == Verdict::Good);
    good.min_by(|a, b| a.bic.total_cmp(&b.bic))
}

#[cfg(test)]
mod tests;
