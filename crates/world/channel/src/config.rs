//! Error models as a configuration file writes them.
//!
//! ```toml
//! errors = { kind = "uniform", rate = 0.05 }          # the same model in both directions, drawn independently
//! # or one for each direction; a direction that is not named has no errors
//! errors.down = { kind = "two-state", good = "10 s", bad = "0.1 s", ber_good = 1e-6, ber_bad = 0.01 }
//! errors.up = { kind = "byte-exponential", mean = "131072 B" }
//! # or what a link was recorded to do
//! errors = { kind = "trace", file = "hill-top.trace" }
//! # or blocks of a radio, of a file or of a model
//! errors = { kind = "blocks", model = "onoff-c" }
//! ```
//!
//! The tables are read key by key rather than with serde's tagged enums: those buffer their input, which loses the line
//! of a wrong value, and they accept any key beside `kind = "none"`.

use std::borrow::Cow;

use airlane_base::schema::both_ways;
use airlane_base::{BothWays, Directed, Duration, Probability, Rate, Size};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::blocks::{BlocksConfig, Generator};
use crate::trace::{TraceConfig, TraceFileError, TraceStart, Way};

/// How frames are lost on the air, in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[schemars(deny_unknown_fields, example = Self::uniform())]
pub enum ErrorModelConfig {
    /// No frame is lost.
    #[default]
    None,
    /// Independent losses with one probability for every frame, whatever its size.
    Uniform {
        /// A frame is lost with this probability. Source: Xylomenos 1999, table 3.1.
        rate: Probability,
    },
    /// Independent bit errors with one rate.
    UniformBer {
        /// A bit is wrong with this probability.
        ber: Probability,
    },
    /// A good and a bad state that alternate in real time, whether or not frames are sent.
    TwoState {
        /// The good state lasts this long on average; durations are exponential. Source: Xylomenos
        /// 1999, table 3.2.
        good: Duration,
        /// The bad state lasts this long on average. Source: Xylomenos 1999, table 3.2.
        bad: Duration,
        /// In the good state a bit is wrong with this probability. Source: Xylomenos 1999, table 3.2.
        ber_good: Probability,
        /// In the bad state a bit is wrong with this probability. Source: Xylomenos 1999, table 3.2.
        ber_bad: Probability,
    },
    /// The two-state model as simplified in ns-2: the state at the instant when a frame has left decides for all of its
    /// bits. For comparisons; the works use `two-state`.
    TwoStateArrival {
        /// The good state lasts this long on average; durations are exponential. Source: Xylomenos
        /// 1999, table 3.2.
        good: Duration,
        /// The bad state lasts this long on average. Source: Xylomenos 1999, table 3.2.
        bad: Duration,
        /// A bit of a frame that ends in the good state is wrong with this probability. Source: ns-2 of
        /// 1999.
        ber_good: Probability,
        /// A bit of a frame that ends in the bad state is wrong with this probability. Source: ns-2 of
        /// 1999.
        ber_bad: Probability,
    },
    /// Single bad bytes at exponential intervals, counted in transmitted bytes.
    ByteExponential {
        /// Bad bytes are this far apart on average. Source: Xylomenos 1999, table 3.3.
        mean: Size,
        /// A bad byte destroys this many frames in a row, its own included; the bytes of the frames after it do not
        /// count. Source: Balakrishnan et al. 1997, section 4.5. Left out: 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-unit" = "frames"))]
        burst: Option<u32>,
    },
    /// The chain of Gilbert 1960 and Elliott 1963, one step for each frame.
    GilbertElliott {
        /// After a frame the chain goes from good to bad with this probability. Source: Gilbert 1960.
        good_to_bad: Probability,
        /// After a frame the chain goes from bad to good with this probability. Source: Gilbert 1960.
        bad_to_good: Probability,
        /// In the good state a frame is lost with this probability. Source: Elliott 1963.
        loss_good: Probability,
        /// In the bad state a frame is lost with this probability. Source: Elliott 1963.
        loss_bad: Probability,
    },
    /// A good and a bad state that alternate in real time; the state when a frame begins to leave says how probably it is
    /// lost, whatever its size. What `airlane trace fit` makes of recordings.
    TwoStateLoss {
        /// The good state lasts this long on average; durations are exponential.
        good: Duration,
        /// The bad state lasts this long on average.
        bad: Duration,
        /// A frame of the good state is lost with this probability.
        loss_good: Probability,
        /// A frame of the bad state is lost with this probability.
        loss_bad: Probability,
    },
    /// The losses of a recorded link.
    Trace(TraceConfig),
    /// Radio blocks: a frame is lost if any block that it overlaps is erased.
    Blocks(BlocksConfig),
}

