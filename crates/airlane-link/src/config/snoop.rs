//! Options of Snoop.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Options of Snoop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SnoopConfig {
    /// Which end is the base station, where the agent watches TCP towards the other end.
    pub base_station: BaseStation,
    /// Whose rules the agent follows. Source: Balakrishnan, Seshan and Katz 1995.
    #[serde(default)]
    pub variant: SnoopVariant,
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
    /// The same with a state for each pair of TCP endpoints, which stays from one connection to the
    /// next on them. Scenarios only.
    Ns2Agents,
    /// The same with one state for two hosts, which the first segment of each connection clears.
    /// Scenarios only.
    Ns2Cleared,
    /// The same with a state for each pair of TCP endpoints, which the first segment of each
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
