//! When a claim holds. One rule for each form of claim, the same for all of them:
//!
//! | form | holds | near |
//! |---|---|---|
//! | gain over the levels | least and greatest ratio of means each within a factor 1.25 of the printed ends | 1.6 |
//! | printed value | within 10 %, or the same when rounded to the last printed digit | 25 % |
//! | bound | within it | at most 25 % beyond it |
//! | `>` | greater, beyond the interval of the difference | a tie within the interval |
//! | `>=` | greater, or a tie | less by at most 5 % |
//! | `slightly>` | greater beyond the interval, by at most 15 % | a tie, or by at most 25 % |
//! | `slightly>=` | greater, or less by at most 15 % | less by at most 25 % |
//! | `>>` | at least twice as much, beyond the interval | a factor 1.25 (a factor 1.6 short) |
//! | `~` | at most 5 % apart | 15 % |
//! | `==` | a tie | at most 5 % apart |
//! | closed form | inside the interval of the mean; the intervals of one claim hold together with 95 % | - |
//!
//! "The interval" is the 95 % confidence interval over the repetitions, run by run. "Nearly" is 5 %
//! and "slightly" is 15 % in every claim. A condition is judged at each place and a claim by the
//! worst of them.
//!
//! This table is for works that print numbers. A work whose results are curves says `print = "curves"`, and its
//! claims are judged by what a curve can show: [`print`] has that rule.

pub(crate) mod holm;
pub(crate) mod print;

use serde::{Deserialize, Serialize};

use crate::expression::Comparator;

/// How a claim fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Not reproduced.
    Misses,
    /// Almost.
    Near,
    /// The source says elsewhere what excludes it.
    SourceInconsistent,
    /// A tie where an order is claimed: print could not have shown it, nor do the repetitions.
    Consistent,
    /// Reproduced.
    Holds,
}

impl Verdict {
    /// In words: `holds`, `consistent`, `near`, `misses`, `source inconsistent`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Misses => "misses",
            Self::Near => "near",
            Self::SourceInconsistent => "source inconsistent",
            Self::Consistent => "consistent",
            Self::Holds => "holds",
        }
    }

    const fn of(holds: bool, near: bool) -> Self {
        match (holds, near) {
            (true, _) => Self::Holds,
            (false, true) => Self::Near,
            (false, false) => Self::Misses,
        }
    }
}

/// What [`compare`] asks for, in words.
pub(crate) const fn rule(comparator: Comparator) -> &'static str {
    match comparator {
        Comparator::Greater => "> holds beyond the interval, and is near within it",
        Comparator::Less => "< holds beyond the interval, and is near within it",
        Comparator::AtLeast => ">= holds within the interval, and is near to 5 % short",
        Comparator::AtMost => "<= holds within the interval, and is near to 5 % beyond",
        Comparator::SlightlyGreater => {
            "slightly> holds beyond the interval and to 15 %, and is near within it or to 25 %"
        }
        Comparator::SlightlyLess => {
            "slightly< holds beyond the interval and to 15 %, and is near within it or to 25 %"
        }
        Comparator::SlightlyAtLeast => {
            "slightly>= holds within the interval or to 15 % short, and is near to 25 %"
        }
        Comparator::SlightlyAtMost => {
            "slightly<= holds within the interval or to 15 % beyond, and is near to 25 %"
        }
        Comparator::FarGreater => {
            ">> holds from twice as much beyond the interval, and is near from 1.25 times"
        }
        Comparator::FarLess => {
            "<< holds from half as much beyond the interval, and is near from a 1.25th"
        }
        Comparator::Nearly => "~ holds to 5 % apart, and is near to 15 %",
        Comparator::Equal => "== holds within the interval, and is near to 5 % apart",
    }
}

/// What [`gain`], [`value`], [`below`] and [`above`] ask for, and a closed form.
pub(crate) const GAIN_RULE: &str = "holds to a factor of 1.25 at both ends, near to 1.6";
pub(crate) const VALUE_RULE: &str = "holds to 10 % or when rounded as printed, near to 25 %";
pub(crate) const BOUND_RULE: &str = "holds within it, near to 25 % beyond";
pub(crate) const CLOSED_RULE: &str = "holds inside the interval";

/// `left` against `right`; `half` is half the interval of their difference.
pub(crate) fn compare(comparator: Comparator, left: f64, right: f64, half: f64) -> Verdict {
    let flipped = |comparator| compare(comparator, right, left, half);
    if !(left.is_finite() && right.is_finite()) {
        return Verdict::Misses;
    }
    let difference = left - right;
    let tie = difference.abs() <= half;
    let beyond = difference > half;
    // Greater by this share.
    let within = |share: f64| left <= right * (1.0 + share);
    match comparator {
        Comparator::Greater => Verdict::of(beyond, tie),
        Comparator::AtLeast => Verdict::of(beyond || tie, apart(left, right) <= 1.05),
        Comparator::SlightlyGreater => {
            Verdict::of(beyond && within(0.15), tie || beyond && within(0.25))
        }
        Comparator::SlightlyAtLeast => {
            let most = |share: f64| right <= left * (1.0 + share);
            Verdict::of(tie || most(0.15), most(0.25))
        }
        Comparator::FarGreater => {
            let least = |factor: f64| beyond && left >= right * factor;
            Verdict::of(least(2.0), least(2.0 / 1.6))
        }
        Comparator::Nearly => Verdict::of(apart(left, right) <= 1.05, apart(left, right) <= 1.15),
        Comparator::Equal => Verdict::of(tie, apart(left, right) <= 1.05),
        Comparator::Less => flipped(Comparator::Greater),
        Comparator::AtMost => flipped(Comparator::AtLeast),
        Comparator::SlightlyLess => flipped(Comparator::SlightlyGreater),
        Comparator::SlightlyAtMost => flipped(Comparator::SlightlyAtLeast),
        Comparator::FarLess => flipped(Comparator::FarGreater),
    }
}

