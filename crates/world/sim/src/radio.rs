//! Counters of radio channels, with the names of the file.

use airlane_base::Instant;

use crate::engine::Engine;
use crate::result::{RadioResult, StationResult};
use crate::scenario::Scenario;

/// The share of the time so far in which each station was sending, by channel.
pub(crate) fn airtimes(engine: &Engine) -> Vec<Vec<f64>> {
    let time = engine.now().saturating_since(Instant::ORIGIN).as_nanos();
    let radios = engine.radios.iter().map(|end| &end.radio);
    let shares = radios.map(|radio| {
        let stations = (0..radio.stations()).map(|station| radio.station_stats(station));
        let shares = stations.map(|counts| counts.airtime_ns as f64 / time.max(1) as f64);
        shares.collect()
    });
    shares.collect()
}

/// One result for each radio channel; `airtimes` are the values at the stop.
pub(crate) fn radio_results(
    scenario: &Scenario,
    engine: &Engine,
    airtimes: &[Vec<f64>],
) -> Vec<RadioResult> {
    let radios = scenario.wifis().zip(&engine.radios).zip(airtimes);
    radios
        .map(|(((name, wifi), end), airtimes)| {
            let counts = end.radio.stats();
            let station = |(index, node): (usize, &String)| StationResult {
                node: node.clone(),
                airtime_ratio: airtimes[index],
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