/// Why an error model is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The table lacks `kind`.
    #[error("an error model needs `kind`: one of {kinds}", kinds = KINDS)]
    NoKind,
    /// A key that this kind of model needs is missing.
    #[error("errors of kind \"{kind}\" need `{key}`; its keys are: {keys}")]
    Missing {
        /// The kind of the model.
        kind: &'static str,
        /// The missing key.
        key: &'static str,
        /// All keys of this kind.
        keys: &'static str,
    },
    /// The table has a key of another kind of model.
    #[error("`{key}` does not belong to errors of kind \"{kind}\"; its keys are: {keys}")]
    Foreign {
        /// The kind of the model.
        kind: &'static str,
        /// The key that does not belong.
        key: &'static str,
        /// All keys of this kind.
        keys: &'static str,
    },
    /// The table gives both one model for both directions and one for a single direction.
    #[error(
        "`kind` gives one model for both directions, `{key}` one for a single direction; \
         write either errors = {{ kind = ... }} or errors.down and errors.up"
    )]
    Mixed {
        /// `down` or `up`.
        key: &'static str,
    },
    /// A value that no link can have.
    #[error("`{key}` is {value}; {allowed}")]
    Impossible {
        /// The key in the model's table.
        key: &'static str,
        /// Its value.
        value: String,
        /// The values allowed.
        allowed: &'static str,
    },
}

const KINDS: &str = "\"none\", \"uniform\", \"uniform-ber\", \"two-state\", \"two-state-arrival\", \
     \"two-state-loss\", \"byte-exponential\", \"gilbert-elliott\", \"trace\", \"blocks\"";

/// Shortest mean duration of a state: with shorter ones, drawing the states of an idle second would take longer than the
/// second.
const SHORTEST_STATE: Duration = Duration::from_micros(1);

impl ErrorModelConfig {
    /// The example in the schema.
    fn uniform() -> Self {
        let rate = Probability::new(0.05).expect("0.05 is a probability");
        Self::Uniform { rate }
    }

    /// Checks what the types of the fields cannot express.
    ///
    /// # Errors
    /// Names the key, its value and what is allowed.
    pub fn validate(&self) -> Result<(), ModelError> {
        let impossible = |key, value: String, allowed| {
            Err(ModelError::Impossible {
                key,
                value,
                allowed,
            })
        };
        match *self {
            Self::None | Self::Uniform { .. } | Self::UniformBer { .. } | Self::Trace(_) => {}
            Self::Blocks(ref blocks) => {
                if blocks.file.is_some() == blocks.model.is_some() {
                    let value = match blocks.file {
                        Some(_) => "given beside `model`",
                        None => "missing like `file`",
                    };
                    let allowed = "blocks come from one of `file` and `model`";
                    return impossible("model", value.to_owned(), allowed);
                }
                if let Some(block) = blocks.block
                    && block < SHORTEST_STATE
                {
                    let allowed = "a block is on the air for at least 1 us";
                    return impossible("block", block.to_string(), allowed);
                }
            }
            Self::TwoState { good, bad, .. }
            | Self::TwoStateArrival { good, bad, .. }
            | Self::TwoStateLoss { good, bad, .. } => {
                for (key, mean) in [("good", good), ("bad", bad)] {
                    if mean < SHORTEST_STATE {
                        let allowed = "the mean duration of a state is at least 1 us";
                        return impossible(key, mean.to_string(), allowed);
                    }
                }
            }
            Self::ByteExponential { mean, burst } => {
                if burst == Some(0) {
                    let allowed = "a burst has at least 1 frame";
                    return impossible("burst", "0".to_owned(), allowed);
                }
                if mean.as_bytes() == 0 {
                    let allowed = "the mean interval between bad bytes is at least 1 B";
                    return impossible("mean", mean.to_string(), allowed);
                }
            }
            Self::GilbertElliott {
                good_to_bad,
                bad_to_good,
                ..
            } => {
                if good_to_bad.value() + bad_to_good.value() == 0.0 {
                    let allowed = "one of `good_to_bad` and `bad_to_good` is above 0";
                    return impossible("good_to_bad", "0 like `bad_to_good`".to_owned(), allowed);
                }
            }
        }
        Ok(())
    }

