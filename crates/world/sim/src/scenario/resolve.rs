//! Every default of a scenario, filled in.

use airlane_base::{BothWays, QueueLimit, Size};
use airlane_link::config::HandedOver;
use airlane_link::{ClassesConfig, HeaderProfile, QueueConfig};

use super::{AppConfig, Epochs, LinkConfig, PacedBy, Scenario, TransportConfig};

/// ns-2's default, and the proposal of docs/spec/multi-service.md, section 3.
const USUAL_QUEUE: QueueLimit = QueueLimit::Packets(50);
/// The MTU of Ethernet, and so of nearly every path.
const USUAL_FRAME: Size = Size::from_bytes(1_500);

impl Scenario {
    /// The same scenario with all defaults filled in.
    pub fn resolved(&self) -> Self {
        let mut all = self.clone();
        let addresses = self.addresses();
        for (name, node) in &mut all.nodes {
            node.address = addresses.get(&**name).copied();
        }
        for link in all.links.values_mut() {
            link.resolve();
        }
        let epochs = self.epochs();
        for (index, flow) in all.flows.iter_mut().enumerate() {
            flow.port.get_or_insert(flow.app.default_port());
            if let TransportConfig::Clap(clap) = &mut flow.transport {
                clap.resolve();
            }
            let usual = || self.usual_packet(index, &epochs);
            flow.app.packet_mut().get_or_insert_with(usual);
        }
        all
    }

    /// The largest payload of each link's frames, if limited; for live ends, the longest packet.
    pub(super) fn payloads(&self) -> Vec<Option<Size>> {
        let mtus = self.live_mtus();
        let payload = |link: &LinkConfig| {
            let ends = link.ends.iter().filter(|_| link.is_live());
            let mtu = ends.filter_map(|end| mtus.get(&**end)).min();
            mtu.map_or_else(|| link.payload(), |mtu| Some(Size::from_bytes(*mtu as u64)))
        };
        self.links.values().map(payload).collect()
    }

    /// The packet size of a flow that states none: fits into all frames on its paths; for speech, 20 ms of it.
    pub(crate) fn usual_packet(&self, flow: usize, epochs: &Epochs) -> Size {
        let frame = epochs.smallest_frame(flow);
        let flow = &self.flows[flow];
        match &flow.app {
            AppConfig::Conferencing(app) => {
                let spoken = app.usual_packet();
                frame.map_or(spoken, |frame| frame.min(spoken))
            }
            _ => {
                let frame = frame.unwrap_or(USUAL_FRAME).as_bytes();
                let header = u64::from(flow.transport.header_len());
                Size::from_bytes(frame.saturating_sub(header).max(1))
            }
        }
    }
}

impl LinkConfig {
    /// The largest payload of a frame, if limited.
    pub(crate) fn payload(&self) -> Option<Size> {
        let usual = (!self.services.is_empty()).then_some(USUAL_FRAME);
        self.frame.or(usual)
    }

    /// The queue limit before its transmitter.
    pub(crate) fn limit(&self) -> BothWays<QueueLimit> {
        self.queue.unwrap_or(BothWays::same(USUAL_QUEUE))
    }

    fn resolve(&mut self) {
        let queue = self.limit();
        self.queue = Some(queue);
        if self.services.is_empty() {
            return;
        }
        self.frame = self.payload();
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
            // The dissertation's IP queue is drop-tail; a live port's queue is FQ-CoDel.
            if header == HeaderProfile::Study {
                let limit = queue.down;
                service.queue.get_or_insert(QueueConfig::DropTail { limit });
            }
            *service = service.resolve(header);
            // Simulated packets stand for bytes: they cannot be aggregated, and have no headers to compress.
            service.aggregate = None;
            service.compact_headers = false;
        }
    }
}
