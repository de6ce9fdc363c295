//! Which services of each link carried the packets of a flow.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use airlane_link::ServiceConfig;
use airlane_link::config::IMPLICIT_NAME;

use crate::engine::served::Served;
use crate::result::{FlowService, ServiceShare};
use crate::scenario::{Epochs, Scenario};
use crate::world::direction_index;

/// The services that have carried each flow's packets so far. The scenario must be resolved.
pub(crate) fn flow_services(
    scenario: &Scenario,
    epochs: &Epochs,
    served: &[Served],
) -> Vec<Vec<FlowService>> {
    let links = scenario.links.iter();
    let links: Vec<_> = links
        .map(|(name, link)| (name, scenario.services_of(link)))
        .collect();
    let of = |(flow, served): (usize, &Served)| {
        let used = epochs.hops(flow).filter_map(|hop| {
            let (name, services) = &links[hop.link];
            let [there, back] = [hop.down, !hop.down].map(|down| {
                let got = served.of(direction_index(hop.link, down));
                shares(got.map(|(number, packets)| (service_name(services, number), packets)))
            });
            let any = !there.is_empty() || !back.is_empty();
            any.then(|| FlowService {
                link: (*name).clone(),
                there,
                back,
            })
        });
        used.collect()
    };
    served.iter().enumerate().map(of).collect()
}

/// The name of a service, by number.
fn service_name(services: &[ServiceConfig], number: u8) -> &str {
    let service = services.iter().find(|s| s.number == number);
    service.map_or(IMPLICIT_NAME, |s| &s.name)
}

/// The share of each service, from packets by name; a name may occur several times.
fn shares<'a>(got: impl Iterator<Item = (&'a str, u64)>) -> Vec<ServiceShare> {
    let mut all = BTreeMap::new();
    for (name, packets) in got {
        *all.entry(name).or_insert(0) += packets;
    }
    let total: u64 = all.values().sum();
    let share = |(name, packets): (&str, u64)| ServiceShare {
        service: name.to_owned(),
        packets,
        ratio: packets as f64 / total as f64,
    };
    let mut shares: Vec<ServiceShare> = all.into_iter().map(share).collect();
    shares.sort_by_key(|share| Reverse(share.packets));
    shares
}

/// Combines the services of one flow over several runs.
pub(crate) fn together<'a>(runs: impl Iterator<Item = &'a FlowService>) -> Vec<FlowService> {
    let mut links: Vec<(&str, Vec<&FlowService>)> = vec![];
    for used in runs {
        match links.iter_mut().find(|(link, _)| *link == used.link) {
            Some((_, all)) => all.push(used),
            None => links.push((&used.link, vec![used])),
        }
    }
    let sum = |all: &[&FlowService], of: fn(&FlowService) -> &[ServiceShare]| {
        let got = all.iter().flat_map(|used| of(used));
        shares(got.map(|share| (share.service.as_str(), share.packets)))
    };
    let one = |(link, all): (&str, Vec<&FlowService>)| FlowService {
        link: link.to_owned(),
        there: sum(&all, |used| &used.there),
        back: sum(&all, |used| &used.back),
    };
    links.into_iter().map(one).collect()
}
