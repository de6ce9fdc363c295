//! Options of Snoop.

use airlane_base::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::Wrong;
use super::traits::{ArqOptions, Options, Traits};
use crate::wire::HeaderProfile;

/// Options of Snoop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SnoopConfig {
    /// Which end is the base station, where the agent watches TCP towards the other end.
    pub base_station: BaseStation,
    /// Whose rules the agent follows. Source: Balakrishnan, Seshan and Katz 1995.
    #[serde(default)]
    pub variant: SnoopVariant,
    /// Whether duplicate acknowledgments that a loss on this link explains are kept from the TCP sender.
    /// Without it the agent repairs as well, and the sender does so, too. Source: Balakrishnan et al. 1997,
    /// LL-TCP-AWARE (true) and LL (false). Left out: true.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub suppress: bool,
    /// What tells the agent that a segment is lost. Source: Balakrishnan et al. 1997, section 3. Left out:
    /// `duplicates`.
    #[serde(default, skip_serializing_if = "SnoopDetection::is_usual")]
    pub detect: SnoopDetection,
    /// So many duplicates in a row begin a local repair; those before it go on. Source: Balakrishnan,
    /// Seshan and Katz 1995 (1), ns-2 (2). Left out: 2.
    #[serde(default = "two", skip_serializing_if = "is_two")]
    #[schemars(extend("x-unit" = "acknowledgments"))]
    pub threshold: u32,
    /// The agent's timer runs at least this long. Source: Balakrishnan et al. 1997, section 4, has 200 ms.
    /// Left out: 100 ms.
    #[serde(default = "usual_timeout", skip_serializing_if = "is_usual_timeout")]
    pub min_timeout: Duration,
    /// Whether repairs leave before everything that waits (`first`), or when nothing else does (`last`).
    /// Left out: `first`.
    #[serde(default, skip_serializing_if = "RepairOrder::is_usual")]
    pub repairs: RepairOrder,
}

const fn yes() -> bool {
    true
}

// Serde asks with a reference.
#[expect(clippy::trivially_copy_pass_by_ref)]
const fn is_yes(value: &bool) -> bool {
    *value
}

const fn two() -> u32 {
    2
}

#[expect(clippy::trivially_copy_pass_by_ref)]
const fn is_two(value: &u32) -> bool {
    *value == two()
}

const fn usual_timeout() -> Duration {
    Duration::from_millis(100)
}

fn is_usual_timeout(value: &Duration) -> bool {
    *value == usual_timeout()
}

impl SnoopConfig {
    /// An agent at this end, by the rules of 1995.
    pub const fn new(base_station: BaseStation) -> Self {
        Self {
            base_station,
            variant: SnoopVariant::Standard,
            suppress: yes(),
            detect: SnoopDetection::Duplicates,
            threshold: two(),
            min_timeout: usual_timeout(),
            repairs: RepairOrder::First,
        }
    }

    /// Whether everything but the end, the variant and the place of repairs is as it is where nothing is said.
    pub(super) fn is_plain(&self) -> bool {
        let plain = Self {
            variant: self.variant,
            repairs: self.repairs,
            ..Self::new(self.base_station)
        };
        *self == plain
    }
}

impl Options for SnoopConfig {
    fn resolve(&mut self, _scheme: &Traits, _header: HeaderProfile) {}

    fn arq(&self) -> Option<ArqOptions<'_>> {
        None
    }

    fn terms(&self) -> String {
        format!(" base-station {}", self.base_station.name())
    }

    fn check(&self, _scheme: &Traits, _header: HeaderProfile, at: &str, wrong: Wrong<'_>) {
        if self.variant != SnoopVariant::Standard && !self.is_plain() {
            wrong(
                format!("{at}.variant"),
                "ns-2's module has rules of its own, which nothing else changes".to_owned(),
                "variant = \"standard\", or no suppress, detect, threshold and min-timeout",
            );
        }
        if !(1..=10).contains(&self.threshold) {
            wrong(
                format!("{at}.threshold"),
                format!("{} duplicates cannot begin a repair", self.threshold),
                "1 to 10 duplicates",
            );
        }
        if self.min_timeout == Duration::ZERO {
            wrong(
                format!("{at}.min-timeout"),
                "a timer of \"0 s\" would repair without end".to_owned(),
                "a time above zero, such as \"200 ms\"",
            );
        }
    }
}

/// What tells a Snoop agent that a segment is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SnoopDetection {
    /// Duplicate acknowledgments, one segment at a time.
    #[default]
    Duplicates,
    /// What an acknowledgment names beside its number, one segment of a receiver with SMART or the first block
    /// of a selective acknowledgment: all that is missing before it is lost, at once.
    Smart,
}

impl SnoopDetection {
    #[expect(clippy::trivially_copy_pass_by_ref)]
    const fn is_usual(&self) -> bool {
        matches!(self, Self::Duplicates)
    }
}

/// When the repairs of a Snoop agent leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RepairOrder {
    /// Before everything that waits.
    #[default]
    First,
    /// When nothing else waits.
    Last,
}

impl RepairOrder {
    #[expect(clippy::trivially_copy_pass_by_ref)]
    const fn is_usual(&self) -> bool {
        matches!(self, Self::First)
    }
}

/// Whose rules the agent of Snoop follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SnoopVariant {
    /// Balakrishnan, Seshan and Katz 1995, a state for each connection.
    #[default]
    Standard,
    /// ns-2's module, which miscounts duplicates; as it was in 1997, with one state for all connections
    /// of two hosts, which nothing clears. Scenarios only.
    Ns2,
    /// ns-2's module with a state for each pair of TCP endpoints, which stays from one connection to the
    /// next on them. Scenarios only.
    Ns2Agents,
    /// ns-2's module with one state for two hosts, which the first segment of each connection clears.
    /// Scenarios only.
    Ns2Cleared,
    /// ns-2's module with a state for each pair of TCP endpoints, which the first segment of each
    /// connection clears. Scenarios only.
    Ns2Connections,
}

impl SnoopVariant {
    /// Whether connections on other endpoints of the same hosts have the same state.
    pub(crate) const fn shares_hosts(self) -> bool {
        matches!(self, Self::Ns2 | Self::Ns2Cleared)
    }

    /// Whether the first segment of a connection clears the state.
    pub(crate) const fn clears(self) -> bool {
        matches!(self, Self::Ns2Cleared | Self::Ns2Connections)
    }
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BaseStation {
    /// The first of the link's `ends`. Scenarios only.
    First,
    /// The second of them. Scenarios only.
    Second,
    /// This node. Live only.
    Here,
    /// The other node. Live only.
    Peer,
}

impl BaseStation {
    /// As it stands in files.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
            Self::Here => "here",
            Self::Peer => "peer",
        }
    }
}
