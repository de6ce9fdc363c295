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
    /// Whether duplicate acknowledgments caused by a loss on this link are withheld from the TCP sender.
    /// Otherwise both the agent and the sender repair the loss. Source: Balakrishnan et al. 1997,
    /// LL-TCP-AWARE (true) and LL (false). Left out: true.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub suppress: bool,
    /// How the agent detects the loss of a segment. Source: Balakrishnan et al. 1997, section 3. Left out:
    /// `duplicates`.
    #[serde(default, skip_serializing_if = "SnoopDetection::is_usual")]
    pub detect: SnoopDetection,
    /// Number of consecutive duplicate acknowledgments that start a local repair; earlier ones are forwarded.
    /// Source: Balakrishnan, Seshan and Katz 1995 (1), ns-2 (2). Left out: 2.
    #[serde(default = "two", skip_serializing_if = "is_two")]
    #[schemars(extend("x-unit" = "acknowledgments"))]
    pub threshold: u32,
    /// Minimum of the agent's timeout. Source: Balakrishnan et al. 1997, section 4, has 200 ms. Left out: 100
    /// ms.
    #[serde(default = "usual_timeout", skip_serializing_if = "is_usual_timeout")]
    pub min_timeout: Duration,
    /// Whether repairs leave before all waiting packets (`first`), or when nothing else waits (`last`). Left
    /// out: `first`.
    #[serde(default, skip_serializing_if = "RepairOrder::is_usual")]
    pub repairs: RepairOrder,
    /// Whether acknowledgments of data from the other end are marked if this link lost what they ask for: a sender with
    /// `recovery = "eln"` there does not take that for congestion. Scenarios only. Source: Balakrishnan et al. 1997,
    /// section 3. Left out: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub notify: bool,
}

const fn yes() -> bool {
    true
}

// Serde passes a reference.
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
    /// An agent at this end, with the rules of 1995.
    pub const fn new(base_station: BaseStation) -> Self {
        Self {
            base_station,
            variant: SnoopVariant::Standard,
            suppress: yes(),
            detect: SnoopDetection::Duplicates,
            threshold: two(),
            min_timeout: usual_timeout(),
            repairs: RepairOrder::First,
            notify: false,
        }
    }

    /// Whether all options but the end, the variant and the order of repairs have their defaults.
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
                "variant = \"standard\", or no suppress, detect, threshold, min-timeout and notify",
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

/// How a Snoop agent detects the loss of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SnoopDetection {
    /// Duplicate acknowledgments, one segment at a time.
    #[default]
    Duplicates,
    /// An acknowledgment's further information, one segment from a SMART receiver or the first block of a
    /// selective acknowledgment: all segments missing before it are lost, at once.
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
    /// Before all waiting packets.
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
    /// Balakrishnan, Seshan and Katz 1995, one state per connection.
    #[default]
    Standard,
    /// ns-2's module, which miscounts duplicates; as of 1997, with one state for all connections between two
    /// hosts, which is never cleared. Scenarios only.
    Ns2,
    /// ns-2's module with one state per pair of TCP endpoints, which persists from one connection to the next
    /// between them. Scenarios only.
    Ns2Agents,
    /// ns-2's module with one state for two hosts, which the first segment of each connection clears.
    /// Scenarios only.
    Ns2Cleared,
    /// ns-2's module with one state per pair of TCP endpoints, which the first segment of each connection
    /// clears. Scenarios only.
    Ns2Connections,
}

impl SnoopVariant {
    /// Whether all connections between two hosts share one state.
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
    /// The second of the link's `ends`. Scenarios only.
    Second,
    /// This node. Live only.
    Here,
    /// The peer. Live only.
    Peer,
}

impl BaseStation {
    /// The name in files.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
            Self::Here => "here",
            Self::Peer => "peer",
        }
    }
}
