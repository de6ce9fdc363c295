//! Single comparisons of a claim, each with its outcome.

use serde::Serialize;

use crate::verdict::{Verdict, holm};

/// One comparison at one place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The check, as written.
    pub check: String,
    /// The axis values at which it was made.
    pub at: Vec<String>,
    /// The measured value on the left.
    pub measured: f64,
    /// The value on the right, or the printed one.
    pub against: f64,
    /// Half the width of the 95 % interval of the difference.
    pub ci95_half_width: f64,
    /// The largest plotted value of the axis that shows both; `None` if no axis does, or if numbers
    /// are printed.
    pub axis: Option<f64>,
    /// Unit of the values: `bit/s`, `s`, `ratio`, or nothing.
    pub unit: &'static str,
    /// The probability of a deviation this large if the claim were true.
    pub probability: f64,
    /// The verdict by the rule of its form.
    pub verdict: Verdict,
}

/// The outcomes of a claim's comparisons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ComparisonCounts {
    /// Comparisons that agree with the publication.
    pub agree: usize,
    /// Ties where an order was published, and deviations that may be due to chance.
    pub consistent: usize,
    /// All comparisons.
    pub all: usize,
}

/// Reverses refusals that may be due to chance.
pub(super) fn correct(comparisons: &mut [Comparison]) {
    let probabilities: Vec<f64> = comparisons.iter().map(|c| c.probability).collect();
    for (comparison, refused) in comparisons.iter_mut().zip(holm::refused(&probabilities)) {
        if comparison.verdict < Verdict::Consistent && !refused {
            comparison.verdict = Verdict::Consistent;
        }
    }
}

impl ComparisonCounts {
    /// Counts them.
    pub(crate) fn of(comparisons: &[Comparison]) -> Self {
        let count = |verdict| comparisons.iter().filter(|c| c.verdict == verdict).count();
        Self {
            agree: count(Verdict::Holds),
            consistent: count(Verdict::Consistent),
            all: comparisons.len(),
        }
    }
}

/// How many agree, and the worst of the others, in a few words.
pub(super) fn words(comparisons: &[Comparison]) -> String {
    let ComparisonCounts {
        agree,
        consistent,
        all,
    } = ComparisonCounts::of(comparisons);
    let mut text = format!("{agree} of {all} agree");
    if consistent > 0 {
        text += &format!(", {consistent} consistent");
    }
    let mut against: Vec<&Comparison> = comparisons
        .iter()
        .filter(|c| c.verdict < Verdict::Consistent)
        .collect();
    against.sort_by_key(|c| c.verdict);
    if !against.is_empty() {
        text += &format!(", {} against", against.len());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(verdict: Verdict, probability: f64) -> Comparison {
        Comparison {
            check: String::new(),
            at: vec![],
            measured: 1.0,
            against: 1.0,
            ci95_half_width: 0.0,
            axis: None,
            unit: "",
            probability,
            verdict,
        }
    }

    #[test]
    fn one_of_many_that_fails_barely_is_consistent() {
        let mut many = vec![comparison(Verdict::Holds, 1.0); 19];
        many.push(comparison(Verdict::Misses, 0.02));
        correct(&mut many);
        assert_eq!(many[19].verdict, Verdict::Consistent);
        assert_eq!(words(&many), "19 of 20 agree, 1 consistent");
        // The same comparison is refused if it is the only one, and so is a clear failure.
        let mut alone = [comparison(Verdict::Misses, 0.02)];
        correct(&mut alone);
        assert_eq!(alone[0].verdict, Verdict::Misses);
        many[19] = comparison(Verdict::Near, 1e-9);
        correct(&mut many);
        assert_eq!(words(&many), "19 of 20 agree, 1 against");
    }
}
