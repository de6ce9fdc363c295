//! Checks of flows over CLAP.

use airlane_base::config::Problems;
use airlane_transport::ClapConfig;
use airlane_transport::clap::MOST_PACKETS;

use super::{AppConfig, Epoch, FlowConfig, Scenario, TransportConfig};
use crate::graph::Step;

impl Scenario {
    pub(super) fn check_clap(
        &self,
        index: usize,
        clap: &ClapConfig,
        epochs: &[Epoch],
        problems: &mut Problems,
    ) {
        let flow = &self.flows[index];
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
        // Wherever the flow has a path.
        let first = epochs.iter().filter_map(|epoch| epoch.routes.first(index));
        if !first.into_iter().all(|hop| matches!(hop, Step::Radio(_))) {
            problems.add(
                "transport",
                "CLAP goes by what a station of a radio channel says, and the first hop of this flow is none",
                "a sender that stands in `nodes` of a medium of kind \"wifi\", on the way to the receiver",
            );
        }
    }

    /// All flows over CLAP must have the same interval.
    pub(super) fn check_intervals(&self, problems: &mut Problems) {
        let intervals = self.flows.iter().map(|flow| match &flow.transport {
            TransportConfig::Clap(clap) => Some(clap.interval),
            _ => None,
        });
        let intervals: Vec<_> = intervals.collect();
        let Some(first) = intervals.iter().flatten().next() else {
            return;
        };
        let Some(other) = intervals.iter().flatten().find(|other| *other != first) else {
            return;
        };
        for (i, interval) in intervals.iter().enumerate() {
            let Some(interval) = interval else { continue };
            let other = if interval == first { other } else { first };
            problems.add(
                &format!("flows[{i}].transport.interval"),
                format!("intervals of {interval} and of {other} do not go together"),
                "the same for all flows: it is also how often stations are asked",
            );
        }
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
