//! Measured numbers for people: rounded to three digits.

use airlane_base::Duration;

/// Rounds the number to three digits.
pub fn three_digits(n: u64) -> u64 {
    let step = 10_u64.pow(n.checked_ilog10().unwrap_or(0).saturating_sub(2));
    (n / step + u64::from(n % step >= step.div_ceil(2) && step > 1)) * step
}

/// Rounds the duration to three digits.
pub fn rounded(span: Duration) -> Duration {
    Duration::from_nanos(three_digits(span.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn three_digits_stay() {
        for (measured, said) in [
            (51_757_475, "51.8 ms"),
            (3_500_225_000, "3.5 s"),
            (999_999, "1 ms"),
            (7, "7 ns"),
            (0, "0 s"),
        ] {
            assert_eq!(rounded(Duration::from_nanos(measured)).to_string(), said);
        }
    }

    proptest! {
        #[test]
        fn no_more_than_half_of_the_last_digit_is_lost(n in 0..u64::MAX / 2) {
            let rounded = three_digits(n);
            prop_assert!(rounded.abs_diff(n) <= n / 200);
            prop_assert_eq!(three_digits(rounded), rounded);
        }
    }
}