/// The ratio of two ends of a range over the levels to the printed ones.
pub(crate) fn gain(measured: [f64; 2], printed: [f64; 2]) -> Verdict {
    let worst = apart(measured[0], printed[0]).max(apart(measured[1], printed[1]));
    Verdict::of(worst <= 1.25, worst <= 1.6)
}

/// A printed value; `digit` is the worth of its last printed digit.
pub(crate) fn value(measured: f64, printed: f64, digit: Option<f64>) -> Verdict {
    let off = (measured - printed).abs();
    let rounds = digit.is_some_and(|digit| off <= digit / 2.0);
    Verdict::of(
        off <= 0.1 * printed.abs() || rounds,
        off <= 0.25 * printed.abs(),
    )
}

/// A printed bound from above.
pub(crate) fn below(measured: f64, bound: f64) -> Verdict {
    Verdict::of(measured <= bound, measured <= 1.25 * bound)
}

/// A printed bound from below.
pub(crate) fn above(measured: f64, bound: f64) -> Verdict {
    Verdict::of(measured >= bound, measured >= bound / 1.25)
}

/// The greater over the smaller; infinite for what cannot be compared so.
fn apart(left: f64, right: f64) -> f64 {
    if left == right {
        return 1.0;
    }
    if left <= 0.0 || right <= 0.0 || !(left.is_finite() && right.is_finite()) {
        return f64::INFINITY;
    }
    (left / right).max(right / left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Comparator::*;
    use Verdict::*;

    #[test]
    fn comparators() {
        for (comparator, left, right, half, verdict) in [
            (Greater, 2.0, 1.0, 0.5, Holds),
            (Greater, 2.0, 1.0, 1.5, Near),
            (Greater, 1.0, 2.0, 0.5, Misses),
            (Less, 1.0, 2.0, 0.5, Holds),
            (AtLeast, 1.0, 1.1, 0.2, Holds),
            (AtLeast, 1.0, 1.04, 0.01, Near),
            (AtLeast, 1.0, 1.1, 0.01, Misses),
            (SlightlyGreater, 1.1, 1.0, 0.01, Holds),
            (SlightlyGreater, 1.1, 1.0, 0.2, Near),
            (SlightlyGreater, 1.2, 1.0, 0.01, Near),
            (SlightlyGreater, 1.3, 1.0, 0.01, Misses),
            (SlightlyGreater, 0.9, 1.0, 0.01, Misses),
            (SlightlyAtLeast, 2.0, 1.0, 0.01, Holds),
            (SlightlyAtLeast, 1.0, 1.15, 0.01, Holds),
            (SlightlyAtLeast, 1.0, 1.2, 0.3, Holds),
            (SlightlyAtLeast, 1.0, 1.2, 0.01, Near),
            (SlightlyAtMost, 1.3, 1.0, 0.01, Misses),
            (FarGreater, 2.0, 1.0, 0.1, Holds),
            (FarGreater, 1.5, 1.0, 0.1, Near),
            (FarGreater, 1.2, 1.0, 0.1, Misses),
            (FarLess, 1.0, 3.0, 0.1, Holds),
            (Nearly, 1.0, 1.05, 0.0, Holds),
            (Nearly, 1.0, 1.14, 0.0, Near),
            (Nearly, 1.0, 1.2, 9.0, Misses),
            (Nearly, 0.0, 0.0, 0.0, Holds),
            (Equal, 1.0, 1.2, 0.3, Holds),
            (Equal, 1.0, 1.04, 0.01, Near),
            (Equal, 1.0, 1.2, 0.1, Misses),
            (Greater, f64::NAN, 1.0, 0.0, Misses),
        ] {
            let found = compare(comparator, left, right, half);
            assert_eq!(found, verdict, "{left} {comparator:?} {right} ± {half}");
        }
    }

    #[test]
    fn ranges_values_and_bounds() {
        assert_eq!(gain([1.3, 10.0], [1.15, 10.7]), Holds);
        assert_eq!(gain([1.15, 17.0], [1.15, 10.7]), Near);
        assert_eq!(gain([1.15, 18.0], [1.15, 10.7]), Misses);
        assert_eq!(value(0.057, 0.06, None), Holds);
        assert_eq!(value(0.053, 0.06, None), Near);
        assert_eq!(value(0.0354, 0.04, Some(0.01)), Holds);
        assert_eq!(value(0.034, 0.04, Some(0.01)), Near);
        assert_eq!(value(0.0299, 0.04, Some(0.01)), Misses);
        assert_eq!(
            [below(0.02, 0.02), below(0.024, 0.02), below(0.026, 0.02)],
            [Holds, Near, Misses]
        );
        assert_eq!(
            [above(2.0, 2.0), above(1.7, 2.0), above(1.5, 2.0)],
            [Holds, Near, Misses]
        );
    }
}
