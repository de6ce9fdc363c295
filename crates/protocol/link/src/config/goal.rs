//! Goals: ready-made services by purpose, `goal = "voice"` instead of a scheme and a rate.
//!
//! A goal is shorthand for a service: reading a file expands it, and `airlane explain` prints the expansion.
//! Explicit fields take precedence. docs/operations.md has the reasons for each choice.

use airlane_base::{Duration, Probability, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::arq::{Order, RlpConfig, SrConfig};
use super::copies::CopiesConfig;
use super::scheme::SchemeConfig;
use super::timers::Keepalives;
use crate::queue::QueueConfig;

/// The purpose of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// Calls: small packets at regular intervals, useless when late.
    Voice,
    /// Keystrokes, games, names: few packets, each awaited by a person.
    Interactive,
    /// Pages: short transfers that a person waits for, every byte needed.
    Web,
    /// Files, mail, backups: every byte needed, no packet urgent.
    Bulk,
    /// Files from senders that pace by a model of the path (BBR), to which packets delayed by in-order
    /// delivery look like a longer path.
    Paced,
    /// Video: many packets that may be a little late, and some of which may be lost.
    Video,
}

impl Goal {
    /// All variants.
    pub const ALL: [Self; 6] = [
        Self::Voice,
        Self::Interactive,
        Self::Web,
        Self::Bulk,
        Self::Paced,
        Self::Video,
    ];

    /// Its scheme.
    pub fn scheme(self) -> SchemeConfig {
        let rlp_oos = |retries, copies| {
            SchemeConfig::RlpOos(RlpConfig {
                retries: Some(retries),
                copies,
                ..RlpConfig::default()
            })
        };
        let sr_m2 = |copies| SrConfig {
            keepalives: Some(Keepalives::Limit(8)),
            repeat_naks: true,
            order: Order::Flow,
            copies: Some(copies),
            ..SrConfig::default()
        };
        let twice = CopiesConfig {
            after: Duration::from_millis(10),
            share: 0.02,
            ..CopiesConfig::default()
        };
        // Only acknowledgments are copied, as a file leaves no room for more.
        let short = CopiesConfig {
            longest: Some(Size::from_bytes(200)),
            ..CopiesConfig::default()
        };
        match self {
            // The budget ends the requests before their number does.
            Self::Voice => rlp_oos(12, Some(twice)),
            Self::Interactive => rlp_oos(5, Some(twice)),
            Self::Video => rlp_oos(3, None),
            Self::Paced => SchemeConfig::RlpOos(RlpConfig {
                retries: Some(6),
                window: Some(4096),
                copies: Some(short),
                hold_repeats: true,
                ..RlpConfig::default()
            }),
            Self::Web => SchemeConfig::SrM2(sr_m2(CopiesConfig {
                above: Probability::new(0.03),
                ..CopiesConfig::default()
            })),
            Self::Bulk => SchemeConfig::SrM2(SrConfig {
                dejitter: true,
                ..sr_m2(short)
            }),
        }
    }

    /// The age at which a packet is of no more use.
    pub const fn budget(self) -> Option<Duration> {
        match self {
            Self::Voice => Some(Duration::from_millis(300)),
            Self::Interactive | Self::Web | Self::Bulk | Self::Paced | Self::Video => None,
        }
    }

    /// The age at which datagrams held up by an outage are dropped, if it differs from the default.
    pub const fn patience(self) -> Option<Duration> {
        match self {
            Self::Interactive => Some(Duration::from_secs(5)),
            Self::Video => Some(Duration::from_secs(2)),
            Self::Voice | Self::Web | Self::Bulk | Self::Paced => None,
        }
    }

