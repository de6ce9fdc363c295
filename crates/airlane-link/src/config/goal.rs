//! Ready-made services by what they are for: `goal = "voice"` instead of a scheme and a rate.
//!
//! A goal is only a way to write: what is read is the service that it stands for, and `airlane explain`
//! prints that. Whatever is written beside it is taken as it is written. docs/operations.md has the
//! reasons for each choice.

use serde::{Deserialize, Serialize};

use super::{RlpConfig, SchemeConfig, ServiceConfig, SrConfig};
use crate::queue::QueueConfig;

/// What a service is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// Calls: small packets at regular times, of no use when they are late.
    Voice,
    /// Keystrokes, games, names: few packets, and somebody waits for each.
    Interactive,
    /// Pages: short transfers that somebody waits for, every byte needed.
    Web,
    /// Files, mail, backups: every byte needed, nobody waits for any one.
    Bulk,
    /// Moving pictures: many packets with a little patience, some of which may be missing.
    Video,
}

impl Goal {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Voice,
        Self::Interactive,
        Self::Web,
        Self::Bulk,
        Self::Video,
    ];

    /// How losses are repaired.
    pub fn scheme(self) -> SchemeConfig {
        let rlp_oos = |retries| {
            SchemeConfig::RlpOos(RlpConfig {
                retries: Some(retries),
                ..RlpConfig::default()
            })
        };
        match self {
            Self::Voice => rlp_oos(2),
            Self::Interactive => rlp_oos(5),
            Self::Video => rlp_oos(3),
            Self::Web | Self::Bulk => SchemeConfig::SrM2(SrConfig::default()),
        }
    }

    /// The share of the link, relative to services for other goals.
    pub const fn rate(self) -> f64 {
        match self {
            Self::Voice => 0.1,
            Self::Interactive => 0.15,
            Self::Web | Self::Video => 0.3,
            Self::Bulk => 0.5,
        }
    }
}

/// A service as it stands in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Written {
    number: u8,
    name: String,
    goal: Option<Goal>,
    rate: Option<f64>,
    scheme: Option<SchemeConfig>,
    queue: Option<QueueConfig>,
}

/// What a service must have and has neither by itself nor by its goal.
#[derive(Debug, thiserror::Error)]
#[error("missing field `{0}`")]
pub(super) struct Missing(&'static str);

impl TryFrom<Written> for ServiceConfig {
    type Error = Missing;

    fn try_from(written: Written) -> Result<Self, Missing> {
        let goal = written.goal;
        let rate = written.rate.or(goal.map(Goal::rate));
        let scheme = written.scheme.or(goal.map(Goal::scheme));
        Ok(Self {
            number: written.number,
            name: written.name,
            rate: rate.ok_or(Missing("rate"))?,
            scheme: scheme.ok_or(Missing("scheme"))?,
            queue: written.queue,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::check;
    use crate::wire::HeaderProfile;

    fn read(text: &str) -> Result<ServiceConfig, String> {
        toml::from_str(text).map_err(|error: toml::de::Error| error.message().to_owned())
    }

    #[test]
    fn every_goal_is_a_service_that_works_live_and_simulated() {
        for goal in Goal::ALL {
            let name = serde_json::to_value(goal).unwrap();
            let text = format!("number = 1\nname = \"a\"\ngoal = {name}");
            let service = read(&text).unwrap();
            assert_eq!(service.scheme, goal.scheme());
            assert_eq!(service.rate, goal.rate());
            for header in [HeaderProfile::Live, HeaderProfile::Study] {
                let resolved = service.resolve(header);
                assert_eq!(check(header, std::slice::from_ref(&resolved), &[]), []);
                // What explain prints is the same service without its goal.
                let printed = toml::to_string(&resolved).unwrap();
                assert!(!printed.contains("goal"), "{printed}");
                assert_eq!(read(&printed).unwrap(), resolved);
            }
        }
    }

    #[test]
    fn what_is_written_beside_a_goal_counts() {
        let service = read(
            "number = 1\nname = \"a\"\ngoal = \"bulk\"\nrate = 0.25\n\
             scheme = { kind = \"gbn\" }\nqueue = { kind = \"drop-tail\", limit = \"9 packets\" }",
        )
        .unwrap();
        assert_eq!((service.rate, service.scheme.kind()), (0.25, "gbn"));
        assert!(matches!(service.queue, Some(QueueConfig::DropTail { .. })));
    }

    #[test]
    fn what_neither_the_file_nor_a_goal_gives_is_missing() {
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
