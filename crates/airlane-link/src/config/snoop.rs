//! Options of Snoop: at which end of the link the base station stands.
//!
//! A scenario sees a link from above and names one of its two ends; the file of a live node sees it
//! from one end and says whether that is the one. Services are the same at both ends of a scenario's
//! link, so [`at_end`] turns the first kind of answer into the second.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConfigError, SchemeConfig, ServiceConfig};

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

/// Who says which end is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewpoint {
    /// A scenario, which sees both ends.
    World,
    /// One end, which sees itself and its peer.
    End,
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

    const fn viewpoint(self) -> Viewpoint {
        match self {
            Self::First | Self::Second => Viewpoint::World,
            Self::Here | Self::Peer => Viewpoint::End,
        }
    }
}

impl SchemeConfig {
    /// The same scheme as the other end of a link sees it.
    #[must_use]
    pub fn at_peer(&self) -> Self {
        let mut scheme = self.clone();
        if let Self::Snoop(snoop) = &mut scheme {
            snoop.base_station = match snoop.base_station {
                BaseStation::Here => BaseStation::Peer,
                BaseStation::Peer => BaseStation::Here,
                seen_from_the_world => seen_from_the_world,
            };
        }
        scheme
    }
}

/// The services as one end of a scenario's link sees them.
pub fn at_end(services: &[ServiceConfig], first: bool) -> Vec<ServiceConfig> {
    let mut services = services.to_vec();
    for service in &mut services {
        if let SchemeConfig::Snoop(snoop) = &mut service.scheme {
            snoop.base_station = match (snoop.base_station, first) {
                (BaseStation::First, true) | (BaseStation::Second, false) => BaseStation::Here,
                (BaseStation::First, false) | (BaseStation::Second, true) => BaseStation::Peer,
                (seen_from_an_end, _) => seen_from_an_end,
            };
        }
    }
    services
}

/// Finds ends that mean nothing from where the table is read.
pub fn check_ends(viewpoint: Viewpoint, services: &[ServiceConfig]) -> Vec<ConfigError> {
    let mut found = Vec::new();
    for (i, service) in services.iter().enumerate() {
        let SchemeConfig::Snoop(snoop) = &service.scheme else {
            continue;
        };
        if snoop.base_station.viewpoint() != viewpoint {
            let (problem, help) = match viewpoint {
                Viewpoint::World => (
                    "a scenario has no end that is here",
                    "\"first\" or \"second\", in the order of the link's ends",
                ),
                Viewpoint::End => (
                    "from one end there is no first and second",
                    "\"here\" at the base station's end, \"peer\" at the other",
                ),
            };
            found.push(ConfigError {
                path: format!("services[{i}].scheme.base-station"),
                problem: problem.to_owned(),
                help: help.to_owned(),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_ends_see_the_same_base_station() {
        for first in [true, false] {
            let base_station = BaseStation::First;
            let world: ServiceConfig = toml::from_str(
                "number = 1\nname = \"tcp\"\nrate = 1.0\n\
                 scheme = { kind = \"snoop\", base-station = \"first\" }",
            )
            .unwrap();
            assert_eq!(
                world.scheme,
                SchemeConfig::Snoop(SnoopConfig {
                    base_station,
                    variant: SnoopVariant::Standard,
                })
            );
            let [here, there] =
                [first, !first].map(|end| at_end(std::slice::from_ref(&world), end).remove(0));
            assert_eq!(here.scheme.at_peer(), there.scheme);
            assert_ne!(here.scheme.terms(), there.scheme.terms());
        }
    }
}
