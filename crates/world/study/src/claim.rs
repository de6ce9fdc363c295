//! Published claims, and how measured results compare with them.

mod comparison;
pub(crate) mod contradiction;
mod judge;
pub(crate) mod lint;
mod printed;
mod scale;
mod setting;
mod words;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::num::NonZeroU32;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::Value;

pub use self::comparison::{Comparison, ComparisonCounts};
pub(crate) use self::printed::PrintedValue;
use self::setting::ClaimSetting;
use crate::expression::{Comparator, Condition, ConditionKind, Expression, Operand};
use crate::verdict::Verdict;
use crate::verdict::print::Print;

/// A published statement. Exactly one form of check, unless its class has none.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// It has this id in the list of claims.
    #[schemars(example = &"C4-01")]
    pub id: String,
    /// What was published, in few words.
    #[schemars(example = &"RLP is better than the raw link")]
    pub published: String,
    /// What it says: numbers or orderings. Left out: `qualitative` with `check`, else `quantitative`.
    kind: Option<ClaimKind>,
    /// Why it is counted apart. Left out: it counts.
    pub class: Option<ClaimClass>,
    /// Why it has this class.
    pub reason: Option<String>,
    /// What would make it fail, where the lint takes its printed value for one that was set.
    #[serde(rename = "fails-when")]
    pub(crate) fails_when: Option<String>,
    /// It reads `numbers` or `curves`. Left out: as its study, or its work.
    pub(crate) print: Option<Print>,
    /// Of how many runs its printed numbers are; the prediction interval of so many decides. Left out: as its study, or
    /// its work, or as many as are simulated.
    #[serde(rename = "of-runs")]
    pub(crate) of_runs: Option<NonZeroU32>,
    /// These orderings must be true at each of the places.
    #[serde(default)]
    check: OneOrMany<Condition>,
    /// Of these ratios the least and the greatest value over the levels were printed.
    #[serde(default)]
    gain: OneOrMany<Gain>,
    /// These printed values must come out.
    #[serde(default)]
    value: OneOrMany<Printed>,
    /// These bounds from above were printed.
    #[serde(default)]
    below: OneOrMany<Bound>,
    /// These bounds from below were printed.
    #[serde(default)]
    above: OneOrMany<Bound>,
    /// These values follow from the setup by arithmetic.
    #[serde(default)]
    closed: OneOrMany<Closed>,
    /// The scenarios must have these values.
    #[serde(default)]
    setting: OneOrMany<ClaimSetting>,
}

/// Numbers, or orderings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Kind")]
pub enum ClaimKind {
    /// A printed number or range.
    Quantitative,
    /// An ordering or a shape.
    Qualitative,
}

/// Why a claim is counted apart.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Class")]
pub enum ClaimClass {
    /// A value of the setup that the work states.
    Setting,
    /// The setup or the counters make it true, whatever a protocol does.
    ByConstruction,
    /// A quantity quoted from elsewhere.
    Background,
    /// What follows from the setup by arithmetic; not a result of the work.
    ClosedForm,
    /// A printed number that decided a value which the work does not state: it comes out because of that.
    Calibrated,
    /// Said to follow from how the study was made.
    Artefact,
    /// A slip of the source.
    Slip,
    /// Another claim of the work says it.
    Repeated,
    /// Nothing here can decide it.
    NotTestable,
}

impl ClaimClass {
    /// As in files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Setting => "setting",
            Self::ByConstruction => "by construction",
            Self::Background => "background",
            Self::ClosedForm => "closed form",
            Self::Calibrated => "calibrated",
            Self::Artefact => "artefact",
            Self::Slip => "slip",
            Self::Repeated => "repeated",
            Self::NotTestable => "not testable",
        }
    }
}

/// The result of checking a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The verdict; `None` if there was nothing to compare.
    pub verdict: Option<Verdict>,
    /// Each single comparison.
    pub comparisons: Vec<Comparison>,
    /// The measured values, in words.
    pub measured: String,
    /// For each comparison that does not hold: the values, the interval or printed value, and the
    /// rule.
    pub why: Vec<String>,
}

/// One item, or a list of them.
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

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("OneOrMany_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
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

/// Of these ratios the least and the greatest value over the levels were printed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Gain {
    /// These are the ratios.
    of: OneOrMany<Operand>,
    /// These were printed as the least and the greatest value.
    #[schemars(extend("examples" = [[1.12, 4.05]]))]
    range: [f64; 2],
}

/// A printed value, at every place or at some.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Printed {
    /// What was measured.
    of: Operand,
    /// This value was printed.
    is: f64,
    /// It was printed at these values of axes. Left out: everywhere.
    #[serde(default)]
    at: Vec<String>,
    /// What one step of the last printed digit is worth: 0.01 of 0.35.
    digit: Option<f64>,
}

