//! Options of Snoop: at which end of the link the base station stands.
//!
//! A scenario sees a link from above and names one of its two ends; the file of a live node sees it
//! from one end and says whether that is the one. Services are the same at both ends of a scenario's
//! link, so [`at_end`] turns the first kind of answer into the second.

use serde::{Deserialize, Serialize};

use super::{ConfigError, SchemeConfig, ServiceConfig};

/// Options of Snoop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SnoopConfig {
    /// Which end is the base station, where the agent watches TCP towards the other end.
    pub base_station: BaseStation,
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    const fn viewpoint(self) -> Viewpoint {
        match self {
            Self::First | Self::Second => Viewpoint::World,
            Self::Here | Self::Peer => Viewpoint::End,
        }
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
