//! What a printed figure can show: one rule for each form of claim, the same for all works.
//!
//! Where a claim reads a curve (`print = "curves"`), A is the largest plotted value, and
//! differences within 1.5 % of A cannot be seen. Where numbers are printed, or no axis shows both
//! values, A is the smaller of the two values. With d the difference of two values, a difference
//! within e is a tie: e is half the 95 % interval of d, and on curves at least the width of a line.
//!
//! | form | holds | consistent | near |
//! |---|---|---|---|
//! | `>` | d above e | a tie | - |
//! | `>=` | d above -e | - | short by at most 5 % of A |
//! | `slightly>` | d above e, at most 15 % of A | a tie | d at most 25 % of A |
//! | `slightly>=` | short by at most e or 15 % of A | - | short by at most 25 % of A |
//! | `>>` | d at least 25 % of an axis, or twice as much | a tie | d at least 15 %, or 1.25 times |
//! | `~` | apart by at most e or 5 % of A | - | apart by at most 15 % of A |
//! | `==` | a tie | - | apart by at most 5 % of A |
//! | gain of g % | within a quarter of g, or inside the prediction interval | - | within a half of g |
//! | printed value | within 10 %, the same when rounded, or inside the prediction interval | - | 25 % |
//! | bound | within it | beyond it by less than half the prediction interval | up to 1.25 times it, down to a 1.25th |
//! | closed form | inside the interval of the mean; those of one claim hold together with 95 % | - | - |
//!
//! A spread over repetitions is a standard deviation as a share of A, like the error bars of a
//! figure. The prediction interval is that of the mean of as many repetitions as the printed number
//! has (`of-runs`), or as many as here if that is not given. A comparison that fails is refused
//! only if it still fails after Holm's correction for all comparisons of its claim
//! ([`holm`](super::holm)); otherwise it is consistent.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Verdict;
use crate::expression::Comparator;

/// How a result is printed, which decides what a reader can see of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Print {
    /// As numbers, by whose size differences are judged.
    #[default]
    Numbers,
    /// As curves, by whose axes differences are judged.
    Curves,
}

/// The smallest share of an axis that a reader can see.
const VISIBLE: f64 = 0.015;

/// The scale on which two values are compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// The largest plotted value; `None` if no axis shows these values.
    pub(crate) axis: Option<f64>,
    /// Half the interval of their difference.
    pub(crate) half: f64,
}

/// A verdict, and how far the values are outside the claim; 0 if they are within it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) verdict: Verdict,
    pub(crate) excess: f64,
}

/// The differences that a comparator demands, as shares, and those that are near.
struct Asked {
    holds: [f64; 2],
    near: [f64; 2],
    /// Whether a tie is neither for nor against it.
    strict: bool,
}

/// `far` is the share from which a value is far above.
pub(crate) fn band(comparator: Comparator, far: f64) -> [f64; 2] {
    asked(comparator, [far, far]).holds
}

const fn asked(comparator: Comparator, [far, nearly_far]: [f64; 2]) -> Asked {
    const ALL: f64 = f64::INFINITY;
    let (holds, near, strict) = match comparator {
        Comparator::Greater => ([0.0, ALL], [0.0, ALL], true),
        Comparator::Less => ([-ALL, 0.0], [-ALL, 0.0], true),
        Comparator::AtLeast => ([0.0, ALL], [-0.05, ALL], false),
        Comparator::AtMost => ([-ALL, 0.0], [-ALL, 0.05], false),
        Comparator::SlightlyGreater => ([0.0, 0.15], [0.0, 0.25], true),
        Comparator::SlightlyLess => ([-0.15, 0.0], [-0.25, 0.0], true),
        Comparator::SlightlyAtLeast => ([-0.15, ALL], [-0.25, ALL], false),
        Comparator::SlightlyAtMost => ([-ALL, 0.15], [-ALL, 0.25], false),
        Comparator::FarGreater => ([far, ALL], [nearly_far, ALL], true),
        Comparator::FarLess => ([-ALL, -far], [-ALL, -nearly_far], true),
        Comparator::Nearly => ([-0.05, 0.05], [-0.15, 0.15], false),
        Comparator::Equal => ([0.0, 0.0], [-0.05, 0.05], false),
    };
    Asked {
        holds,
        near,
        strict,
    }
}

