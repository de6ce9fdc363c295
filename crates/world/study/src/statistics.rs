//! The uncertainty of a statistic over many repetitions.
//!
//! Every statistic of a claim is a function of means over repetitions. Its standard error is the
//! jackknife's: the function is evaluated without each of the repetitions in turn. For a difference
//! of two means this is the usual paired error; it is also right for ratios and deviations, without
//! a formula for each. Repetition `k` of every scenario meets the same errors, so leaving it out of
//! all of them keeps the pairs.

/// Which repetitions to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repetitions {
    All,
    /// All but one.
    Without(usize),
    /// Only one.
    Only(usize),
}

impl Repetitions {
    /// The selected repetitions of `runs`.
    pub(crate) fn of(self, runs: usize) -> impl Iterator<Item = usize> {
        (0..runs).filter(move |run| match self {
            Self::All => true,
            Self::Without(other) => *run != other,
            Self::Only(one) => *run == one,
        })
    }
}

/// A value and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Jackknife {
    pub(crate) value: f64,
    error: f64,
    runs: usize,
}

impl Jackknife {
    /// The jackknife of `statistic` over `runs` repetitions.
    pub(crate) fn of<E>(
        runs: usize,
        statistic: impl Fn(Repetitions) -> Result<f64, E>,
    ) -> Result<Self, E> {
        let value = statistic(Repetitions::All)?;
        let mut error = 0.0;
        if runs > 1 {
            let without = (0..runs).map(|run| statistic(Repetitions::Without(run)));
            let without: Vec<f64> = without.collect::<Result<_, E>>()?;
            let n = runs as f64;
            let mean = without.iter().sum::<f64>() / n;
            let squares: f64 = without.iter().map(|x| (x - mean) * (x - mean)).sum();
            error = (squares * (n - 1.0) / n).sqrt();
        }
        Ok(Self { value, error, runs })
    }

    /// Half the width of the interval that contains the true value with `confidence`; zero for a
    /// single repetition, of which the error is unknown.
    pub(crate) fn half_width(&self, confidence: f64) -> f64 {
        match self.runs {
            0 | 1 => 0.0,
            runs => student_t(confidence, runs - 1) * self.error,
        }
    }
}

impl Jackknife {
    /// The one-sided probability that a mean is off by at least `excess` through chance alone.
    pub(crate) fn chance(&self, excess: f64) -> f64 {
        if excess <= 0.0 {
            return 1.0;
        }
        if excess.is_infinite() || self.runs < 2 || self.error == 0.0 {
            return 0.0;
        }
        0.5 * (1.0 - central(excess / self.error, self.runs - 1))
    }
}

/// The `t` with `P(|T| <= t) = confidence` in Student's distribution.
pub fn student_t(confidence: f64, degrees_of_freedom: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1e9);
    // The distribution is monotone, and sixty halvings exhaust the digits.
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if central(middle, degrees_of_freedom) < confidence {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// `P(|T| <= t)`, exact for whole degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4).
fn central(t: f64, degrees_of_freedom: usize) -> f64 {
    let angle = libm::atan(t / (degrees_of_freedom as f64).sqrt());
    let (sine, cosine) = (libm::sin(angle), libm::cos(angle));
    let odd = degrees_of_freedom % 2 == 1;
    let mut term = if odd { cosine } else { 1.0 };
    let mut sum = 0.0;
    let mut k = if odd { 3 } else { 2 };
    while k <= degrees_of_freedom {
        sum += term;
        term *= cosine * cosine * (k - 1) as f64 / k as f64;
        k += 2;
    }
    if odd {
        let sum = if degrees_of_freedom == 1 { 0.0 } else { sum };
        std::f64::consts::FRAC_2_PI * (angle + sine * sum)
    } else {
        sine * sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_student_t() {
        for (confidence, degrees, t) in [
            (0.95, 1, 12.7062),
            (0.95, 2, 4.3027),
            (0.95, 3, 3.1824),
            (0.95, 10, 2.2281),
            (0.95, 29, 2.0452),
            (0.99, 29, 2.7564),
            (0.99, 4, 4.6041),
        ] {
            let found = student_t(confidence, degrees);
            assert!((found - t).abs() < 1e-4, "{confidence} {degrees}: {found}");
        }
    }

    #[test]
    fn the_jackknife_of_a_difference_is_the_paired_error() {
        let (a, b) = ([3.0, 5.0, 10.0], [1.0, 2.0, 6.0]);
        let mean = |values: &[f64], sample: Repetitions| {
            let chosen: Vec<f64> = sample.of(3).map(|run| values[run]).collect();
            chosen.iter().sum::<f64>() / chosen.len() as f64
        };
        let known = Jackknife::of::<()>(3, |s| Ok(mean(&a, s) - mean(&b, s))).unwrap();
        // Differences 2, 3, 4: mean 3, standard error 1 / sqrt(3), t(2) = 4.3027.
        assert!((known.value - 3.0).abs() < 1e-12);
        assert!((known.half_width(0.95) - 4.3027 / 3f64.sqrt()).abs() < 1e-4);
    }

    #[test]
    fn the_chance_of_an_excess_is_the_tail_of_student_t() {
        let known = Jackknife {
            value: 0.0,
            error: 2.0,
            runs: 30,
        };
        // 2.0452 standard errors are exceeded on one side in 2.5 of 100 cases.
        assert!((known.chance(2.0 * 2.0452) - 0.025).abs() < 1e-5);
        assert!((known.chance(0.0) - 1.0).abs() < 1e-12);
        let certain = Jackknife {
            error: 0.0,
            ..known
        };
        assert!(certain.chance(1e-9) < 1e-12);
    }

    #[test]
    fn one_repetition_has_no_error() {
        let known = Jackknife::of::<()>(1, |_| Ok(7.0)).unwrap();
        assert_eq!((known.value, known.half_width(0.95)), (7.0, 0.0));
    }
}
