//! The headers of a flow's packets, and services that no flow can reach.

use airlane_link::FlowKey;
use airlane_link::classify::{Unreached, unreached};
use airlane_link::flow::{TCP, UDP};

use crate::app::place::DYNAMIC_PORTS;
use crate::packet::{CLAP, ESP, Header};
use crate::scenario::{Scenario, TransportConfig};

/// The header of a flow's packets in its main direction; over TCP, of its first connection. The scenario must be
/// resolved.
pub(crate) fn header(scenario: &Scenario, index: usize) -> Header {
    let config = &scenario.flows[index];
    let address = |end: usize| {
        let address = scenario.nodes[&config.ends[end]].address;
        address.expect("resolved: nodes have addresses")
    };
    Header {
        src: address(0),
        dst: address(1),
        src_port: config.port.expect("resolved: flows have ports"),
        // The port of the other end only has to differ between flows.
        dst_port: DYNAMIC_PORTS + (index % 16_384) as u16,
        dscp: config.dscp.value(),
        protocol: match config.transport {
            _ if config.encrypted => ESP,
            TransportConfig::Tcp(_) => TCP,
            TransportConfig::Udp(_) => UDP,
            TransportConfig::Clap(_) => CLAP,
        },
    }
}

/// The classifier keys of a flow's packets in its main direction, and against it.
fn keys(scenario: &Scenario, index: usize) -> [FlowKey; 2] {
    let there = FlowKey::from(header(scenario, index));
    [there, there.reversed()]
}

impl Scenario {
    /// Services that none of the flows reaches, and rules without effect, with the name of their link. Such flows use
    /// the raw link instead, which is seldom intended.
    ///
    /// The scenario must be valid; scenarios from files are.
    pub fn unreached(&self) -> Vec<(String, Unreached)> {
        let all = self.resolved();
        let epochs = all.epochs();
        let mut here = vec![vec![]; all.links.len()];
        for flow in 0..all.flows.len() {
            epochs.hops(flow).for_each(|hop| here[hop.link].push(flow));
        }
        let mut found = vec![];
        for ((name, link), here) in all.links.iter().zip(here) {
            let here = here.into_iter();
            let keys: Vec<FlowKey> = here.flat_map(|flow| keys(&all, flow)).collect();
            let idle = unreached(&link.services, &link.classes, Some(&keys));
            found.extend(idle.into_iter().map(|idle| (name.clone(), idle)));
        }
        found
    }
}