/// What [`compare`] demands, in words.
pub(crate) fn rule(comparator: Comparator, on_axis: bool) -> String {
    let of = if on_axis {
        "of the axis"
    } else {
        "of the smaller"
    };
    match comparator {
        Comparator::Greater => "> holds beyond a tie".to_owned(),
        Comparator::Less => "< holds beyond a tie".to_owned(),
        Comparator::AtLeast => format!(">= holds from a tie on, and is near to 5 % {of} short"),
        Comparator::AtMost => format!("<= holds from a tie on, and is near to 5 % {of} beyond"),
        Comparator::SlightlyGreater | Comparator::SlightlyLess => {
            format!("slightly holds beyond a tie to 15 % {of}, and is near to 25 %")
        }
        Comparator::SlightlyAtLeast | Comparator::SlightlyAtMost => {
            format!("slightly holds to 15 % {of}, and is near to 25 %")
        }
        Comparator::FarGreater | Comparator::FarLess => match on_axis {
            true => "far holds from 25 % of the axis on, and is near from 15 %".to_owned(),
            false => "far holds from a factor of 2 on, and is near from 1.25".to_owned(),
        },
        Comparator::Nearly => format!("~ holds to 5 % {of}, and is near to 15 %"),
        Comparator::Equal => format!("== holds for a tie, and is near to 5 % {of}"),
    }
}

/// What [`gain`], [`value`], bounds and closed forms demand, in words.
pub(crate) const GAIN_RULE: &str = "holds to a quarter of the gain at both ends, near to a half";
pub(crate) const VALUE_RULE: &str = "holds to 10 % or when rounded as printed, near to 25 %";
pub(crate) const BOUND_RULE: &str = "holds within it, near to 25 % beyond";
pub(crate) const CLOSED_RULE: &str = "holds inside the interval";

/// Compares `left` with `right`.
pub(crate) fn compare(comparator: Comparator, left: f64, right: f64, scale: Scale) -> Found {
    if !(left.is_finite() && right.is_finite()) {
        return Found {
            verdict: Verdict::Misses,
            excess: f64::INFINITY,
        };
    }
    let axis = scale.axis.filter(|axis| *axis > 0.0);
    let share = axis.unwrap_or_else(|| left.abs().min(right.abs()));
    let far = if axis.is_some() {
        [0.25, 0.15]
    } else {
        [1.0, 0.25]
    };
    let asked = asked(comparator, far);
    let tie = axis.map_or(0.0, |axis| VISIBLE * axis).max(scale.half);
    let by = left - right;
    let excess = beyond(by, asked.holds, share);
    let verdict = if asked.strict && by.abs() <= tie {
        Verdict::Consistent
    } else if excess == 0.0 || by.abs() <= tie {
        Verdict::Holds
    } else if beyond(by, asked.near, share) == 0.0 {
        Verdict::Near
    } else {
        Verdict::Misses
    };
    Found { verdict, excess }
}

/// How far a difference is outside a band of shares.
fn beyond(by: f64, [low, high]: [f64; 2], share: f64) -> f64 {
    let bound = |limit: f64| if limit == 0.0 { 0.0 } else { limit * share };
    (bound(low) - by).max(by - bound(high)).max(0.0)
}

/// Compares the least or the greatest ratio of a range with the printed one; `half` is half the
/// prediction interval.
pub(crate) fn gain(measured: f64, printed: f64, half: f64) -> Found {
    let (off, gain) = ((measured - printed).abs(), (printed - 1.0).abs());
    let holds = off <= gain_tolerance(printed) || off <= half;
    let verdict = printed_verdict([holds, false, off <= 0.5 * gain]);
    let excess = beyond_by(off - 0.25 * gain);
    Found { verdict, excess }
}

