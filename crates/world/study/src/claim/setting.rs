//! Checks whether scenarios have the values that a work states.

use std::str::FromStr;

use airlane_base::{Duration, Rate, Size};
use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Table, Value};

use crate::pattern::Pattern;
use crate::verdict::Verdict;

/// A value of the scenarios.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ClaimSetting {
    /// It leads to keys of the scenarios, with `*` for any.
    #[schemars(example = &"links.radio.frame")]
    path: String,
    /// Every scenario must have this value there.
    #[schemars(with = "serde_json::Value", example = &"50 B")]
    is: Value,
    /// The scenarios of these studies are read. Left out: the claim's own.
    #[serde(default)]
    studies: Vec<String>,
}

impl ClaimSetting {
    /// Studies whose scenarios it reads; `own` is the study of its claim.
    pub(super) fn studies<'s>(&'s self, own: &'s str) -> impl Iterator<Item = &'s str> {
        let own = self.studies.is_empty().then_some(own);
        own.into_iter()
            .chain(self.studies.iter().map(String::as_str))
    }

    pub(super) fn judge<'s>(
        &self,
        own: &str,
        scenarios: &dyn Fn(&str) -> &'s [Table],
    ) -> Result<(Verdict, String), String> {
        let wrong = || format!("`{}` is no path", self.path);
        let pattern = Pattern::parse(&self.path).ok_or_else(wrong)?;
        let mut values: Vec<&Value> = vec![];
        for study in self.studies(own) {
            let before = values.len();
            values.extend(scenarios(study).iter().flat_map(|s| pattern.find(s)));
            if values.len() == before {
                let path = &self.path;
                return Err(format!("no scenario of {study} has a value at `{path}`"));
            }
        }
        let same = values.iter().all(|value| alike(value, &self.is));
        let verdict = if same {
            Verdict::Holds
        } else {
            Verdict::Misses
        };
        let mut texts: Vec<String> = values.iter().map(ToString::to_string).collect();
        texts.sort();
        texts.dedup();
        Ok((verdict, format!("{} = {}", self.path, texts.join(", "))))
    }
}

impl std::fmt::Display for ClaimSetting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} = {}", self.path, self.is)?;
        if !self.studies.is_empty() {
            write!(f, " in {}", self.studies.join(" "))?;
        }
        Ok(())
    }
}

/// Whether two values are equal, however their quantities are written: "1000 B" is "1 kB".
fn alike(one: &Value, other: &Value) -> bool {
    fn parsed<T: FromStr + PartialEq>(one: &str, other: &str) -> bool {
        matches!((one.parse::<T>(), other.parse::<T>()), (Ok(one), Ok(other)) if one == other)
    }
    match (one, other) {
        (Value::String(one), Value::String(other)) => {
            one == other
                || parsed::<Size>(one, other)
                || parsed::<Duration>(one, other)
                || parsed::<Rate>(one, other)
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_the_same_however_it_is_written() {
        let text = |text: &str| Value::String(text.to_owned());
        for (one, other, same) in [
            ("1000 B", "1 kB", true),
            ("0.1 s", "100 ms", true),
            ("14.4 kbit/s", "14400 bit/s", true),
            ("1000 B", "1001 B", false),
            ("1 s", "1 kB", false),
            ("sr-m2", "sr-m1", false),
        ] {
            assert_eq!(alike(&text(one), &text(other)), same, "{one}, {other}");
        }
        assert!(!alike(&text("3"), &Value::Integer(3)));
    }
}