    /// The long-run probability that a frame of `bytes` is lost on a link of this rate, if it is sent at a time
    /// independent of the state. Closed forms, to compare measurements with.
    pub fn loss_probability(&self, rate: Rate, bytes: usize) -> f64 {
        match *self {
            Self::None => 0.0,
            Self::Uniform { rate } => rate.value(),
            Self::UniformBer { ber } => {
                -libm::expm1(8.0 * bytes as f64 * libm::log1p(-ber.value()))
            }
            Self::TwoState {
                good,
                bad,
                ber_good,
                ber_bad,
            } => two_state_loss(
                rate.transmission_time(bytes).as_secs_f64(),
                [good.as_secs_f64(), bad.as_secs_f64()],
                [ber_good, ber_bad].map(|ber| error_intensity(rate, ber)),
            ),
            Self::TwoStateArrival {
                good,
                bad,
                ber_good,
                ber_bad,
            } => {
                let (good, bad) = (good.as_secs_f64(), bad.as_secs_f64());
                let lost =
                    |ber: Probability| -libm::expm1(8.0 * bytes as f64 * libm::log1p(-ber.value()));
                (good * lost(ber_good) + bad * lost(ber_bad)) / (good + bad)
            }
            Self::ByteExponential { mean, burst } => {
                let begins = -libm::expm1(-(bytes as f64) / mean.as_bytes() as f64);
                let burst = f64::from(burst.unwrap_or(1));
                burst * begins / (1.0 + (burst - 1.0) * begins)
            }
            Self::GilbertElliott {
                good_to_bad,
                bad_to_good,
                loss_good,
                loss_bad,
            } => {
                let bad = good_to_bad.value() / (good_to_bad.value() + bad_to_good.value());
                loss_good.value() * (1.0 - bad) + loss_bad.value() * bad
            }
            Self::TwoStateLoss {
                good,
                bad,
                loss_good,
                loss_bad,
            } => {
                let (good, bad) = (good.as_secs_f64(), bad.as_secs_f64());
                (good * loss_good.value() + bad * loss_bad.value()) / (good + bad)
            }
            Self::Trace(ref trace) => trace.loss(),
            Self::Blocks(ref blocks) => blocks.loss(rate.transmission_time(bytes)),
        }
    }
}

/// Error intensity at `rate`, 1/s: a frame of t seconds survives with probability `exp(-t * intensity)`.
fn error_intensity(rate: Rate, ber: Probability) -> f64 {
    // A BER of 1 would be infinite; this bound gives the same result for every frame.
    (-libm::log1p(-ber.value()) * rate.as_bps() as f64).min(1e15)
}

/// `1 - pi exp((Q - R) t) 1`, with Q the generator of the chain of states, R the diagonal matrix of
/// error intensities and pi the stationary distribution, written out for two states.
fn two_state_loss(t: f64, mean: [f64; 2], intensity: [f64; 2]) -> f64 {
    let leave = [1.0 / mean[0], 1.0 / mean[1]];
    let bad = mean[1] / (mean[0] + mean[1]);
    let average = (1.0 - bad) * intensity[0] + bad * intensity[1];
    let diagonal = [leave[0] + intensity[0], leave[1] + intensity[1]];
    let half_trace = (diagonal[0] + diagonal[1]) / 2.0;
    let half_gap = (diagonal[0] - diagonal[1]) / 2.0;
    let root = libm::sqrt(half_gap * half_gap + leave[0] * leave[1]);
    // The eigenvalues are -fast and -slow; the product gives the slow one without cancellation.
    let fast = half_trace + root;
    let slow =
        (leave[0] * intensity[1] + leave[1] * intensity[0] + intensity[0] * intensity[1]) / fast;
    let survives = ((fast - average) * libm::exp(-slow * t)
        + (average - slow) * libm::exp(-fast * t))
        / (fast - slow);
    1.0 - survives
}

/// The error models of a duplex link.
pub type ErrorsConfig = BothWays<ErrorModelConfig>;

