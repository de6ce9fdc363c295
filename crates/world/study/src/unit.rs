//! Formats numbers: the end of a metric's name gives the unit.

use crate::curve;
use crate::expression::{Expression, Function, Operator, Quantity};

/// The unit of a number in a table or a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Counts and ratios.
    None,
    /// `_ratio`: shown in percent.
    Percent,
    /// `_bps`: shown in kbit/s.
    BitRate,
    /// `_s`: shown in milliseconds, or seconds above ten.
    Seconds,
}

impl Unit {
    /// The unit of a metric.
    pub fn of_metric(name: &str) -> Self {
        match curve::measured(name) {
            name if name.ends_with("_bps") => Self::BitRate,
            name if name.ends_with("_ratio") => Self::Percent,
            name if name.ends_with("_s") => Self::Seconds,
            _ => Self::None,
        }
    }

    /// The unit of an expression, if all its terms have the same unit.
    pub(crate) fn of(expression: &Expression, name: &dyn Fn(&Quantity) -> Option<String>) -> Self {
        match expression {
            Expression::Number(_) => Self::None,
            Expression::Quantity(quantity) => {
                name(quantity).map_or(Self::None, |name| Self::of_metric(&name))
            }
            Expression::Negative(of) => Self::of(of, name),
            Expression::Call(Function::Variation, _) => Self::Percent,
            Expression::Call(_, of) => Self::of(of, name),
            Expression::Binary(Operator::Add | Operator::Subtract, left, right) => {
                let (left, right) = (Self::of(left, name), Self::of(right, name));
                if left == Self::None { right } else { left }
            }
            Expression::Binary(..) => Self::None,
        }
    }

    /// Formats the number with its unit.
    pub fn show(self, value: f64) -> String {
        if !value.is_finite() {
            return "not measured".to_owned();
        }
        match self {
            Self::None => digits(value),
            Self::Percent => format!("{} %", digits(value * 100.0)),
            Self::BitRate => format!("{} kbit/s", digits(value / 1e3)),
            Self::Seconds if value.abs() >= 10.0 => format!("{} s", digits(value)),
            Self::Seconds => format!("{} ms", digits(value * 1e3)),
        }
    }

    /// The unit in which numbers are stored, without a factor.
    pub(crate) const fn base(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Percent => "ratio",
            Self::BitRate => "bit/s",
            Self::Seconds => "s",
        }
    }

    /// The unit with this name.
    pub(crate) fn of_base(name: &str) -> Result<Self, String> {
        let all = [Self::Percent, Self::BitRate, Self::Seconds];
        let found = all.into_iter().find(|unit| unit.base() == name);
        found.ok_or_else(|| {
            let known = all.map(Self::base).join(", ");
            format!("there is no unit \"{name}\"; there are: {known}")
        })
    }

    /// The head of a column of numbers, and the factor to its unit.
    pub const fn column(self) -> (&'static str, f64) {
        match self {
            Self::None => ("", 1.0),
            Self::Percent => ("%", 100.0),
            Self::BitRate => ("kbit/s", 1e-3),
            Self::Seconds => ("ms", 1e3),
        }
    }
}

/// Three significant digits, or more before the decimal point.
pub(crate) fn digits(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        x if x >= 99.95 => 0,
        x if x >= 9.995 => 1,
        x if x >= 0.9995 => 2,
        x if x >= 0.09995 => 3,
        0.0 => 0,
        _ => 4,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits() {
        let shown = [1234.6, 99.96, 12.34, 1.2345, 0.12345, 0.0012, 0.0, -2.5].map(digits);
        assert_eq!(
            shown,
            [
                "1235", "100", "12.3", "1.23", "0.123", "0.0012", "0", "-2.50"
            ]
        );
        assert_eq!(Unit::Percent.show(0.0187), "1.87 %");
        assert_eq!(Unit::Seconds.show(0.1294), "129 ms");
        assert_eq!(Unit::BitRate.show(f64::NAN), "not measured");
    }
}
