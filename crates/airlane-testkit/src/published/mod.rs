//! Figures of the published works that the simulator must reproduce, measured and judged.
//!
//! A [`Figure`] names scenario files, one for each line of the plot, and the error levels. Its
//! claims are those of Xylomenos 1999, with the ids of the specification; the rule that turns a
//! measurement into a verdict is the same for every claim of a kind.

mod claims;
mod figures;
mod report;

pub use claims::{Claim, Verdict, cause, judge};
pub use figures::{Alternative, Figure, Grid, RUNS, SEED, figures, measure};
pub use report::markdown;

use std::path::Path;

/// A figure with everything that is known about it.
#[derive(Clone, Debug)]
pub struct Study {
    /// What was measured under the committed choices.
    pub grid: Grid,
    /// How its claims fared.
    pub claims: Vec<Claim>,
    /// How they fared under other choices.
    pub alternatives: Vec<(Alternative, Vec<Claim>)>,
}

/// Measures and judges a figure, under the committed choices and under each alternative.
///
/// # Errors
/// If a scenario file is missing or wrong.
pub fn study(
    figure: &Figure,
    scenarios: &Path,
    runs: u64,
    progress: impl Fn(&str) + Sync,
) -> Result<Study, String> {
    progress(&format!("{}: {}", figure.id, figure.title));
    let grid = measure(figure, None, scenarios, runs)?;
    let claims = judge(&grid);
    let mut alternatives = Vec::new();
    for other in figure.alternatives {
        progress(&format!("{}: with {}", figure.id, other.what));
        let grid = measure(figure, Some(other), scenarios, runs)?;
        alternatives.push((*other, judge(&grid)));
    }
    Ok(Study {
        grid,
        claims,
        alternatives,
    })
}
