//! Timer values of services, and the factor by which sharing the link stretches them.

use std::fmt;

use airlane_base::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::wire::HeaderProfile;

/// Timer values (section 7.11 of docs/spec/multi-service.md).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "timers is \"tight\", \"relaxed\", \"buffer\", \"measured\" or \
                 { ack = \"57 ms\", nak = \"0.4 s\", keepalive = \"0.4 s\", rto = \"0.5 s\" }; \
                 a bare number is in busy round trips of the link"
)]
pub enum TimersConfig {
    /// A named profile.
    Profile(TimerProfile),
    /// Fixed values.
    Fixed(FixedTimers),
}

/// The named timer profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimerProfile {
    /// 1.5 busy round trips of the link.
    Tight,
    /// As `tight`, but three times as long before a NAK or an unacknowledged frame is repeated.
    Relaxed,
    /// A fraction of the time to transmit a full buffer.
    Buffer,
    /// From measured round trips (RFC 6298), starting from `tight`.
    Measured,
}

/// Fixed timer values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FixedTimers {
    /// How long an acknowledgment may be delayed to cover several frames.
    pub ack: TimerValue,
    /// Time to wait for a repair before the NAK is repeated.
    pub nak: TimerValue,
    /// Interval between two keepalives.
    pub keepalive: TimerValue,
    /// Retransmission timeout.
    pub rto: TimerValue,
}

/// The value of one timer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TimerValue {
    /// A fixed time on every link.
    Time(Duration),
    /// A multiple of the link's busy round trip, R_busy = 2D + 2 T_d + T_c.
    RoundTrips(f64),
}

impl TimersConfig {
    /// The default for a header profile.
    pub(super) const fn usual(header: HeaderProfile) -> Option<Self> {
        let profile = match header.is_live() {
            true => TimerProfile::Measured,
            false => TimerProfile::Relaxed,
        };
        Some(Self::Profile(profile))
    }
}

impl From<Duration> for TimerValue {
    fn from(time: Duration) -> Self {
        Self::Time(time)
    }
}

impl Serialize for TimerValue {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Time(time) => time.serialize(s),
            Self::RoundTrips(n) => n.serialize(s),
        }
    }
}

airlane_base::schema_of!(TimerValue, "TimerValue", {
    "description": "A time with its unit, or a number of busy round trips of the link.",
    "anyOf": [
        {
            "type": "string",
            "pattern": r"^\s*[+]?[0-9._]+\s*(ns|us|ms|s|min)\s*$",
        },
        { "type": "number" },
    ],
    "examples": ["57 ms", 1.5],
    "x-unit": "ns, us, ms, s, min, or busy round trips",
});

impl<'de> Deserialize<'de> for TimerValue {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Form;
        impl serde::de::Visitor<'_> for Form {
            type Value = TimerValue;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a duration with its unit, such as \"100 ms\", or a number of busy round trips",
                )
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<TimerValue, E> {
                text.parse().map(TimerValue::Time).map_err(E::custom)
            }
            fn visit_f64<E: serde::de::Error>(self, n: f64) -> Result<TimerValue, E> {
                Ok(TimerValue::RoundTrips(n))
            }
            fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<TimerValue, E> {
                Ok(TimerValue::RoundTrips(n as f64))
            }
            fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<TimerValue, E> {
                Ok(TimerValue::RoundTrips(n as f64))
            }
        }
        d.deserialize_any(Form)
    }
}

/// The factor by which sharing the link stretches fixed timers (Xylomenos 1999, section 6.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "multiplier is \"services\", \"share\" or a number above 0"
)]
pub enum Multiplier {
    /// `"services"` or `"share"`.
    Heuristic(MultiplierHeuristic),
    /// A number.
    Factor(f64),
}

impl Default for Multiplier {
    fn default() -> Self {
        Self::Heuristic(MultiplierHeuristic::Services)
    }
}

/// The two timer heuristics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MultiplierHeuristic {
    /// H1: the number of services.
    Services,
    /// H2: the inverse of the service's share of all rates.
    Share,
}

/// Where timers start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimerOrigin {
    /// When the frame has left: a frame in the queue cannot time out.
    #[default]
    Departure,
    /// When the frame is handed to the scheduler, as in the dissertation.
    HandOver,
}

/// Number of keepalives after the last new frame (XYL-S-14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "keepalives is a number or \"unlimited\"")]
pub enum Keepalives {
    /// A limited number.
    Limit(u32),
    /// `"unlimited"`.
    Word(UnlimitedWord),
}

/// The word `"unlimited"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnlimitedWord {
    /// No limit.
    Unlimited,
}

impl Keepalives {
    /// The default for a header profile.
    pub(super) const fn usual(header: HeaderProfile) -> Self {
        match header.is_live() {
            true => Self::Limit(8),
            false => Self::Word(UnlimitedWord::Unlimited),
        }
    }

    /// The limit; none if there is no limit.
    pub const fn limit(self) -> Option<u32> {
        match self {
            Self::Limit(n) => Some(n),
            Self::Word(UnlimitedWord::Unlimited) => None,
        }
    }
}