    /// The ingress queue, if it differs from the scheme's default.
    pub fn queue(self) -> Option<QueueConfig> {
        // A pacing sender keeps about as much queued as the path holds, and does not react to drops. Other
        // senders get no acknowledgments while a repair holds up their packets, for two round trips and more,
        // and only queued packets are sent meanwhile. So the queue covers the longest round trip that is
        // common on terrestrial paths.
        let longest = Duration::from_millis(300);
        matches!(self, Self::Bulk | Self::Paced).then(|| QueueConfig::patient(longest))
    }

    /// Whether TCP/IP headers are compressed.
    pub const fn compact_headers(self) -> bool {
        matches!(self, Self::Web | Self::Bulk | Self::Paced)
    }

    /// The share of the link, relative to services with other goals.
    pub const fn rate(self) -> f64 {
        match self {
            Self::Voice => 0.1,
            Self::Interactive => 0.15,
            Self::Web | Self::Video => 0.3,
            Self::Bulk | Self::Paced => 0.5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ServiceConfig, check};
    use crate::queue::QueueConfig;
    use crate::wire::HeaderProfile;

    fn read(text: &str) -> Result<ServiceConfig, String> {
        toml::from_str(text).map_err(|error: toml::de::Error| error.message().to_owned())
    }

    #[test]
    fn every_goal_is_a_service_that_works_live() {
        for goal in Goal::ALL {
            let name = serde_json::to_value(goal).unwrap();
            let text = format!("number = 1\nname = \"a\"\ngoal = {name}");
            let service = read(&text).unwrap();
            assert_eq!(service.scheme, goal.scheme());
            assert_eq!(service.rate, goal.rate());
            let resolved = service.resolve(HeaderProfile::Live);
            let problems = check(HeaderProfile::Live, std::slice::from_ref(&resolved), &[]);
            assert_eq!(problems, []);
            // The output of explain is the same service without its goal.
            let printed = toml::to_string(&resolved).unwrap();
            assert!(!printed.contains("goal"), "{printed}");
            assert_eq!(read(&printed).unwrap(), resolved);
            for service in [&service, &resolved] {
                let unnamed = ServiceConfig {
                    goal: None,
                    ..service.clone()
                };
                assert_eq!([service.goal(), unnamed.goal()], [Some(goal); 2]);
            }
        }
    }

    #[test]
    fn traffic_follows_the_goal_whatever_its_scheme() {
        let own = "number = 1\nname = \"a\"\ngoal = \"web\"\nscheme = { kind = \"sr-m2\" }";
        assert_eq!(read(own).unwrap().goal(), Some(Goal::Web));
        let none = "number = 1\nname = \"a\"\nrate = 1.0\nscheme = { kind = \"sr-m2\" }";
        assert_eq!(read(none).unwrap().goal(), None);
    }

    #[test]
    fn settings_beside_a_goal_override_it() {
        let service = read(
            "number = 1\nname = \"a\"\ngoal = \"bulk\"\nrate = 0.25\n\
             scheme = { kind = \"gbn\" }\nqueue = { kind = \"drop-tail\", limit = \"9 packets\" }",
        )
        .unwrap();
        assert_eq!((service.rate, service.scheme.kind()), (0.25, "gbn"));
        assert!(matches!(service.queue, Some(QueueConfig::DropTail { .. })));
    }

    #[test]
    fn a_key_given_by_neither_file_nor_goal_is_missing() {
        let start = "number = 1\nname = \"a\"\n";
        let error = read(&format!("{start}rate = 1")).unwrap_err();
        assert!(error.contains("missing field `scheme`"), "{error}");
        let error = read(&format!("{start}scheme = {{ kind = \"sr\" }}")).unwrap_err();
        assert!(error.contains("missing field `rate`"), "{error}");
        let error = read(&format!("{start}goal = \"speech\"")).unwrap_err();
        assert!(error.contains("`voice`, `interactive`"), "{error}");
        let error = read(&format!("{start}goal = \"web\"\nspeed = 1")).unwrap_err();
        assert!(error.contains("unknown field `speed`"), "{error}");
    }
}
