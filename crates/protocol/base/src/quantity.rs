//! A number with its unit, as files write it: parsing, printing, and errors that say what would be right.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::Deserializer;
use serde::de::{self, Visitor};

/// Why a quantity was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// The number has no unit.
    #[error("\"{text}\" needs a unit; write {expected}")]
    NoUnit {
        /// The text.
        text: String,
        /// What would be right.
        expected: String,
    },
    /// The unit is not one of this quantity.
    #[error("\"{text}\" has an unknown unit \"{unit}\"; write {expected} (units: {units})")]
    UnknownUnit {
        /// The text.
        text: String,
        /// Its unit.
        unit: String,
        /// What would be right.
        expected: String,
        /// The units known.
        units: String,
    },
    /// The number cannot be parsed.
    #[error("\"{text}\" is not {expected}")]
    BadNumber {
        /// The text.
        text: String,
        /// What would be right.
        expected: String,
    },
    /// The number is out of range.
    #[error("{text} is out of range; {expected}")]
    OutOfRange {
        /// The text.
        text: String,
        /// What would be right.
        expected: String,
    },
}

/// Parses `"<number> <unit>"` and returns the number in the base unit.
pub(crate) fn parse_quantity(
    text: &str,
    expected: &str,
    units: &[(&str, f64)],
) -> Result<f64, UnitError> {
    let bad = || UnitError::BadNumber {
        text: text.to_owned(),
        expected: expected.to_owned(),
    };
    let trimmed = text.trim();
    let split = trimmed
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_')))
        .unwrap_or(trimmed.len());
    let (value, unit) = (trimmed[..split].replace('_', ""), trimmed[split..].trim());
    let value: f64 = value.parse().map_err(|_| bad())?;
    if unit.is_empty() {
        return Err(UnitError::NoUnit {
            text: text.to_owned(),
            expected: expected.to_owned(),
        });
    }
    let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err(UnitError::UnknownUnit {
            text: text.to_owned(),
            unit: unit.to_owned(),
            expected: expected.to_owned(),
            units: units.iter().map(|u| u.0).collect::<Vec<_>>().join(", "),
        });
    };
    let value = value * factor;
    if value < 0.0 || value >= u64::MAX as f64 {
        return Err(bad());
    }
    Ok(value)
}

/// Writes a number without a trailing `.0` and without the noise of binary fractions.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

/// Deserializes a quantity from its text; for a bare number the error says that it needs a unit.
pub(crate) fn deserialize_quantity<'de, D, T>(d: D, expected: &'static str) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err = UnitError>,
{
    struct Text<T>(&'static str, PhantomData<T>);
    impl<T: FromStr<Err = UnitError>> Visitor<'_> for Text<T> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(E::custom)
        }
    }
    d.deserialize_any(Text(expected, PhantomData))
}
