//! Which flows have headers that links can compress, and which links can.

use airlane_base::config::Problems;

use super::{LinkConfig, Scenario, TransportConfig};
use crate::rfc1144::{FlowHeaders, WHOLE};

impl LinkConfig {
    pub(super) fn check_header_compression(&self, scenario: &Scenario, problems: &mut Problems) {
        if self.header_compression.is_none() {
            return;
        }
        let other = [
            ("services", !self.services.is_empty()),
            ("a medium", self.medium.is_some()),
            ("jitter", self.jitter.is_some()),
        ];
        for (what, _) in other.iter().filter(|(_, is)| *is) {
            problems.add(
                "header-compression",
                format!(
                    "differences need packets in order on a link of their own: this link has {what}"
                ),
                format!("a link without {what}, or no header-compression"),
            );
        }
        if scenario.headers_of_flows().all(|flow| flow.is_none()) {
            problems.add(
                "header-compression",
                format!("no flow has TCP/IP headers of {WHOLE} B to compress"),
                format!("header-size = \"{WHOLE} B\" or more in the transport of a flow over TCP"),
            );
        }
    }
}

impl Scenario {
    /// What compressors see of each flow; none of flows whose headers are not counted.
    pub(crate) fn headers_of_flows(&self) -> impl Iterator<Item = Option<FlowHeaders>> {
        self.flows.iter().map(|flow| {
            let TransportConfig::Tcp(tcp) = &flow.transport else {
                return None;
            };
            let least = tcp.header_size?.min(tcp.ack_size).as_bytes();
            (least >= u64::from(WHOLE)).then(|| FlowHeaders {
                segment: flow
                    .app
                    .packet()
                    .map_or(1, |packet| packet.as_bytes() as u32),
                stamps: tcp.timestamps.unwrap_or_default(),
            })
        })
    }
}
