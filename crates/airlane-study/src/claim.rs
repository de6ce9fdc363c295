//! Published statements, and how what was measured compares with them.

use std::str::FromStr;

use airlane_base::{Duration, Rate, Size};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::data::Data;
use crate::expression::{Comparator, Condition, ConditionKind, Expression, Operand};
use crate::pattern::Pattern;
use crate::statistics::Known;
use crate::unit::Unit;
use crate::verdict::{self, Verdict};

/// A published statement. Exactly one form of check, unless its class has none.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Id in the specification.
    pub id: String,
    /// What was published, in few words.
    pub published: String,
    /// Left out: `quantitative` for numbers, `qualitative` for conditions.
    kind: Option<Kind>,
    /// Left out: it counts.
    pub class: Option<Class>,
    /// Why it has this class.
    pub reason: Option<String>,
    #[serde(default)]
    check: OneOrMany<Condition>,
    gain: Option<Gain>,
    #[serde(default)]
    value: OneOrMany<Printed>,
    #[serde(default)]
    below: OneOrMany<Bound>,
    #[serde(default)]
    above: OneOrMany<Bound>,
    #[serde(default)]
    closed: OneOrMany<Closed>,
    #[serde(default)]
    setting: OneOrMany<Setting>,
}

/// Numbers, or orderings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A printed number or range.
    Quantitative,
    /// An ordering or a shape.
    Qualitative,
}

/// Why a claim is counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// True by construction: a value that was set.
    Setting,
    /// A quantity quoted from elsewhere.
    Background,
    /// What follows from the setup by arithmetic; not a result of the work.
    ClosedForm,
    /// Said to follow from how the study was made.
    Artefact,
    /// A slip of the source.
    Slip,
    /// Nothing here can decide it.
    NotTestable,
}

impl Class {
    /// As in files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Setting => "setting",
            Self::Background => "background",
            Self::ClosedForm => "closed form",
            Self::Artefact => "artefact",
            Self::Slip => "slip",
            Self::NotTestable => "not testable",
        }
    }
}

/// What one check of a claim found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The comparison; none if there was nothing to compare.
    pub verdict: Option<Verdict>,
    /// What was measured, in words.
    pub measured: String,
}

/// One, or a list of them.
#[derive(Clone, Debug)]
pub(crate) struct OneOrMany<T>(Vec<T>);

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self(vec![])
    }
}

impl<T> OneOrMany<T> {
    fn as_slice(&self) -> &[T] {
        &self.0
    }

    pub(crate) fn into_vec(self) -> Vec<T> {
        self.0
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let items = match Value::deserialize(deserializer)? {
            Value::Array(items) => items,
            one => vec![one],
        };
        let items = items.into_iter().map(T::deserialize);
        items
            .collect::<Result<_, _>>()
            .map(Self)
            .map_err(serde::de::Error::custom)
    }
}

/// Ratios whose least and greatest value over the levels were printed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Gain {
    of: OneOrMany<Operand>,
    range: [f64; 2],
}

/// A printed value, at every place or at some.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Printed {
    of: Operand,
    is: f64,
    #[serde(default)]
    at: Vec<String>,
    digit: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bound {
    of: Operand,
    is: f64,
    #[serde(default)]
    at: Vec<String>,
}

/// Values along the open axis that follow from the setup.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Closed {
    of: Operand,
    is: Vec<f64>,
}

/// A value of the scenarios.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    path: String,
    is: Value,
    /// Studies whose scenarios have it; the claim's own if there are none.
    #[serde(default)]
    studies: Vec<String>,
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Operand {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// The results and the words for them.
struct Judge<'d> {
    data: &'d Data,
    study: &'d str,
}

impl Claim {
    /// Numbers, or orderings.
    pub fn kind(&self) -> Kind {
        self.kind.unwrap_or(if self.check.as_slice().is_empty() {
            Kind::Quantitative
        } else {
            Kind::Qualitative
        })
    }

