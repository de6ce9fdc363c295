//! Fits mixtures of geometric distributions to lengths by expectation maximisation.

use airlane_channel::blocks::Geometrics;
use airlane_channel::blocks::statistics::{Lengths, mean, quantile, total};

/// No trace of ours could distinguish more components.
const MOST: usize = 4;
const STEPS: usize = 2000;

/// The maximum-likelihood mixture, with the number of components that the lengths justify (BIC;
/// Schwarz 1978).
pub(crate) fn best(lengths: &Lengths) -> Option<Geometrics> {
    let all = total(lengths);
    let cost = |law: &Geometrics| {
        let free = 2.0 * law.parts().len() as f64 - 1.0;
        free * libm::log(all as f64) - 2.0 * log_likelihood(law, lengths)
    };
    let laws = (1..=MOST).filter_map(|components| fit(lengths, components));
    laws.min_by(|a, b| cost(a).total_cmp(&cost(b)))
}

fn log_likelihood(law: &Geometrics, lengths: &Lengths) -> f64 {
    let terms = lengths
        .iter()
        .map(|(len, n)| *n as f64 * libm::log(law.at(*len)));
    terms.sum()
}

/// `None` if there are too few lengths to distinguish the components.
fn fit(lengths: &Lengths, components: usize) -> Option<Geometrics> {
    let all = total(lengths) as f64;
    if components > 1 && lengths.len() < 2 * components {
        return None;
    }
    // Initial means are spread evenly over the logarithm of the range of lengths.
    let low = mean(lengths)
        .min(f64::from(quantile(lengths, 0.2)?))
        .max(1.05);
    let high = f64::from(quantile(lengths, 0.995)?).max(low * 2.0);
    let start = |i: usize| match components {
        1 => mean(lengths),
        _ => low * libm::pow(high / low, i as f64 / (components - 1) as f64),
    };
    let share = 1.0 / components as f64;
    let mut parts: Vec<[f64; 2]> = (0..components).map(|i| [share, start(i)]).collect();
    let mut before = f64::NEG_INFINITY;
    for _ in 0..STEPS {
        let mut weights = vec![0.0; components];
        let mut sums = vec![0.0; components];
        let mut log = 0.0;
        for (len, n) in lengths {
            let each = parts.iter().map(|[weight, mean]| {
                weight / mean
                    * libm::exp(f64::from(len - 1) * libm::log1p(-1.0 / mean.max(1.0 + 1e-9)))
            });
            let each: Vec<f64> = each.collect();
            let sum: f64 = each.iter().sum();
            if sum <= 0.0 {
                continue;
            }
            log += *n as f64 * libm::log(sum);
            for (at, p) in each.iter().enumerate() {
                let share = *n as f64 * p / sum;
                weights[at] += share;
                sums[at] += share * f64::from(*len);
            }
        }
        for (part, (weight, sum)) in parts.iter_mut().zip(weights.iter().zip(&sums)) {
            if *weight > 0.0 {
                *part = [weight / all, (sum / weight).max(1.0)];
            }
        }
        if log - before < 1e-7 * all.max(1.0) * 1e-2 {
            break;
        }
        before = log;
    }
    parts.retain(|[weight, _]| *weight > 1e-9);
    parts.sort_by(|a, b| a[1].total_cmp(&b[1]));
    Geometrics::new(parts).ok()
}
