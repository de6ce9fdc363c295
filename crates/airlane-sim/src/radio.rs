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
            let station = |(index, node): (usize, &String)| {
                let counts = end.radio.station_stats(index);
                StationResult {
                    node: node.clone(),
                    accepted: counts.accepted,
                    queue_drops: counts.queue_drops,
                    retry_drops: counts.retry_drops,
                    data_frames: counts.data_frames,
                    data_collided: counts.data_collided,
                    data_noise: counts.data_noise,
                    ack_frames: counts.ack_frames,
                    ack_collided: counts.ack_collided,
                    rts_frames: counts.rts_frames,
                    rts_collided: counts.rts_collided,
                    delivered: counts.delivered,
                    repeated: counts.repeated,
                    draws_at_cw_max: counts.draws_at_cw_max,
                }
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
