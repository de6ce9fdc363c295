//! `airlane pull`: shows the rate that a node would offer to a flow to a host.

use std::time::Duration;

use airlane_live::control::registration::{Registration, register};
use airlane_live::status::{FlowOffer, Offer, RouteOffer};
use anyhow::bail;

use crate::args::PullArgs;
use crate::quantity::{Estimate, Unit};
use crate::{live, output, ship};

/// Nothing is known within the first interval, nor about the path until a probe has returned.
const FIRST: Duration = Duration::from_millis(50);
const TRIES: usize = 40;

/// Runs `airlane pull`.
pub(crate) fn pull(args: &PullArgs) -> anyhow::Result<()> {
    let to = ship::resolve(&args.host)?;
    let [to, ..] = to[..] else {
        bail!("{}: the host has no address", args.host);
    };
    // Port 0 belongs to no flow: rules that match a source port do not match.
    let mut flow = register(&live::socket(args.node.named())?, 0, to)?;
    let mut offer = first(&mut flow)?;
    loop {
        let is_read = output::print_while_read(&match args.json {
            true => serde_json::to_string(&offer)? + "\n",
            false => render(&offer),
        })?;
        if !args.watch || !is_read {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs(1));
        offer = flow.pull()?;
    }
}

/// The first offer, with the path if it answers the probe.
fn first(flow: &mut Registration) -> anyhow::Result<FlowOffer> {
    for _ in 1..TRIES {
        let offer = flow.pull()?;
        if offer.local.is_some() && offer.route.is_some() {
            return Ok(offer);
        }
        std::thread::sleep(FIRST);
    }
    Ok(flow.pull()?)
}

fn render(offer: &FlowOffer) -> String {
    let FlowOffer {
        peer,
        service,
        flows,
        interval_ns,
        local,
        route,
    } = offer;
    let seconds = *interval_ns as f64 / 1e9;
    let with = match flows {
        0 | 1 => String::new(),
        2 => ", with another flow".to_owned(),
        more => format!(", with {} other flows", more - 1),
    };
    let local = match local {
        Some(local) => row(local, seconds, [None; 2]),
        None => "nothing yet".to_owned(),
    };
    let path = match route {
        Some(RouteOffer {
            least,
            least_out_node,
            least_room_node,
            complete,
            age_ns,
        }) => {
            let end = match complete {
                true => "",
                false => "; the path past the last node is unknown",
            };
            let nodes = [*least_out_node, *least_room_node].map(Some);
            let age = Estimate::single(*age_ns as f64 / 1e9).show(Unit::Seconds);
            format!("{}, {age} ago{end}", row(least, seconds, nodes))
        }
        None => "no probe has come back".to_owned(),
    };
    format!("to {peer} on {service}{with}\n  here      {local}\n  path      {path}\n")
}

fn row(offer: &Offer, seconds: f64, nodes: [Option<u8>; 2]) -> String {
    let rate = f64::from(offer.out_bytes) * 8.0 / seconds;
    let rate = Estimate::single(rate).show(Unit::BitsPerSecond);
    let room = Estimate::single(f64::from(offer.room_bytes)).show(Unit::Bytes);
    let dry = match offer.underflows {
        0 => "never dry".to_owned(),
        1 => "dry once".to_owned(),
        times => format!("dry {times} times"),
    };
    let [by_out, by_room] = nodes.map(|node| match node {
        Some(0) => " (here)".to_owned(),
        Some(1) => " (1 hop away)".to_owned(),
        Some(node) => format!(" ({node} hops away)"),
        None => String::new(),
    });
    format!("{rate}{by_out}, {dry}, room for {room}{by_room}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_shows_this_node_and_the_least_offer_on_its_path() {
        let local = Offer {
            out_packets: 20,
            out_bytes: 25_000,
            underflows: 0,
            room_bytes: 3_000,
        };
        let offer = FlowOffer {
            peer: "hill".to_owned(),
            service: "files".to_owned(),
            flows: 2,
            interval_ns: 100_000_000,
            local: Some(local),
            route: Some(RouteOffer {
                least: Offer {
                    underflows: 3,
                    ..local
                },
                least_out_node: 1,
                least_room_node: 0,
                complete: false,
                age_ns: 40_000_000,
            }),
        };
        assert_eq!(
            render(&offer),
            "to hill on files, with another flow\n  \
             here      2.00 Mbit/s, never dry, room for 3.00 kB\n  \
             path      2.00 Mbit/s (1 hop away), dry 3 times, room for 3.00 kB (here), 40.0 ms ago; the path past the last node is unknown\n"
        );
    }
}
