//! Which end of the link is Snoop's base station.
//!
//! A scenario sees a link from outside and names one of its two ends; the file of a live node says whether
//! this node or its peer is meant. A scenario's services are the same at both ends of a link, so [`at_end`]
//! converts the first form to the second.

use super::problem::ConfigError;
use super::scheme::SchemeConfig;
use super::service::ServiceConfig;
use super::snoop::BaseStation;

/// From where an end of the link is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewpoint {
    /// From outside, as a scenario does.
    World,
    /// From one end, which knows itself and its peer.
    End,
}

const fn viewpoint_of(station: BaseStation) -> Viewpoint {
    match station {
        BaseStation::First | BaseStation::Second => Viewpoint::World,
        BaseStation::Here | BaseStation::Peer => Viewpoint::End,
    }
}

impl SchemeConfig {
    /// The scheme as the other end of the link sees it.
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

/// Finds ends that have no meaning from this viewpoint.
pub fn check_ends(viewpoint: Viewpoint, services: &[ServiceConfig]) -> Vec<ConfigError> {
    let mut found = Vec::new();
    for (i, service) in services.iter().enumerate() {
        let SchemeConfig::Snoop(snoop) = &service.scheme else {
            continue;
        };
        if viewpoint_of(snoop.base_station) != viewpoint {
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
    use crate::config::SnoopConfig;

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
                SchemeConfig::Snoop(SnoopConfig::new(base_station))
            );
            let [here, there] =
                [first, !first].map(|end| at_end(std::slice::from_ref(&world), end).remove(0));
            assert_eq!(here.scheme.at_peer(), there.scheme);
            assert_ne!(here.scheme.terms(), there.scheme.terms());
        }
    }
}
