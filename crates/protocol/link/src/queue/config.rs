//! The `queue = { kind = ... }` of a service, in scenario and daemon files.

use std::num::NonZeroU32;

use airlane_base::{Duration, QueueLimit};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

/// The queue of a service.
// Braces on `None`: serde would accept unknown keys next to the tag of a bare unit variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum QueueConfig {
    /// No queue: a packet that the service cannot take at once is dropped.
    None {},
    /// One queue; packets that arrive while it is full are dropped.
    DropTail {
        /// How much may wait.
        #[serde(default = "default_limit", deserialize_with = "limit")]
        limit: QueueLimit,
    },
    /// One queue per flow, served by deficit round robin, sparse flows first, each under CoDel.
    FqCodel {
        /// How much may wait in all flows together. Left out: 1000 packets; where the rate of the link is
        /// estimated, what it carries within a second or two round trips, 24 kB to 8 MB, and target and
        /// interval are at least one and three round trips of the link.
        #[serde(
            default,
            deserialize_with = "some_limit",
            skip_serializing_if = "Option::is_none"
        )]
        limit: Option<QueueLimit>,
        /// CoDel's acceptable standing delay. Not less than the time to send one full packet. Source: RFC
        /// 8289. Left out: 20 ms, for a service that repairs in order 100 ms.
        #[serde(
            default,
            deserialize_with = "positive",
            skip_serializing_if = "Option::is_none"
        )]
        target: Option<Duration>,
        /// How long the delay must exceed the target before CoDel drops: a usual round trip of the flows.
        /// Source: RFC 8289, section 4.3. Left out: 100 ms, for a service that repairs in order 500 ms.
        #[serde(
            default,
            deserialize_with = "positive",
            skip_serializing_if = "Option::is_none"
        )]
        interval: Option<Duration>,
        /// Number of queues that flows are hashed to. Source: RFC 8290, section 5.2.
        #[serde(default = "default_flows", deserialize_with = "flows")]
        flows: NonZeroU32,
    },
}

/// Maximum number of flow queues, about 6 MB.
const MAX_FLOWS: u32 = 65_536;

impl QueueConfig {
    /// `fq-codel` with every default.
    pub fn fq_codel() -> Self {
        Self::FqCodel {
            limit: None,
            target: None,
            interval: None,
            flows: default_flows(),
        }
    }

    /// `fq-codel` with a standing delay of up to this round trip.
    pub fn patient(round_trip: Duration) -> Self {
        Self::FqCodel {
            limit: None,
            target: Some(round_trip),
            interval: Some(round_trip * 3),
            flows: default_flows(),
        }
    }

    /// This queue with every default filled in.
    ///
    /// A service that repairs in order holds the packets after a loss for one or two round trips of the link,
    /// and then releases them at once. The flows see round trips of several hundred ms, and their responses
    /// arrive in bursts that take as long to drain: neither is a standing queue.
    #[must_use]
    pub fn resolve(self, repairs_in_order: bool) -> Self {
        let usual = if repairs_in_order { IN_ORDER } else { USUAL };
        match self {
            Self::FqCodel {
                limit,
                target,
                interval,
                flows,
            } => Self::FqCodel {
                limit,
                target: target.or(Some(usual.0)),
                interval: interval.or(Some(usual.1)),
                flows,
            },
            other => other,
        }
    }
}

pub(super) const fn default_limit() -> QueueLimit {
    QueueLimit::Packets(1000)
}

/// Target and interval. The interval is that of RFC 8289 4.3; the target is four times the RFC's, because a
/// repair now and then adds a round trip of the link.
pub(super) const USUAL: (Duration, Duration) =
    (Duration::from_millis(20), Duration::from_millis(100));

/// Target and interval for a service that repairs in order: the same ratio, for flows with five times the
/// round trip.
const IN_ORDER: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(500));

/// RFC 8290 5.2.
const fn default_flows() -> NonZeroU32 {
    NonZeroU32::new(1024).expect("1024 is not zero")
}

fn positive<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Duration>, D::Error> {
    match Duration::deserialize(d)? {
        Duration::ZERO => Err(de::Error::custom(
            "a time of 0 s is impossible here; write one such as \"20 ms\"",
        )),
        duration => Ok(Some(duration)),
    }
}

fn limit<'de, D: Deserializer<'de>>(d: D) -> Result<QueueLimit, D::Error> {
    match QueueLimit::deserialize(d)? {
        QueueLimit::Packets(0) | QueueLimit::Bytes(0) => Err(de::Error::custom(
            "a limit of 0 holds nothing; write queue = { kind = \"none\" } if that is meant",
        )),
        limit => Ok(limit),
    }
}

fn some_limit<'de, D: Deserializer<'de>>(d: D) -> Result<Option<QueueLimit>, D::Error> {
    limit(d).map(Some)
}

fn flows<'de, D: Deserializer<'de>>(d: D) -> Result<NonZeroU32, D::Error> {
    let n = i64::deserialize(d)?;
    u32::try_from(n)
        .ok()
        .filter(|n| *n <= MAX_FLOWS)
        .and_then(NonZeroU32::new)
        .ok_or_else(|| de::Error::custom(format!("{n} flows are impossible; use 1 to {MAX_FLOWS}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct File {
        queue: QueueConfig,
    }

    fn parse(text: &str) -> Result<QueueConfig, String> {
        toml::from_str::<File>(&format!("queue = {text}"))
            .map(|file| file.queue)
            .map_err(|e| e.to_string())
    }

    #[test]
    fn defaults_are_filled_in_and_written_back() {
        let queue = parse("{ kind = \"fq-codel\" }").unwrap();
        assert_eq!(queue, QueueConfig::fq_codel());
        let queue = queue.resolve(false);
        let text = toml::to_string(&File { queue }).unwrap();
        for part in ["20 ms", "100 ms", "1024"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(toml::from_str::<File>(&text).unwrap(), File { queue });
        let tail = parse("{ kind = \"drop-tail\", limit = \"125 kB\" }").unwrap();
        let limit = QueueLimit::Bytes(125_000);
        assert_eq!(tail, QueueConfig::DropTail { limit });
        assert_eq!(parse("{ kind = \"none\" }"), Ok(QueueConfig::None {}));
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        for (text, expected) in [
            ("{ kind = \"red\" }", "fq-codel"),
            ("{ kind = \"none\", limit = \"3 packets\" }", "limit"),
            ("{ kind = \"drop-tail\", target = \"5 ms\" }", "target"),
            (
                "{ kind = \"drop-tail\", limit = \"0 packets\" }",
                "\"none\"",
            ),
            ("{ kind = \"fq-codel\", limit = \"3\" }", "unit"),
            (
                "{ kind = \"fq-codel\", target = \"0 ms\" }",
                "0 s is impossible",
            ),
            ("{ kind = \"fq-codel\", interval = 100 }", "100 ms"),
            ("{ kind = \"fq-codel\", flows = 0 }", "1 to 65536"),
            ("{ kind = \"fq-codel\", flows = 5000000000 }", "1 to 65536"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