/// Compares a value with a printed one; `digit` is the weight of its last printed digit, `half`
/// half the prediction interval.
pub(crate) fn value(measured: f64, printed: f64, digit: Option<f64>, half: f64) -> Found {
    let (off, size) = ((measured - printed).abs(), printed.abs());
    let holds = off <= value_tolerance(printed, digit) || off <= half;
    let verdict = printed_verdict([holds, false, off <= 0.25 * size]);
    let excess = beyond_by(off - 0.1 * size);
    Found { verdict, excess }
}

/// How far a value may be from a printed one and hold, whatever its scatter.
pub(crate) fn value_tolerance(printed: f64, digit: Option<f64>) -> f64 {
    (0.1 * printed.abs()).max(digit.unwrap_or(0.0) / 2.0)
}

/// As [`value_tolerance`], for a printed ratio.
pub(crate) fn gain_tolerance(printed: f64) -> f64 {
    0.25 * (printed - 1.0).abs()
}

/// Judges how far a value is beyond a printed bound; `near` is how far counts as near, `half` is
/// half the prediction interval.
pub(crate) fn bound(beyond: f64, near: f64, half: f64) -> Found {
    let verdict = printed_verdict([beyond <= 0.0, beyond <= half, beyond <= near]);
    let excess = beyond_by(beyond);
    Found { verdict, excess }
}

/// Zero if nothing is beyond; a missing measurement cannot be due to chance.
fn beyond_by(excess: f64) -> f64 {
    if excess.is_nan() {
        f64::INFINITY
    } else {
        excess.max(0.0)
    }
}