    /// Every expression in its checks.
    pub(crate) fn operands(&self) -> Vec<&Operand> {
        let conditions = self.check.as_slice().iter().flat_map(Condition::operands);
        let gains = self.gain.iter().flat_map(|gain| gain.of.as_slice());
        let values = self.value.as_slice().iter().map(|v| &v.of);
        let bounds = self
            .below
            .as_slice()
            .iter()
            .chain(self.above.as_slice())
            .map(|b| &b.of);
        let closed = self.closed.as_slice().iter().map(|c| &c.of);
        conditions
            .chain(gains)
            .chain(values)
            .chain(bounds)
            .chain(closed)
            .collect()
    }

    /// Its checks, as they were written.
    pub fn checks(&self) -> Vec<String> {
        let conditions = self.check.as_slice().iter().map(|c| c.text.clone());
        let at = |places: &[String]| match places {
            [] => String::new(),
            places => format!(" at {}", places.join(" ")),
        };
        let gains = self.gain.iter().flat_map(|gain| {
            let [low, high] = gain.range;
            gain.of
                .as_slice()
                .iter()
                .map(move |of| format!("{} from {low} to {high}", of.text))
        });
        let values = self.value.as_slice().iter();
        let values = values.map(|v| format!("{} is {}{}", v.of.text, v.is, at(&v.at)));
        let below = self.below.as_slice().iter();
        let below = below.map(|b| format!("{} at most {}{}", b.of.text, b.is, at(&b.at)));
        let above = self.above.as_slice().iter();
        let above = above.map(|b| format!("{} at least {}{}", b.of.text, b.is, at(&b.at)));
        let closed = self.closed.as_slice().iter();
        let closed = closed.map(|c| format!("{} is {:?}", c.of.text, c.is));
        let settings = self.setting.as_slice().iter();
        let settings = settings.map(|s| match s.studies.as_slice() {
            [] => format!("{} = {}", s.path, s.is),
            studies => format!("{} = {} in {}", s.path, s.is, studies.join(" ")),
        });
        let all = conditions
            .chain(gains)
            .chain(values)
            .chain(below)
            .chain(above);
        all.chain(closed).chain(settings).collect()
    }

    /// Studies that its checks read, other than its own.
    pub fn studies(&self) -> Vec<&str> {
        let operands = self.operands();
        let quantities = operands
            .iter()
            .flat_map(|operand| operand.expression.quantities());
        let settings = self.setting.as_slice().iter();
        quantities
            .filter_map(|(quantity, _)| quantity.study.as_deref())
            .chain(settings.flat_map(|setting| setting.studies.iter().map(String::as_str)))
            .collect()
    }

    /// Studies whose scenarios its checks read; `own` is the one that it belongs to.
    pub(crate) fn read_scenarios<'c>(&'c self, own: &'c str) -> impl Iterator<Item = &'c str> {
        let settings = self.setting.as_slice().iter();
        settings.flat_map(move |setting| setting.studies(own))
    }

    /// Compares it with the results. `scenarios` gives those of a study that it reads.
    pub(crate) fn judge<'s>(
        &self,
        data: &Data,
        study: &str,
        scenarios: &dyn Fn(&str) -> &'s [Table],
    ) -> Result<Judgement, String> {
        if self.class.is_some() != self.reason.is_some() && self.class != Some(Class::Setting) {
            return Err("a class needs a reason, and a reason a class".to_owned());
        }
        let judge = Judge { data, study };
        let mut found: Vec<(Verdict, String)> = vec![];
        for condition in self.check.as_slice() {
            found.extend(judge.condition(condition)?);
        }
        if let Some(gain) = &self.gain {
            found.push(judge.gain(gain)?);
        }
        for printed in self.value.as_slice() {
            let rule = |x| verdict::value(x, printed.is, printed.digit);
            found.push(judge.each(&printed.of, &printed.at, rule)?);
        }
        for bound in self.below.as_slice() {
            found.push(judge.each(&bound.of, &bound.at, |x| verdict::below(x, bound.is))?);
        }
        for bound in self.above.as_slice() {
            found.push(judge.each(&bound.of, &bound.at, |x| verdict::above(x, bound.is))?);
        }
        for closed in self.closed.as_slice() {
            found.push(judge.closed(closed)?);
        }
        for setting in self.setting.as_slice() {
            found.push(setting.judge(study, scenarios)?);
        }
        if found.is_empty() && !matches!(self.class, Some(Class::Background | Class::NotTestable)) {
            return Err("there is no check".to_owned());
        }
        Ok(Judgement {
            verdict: found.iter().map(|(verdict, _)| *verdict).min(),
            measured: summary(&found),
        })
    }
}

