//! What no flow over CLAP can be.

use airlane_base::config::Problems;
use airlane_transport::ClapConfig;
use airlane_transport::clap::MOST_PACKETS;

use super::{AppConfig, Epoch, FlowConfig, Scenario, TransportConfig};
use crate::route::Step;

impl Scenario {
    pub(super) fn check_clap(
        &self,
        flow: &FlowConfig,
        clap: &ClapConfig,
        epochs: &[Epoch],
        problems: &mut Problems,
    ) {
        if let Err(reason) = clap.validate() {
            problems.add("transport", reason, "");
        }
        if flow.encrypted {
            problems.add(
                "encrypted",
                "CLAP is not encrypted",
                "leave encrypted out, or transport = { kind = \"tcp\" }",
            );
        }
        check_file(flow, problems);
        if epochs
            .iter()
            .any(|epoch| !self.begins_at_station(flow, epoch))
        {
            problems.add(
                "transport",
                "CLAP goes by what a station of a radio channel says, and the first hop of this flow is none",
                "a sender that stands in `nodes` of a medium of kind \"wifi\", on the way to the receiver",
            );
        }
        let mut others = self
            .flows
            .iter()
            .filter_map(|other| match &other.transport {
                TransportConfig::Clap(other) => Some(other.interval),
                _ => None,
            });
        if let Some(other) = others.find(|other| *other != clap.interval) {
            problems.add(
                "transport.interval",
                format!(
                    "intervals of {} and of {other} do not go together",
                    clap.interval
                ),
                "the same for all flows: it is also how often stations are asked",
            );
        }
    }

    /// Whether the first hop of a flow is through the air, in the time of an epoch in which it has a way.
    fn begins_at_station(&self, flow: &FlowConfig, epoch: &Epoch) -> bool {
        let index = |name: &str| self.nodes.keys().position(|n| n == name);
        let ends = index(&flow.ends[0]).zip(index(&flow.ends[1]));
        let hop = ends.and_then(|(from, to)| epoch.routes.next(from, to));
        hop.is_none_or(|hop| matches!(hop, Step::Radio(_)))
    }
}

fn check_file(flow: &FlowConfig, problems: &mut Problems) {
    let AppConfig::Bulk(app) = &flow.app else {
        return;
    };
    let Some(size) = app.size else {
        problems.add(
            "app.size",
            "CLAP says at the start how long a file is",
            "size = \"1 MB\", or transport = { kind = \"tcp\" }",
        );
        return;
    };
    for (path, set) in [
        ("app.takes", app.takes.is_some()),
        ("app.windows", app.windows),
    ] {
        if set {
            problems.add(
                path,
                "CLAP has no windows",
                "leave it out, or transport = { kind = \"tcp\" }",
            );
        }
    }
    let packet = app.packet.map_or(1, |packet| packet.as_bytes()).max(1);
    if size.as_bytes().div_ceil(packet) > u64::from(MOST_PACKETS) {
        problems.add(
            "app.size",
            format!("{size} are more packets than CLAP has numbers for"),
            format!("at most {MOST_PACKETS} packets: a shorter file or larger packets"),
        );
    }
}
