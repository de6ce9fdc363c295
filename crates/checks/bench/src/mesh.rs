//! A saturated grid of radio stations in three simulators: one flow over three hops, and three over one hop next to
//! it, in the world of Gopal 2007, section 5.3.

use airlane_sim::{Scenario, run};

/// Metres between neighbours: diagonal neighbours receive each other, and the whole grid is within sensing range.
pub const SPACING: u32 = 170;
/// Stations in a row, and rows.
pub const SIDE: usize = 4;
/// The nodes on each flow's path.
pub const ROUTES: [&[usize]; 4] = [&[1, 6, 11, 14], &[9, 12], &[10, 15], &[5, 0]];
/// Each flow sends a packet of this many bits per millisecond, more than the channel carries.
const PACKET_BITS: f64 = 8_000.0;

/// The scenario of the grid, with this duration.
///
/// # Panics
/// Never, because the text is a valid scenario.
pub fn scenario(seconds: u32) -> Scenario {
    let nodes = SIDE * SIDE;
    let mut text = format!(
        "schema = 1\nname = \"a saturated grid\"\nduration = \"{seconds} s\"\ndrain = \"0 s\"\n[media.mesh]\nkind = \"wifi\"\n\
         profile = \"802.11b-short\"\nsource-header = \"20 B\"\nroutes = [["
    );
    let names: Vec<String> = ROUTES[0]
        .iter()
        .map(|node| format!("\"n{node:02}\""))
        .collect();
    text += &format!("{}]]\n[media.mesh.nodes]\n", names.join(", "));
    for node in 0..nodes {
        let [x, y] = [node % SIDE, node / SIDE].map(|at| at * SPACING as usize);
        text += &format!("n{node:02} = [{x}, {y}]\n");
    }
    for node in 0..nodes {
        text += &format!("[nodes.n{node:02}]\n");
    }
    for route in ROUTES {
        let [from, to] = [route[0], route[route.len() - 1]];
        text += &format!(
            "[[flows]]\nname = \"from-{from:02}\"\nends = [\"n{from:02}\", \"n{to:02}\"]\ntransport = {{ kind = \"udp\" }}\n\
             app = {{ kind = \"conferencing\", rate = \"8 Mbit/s\", packet = \"1000 B\", talk = \"1000 s\", silence = \"0 s\" }}\n"
        );
    }
    Scenario::from_toml(&text, "grid").expect("the text is a scenario")
}

/// The throughput of each flow in Airlane, bit/s.
///
/// # Errors
/// If the run fails.
pub fn airlane(seconds: u32, seed: u64) -> Result<Vec<f64>, String> {
    let result = run(&scenario(seconds), seed, 0).map_err(|error| error.to_string())?;
    let delivered = result.flows.iter().map(|flow| flow.delivered_bytes as f64);
    Ok(delivered
        .map(|bytes| bytes * 8.0 / f64::from(seconds))
        .collect())
}

/// Parses a program's output: the packets of each flow, one line each, as `packets=N`.
pub(crate) fn flows(text: &str, seconds: u32) -> Option<Vec<f64>> {
    let found = text
        .lines()
        .filter_map(|line| line.strip_prefix("packets="));
    let packets: Vec<f64> = found.map(|n| n.parse().ok()).collect::<Option<_>>()?;
    let bps = packets.iter().map(|n| n * PACKET_BITS / f64::from(seconds));
    (packets.len() == ROUTES.len()).then(|| bps.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results of ns-2 2.35, bit/s, means of five runs of 60 s: the flow over three hops, and the sum of the three
    /// others.
    const NS2: [f64; 2] = [680_160.0, 4_129_627.0];

    #[test]
    fn the_grid_carries_what_ns2_found() {
        let flows = airlane(60, 1).unwrap();
        let ours = [flows[0], flows[1..].iter().sum()];
        for (ours, theirs) in ours.into_iter().zip(NS2) {
            assert!((ours / theirs - 1.0).abs() < 0.1, "{ours} {theirs}");
        }
    }
}