impl Judge<'_> {
    fn known(&self, of: &Expression, place: &[String]) -> Result<Known, String> {
        Known::of(self.data.runs, |sample| {
            self.data.value(self.study, of, place, sample)
        })
    }

    fn unit(&self, operand: &Operand) -> Unit {
        Unit::of(&operand.expression, &|quantity| {
            self.data
                .metric_name(self.study, quantity)
                .map(str::to_owned)
        })
    }

    fn condition(&self, condition: &Condition) -> Result<Vec<(Verdict, String)>, String> {
        let operands = condition.operands();
        let expressions: Vec<&Expression> = operands.iter().map(|o| &o.expression).collect();
        let places = self.data.places(self.study, &expressions, &condition.at)?;
        match &condition.kind {
            ConditionKind::Chain(first, rest) => {
                let mut found = vec![];
                let mut left = &**first;
                for (comparator, right) in rest {
                    found.push(self.pair(left, *comparator, right, &places)?);
                    left = right;
                }
                Ok(found)
            }
            ConditionKind::Monotone { rises, of } => Ok(vec![self.monotone(of, *rises, &places)?]),
        }
    }

    fn pair(
        &self,
        left: &Operand,
        comparator: Comparator,
        right: &Operand,
        places: &[Vec<String>],
    ) -> Result<(Verdict, String), String> {
        let mut worst = Verdict::Holds;
        let mut values = vec![];
        let constant = matches!(right.expression, Expression::Number(_));
        let unit = self.unit(left);
        for place in places {
            let (verdict, a, b) = self.compare(left, comparator, right, place, place)?;
            worst = worst.min(verdict);
            let text = if constant {
                unit.show(a)
            } else if b == 0.0 || !b.is_finite() || a < 0.0 || b < 0.0 {
                format!("{} and {}", unit.show(a), unit.show(b))
            } else {
                Unit::None.show(a / b)
            };
            values.push(labelled(&text, place, verdict));
        }
        let name = if constant {
            left.text.clone()
        } else {
            format!("{} / {}", grouped(&left.text), grouped(&right.text))
        };
        Ok((worst, format!("{name}: {}", values.join(", "))))
    }

    fn compare(
        &self,
        left: &Operand,
        comparator: Comparator,
        right: &Operand,
        left_place: &[String],
        right_place: &[String],
    ) -> Result<(Verdict, f64, f64), String> {
        let (data, study) = (self.data, self.study);
        let a = |s| data.value(study, &left.expression, left_place, s);
        let b = |s| data.value(study, &right.expression, right_place, s);
        let difference = Known::of(data.runs, |s| Ok::<_, String>(a(s)? - b(s)?))?;
        let all = crate::statistics::Sample::All;
        let (a, b) = (a(all)?, b(all)?);
        let verdict = verdict::compare(comparator, a, b, difference.half_width(0.95));
        Ok((verdict, a, b))
    }

    fn monotone(
        &self,
        of: &Operand,
        rises: bool,
        places: &[Vec<String>],
    ) -> Result<(Verdict, String), String> {
        if places.len() < 2 || places[0].len() != 1 {
            return Err("rises and falls need one open axis with several values".to_owned());
        }
        let comparator = if rises {
            Comparator::Greater
        } else {
            Comparator::Less
        };
        let unit = self.unit(of);
        let start = self.known(&of.expression, &places[0])?.value;
        let mut values = vec![labelled(&unit.show(start), &places[0], Verdict::Holds)];
        let mut worst = Verdict::Holds;
        for pair in places.windows(2) {
            let (verdict, value, _) = self.compare(of, comparator, of, &pair[1], &pair[0])?;
            worst = worst.min(verdict);
            values.push(labelled(&unit.show(value), &pair[1], verdict));
        }
        Ok((worst, format!("{}: {}", of.text, values.join(", "))))
    }

    fn gain(&self, gain: &Gain) -> Result<(Verdict, String), String> {
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for of in gain.of.as_slice() {
            for place in self.data.places(self.study, &[&of.expression], &[])? {
                let ratio = self.known(&of.expression, &place)?.value;
                if ratio.is_nan() {
                    return Ok((Verdict::Misses, "not measured".to_owned()));
                }
                (least, most) = (least.min(ratio), most.max(ratio));
            }
        }
        let text = format!(
            "{} to {} times",
            Unit::None.show(least),
            Unit::None.show(most)
        );
        Ok((verdict::gain([least, most], gain.range), text))
    }

    fn each(
        &self,
        of: &Operand,
        at: &[String],
        rule: impl Fn(f64) -> Verdict,
    ) -> Result<(Verdict, String), String> {
        let mut worst = Verdict::Holds;
        let mut values = vec![];
        let unit = self.unit(of);
        for place in self.data.places(self.study, &[&of.expression], at)? {
            let value = self.known(&of.expression, &place)?.value;
            let verdict = if value.is_nan() {
                Verdict::Misses
            } else {
                rule(value)
            };
            worst = worst.min(verdict);
            values.push(labelled(&unit.show(value), &place, verdict));
        }
        Ok((worst, format!("{}: {}", of.text, values.join(", "))))
    }

    fn closed(&self, closed: &Closed) -> Result<(Verdict, String), String> {
        let places = self
            .data
            .places(self.study, &[&closed.of.expression], &[])?;
        if places.len() != closed.is.len() {
            let (is, places) = (closed.is.len(), places.len());
            return Err(format!("{is} values are given for {places} places"));
        }
        let mut worst = Verdict::Holds;
        let mut values = vec![];
        let unit = self.unit(&closed.of);
        // Bonferroni: together they hold with 95 %.
        let confidence = 1.0 - 0.05 / places.len() as f64;
        for (place, is) in places.iter().zip(&closed.is) {
            let known = self.known(&closed.of.expression, place)?;
            let inside = (known.value - is).abs() <= known.half_width(confidence);
            let rounds = (known.value - is).abs() <= 5e-5 * is.abs();
            let verdict = if inside || rounds {
                Verdict::Holds
            } else {
                Verdict::Misses
            };
            worst = worst.min(verdict);
            let text = format!("{} for {}", unit.show(known.value), unit.show(*is));
            values.push(labelled(&text, place, verdict));
        }
        Ok((worst, format!("{}: {}", closed.of.text, values.join(", "))))
    }
}

