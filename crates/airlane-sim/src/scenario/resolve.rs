//! Every default of a scenario, filled in.

use std::net::Ipv4Addr;

use airlane_base::Size;
use airlane_link::config::HandedOver;
use airlane_link::{ClassesConfig, HeaderProfile, QueueConfig};

use super::{AppConfig, Epoch, FlowConfig, LinkConfig, PacedBy, Scenario};
use crate::route::{Hop, Routes, Step};

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
        let epochs = all.epochs();
        for (flow, original) in all.flows.iter_mut().zip(&self.flows) {
            flow.port.get_or_insert(original.app.default_port());
            let packet = flow.app.packet_mut();
            *packet = packet.or_else(|| self.usual_packet(original, &epochs));
        }
        all
    }

    /// The packet size of a flow that states none: what fits all frames on its paths, of speech what
    /// is spoken in 20 ms. None if no link states a frame size and nothing else tells it.
    pub(crate) fn usual_packet(&self, flow: &FlowConfig, epochs: &[Epoch]) -> Option<Size> {
        let frame = self.smallest_frame(flow, epochs);
        match &flow.app {
            AppConfig::Conferencing(app) => {
                let spoken = app.usual_packet();
                Some(frame.map_or(spoken, |frame| frame.min(spoken)))
            }
            _ => frame.map(|frame| {
                let header = u64::from(flow.transport.header_len());
                Size::from_bytes(frame.as_bytes().saturating_sub(header).max(1))
            }),
        }
    }

    /// The smallest frame on a flow's paths; none if no link of them states one.
    fn smallest_frame(&self, flow: &FlowConfig, epochs: &[Epoch]) -> Option<Size> {
        self.links_of(flow, epochs)
            .into_iter()
            .filter_map(|link| self.links.values().nth(link)?.frame)
            .min()
    }

    /// Whether a flow has a way, over links or through the air.
    pub(crate) fn has_way(&self, flow: &FlowConfig, routes: &Routes) -> bool {
        let index = |name: &str| self.nodes.keys().position(|n| n == name);
        let ends = index(&flow.ends[0]).zip(index(&flow.ends[1]));
        ends.is_some_and(|(from, to)| routes.next(from, to).is_some())
    }

    /// The links on the way of a flow's main direction; none without a way.
    pub(crate) fn path(&self, flow: &FlowConfig, routes: &Routes) -> Vec<Hop> {
        let index = |name: &str| self.nodes.keys().position(|n| n == name);
        match (index(&flow.ends[0]), index(&flow.ends[1])) {
            (Some(from), Some(to)) => {
                let path = routes.path(from, to);
                path.into_iter().filter_map(Step::link).collect()
            }
            _ => vec![],
        }
    }

    /// Indices of the links that a flow's main direction crosses at any time.
    pub(crate) fn links_of(&self, flow: &FlowConfig, epochs: &[Epoch]) -> Vec<usize> {
        let paths = epochs.iter().map(|epoch| self.path(flow, &epoch.routes));
        let mut links: Vec<usize> = paths.flatten().map(|hop| hop.link).collect();
        links.sort_unstable();
        links.dedup();
        links
    }
}

impl LinkConfig {
    fn resolve(&mut self) {
        if self.services.is_empty() {
            return;
        }
        let header = *self.header.get_or_insert_default();
        self.scheduler.get_or_insert_default();
        self.rates.get_or_insert_default();
        self.classes = ClassesConfig::Rules(self.classes.rules(&self.services));
        self.handed_over.get_or_insert(HandedOver::usual(header));
        self.pacing.get_or_insert_default();
        if self.medium.is_some() {
            self.paced_by = Some(PacedBy::Link);
        }
        for service in &mut self.services {
            // The dissertation's IP queue is drop-tail; a live port's is fair and kept short.
            if header == HeaderProfile::Study {
                let limit = self.queue.down;
                service.queue.get_or_insert(QueueConfig::DropTail { limit });
            }
            *service = service.resolve(header);
            // Simulated packets stand for bytes: they have none to share a frame with, and no headers.
            service.aggregate = None;
            service.compact_headers = false;
        }
    }
}
