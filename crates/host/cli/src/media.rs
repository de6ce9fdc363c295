//! What links and radio channels did, for the screen: means over the runs.

use airlane_sim::Summary;

use crate::metric::{LINK_METRICS, MediumMetric, RADIO_METRICS, STATION_METRICS};
use crate::table::{Align, Table};

fn table(words: [&'static str; 2], numbers: &[MediumMetric]) -> Table {
    let words = words.map(|head| (head, Align::Left));
    let numbers = numbers.iter().map(|metric| (metric.words, Align::Right));
    Table::new(words.into_iter().chain(numbers))
}

/// By link and direction; nothing where there are none.
pub(crate) fn links_text(summary: &Summary) -> String {
    if summary.links.is_empty() {
        return String::new();
    }
    // A column that no link has a number for is left out.
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

/// By radio channel and station; nothing where there are none.
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
