//! The rate of a link, as a configuration file writes it.
//!
//! ```toml
//! rate = "20 Mbit/s"                                            # the same both ways
//! rate = { down = "20 Mbit/s", up = "2 Mbit/s" }                # or one for each direction
//! rate = { kind = "opportunities", file = "LTE.trace", size = "1504 B" }
//! rate = { kind = "steps", every = "10 s", rates = ["20 Mbit/s", "5 Mbit/s"] }
//! rate.down = { kind = "opportunities", file = "LTE.down" }     # or one of each kind
//! rate.up = "2 Mbit/s"
//! ```

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use airlane_base::random::fnv1a;
use airlane_base::schema::both_ways;
use airlane_base::{BothWays, Directed, Duration, Rate, Size};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::opportunities::Opportunities;
use crate::steps::RateSteps;
use crate::trace::TraceFileError;

/// The rate of one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkRate {
    /// One constant rate.
    Constant(Rate),
    /// A repeating sequence of rates.
    Steps(RateSteps),
    /// The link sends at given times only.
    Opportunities(OpportunitiesConfig),
}

/// A file with the times at which a link may send.
#[derive(Clone, Debug)]
pub struct OpportunitiesConfig {
    /// A file with one time per line, in milliseconds, as Mahimahi's `mm-link` reads it.
    pub file: String,
    /// Bytes that may leave at each time, packet headers included. Left out: 1504 B, as in Mahimahi.
    pub size: Size,
    /// The parsed file and its digest, once loaded.
    loaded: Option<(Arc<Opportunities>, u64)>,
}

/// Compared by origin: a trace may have millions of lines.
impl PartialEq for OpportunitiesConfig {
    fn eq(&self, other: &Self) -> bool {
        (&self.file, self.size, self.digest()) == (&other.file, other.size, other.digest())
    }
}

/// A packet of 1500 B and the 4 B that Mahimahi adds to it.
const USUAL_SIZE: Size = Size::from_bytes(1_504);

impl OpportunitiesConfig {
    /// A trace that is not loaded yet: see [`LinkRate::load`].
    pub const fn new(file: String, size: Option<Size>) -> Self {
        Self {
            file,
            size: match size {
                Some(size) => size,
                None => USUAL_SIZE,
            },
            loaded: None,
        }
    }

    /// Digest of the file, equal for equal files; zero before it is loaded.
    pub fn digest(&self) -> u64 {
        self.loaded.as_ref().map_or(0, |loaded| loaded.1)
    }
}

impl LinkRate {
    /// The long-run rate; `None` before the trace is loaded.
    pub fn mean(&self) -> Option<Rate> {
        match self {
            Self::Constant(rate) => Some(*rate),
            Self::Steps(steps) => Some(steps.mean_rate()),
            Self::Opportunities(_) => Some(self.opportunities()?.mean_rate()),
        }
    }

    /// The times at which the link may send; `None` if it may send at any time or the trace is not loaded.
    pub fn opportunities(&self) -> Option<&Arc<Opportunities>> {
        match self {
            Self::Constant(_) | Self::Steps(_) => None,
            Self::Opportunities(config) => Some(&config.loaded.as_ref()?.0),
        }
    }

    /// The configured trace, if the link sends at given times only.
    pub const fn trace(&self) -> Option<&OpportunitiesConfig> {
        match self {
            Self::Constant(_) | Self::Steps(_) => None,
            Self::Opportunities(config) => Some(config),
        }
    }

    /// Loads the trace, if there is one. `read` returns the bytes of a file; paths are given as written in the
    /// configuration.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a trace.
    pub fn load(
        &mut self,
        mut read: impl FnMut(&str) -> Result<Vec<u8>, String>,
    ) -> Result<(), TraceFileError> {
        let Self::Opportunities(config) = self else {
            return Ok(());
        };
        let wrong = |reason: String| TraceFileError {
            file: config.file.clone(),
            reason,
        };
        let bytes = read(&config.file).map_err(wrong)?;
        let opportunities = Opportunities::parse(&bytes, config.size);
        let opportunities = opportunities.map_err(|e| wrong(e.to_string()))?;
        config.loaded = Some((Arc::new(opportunities), fnv1a(&bytes)));
        Ok(())
    }

    /// Whether the rate changes over time.
    pub const fn varies(&self) -> bool {
        !matches!(self, Self::Constant(_))
    }
}

/// As a person would write it.
impl fmt::Display for LinkRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(rate) => rate.fmt(f),
            Self::Steps(steps) => {
                let rates: Vec<String> = steps.rates().iter().map(Rate::to_string).collect();
                write!(
                    f,
                    "{} in turn, each for {}",
                    rates.join(", "),
                    steps.every()
                )
            }
            Self::Opportunities(config) => write!(f, "opportunities of {}", config.file),
        }
    }
}

