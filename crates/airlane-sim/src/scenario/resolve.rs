//! Every default of a scenario, filled in.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use airlane_base::Size;
use airlane_link::config::HandedOver;
use airlane_link::{ClassesConfig, HeaderProfile, QueueConfig};

use super::{AppConfig, Epochs, LinkConfig, PacedBy, Scenario};

impl Scenario {
    /// The same scenario with every default written out.
    pub fn resolved(&self) -> Self {
        let mut all = self.clone();
        let taken: BTreeSet<Ipv4Addr> = all.nodes.values().filter_map(|n| n.address).collect();
        let mut free = (1..)
            .map(|host| Ipv4Addr::from_bits(0x0a00_0000 + host))
            .filter(|address| !taken.contains(address));
        for node in all.nodes.values_mut() {
            node.address = node.address.or_else(|| free.next());
        }
        for link in all.links.values_mut() {
            link.resolve();
        }
        let epochs = self.epochs();
        for (index, flow) in all.flows.iter_mut().enumerate() {
            flow.port.get_or_insert(flow.app.default_port());
            let packet = flow.app.packet_mut();
            *packet = packet.or_else(|| self.usual_packet(index, &epochs));
        }
        all
    }

    /// The packet size of a flow that states none: what fits all frames on its paths, of speech what
    /// is spoken in 20 ms. None if no link states a frame size and nothing else tells it.
    pub(crate) fn usual_packet(&self, flow: usize, epochs: &Epochs) -> Option<Size> {
        let frame = epochs.smallest_frame(flow);
        let flow = &self.flows[flow];
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
