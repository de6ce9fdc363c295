//! What radio channels have counted, by the names of the file.

use crate::engine::Engine;
use crate::result::{RadioResult, StationResult};
use crate::scenario::Scenario;

/// One result for each radio channel.
pub(crate) fn radio_results(scenario: &Scenario, engine: &Engine) -> Vec<RadioResult> {
    let radios = scenario.wifis().zip(&engine.radios);
    radios
        .map(|((name, wifi), end)| {
            let counts = end.radio.stats();
            let station = |(index, node): (usize, &String)| StationResult {
                node: node.clone(),
                counts: end.radio.station_stats(index),
            };
            RadioResult {
                name: name.clone(),
                busy_periods: counts.busy_periods,
                collisions: counts.collisions,
                stations: wifi.nodes.keys().enumerate().map(station).collect(),
            }
        })
        .collect()
}