/// A printed bound, at every place or at some.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Bound {
    /// What is bounded.
    of: Operand,
    /// This bound was printed.
    is: f64,
    /// It holds at these values of axes. Left out: everywhere.
    #[serde(default)]
    at: Vec<String>,
}

/// Values along the open axis that follow from the setup.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Closed {
    /// What was measured.
    of: Operand,
    /// What follows, along the open axis.
    is: Vec<f64>,
}

airlane_base::schema_of!(Condition, "Condition", {
    "type": "string",
    "description": "An ordering between two expressions, at some values of the axes or at all.",
    "examples": ["throughput[rlp] slightly> throughput[sr-m2] at L1 L2"],
});
airlane_base::schema_of!(Operand, "Expression", {
    "type": "string",
    "description": "An expression of metrics.",
    "examples": ["throughput[rlp] / throughput[default]"],
});

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

impl Claim {
    /// Whether it is about numbers or orderings.
    pub fn kind(&self) -> ClaimKind {
        self.kind.unwrap_or(if self.check.as_slice().is_empty() {
            ClaimKind::Quantitative
        } else {
            ClaimKind::Qualitative
        })
    }

    /// Every expression in its checks.
    pub(crate) fn operands(&self) -> Vec<&Operand> {
        let conditions = self.check.as_slice().iter().flat_map(Condition::operands);
        conditions.chain(self.alone()).collect()
    }

    /// Every expression that is compared with a printed number.
    fn alone(&self) -> Vec<&Operand> {
        let gains = self
            .gain
            .as_slice()
            .iter()
            .flat_map(|gain| gain.of.as_slice());
        let values = self.value.as_slice().iter().map(|v| &v.of);
        let bounds = self
            .below
            .as_slice()
            .iter()
            .chain(self.above.as_slice())
            .map(|b| &b.of);
        let closed = self.closed.as_slice().iter().map(|c| &c.of);
        gains.chain(values).chain(bounds).chain(closed).collect()
    }

    /// Its checks, as written.
    pub fn checks(&self) -> Vec<String> {
        let conditions = self.check.as_slice().iter().map(|c| c.text.clone());
        let at = |places: &[String]| match places {
            [] => String::new(),
            places => format!(" at {}", places.join(" ")),
        };
        let gains = self.gain.as_slice().iter().flat_map(|gain| {
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
        let settings = settings.map(ToString::to_string);
        let all = conditions
            .chain(gains)
            .chain(values)
            .chain(below)
            .chain(above);
        all.chain(closed).chain(settings).collect()
    }

    /// Studies whose results its checks read, other than its own.
    pub fn studies(&self) -> Vec<&str> {
        let operands = self.operands();
        let quantities = operands
            .iter()
            .flat_map(|operand| operand.expression.quantities());
        quantities
            .filter_map(|(quantity, _)| quantity.study.as_deref())
            .collect()
    }

    /// Studies whose scenarios its checks read, or that the lint reads to decide whether a printed
    /// value was set; `own` is the study of this claim.
    pub(crate) fn read_scenarios<'c>(&'c self, own: &'c str) -> Vec<&'c str> {
        let settings = self.setting.as_slice().iter();
        let settings = settings.flat_map(|setting| setting.studies(own));
        let was_set = self.class.is_none() && !self.printed().is_empty();
        let measured = was_set.then(|| self.measured_in(own));
        settings.chain(measured.into_iter().flatten()).collect()
    }

    /// Studies whose results its checks read.
    fn measured_in<'c>(&'c self, own: &'c str) -> BTreeSet<&'c str> {
        let operands = self.operands().into_iter();
        let quantities = operands.flat_map(|of| of.expression.quantities());
        quantities
            .map(|(quantity, _)| quantity.study.as_deref().unwrap_or(own))
            .collect()
    }

    /// Adjacent operands in its chains, and where they are compared.
    fn pairs(&self) -> Vec<(&Operand, Comparator, &Operand, &[String])> {
        let mut found = vec![];
        for condition in self.check.as_slice() {
            if let ConditionKind::Chain(first, rest) = &condition.kind {
                let mut left = &**first;
                for (comparator, right) in rest {
                    found.push((left, *comparator, right, condition.at.as_slice()));
                    left = right;
                }
            }
        }
        found
    }

    /// The numbers that measured values should equal.
    fn printed(&self) -> Vec<f64> {
        let values = self.value.as_slice().iter().map(|value| value.is);
        let equal = |(_, comparator, right, _): (_, _, &Operand, _)| match right.expression {
            Expression::Number(number)
                if matches!(comparator, Comparator::Nearly | Comparator::Equal) =>
            {
                Some(number)
            }
            _ => None,
        };
        let orders = self.pairs().into_iter().filter_map(equal);
        let closed = self
            .closed
            .as_slice()
            .iter()
            .flat_map(|Closed { is, .. }| is.iter().copied());
        values.chain(orders).chain(closed).collect()
    }
}
