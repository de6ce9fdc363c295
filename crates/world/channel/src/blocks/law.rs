//! Distributions of run lengths: mixtures of geometric distributions on 1, 2, ... (after Ji et al. 2004).

use std::fmt;
use std::str::FromStr;

use airlane_base::Rng;

/// A mixture of geometric distributions: weight and mean of each component.
#[derive(Clone, Debug, PartialEq)]
pub struct Geometrics(Vec<[f64; 2]>);

/// How far the sum of weights may be from 1 by rounding.
const ROUNDING: f64 = 1e-12;

/// Why a mixture is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{text}\" is no mixture of lengths: write WEIGHTxMEAN+WEIGHTxMEAN+..., such as 0.4x1.5+0.6x4.8, where weights \
     are above 0 and means of at least 1 block"
)]
pub struct LawError {
    text: String,
}

impl Geometrics {
    /// A mixture of components `[weight, mean]`. Weights are normalised to a sum of 1.
    ///
    /// # Errors
    /// If there is no component, a weight is not above 0, or a mean is below 1.
    pub fn new(parts: Vec<[f64; 2]>) -> Result<Self, LawError> {
        let good = |[weight, mean]: &[f64; 2]| {
            *weight > 0.0 && weight.is_finite() && *mean >= 1.0 && *mean <= 1e9
        };
        let law = Self(parts);
        if law.0.is_empty() || !law.0.iter().all(good) {
            let text = law.to_string();
            return Err(LawError { text });
        }
        let sum: f64 = law.0.iter().map(|[weight, _]| weight).sum();
        // What is 1 but for rounding stays as it is written, so that a mixture that was printed is read as the same one.
        if (sum - 1.0).abs() < ROUNDING {
            return Ok(law);
        }
        let scaled = law.0.iter().map(|[weight, mean]| [weight / sum, *mean]);
        Ok(Self(scaled.collect()))
    }

    /// The components, `[weight, mean]`.
    pub fn parts(&self) -> &[[f64; 2]] {
        &self.0
    }

    /// The mean length.
    pub fn mean(&self) -> f64 {
        self.0.iter().map(|[weight, mean]| weight * mean).sum()
    }

    /// Probability of a length above `len`.
    pub fn above(&self, len: u32) -> f64 {
        let parts = self.0.iter();
        parts
            .map(|[weight, mean]| weight * libm::exp(f64::from(len) * stays(*mean)))
            .sum()
    }

    /// Probability of the length `len`.
    pub fn at(&self, len: u32) -> f64 {
        let parts = self.0.iter().map(|[weight, mean]| {
            weight / mean * libm::exp(f64::from(len.saturating_sub(1)) * stays(*mean))
        });
        parts.sum()
    }

    /// The mean times the probability that a randomly chosen block of such runs is followed by at least `n - 1` blocks
    /// of its run: the sum over components of w m (1 - 1/m)^(n - 1).
    pub fn lasts(&self, n: u32) -> f64 {
        let parts = self.0.iter().map(|[weight, mean]| {
            weight * mean * libm::exp(f64::from(n.saturating_sub(1)) * stays(*mean))
        });
        parts.sum()
    }

    /// Draws a length.
    pub fn draw(&self, random: &mut Rng) -> u32 {
        let at = self.pick(random, |_| 1.0);
        draw(self.0[at][1], random)
    }

    /// Draws the rest of a run that is met at a random block: components are weighted by their mean, and a geometric
    /// distribution is memoryless.
    pub(super) fn draw_residual(&self, random: &mut Rng) -> u32 {
        let at = self.pick(random, |mean| mean);
        draw(self.0[at][1], random)
    }

    fn pick(&self, random: &mut Rng, by: impl Fn(f64) -> f64) -> usize {
        let all: f64 = self.0.iter().map(|[weight, mean]| weight * by(*mean)).sum();
        let mut at = random.uniform() * all;
        for (place, [weight, mean]) in self.0.iter().enumerate() {
            at -= weight * by(*mean);
            if at < 0.0 {
                return place;
            }
        }
        self.0.len() - 1
    }
}

/// ln(1 - 1/m), by which the log probability of continuing falls with each block.
pub(super) fn stays(mean: f64) -> f64 {
    libm::log1p(-1.0 / mean)
}

/// Draws a length of a geometric distribution on 1, 2, ...
pub(super) fn draw(mean: f64, random: &mut Rng) -> u32 {
    let u = random.uniform();
    if mean <= 1.0 {
        return 1;
    }
    let more = (libm::log1p(-u) / stays(mean)).min(1e9);
    1 + more as u32
}

impl fmt::Display for Geometrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, [weight, mean]) in self.0.iter().enumerate() {
            let plus = if at > 0 { "+" } else { "" };
            write!(f, "{plus}{weight}x{mean}")?;
        }
        Ok(())
    }
}

impl FromStr for Geometrics {
    type Err = LawError;
    fn from_str(text: &str) -> Result<Self, LawError> {
        let parts = text.split('+').map(|part| {
            let (weight, mean) = part.split_once('x')?;
            let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite());
            Some([number(weight)?, number(mean)?])
        });
        let wrong = || LawError {
            text: text.to_owned(),
        };
        let parts: Option<Vec<_>> = parts.collect();
        Self::new(parts.ok_or_else(wrong)?).map_err(|_| wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mixture_that_was_printed_is_read_as_the_same_one() {
        for text in [
            "0.484x1.94+0.422x4.57+0.094x35",
            "0.3x1+0.3x2+0.1x3",
            "1x2+1x3+1x5",
            "7x1.5",
        ] {
            let law: Geometrics = text.parse().unwrap();
            assert_eq!(law.to_string().parse(), Ok(law), "{text}");
        }
        // What sums to 1 but for rounding keeps its digits.
        let law: Geometrics = "0.484x1.94+0.422x4.57+0.094x35".parse().unwrap();
        assert_eq!(law.to_string(), "0.484x1.94+0.422x4.57+0.094x35");
    }
}