impl Serialize for LinkRate {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Constant(rate) => rate.serialize(s),
            Self::Steps(steps) => {
                let mut map = s.serialize_map(Some(3))?;
                map.serialize_entry("kind", "steps")?;
                map.serialize_entry("every", &steps.every())?;
                map.serialize_entry("rates", steps.rates())?;
                map.end()
            }
            Self::Opportunities(config) => {
                let mut map = s.serialize_map(Some(3))?;
                map.serialize_entry("kind", "opportunities")?;
                map.serialize_entry("file", &config.file)?;
                map.serialize_entry("size", &config.size)?;
                map.end()
            }
        }
    }
}

/// The rates of both directions of a link.
pub type LinkRates = BothWays<LinkRate>;

impl JsonSchema for LinkRate {
    fn schema_name() -> Cow<'static, str> {
        "LinkRate".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [generator.subschema_for::<Rate>(), {
                "type": "object",
                "description": "The link may send at given times only.",
                "properties": {
                    "kind": { "const": "opportunities" },
                    "file": {
                        "description": "The file with one time a line, in milliseconds. \
                            Source: Mahimahi, mm-link.",
                        "type": "string",
                        "examples": ["LTE.down"],
                    },
                    "size": {
                        "description": "What may leave at each time, packets with their headers. \
                            Source: Mahimahi.",
                        "default": USUAL_SIZE,
                        "allOf": [generator.subschema_for::<Size>()],
                    },
                },
                "required": ["kind", "file"],
                "additionalProperties": false,
            }, {
                "type": "object",
                "description": "The link has one rate after the other, again and again from time 0 on.",
                "properties": {
                    "kind": { "const": "steps" },
                    "every": {
                        "description": "Each rate holds for this long.",
                        "allOf": [generator.subschema_for::<Duration>()],
                    },
                    "rates": {
                        "description": "These rates follow each other.",
                        "type": "array",
                        "items": generator.subschema_for::<Rate>(),
                        "minItems": 1,
                    },
                },
                "required": ["kind", "every", "rates"],
                "additionalProperties": false,
            }],
        })
    }
}

impl Directed for LinkRate {
    fn pair_name() -> Cow<'static, str> {
        "LinkRates".into()
    }

    fn pair_schema(generator: &mut SchemaGenerator) -> Schema {
        both_ways(&generator.subschema_for::<Self>())
    }

    fn read_pair<'de, D: Deserializer<'de>>(d: D) -> Result<LinkRates, D::Error> {
        text_or_table(d, |rate| Self::Constant(rate).into(), Table::rates)
    }
}

#[derive(Deserialize)]
enum Kind {
    #[serde(rename = "opportunities")]
    Opportunities,
    #[serde(rename = "steps")]
    Steps,
}

/// All keys of a rate table, for each kind and for the two directions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    kind: Option<Kind>,
    file: Option<String>,
    size: Option<Size>,
    every: Option<Duration>,
    rates: Option<Vec<Rate>>,
    down: Option<LinkRate>,
    up: Option<LinkRate>,
}

const EXPECTED: &str = "a rate with its unit, such as \"20 Mbit/s\", { kind = \"opportunities\", \
     file = \"...\" }, { kind = \"steps\", every = \"10 s\", rates = [...] }, or one of these for each of `down` \
     and `up`";

/// Reads a string or a table.
fn text_or_table<'de, D: Deserializer<'de>, T>(
    d: D,
    of_rate: fn(Rate) -> T,
    of_table: fn(Table) -> Result<T, &'static str>,
) -> Result<T, D::Error> {
    struct Either<T>(fn(Rate) -> T, fn(Table) -> Result<T, &'static str>);
    impl<'de, T> Visitor<'de> for Either<T> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(EXPECTED)
        }
        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
            text.parse().map(self.0).map_err(E::custom)
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            let table = Table::deserialize(MapAccessDeserializer::new(map))?;
            self.1(table).map_err(A::Error::custom)
        }
    }
    d.deserialize_any(Either(of_rate, of_table))
}

