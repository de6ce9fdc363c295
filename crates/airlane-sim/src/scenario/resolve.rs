//! Every default of a scenario, filled in.

use std::net::Ipv4Addr;

use airlane_base::Size;
use airlane_link::config::HandedOver;
use airlane_link::{ClassesConfig, HeaderProfile, QueueConfig};

use super::{FlowConfig, LinkConfig, Scenario};
use crate::route::Routes;

impl Scenario {
    /// The same scenario with every default written out.
    pub fn resolved(&self) -> Self {
        let mut all = self.clone();
        let taken: Vec<Ipv4Addr> = all.nodes.values().filter_map(|n| n.address).collect();
        let mut free = (1..)
            .map(|host| Ipv4Addr::from_bits(0x0a00_0000 + host))
            .filter(|address| !taken.contains(address));
        for node in all.nodes.values_mut() {
            node.address = node.address.or_else(|| free.next());
        }
        for link in all.links.values_mut() {
            link.resolve();
        }
        let routes = Routes::new(&all.nodes, &all.links);
        for (flow, original) in all.flows.iter_mut().zip(&self.flows) {
            flow.port.get_or_insert(original.app.default_port());
            let packet = flow.app.packet_mut();
            *packet = packet.or_else(|| self.smallest_frame(original, &routes));
        }
        all
    }

    /// The smallest frame on a flow's path; none if no link of it states one.
    pub(super) fn smallest_frame(&self, flow: &FlowConfig, routes: &Routes) -> Option<Size> {
        self.path(flow, routes)
            .into_iter()
            .filter_map(|link| self.links.values().nth(link)?.frame)
            .min()
    }

    /// Indices of the links that a flow's main direction crosses.
    pub(crate) fn path(&self, flow: &FlowConfig, routes: &Routes) -> Vec<usize> {
        let index = |name: &str| self.nodes.keys().position(|n| n == name);
        match (index(&flow.ends[0]), index(&flow.ends[1])) {
            (Some(from), Some(to)) => routes.path(from, to).iter().map(|h| h.link).collect(),
            _ => vec![],
        }
    }
}

impl LinkConfig {
    fn resolve(&mut self) {
        if self.services.is_empty() {
            return;
        }
        let header = *self.header.get_or_insert_default();
        self.scheduler.get_or_insert_default();
        self.rates.get_or_insert(self.classes.usual_rates());
        self.classes = ClassesConfig::Rules(self.classes.rules(&self.services));
        self.handed_over.get_or_insert(HandedOver::usual(header));
        self.pacing.get_or_insert_default();
        for service in &mut self.services {
            // The dissertation's IP queue is drop-tail; a live port's is fair and kept short.
            if header == HeaderProfile::Study {
                let limit = self.queue;
                service.queue.get_or_insert(QueueConfig::DropTail { limit });
            }
            *service = service.resolve(header);
        }
    }
}