impl Setting {
    fn studies<'s>(&'s self, own: &'s str) -> impl Iterator<Item = &'s str> {
        let own = self.studies.is_empty().then_some(own);
        own.into_iter()
            .chain(self.studies.iter().map(String::as_str))
    }

    fn judge<'s>(
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

/// Whether two values are the same, however their quantity is written: "1000 B" is "1 kB".
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

/// More comparisons than these are not listed if they hold.
const LISTED: usize = 6;

/// All of a few comparisons; of many, those that do not hold.
fn summary(found: &[(Verdict, String)]) -> String {
    let texts = |all: &mut dyn Iterator<Item = &(Verdict, String)>| -> Vec<String> {
        all.map(|(_, text)| text.clone()).collect()
    };
    if found.len() <= LISTED {
        return texts(&mut found.iter()).join("; ");
    }
    let failing = texts(
        &mut found
            .iter()
            .filter(|(verdict, _)| *verdict < Verdict::Holds),
    );
    let good = found.len() - failing.len();
    match (failing.as_slice(), good) {
        ([], all) => format!("all {all} comparisons are as published"),
        (failing, 0) => failing.join("; "),
        (failing, good) => format!("{}; the other {good} are as published", failing.join("; ")),
    }
}

/// In parentheses, if it has several parts.
fn grouped(text: &str) -> String {
    let mut depth = 0;
    let several = text.chars().any(|c| {
        depth += i32::from(matches!(c, '[' | '(')) - i32::from(matches!(c, ']' | ')'));
        depth == 0 && c.is_whitespace()
    });
    if several {
        format!("({text})")
    } else {
        text.to_owned()
    }
}

/// `1.02 (L1)`, and what is wrong with it.
fn labelled(text: &str, place: &[String], verdict: Verdict) -> String {
    let mut words: Vec<&str> = place.iter().map(String::as_str).collect();
    if verdict != Verdict::Holds {
        words.push(verdict.word());
    }
    if words.is_empty() {
        text.to_owned()
    } else {
        format!("{text} ({})", words.join(", "))
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
