//! Prints the flows that a running link knows: the service of each, the reason, and the rule that
//! keeps it there.

use std::net::IpAddr;

use airlane_link::classify::FlowStatus;
use airlane_live::control;
use airlane_live::status::PeerFlows;
use anstyle::Style;

use crate::args::FlowsArgs;
use crate::quantity::{Estimate, Unit};
use crate::{live, output};

const STRONG: Style = Style::new().bold();

/// Runs `airlane flows`.
pub(crate) fn flows(args: &FlowsArgs) -> anyhow::Result<()> {
    let peers = control::flows(&live::socket(args.node.named())?)?;
    output::print(&match args.json {
        true => serde_json::to_string(&peers)? + "\n",
        false => render(&peers, args.most),
    })
}

fn render(peers: &[PeerFlows], most: usize) -> String {
    let mut text = String::new();
    for PeerFlows {
        peer,
        flows,
        others,
        classes,
    } in peers
    {
        let shown = flows.len().min(most);
        let hidden = (flows.len() - shown) as u64 + others;
        text += &match (shown, hidden) {
            (0, 0) => format!(
                "{STRONG}{peer}{STRONG:#}: no flow is known. Flows are observed if `classes` is left out or has a rule with `behaves`.\n"
            ),
            (_, 0) => format!("{STRONG}{peer}{STRONG:#}: all flows\n"),
            _ => format!(
                "{STRONG}{peer}{STRONG:#}: {shown} of {} flows: those that run first, then those with the most bytes\n",
                shown as u64 + hidden
            ),
        };
        for flow in &flows[..shown] {
            text += &block(flow, classes.as_deref());
        }
    }
    if peers.iter().any(|peer| !peer.flows.is_empty()) && most > 0 {
        text += "\nA rule keeps a flow where it is: paste its line into [link], or put it first in the existing classes, and reload.\n";
    }
    text
}

fn block(flow: &FlowStatus, classes: Option<&str>) -> String {
    let bytes = |bytes: u64| Estimate::single(bytes as f64).show(Unit::Bytes);
    let seconds = |seconds: f64| Estimate::single(seconds).show(Unit::Seconds);
    let silent = match flow.silent_s {
        silent if silent < 1.0 => String::new(),
        silent => format!(", silent for {}", seconds(silent)),
    };
    let to = flow.service.as_deref().map_or_else(
        || "only the peer has sent".to_owned(),
        |service| format!("on {STRONG}{service}{STRONG:#}"),
    );
    // A flow of a transport with ports, but without port numbers, consists of IP fragments whose
    // first one had not been seen before.
    let has_ports = matches!(
        &*flow.protocol,
        "tcp" | "udp" | "sctp" | "dccp" | "udp-lite"
    );
    let cut = match has_ports && flow.here.parse::<IpAddr>().is_ok() {
        true => " (fragments that came without their first, which alone names ports)",
        false => "",
    };
    let rule = flow.rule.as_ref();
    format!(
        "\n  {} {} -> {}{cut}: {}, {to}\n    {}\n    {} sent, {} received in {}{silent}\n{}",
        flow.protocol,
        flow.here,
        flow.there,
        flow.behaviour.name(),
        flow.why,
        bytes(flow.sent_bytes),
        bytes(flow.received_bytes),
        seconds(flow.age_s),
        rule.map_or_else(String::new, |rule| match classes {
            // A single rule would take all other flows out of their services.
            Some(name) => format!("    classes = [{rule}, \"{name}\"]\n"),
            None => format!("    {rule}\n"),
        }),
    )
}

#[cfg(test)]
mod tests {
    use airlane_link::classify::Behaviour;

    use super::*;

    #[test]
    fn a_flow_shows_its_service_the_reason_and_a_rule_for_it() {
        let flow = FlowStatus {
            protocol: "udp".to_owned(),
            here: "10.0.0.1:5004".to_owned(),
            there: "10.0.0.2:6000".to_owned(),
            service: Some("voice".to_owned()),
            behaviour: Behaviour::Call,
            why: "Because.".to_owned(),
            rule: Some("{ match = { src-port = \"5004\" }, service = \"voice\" }".to_owned()),
            sent_packets: 50,
            sent_bytes: 10_000,
            received_packets: 0,
            received_bytes: 0,
            age_s: 1.5,
            silent_s: 0.1,
        };
        let peers = [PeerFlows {
            peer: "hill".to_owned(),
            flows: vec![flow.clone(), flow],
            others: 3,
            classes: Some("behaviour".to_owned()),
        }];
        let text = anstream::adapter::strip_str(&render(&peers, 1)).to_string();
        assert_eq!(
            text,
            "hill: 1 of 5 flows: those that run first, then those with the most bytes\n\n  udp 10.0.0.1:5004 -> 10.0.0.2:6000: call, on voice\n    \
             Because.\n    10.0 kB sent, 0 B received in 1.50 s\n    \
             classes = [{ match = { src-port = \"5004\" }, service = \"voice\" }, \"behaviour\"]\n\n\
             A rule keeps a flow where it is: paste its line into [link], or put it first in the existing classes, and reload.\n"
        );
        assert!(render(&[], 1).is_empty());
        let parts = FlowStatus {
            here: "10.0.0.1".to_owned(),
            there: "10.0.0.2".to_owned(),
            ..peers[0].flows[0].clone()
        };
        let text = anstream::adapter::strip_str(&block(&parts, None)).to_string();
        assert!(
            text.contains("10.0.0.2 (fragments that came without"),
            "{text}"
        );
    }
}