const fn printed_verdict([holds, consistent, near]: [bool; 3]) -> Verdict {
    if holds {
        Verdict::Holds
    } else if consistent {
        Verdict::Consistent
    } else if near {
        Verdict::Near
    } else {
        Verdict::Misses
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Comparator::*;
    use Verdict::*;

    #[test]
    fn differences_are_shares_of_the_axis() {
        // On an axis up to 100, of which 1.5 can be seen, with the given half width of the
        // interval.
        for (comparator, left, right, half, verdict) in [
            (Greater, 11.0, 10.0, 0.1, Consistent),
            (Greater, 9.0, 10.0, 0.1, Consistent),
            (Greater, 12.0, 10.0, 0.1, Holds),
            (Greater, 12.0, 10.0, 3.0, Consistent),
            (Greater, 8.0, 10.0, 0.1, Misses),
            (Less, 8.0, 10.0, 0.1, Holds),
            (AtLeast, 9.0, 10.0, 0.1, Holds),
            (AtLeast, 6.0, 10.0, 0.1, Near),
            (AtLeast, 4.0, 10.0, 0.1, Misses),
            (AtMost, 11.0, 10.0, 0.1, Holds),
            // Twice as much, and yet only slightly: a plot shows the difference, not the ratio.
            (SlightlyGreater, 20.0, 10.0, 0.1, Holds),
            (SlightlyGreater, 30.0, 10.0, 0.1, Near),
            (SlightlyGreater, 40.0, 10.0, 0.1, Misses),
            (SlightlyGreater, 10.5, 10.0, 0.1, Consistent),
            (SlightlyGreater, 5.0, 10.0, 0.1, Misses),
            (SlightlyLess, 10.0, 20.0, 0.1, Holds),
            (SlightlyAtLeast, 50.0, 60.0, 0.1, Holds),
            (SlightlyAtLeast, 40.0, 60.0, 0.1, Near),
            (SlightlyAtMost, 90.0, 60.0, 0.1, Misses),
            (FarGreater, 40.0, 10.0, 0.1, Holds),
            (FarGreater, 28.0, 10.0, 0.1, Near),
            (FarGreater, 20.0, 10.0, 0.1, Misses),
            // Close to zero, nothing is far above anything else.
            (FarGreater, 1.2, 0.1, 0.1, Consistent),
            (FarGreater, 12.0, 10.0, 5.0, Consistent),
            (FarGreater, 5.0, 10.0, 0.1, Misses),
            (FarLess, 10.0, 40.0, 0.1, Holds),
            (Nearly, 14.0, 10.0, 0.1, Holds),
            (Nearly, 17.0, 10.0, 8.0, Holds),
            (Nearly, 24.0, 10.0, 0.1, Near),
            (Nearly, 26.0, 10.0, 0.1, Misses),
            (Equal, 11.0, 10.0, 0.1, Holds),
            (Equal, 14.0, 10.0, 0.1, Near),
            (Equal, 16.0, 10.0, 0.1, Misses),
            (Greater, f64::NAN, 10.0, 0.1, Misses),
        ] {
            let scale = Scale {
                axis: Some(100.0),
                half,
            };
            let found = compare(comparator, left, right, scale).verdict;
            assert_eq!(found, verdict, "{left} {comparator:?} {right} ± {half}");
        }
    }

    #[test]
    fn a_value_without_an_axis_is_judged_by_its_own_size() {
        for (comparator, left, right, half, verdict) in [
            (Greater, 1.05, 1.0, 0.01, Holds),
            (Greater, 1.05, 1.0, 0.1, Consistent),
            (SlightlyGreater, 1.2, 1.0, 0.01, Near),
            (FarGreater, 2.0, 1.0, 0.01, Holds),
            (FarGreater, 1.5, 1.0, 0.01, Near),
            (Nearly, 1.04, 1.0, 0.01, Holds),
            (Nearly, 1.2, 1.0, 0.01, Misses),
            (Nearly, 0.0, 0.0, 0.0, Holds),
        ] {
            let found = compare(comparator, left, right, Scale { axis: None, half }).verdict;
            assert_eq!(found, verdict, "{left} {comparator:?} {right} ± {half}");
        }
    }

    #[test]
    fn the_distance_of_a_value_from_its_bound() {
        let scale = Scale {
            axis: Some(100.0),
            half: 0.0,
        };
        for (comparator, left, right, excess) in [
            (Greater, 12.0, 10.0, 0.0),
            (Greater, 8.0, 10.0, 2.0),
            (SlightlyGreater, 30.0, 10.0, 5.0),
            (FarGreater, 20.0, 10.0, 15.0),
            (Nearly, 17.0, 10.0, 2.0),
        ] {
            let found = compare(comparator, left, right, scale).excess;
            assert!((found - excess).abs() < 1e-9, "{comparator:?}: {found}");
        }
    }

    #[test]
    fn gains_are_percentages() {
        // The printed gain is 9 %: by the ratio, 0.87 would be near enough.
        assert_eq!(gain(0.87, 1.09, 0.0).verdict, Misses);
        assert_eq!(gain(1.11, 1.09, 0.0).verdict, Holds);
        assert_eq!(gain(1.13, 1.09, 0.0).verdict, Near);
        assert_eq!(gain(1.13, 1.09, 0.05).verdict, Holds);
        assert_eq!(gain(1.14, 1.09, 0.0).verdict, Misses);
        assert_eq!(gain(24.0, 31.0, 0.0).verdict, Holds);
        assert_eq!(gain(20.0, 31.0, 0.0).verdict, Near);
    }

    #[test]
    fn values_and_bounds_have_their_intervals() {
        assert_eq!(value(0.08, 0.06, None, 0.0).verdict, Misses);
        assert_eq!(value(0.08, 0.06, None, 0.03).verdict, Holds);
        assert_eq!(value(0.057, 0.06, None, 0.0).verdict, Holds);
        assert_eq!(value(0.053, 0.06, None, 0.0).verdict, Near);
        assert_eq!(value(0.0354, 0.04, Some(0.01), 0.0).verdict, Holds);
        assert_eq!(value(0.034, 0.04, Some(0.01), 0.0).verdict, Near);
        assert_eq!(bound(0.001, 0.005, 0.002).verdict, Consistent);
        assert_eq!(bound(0.001, 0.005, 0.0).verdict, Near);
        assert_eq!(bound(0.006, 0.005, 0.0).verdict, Misses);
        assert_eq!(bound(-0.001, 0.005, 0.0).verdict, Holds);
    }

    #[test]
    fn an_unmeasured_value_misses_regardless_of_chance() {
        for found in [
            value(f64::NAN, 1.0, None, f64::NAN),
            gain(f64::NAN, 1.1, f64::NAN),
            bound(f64::NAN, 1.0, f64::NAN),
        ] {
            assert_eq!(found.verdict, Misses);
            assert!(found.excess.is_infinite());
        }
    }
}
