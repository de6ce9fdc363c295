//! Prints what links, radio channels and live nodes did: means over the runs, but for nodes a
//! single run.

use airlane_sim::{RunResult, Summary};

use crate::metric::{LINK_METRICS, MediumMetric, RADIO_METRICS, STATION_METRICS};
use crate::table::{Align, Table};

fn table(words: [&'static str; 2], numbers: &[MediumMetric]) -> Table {
    let words = words.map(|head| (head, Align::Left));
    let numbers = numbers.iter().map(|metric| (metric.words, Align::Right));
    Table::new(words.into_iter().chain(numbers))
}

/// A table by link and direction; empty without links.
pub(crate) fn links_text(summary: &Summary) -> String {
    if summary.links.is_empty() {
        return String::new();
    }
    // A column without a value for any link is left out.
    let known = |metric: &MediumMetric| summary.links.iter().any(|l| l.get(metric.name).is_some());
    let metrics: Vec<_> = LINK_METRICS.into_iter().filter(known).collect();
    let mut table = table(["link", "direction"], &metrics);
    for (index, link) in summary.links.iter().enumerate() {
        let name = if index % 2 == 0 { &link.link } else { "" };
        let numbers = metrics.iter();
        let numbers = numbers.map(|metric| metric.show(link.get(metric.name)));
        let words = [name.to_owned(), link.direction.to_owned()];
        table.row(words.into_iter().chain(numbers));
    }
    let unit = "utilisation, and frames of each run, until the applications stopped";
    format!("\n{}{unit}\n", table.render())
}

/// A table by radio channel and station; empty without radio channels.
pub(crate) fn radios_text(summary: &Summary) -> String {
    if summary.radios.is_empty() {
        return String::new();
    }
    let mut table = table(["channel", "station"], &STATION_METRICS);
    let mut channels = String::new();
    for radio in &summary.radios {
        let mut name = radio.name.as_str();
        for station in &radio.stations {
            let numbers = STATION_METRICS.iter();
            let numbers = numbers.map(|metric| metric.show(station.get(metric.name)));
            let words = [name.to_owned(), station.node.clone()];
            table.row(words.into_iter().chain(numbers));
            name = "";
        }
        let [busy, collisions] = RADIO_METRICS.map(|metric| {
            let value = metric.show(radio.get(metric.name));
            format!("{value} {}", metric.words)
        });
        channels += &format!("{}: {busy}, {collisions}\n", radio.name);
    }
    let unit = "airtime, and frames of all kinds of each run, until the applications stopped";
    format!("\n{}{unit}\n{channels}", table.render())
}

/// What live nodes report of their peers at the end of a run; empty without live nodes.
pub(crate) fn nodes_text(run: &RunResult) -> String {
    if run.nodes.is_empty() {
        return String::new();
    }
    let words = ["live node", "peer", "session"].map(|head| (head, Align::Left));
    let numbers = ["sends at most", "path MTU", "packets dropped"].map(|head| (head, Align::Right));
    let mut table = Table::new(words.into_iter().chain(numbers));
    for node in &run.nodes {
        let mut name = node.node.as_str();
        for peer in &node.status.peers {
            let dropped: u64 = peer.drops.values().sum();
            table.row([
                name.to_owned(),
                peer.name.clone(),
                peer.session.state.clone(),
                format!("{:.1} kbit/s", peer.sending_rate_bps as f64 / 1e3),
                format!("{} B", peer.path_mtu_bytes),
                dropped.to_string(),
            ]);
            name = "";
        }
    }
    let too_long = run.links.iter().flat_map(|link| [&link.down, &link.up]);
    let too_long: u64 = too_long.map(|way| way.too_long.frames).sum();
    let lost = match too_long {
        0 => String::new(),
        count => format!("; {count} datagrams were longer than `mtu`"),
    };
    format!("\n{}at the end of run 0{lost}\n", table.render())
}
