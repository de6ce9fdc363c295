//! Decides which of many comparisons fail by more than chance (Holm 1979).
//!
//! Of twenty true orderings one is expected to lie outside its 95 % interval. The smallest of the
//! `m` probabilities is compared with 5 % / m, the next one with 5 % / (m - 1), and so on to the
//! first that is not below its bound. The probability of refusing any true claim is then at most 5
//! %.

/// The probability of refusing any of several true statements.
const LEVEL: f64 = 0.05;

/// Whether each of the comparisons fails, given the probability of its deviation if it were true.
pub(crate) fn refused(probabilities: &[f64]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
    let mut refused = vec![false; probabilities.len()];
    for (rank, at) in order.into_iter().enumerate() {
        if probabilities[at] > LEVEL / (probabilities.len() - rank) as f64 {
            break;
        }
        refused[at] = true;
    }
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_widens_with_each_refusal_and_the_first_pass_ends_it() {
        // The bounds of four comparisons are 0.0125, 0.0167, 0.025 and 0.05.
        let found = refused(&[0.016, 0.001, 0.9, 0.03]);
        assert_eq!(found, [true, true, false, false]);
        // 0.02 is refused as the only comparison, but not as the first of four.
        assert_eq!(refused(&[0.02, 0.9, 0.9, 0.9]), [false; 4]);
        assert_eq!(refused(&[0.02]), [true]);
        // The first comparison that is not refused ends the procedure, even if a later one is below
        // its own bound.
        assert_eq!(refused(&[0.026, 0.03]), [false, false]);
        assert_eq!(refused(&[]), Vec::<bool>::new());
    }
}
