//! The status of each flow for display: its service, and why.

use airlane_base::Instant;
use serde::{Deserialize, Serialize};

use super::{Behaviour, Chosen, ClassConfig, Classifier, MatchConfig, Ports, Prefix, Protocol};
use crate::flow::FlowKey;

/// The status of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowStatus {
    /// Protocol above IP.
    pub protocol: String,
    /// The endpoint on this side, with its port where it has one.
    pub here: String,
    /// The endpoint on the peer's side.
    pub there: String,
    /// The name of the service for its packets to the peer; none if only the peer has sent.
    pub service: Option<String>,
    /// Its behaviour.
    pub behaviour: Behaviour,
    /// Why it uses that service, in a sentence.
    pub why: String,
    /// The rule that would keep it there, as files write it.
    pub rule: Option<String>,
    /// Packets to the peer.
    pub sent_packets: u64,
    /// Bytes of these packets.
    pub sent_bytes: u64,
    /// Packets from the peer.
    pub received_packets: u64,
    /// Bytes of these packets.
    pub received_bytes: u64,
    /// Time since its first packet, seconds.
    pub age_s: f64,
    /// Time since its last packet, seconds.
    pub silent_s: f64,
}

impl Classifier {
    /// The choice by the present rules.
    fn judged_now(&self, flow: &FlowKey, chosen: Chosen) -> Chosen {
        if chosen.asked.generation == self.generation {
            return chosen;
        }
        let (service, rule) = self.rules.decide_known(flow, &chosen.asked);
        let rule = rule.map(|rule| rule as u16);
        Chosen {
            service,
            rule,
            ..chosen
        }
    }

    /// The status of each known flow. `name` gives the name of a service.
    pub fn flows(&self, now: Instant, name: impl Fn(u8) -> Option<String>) -> Vec<FlowStatus> {
        let known = self.flows.iter().flat_map(|flows| flows.iter());
        let told = known.map(|known| {
            let (flow, conduct) = (&known.flow, &known.conduct);
            // A flow that is silent since the rules changed is judged by the new ones.
            let chosen = known.chosen.map(|chosen| self.judged_now(flow, chosen));
            let service = chosen.and_then(|chosen| name(chosen.service));
            let rule = chosen.and_then(|chosen| chosen.rule);
            let rule = rule.and_then(|rule| self.rules.all.get(usize::from(rule)));
            let why = match (rule.map(|rule| rule.conditions), chosen) {
                (Some(_), Some(chosen)) if chosen.answers() => {
                    "It goes by the service that brings what it answers.".to_owned()
                }
                (Some(asked), _) if asked.behaves.is_some() => conduct.why(flow.protocol),
                (Some(asked), _) if let Some(dscp) = asked.dscp_alone() => {
                    format!("Its packets have DSCP {dscp}.")
                }
                (Some(_), _) => "A rule of the file says so.".to_owned(),
                (None, Some(_)) => "No rule is for it.".to_owned(),
                (None, None) => conduct.why(flow.protocol),
            };
            let [sent, received] = &conduct.courses;
            FlowStatus {
                protocol: Protocol(flow.protocol).to_string(),
                here: end(flow.src, flow.src_port),
                there: end(flow.dst, flow.dst_port),
                rule: service.as_deref().map(|service| rule_for(flow, service)),
                service,
                behaviour: conduct.behaviour,
                why,
                sent_packets: sent.packets.into(),
                sent_bytes: sent.bytes,
                received_packets: received.packets.into(),
                received_bytes: received.bytes,
                age_s: now.saturating_since(conduct.began).as_secs_f64(),
                silent_s: now.saturating_since(conduct.last).as_secs_f64(),
            }
        });
        told.collect()
    }
}

fn end(address: std::net::IpAddr, port: u16) -> String {
    match port {
        0 => address.to_string(),
        port => std::net::SocketAddr::new(address, port).to_string(),
    }
}

/// The rule that keeps flows like this one on its service. It uses the lower port, which is the one that
/// recurs.
fn rule_for(flow: &FlowKey, service: &str) -> String {
    let mut conditions = MatchConfig {
        protocol: Some(Protocol(flow.protocol)),
        ..MatchConfig::default()
    };
    let here = flow.src_port != 0 && (flow.src_port <= flow.dst_port || flow.dst_port == 0);
    if here {
        conditions.src = Some(Prefix::of(flow.src));
        conditions.src_port = Ports::new(flow.src_port, flow.src_port);
    } else {
        conditions.dst = Some(Prefix::of(flow.dst));
        conditions.dst_port = Ports::new(flow.dst_port, flow.dst_port);
    }
    ClassConfig {
        r#match: conditions,
        service: service.to_owned(),
    }
    .to_string()
}
