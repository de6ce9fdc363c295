//! What the paths of the flows offer, according to the measurements of their links' services.

use std::collections::BTreeSet;

use airlane_channel::ErrorsConfig;
use airlane_link::config::resolve;
use airlane_link::effective_goodput;
use airlane_link::path::{Offer, compose};

use crate::engine::{Engine, PortEnd};
use crate::result::PathResult;
use crate::route::Routes;
use crate::scenario::{LinkConfig, Scenario};
use crate::world::{direction_index, mean_rate};

/// Links with their directions: true means down.
pub(crate) type LinkPath = Vec<(usize, bool)>;

/// The links that a flow crosses in its main direction.
pub(crate) fn link_path(routes: &Routes, flow: usize) -> LinkPath {
    let hops = routes.links(flow);
    hops.map(|hop| (hop.link, hop.down)).collect()
}

/// One result for each pair of ends that some flow connects over a link with services.
pub(crate) fn path_results(
    scenario: &Scenario,
    routes: &Routes,
    engine: &Engine,
) -> Vec<PathResult> {
    let links: Vec<(&String, &LinkConfig)> = scenario.links.iter().collect();
    let mut results: Vec<PathResult> = vec![];
    let mut known = BTreeSet::new();
    for (index, flow) in scenario.flows.iter().enumerate() {
        if known.contains(&flow.ends) {
            continue;
        }
        let path = link_path(routes, index);
        if path
            .iter()
            .all(|(link, _)| links[*link].1.services.is_empty())
        {
            continue;
        }
        known.insert(&flow.ends);
        let offers: Vec<Vec<Offer>> = path
            .iter()
            .map(|(link, down)| {
                let index = direction_index(*link, *down);
                link_offers(links[*link].1, *down, index, engine)
            })
            .collect();
        results.push(PathResult {
            ends: flow.ends.clone(),
            links: path
                .iter()
                .map(|(link, _)| links[*link].0.clone())
                .collect(),
            offers: compose(&offers),
        });
    }
    results
}

/// The offers of one direction of a link.
fn link_offers(link: &LinkConfig, down: bool, index: usize, engine: &Engine) -> Vec<Offer> {
    let rate_bps = mean_rate(link, down).as_bps() as f64;
    let Some([near, far]) = engine.port_ends(index) else {
        // Its rate is fixed and nothing is measured; only for a link without losses is anything else known.
        return vec![Offer {
            service: None,
            class: None,
            capacity_bps: rate_bps,
            loss: (link.errors == ErrorsConfig::default()).then_some(0.0),
            delay_s: link.delay.of(down).as_secs_f64(),
        }];
    };
    let configs = resolve(link.header.unwrap_or_default(), &link.services);
    let status = |end: &PortEnd| end.port.services().collect::<Vec<_>>();
    let (near, far) = (status(near), status(far));
    let rates: f64 = near.iter().map(|service| service.rate).sum();
    near.iter()
        .zip(&far)
        .filter_map(|(near, far)| {
            let config = configs.iter().find(|config| config.number == near.number)?;
            let e = effective_goodput(&near.metrics, &far.metrics)?;
            Some(Offer {
                service: Some(near.number),
                class: Some(config.scheme.class()),
                capacity_bps: rate_bps * near.rate / rates * e,
                loss: far.metrics.loss,
                delay_s: far.metrics.delay_s? + near.metrics.queueing_s.unwrap_or(0.0),
            })
        })
        .collect()
}