impl ErrorModelConfig {
    /// Whether the replayed file has been read; true if there is none.
    pub fn is_loaded(&self) -> bool {
        match self {
            Self::Trace(trace) => trace.is_loaded(),
            Self::Blocks(blocks) => blocks.is_loaded(),
            _ => true,
        }
    }

    /// Digest of the replayed file, equal for equal files.
    pub fn digest(&self) -> Option<u64> {
        match self {
            Self::Trace(trace) => Some(trace.digest()),
            Self::Blocks(blocks) => blocks.digest(),
            _ => None,
        }
    }

    fn load(
        &mut self,
        usual: Way,
        mut read: impl FnMut(&str) -> Result<Vec<u8>, TraceFileError>,
    ) -> Result<(), TraceFileError> {
        match self {
            Self::Trace(trace) => trace.load(&read(&trace.file)?, usual),
            Self::Blocks(blocks) => match &blocks.file {
                Some(file) => {
                    let bytes = read(file)?;
                    blocks.load(&bytes)
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

/// Reads the files that a link's errors replay, if any. `read` returns the bytes of a file; paths are given as written
/// in the configuration.
///
/// # Errors
/// If a file cannot be read, is not a trace, or records nothing for the direction.
pub fn load_traces(
    errors: &mut ErrorsConfig,
    mut read: impl FnMut(&str) -> Result<Vec<u8>, String>,
) -> Result<(), TraceFileError> {
    let mut read = |file: &str| {
        read(file).map_err(|reason| TraceFileError {
            file: file.to_owned(),
            reason,
        })
    };
    errors.down.load(Way::In, &mut read)?;
    errors.up.load(Way::Out, &mut read)
}

impl Directed for ErrorModelConfig {
    fn pair_name() -> Cow<'static, str> {
        "Errors".into()
    }

    fn pair_schema(generator: &mut SchemaGenerator) -> Schema {
        let model = generator.subschema_for::<Self>();
        let mut schema = both_ways(&model);
        // A direction that is not named has no errors.
        if let Some(directions) = schema.pointer_mut("/anyOf/1") {
            directions
                .as_object_mut()
                .and_then(|each| each.remove("required"));
        }
        schema
    }

    fn read_pair<'de, D: Deserializer<'de>>(d: D) -> Result<ErrorsConfig, D::Error> {
        let mut table = Table::deserialize(d)?;
        match (table.kind, table.direction()) {
            (Some(_), Some(key)) => Err(D::Error::custom(ModelError::Mixed { key })),
            (_, None) => Ok(table.model().map_err(D::Error::custom)?.into()),
            (None, Some(_)) => {
                let (down, up) = (table.down.take(), table.up.take());
                // Otherwise a key beside the two directions would be ignored silently.
                table.kind = Some(Kind::None);
                if let Err(ModelError::Foreign { key, .. }) = table.model() {
                    return Err(D::Error::custom(format!(
                        "`{key}` stands beside errors.down or errors.up; put it into one of them"
                    )));
                }
                Ok(BothWays {
                    down: down.unwrap_or_default(),
                    up: up.unwrap_or_default(),
                })
            }
        }
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    None,
    Uniform,
    UniformBer,
    TwoState,
    TwoStateArrival,
    ByteExponential,
    GilbertElliott,
    TwoStateLoss,
    Trace,
    Blocks,
}

/// Every key that a table of errors may have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    kind: Option<Kind>,
    rate: Option<Probability>,
    ber: Option<Probability>,
    good: Option<Duration>,
    bad: Option<Duration>,
    ber_good: Option<Probability>,
    ber_bad: Option<Probability>,
    mean: Option<Size>,
    burst: Option<u32>,
    good_to_bad: Option<Probability>,
    bad_to_good: Option<Probability>,
    loss_good: Option<Probability>,
    loss_bad: Option<Probability>,
    file: Option<String>,
    direction: Option<Way>,
    start: Option<TraceStart>,
    delays: Option<bool>,
    model: Option<Generator>,
    block: Option<Duration>,
    down: Option<ErrorModelConfig>,
    up: Option<ErrorModelConfig>,
}

impl Table {
    fn model(mut self) -> Result<ErrorModelConfig, ModelError> {
        let (kind, keys) = match self.kind.ok_or(ModelError::NoKind)? {
            Kind::None => ("none", "kind"),
            Kind::Uniform => ("uniform", "rate"),
            Kind::UniformBer => ("uniform-ber", "ber"),
            Kind::TwoState => ("two-state", "good, bad, ber_good, ber_bad"),
            Kind::TwoStateArrival => ("two-state-arrival", "good, bad, ber_good, ber_bad"),
            Kind::ByteExponential => ("byte-exponential", "mean, burst"),
            Kind::GilbertElliott => (
                "gilbert-elliott",
                "good_to_bad, bad_to_good, loss_good, loss_bad",
            ),
            Kind::TwoStateLoss => ("two-state-loss", "good, bad, loss_good, loss_bad"),
            Kind::Trace => ("trace", "file, direction, start, delays"),
            Kind::Blocks if self.file.is_some() => ("blocks", "file, start; or model, block"),
            Kind::Blocks => ("blocks", "model, block; or file, start"),
        };
        let missing = |key| ModelError::Missing { kind, key, keys };
        macro_rules! need {
            ($key:ident) => {
                self.$key.take().ok_or(missing(stringify!($key)))?
            };
        }
        let model = match self.kind.ok_or(ModelError::NoKind)? {
            Kind::None => ErrorModelConfig::None,
            Kind::Uniform => ErrorModelConfig::Uniform { rate: need!(rate) },
            Kind::UniformBer => ErrorModelConfig::UniformBer { ber: need!(ber) },
            Kind::TwoState => ErrorModelConfig::TwoState {
                good: need!(good),
                bad: need!(bad),
                ber_good: need!(ber_good),
                ber_bad: need!(ber_bad),
            },
            Kind::TwoStateArrival => ErrorModelConfig::TwoStateArrival {
                good: need!(good),
                bad: need!(bad),
                ber_good: need!(ber_good),
                ber_bad: need!(ber_bad),
            },
            Kind::ByteExponential => ErrorModelConfig::ByteExponential {
                mean: need!(mean),
                burst: self.burst.take(),
            },
            Kind::GilbertElliott => ErrorModelConfig::GilbertElliott {
                good_to_bad: need!(good_to_bad),
                bad_to_good: need!(bad_to_good),
                loss_good: need!(loss_good),
                loss_bad: need!(loss_bad),
            },
            Kind::TwoStateLoss => ErrorModelConfig::TwoStateLoss {
                good: need!(good),
                bad: need!(bad),
                loss_good: need!(loss_good),
                loss_bad: need!(loss_bad),
            },
            Kind::Trace => {
                let file = need!(file);
                let (direction, start) = (self.direction.take(), self.start.take());
                let trace = TraceConfig::new(file, direction, start, self.delays.take());
                ErrorModelConfig::Trace(trace)
            }
            Kind::Blocks => ErrorModelConfig::Blocks(match self.file.take() {
                Some(file) => BlocksConfig::of_file(file, self.start.take()),
                None => BlocksConfig::of_model(need!(model), self.block.take()),
            }),
        };
        // A key that the model has not taken belongs to another model.
        let left = [
            ("rate", self.rate.is_some()),
            ("ber", self.ber.is_some()),
            ("good", self.good.is_some()),
            ("bad", self.bad.is_some()),
            ("ber_good", self.ber_good.is_some()),
            ("ber_bad", self.ber_bad.is_some()),
            ("mean", self.mean.is_some()),
            ("good_to_bad", self.good_to_bad.is_some()),
            ("bad_to_good", self.bad_to_good.is_some()),
            ("loss_good", self.loss_good.is_some()),
            ("loss_bad", self.loss_bad.is_some()),
            ("file", self.file.is_some()),
            ("direction", self.direction.is_some()),
            ("start", self.start.is_some()),
            ("delays", self.delays.is_some()),
            ("model", self.model.is_some()),
            ("block", self.block.is_some()),
            ("down", self.down.is_some()),
            ("up", self.up.is_some()),
        ];
        if let Some(&(key, _)) = left.iter().find(|(_, is_left)| *is_left) {
            return Err(ModelError::Foreign { kind, key, keys });
        }
        model.validate()?;
        Ok(model)
    }

    fn direction(&self) -> Option<&'static str> {
        if self.down.is_some() {
            return Some("down");
        }
        self.up.as_ref().map(|_| "up")
    }
}

impl<'de> Deserialize<'de> for ErrorModelConfig {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Table::deserialize(d)?.model().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;