impl Table {
    fn rate(self) -> Result<LinkRate, &'static str> {
        if self.down.is_some() || self.up.is_some() {
            return Err("`down` and `up` stand alone; write rate = { down = ..., up = ... }");
        }
        match self {
            Self {
                kind: Some(Kind::Opportunities),
                file: Some(file),
                size,
                every: None,
                rates: None,
                ..
            } => match size.map(Size::as_bytes) {
                Some(0) => Err("`size` is 0 B; at least 1 B leaves at each opportunity"),
                _ => Ok(LinkRate::Opportunities(OpportunitiesConfig::new(
                    file, size,
                ))),
            },
            Self {
                kind: Some(Kind::Steps),
                file: None,
                size: None,
                every: Some(every),
                rates: Some(rates),
                ..
            } => RateSteps::new(every, rates)
                .map(LinkRate::Steps)
                .ok_or("steps need a time above 0 in `every` and at least one of `rates`"),
            _ => Err(
                "write { kind = \"opportunities\", file = \"...\" } for the times of a link, or \
                 { kind = \"steps\", every = \"10 s\", rates = [\"20 Mbit/s\", \"5 Mbit/s\"] } for rates that \
                 follow each other",
            ),
        }
    }

    fn rates(self) -> Result<LinkRates, &'static str> {
        match self {
            Self {
                kind: None,
                file: None,
                size: None,
                every: None,
                rates: None,
                down: Some(down),
                up: Some(up),
            } => Ok(LinkRates { down, up }),
            Self {
                kind: None,
                down: Some(_),
                up: None,
                ..
            } => Err("`rate.down` needs `rate.up` beside it"),
            Self {
                kind: None,
                down: None,
                up: Some(_),
                ..
            } => Err("`rate.up` needs `rate.down` beside it"),
            table => table.rate().map(LinkRates::from),
        }
    }
}

impl<'de> Deserialize<'de> for LinkRate {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        text_or_table(d, Self::Constant, Table::rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, Serialize, PartialEq)]
    struct File {
        rate: LinkRates,
    }

    fn read(text: &str) -> Result<File, String> {
        toml::from_str(text).map_err(|e| e.to_string())
    }

    #[test]
    fn what_is_written_is_read_back() {
        for text in [
            "rate = \"20 Mbit/s\"\n",
            "[rate]\ndown = \"20 Mbit/s\"\nup = \"2 Mbit/s\"\n",
            "[rate]\nkind = \"opportunities\"\nfile = \"x\"\nsize = \"1.504 kB\"\n",
            "[rate]\nkind = \"steps\"\nevery = \"15 s\"\nrates = [\"20 Mbit/s\", \"2 Mbit/s\"]\n",
        ] {
            assert_eq!(toml::to_string(&read(text).unwrap()).unwrap(), text);
        }
        let each = read(
            "rate.down = { kind = 'opportunities', file = 'd', size = '9 B' }\nrate.up = '1 bit/s'",
        );
        let each = each.unwrap();
        assert!(each.rate.down.varies() && !each.rate.up.varies());
        let again = toml::to_string(&each).unwrap();
        assert_eq!(read(&again).unwrap(), each, "{again}");
    }

    #[test]
    fn refusals_say_what_would_be_right() {
        for (text, part) in [
            ("rate = '0 bit/s'", "at least 1 bit/s"),
            ("rate = 5", "with its unit"),
            ("rate = { down = '1 bit/s' }", "needs `rate.up`"),
            ("rate = { up = '1 bit/s' }", "needs `rate.down`"),
            ("rate = { kind = 'opportunities' }", "file ="),
            ("rate = { kind = 'sine', file = 'x' }", "opportunities"),
            ("rate = { file = 'x' }", "kind ="),
            (
                "rate = { kind = 'opportunities', file = 'x', size = '0 B' }",
                "1 B",
            ),
            (
                "rate = { kind = 'opportunities', file = 'x', down = '1 bit/s' }",
                "stand alone",
            ),
            ("rate = { kind = 'steps', every = '1 s' }", "rates ="),
            (
                "rate = { kind = 'steps', every = '0 s', rates = ['1 bit/s'] }",
                "above 0",
            ),
            (
                "rate = { kind = 'steps', every = '1 s', rates = [] }",
                "at least one",
            ),
            (
                "rate = { kind = 'opportunities', file = 'x', every = '1 s' }",
                "kind =",
            ),
            ("rate = { colour = 1 }", "colour"),
            (
                "rate.down.down = '1 bit/s'\nrate.up = '1 bit/s'",
                "stand alone",
            ),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(part), "{text}: {said}");
        }
    }

    #[test]
    fn a_trace_is_loaded_by_its_path() {
        let mut file = read("rate = { kind = 'opportunities', file = 'x' }").unwrap();
        assert_eq!(file.rate.down.mean(), None);
        let said = file.rate.down.load(|_| Ok(b"1\n0\n".to_vec())).unwrap_err();
        assert!(said.to_string().starts_with("x: line 2"), "{said}");
        file.rate
            .down
            .load(|path| {
                assert_eq!(path, "x");
                Ok(b"1\n2\n".to_vec())
            })
            .unwrap();
        let mean = file.rate.down.mean().map(Rate::as_bps);
        assert_eq!(mean, Some(12_032_000));
        assert_ne!(file.rate.down.trace().unwrap().digest(), 0);
    }
}
