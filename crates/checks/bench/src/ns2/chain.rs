//! A saturating flow over one to eight hops of 802.11b in both simulators: the effect of contention, hidden stations
//! and capture (Gopal 2007, figure 5.3).

use airlane_sim::{Estimate, Scenario, repeat};

use super::compare::BesideNs2;
use super::run::{Ns2, Ns2Error};

/// Repetitions in each simulator: the throughput of 40 s hardly varies.
const RUNS: u64 = 5;
const SEED: u64 = 1999;
/// Metres between neighbours: neighbours receive each other, and stations up to three hops apart sense each other.
const SPACING: u32 = 200;

/// Results of ns-2 2.35 by number of hops, for machines without it: mean and standard deviation of [`RUNS`], bit/s.
const KNOWN: [(f64, f64); 8] = [
    (5_832_080.0, 6_879.8),
    (3_000_360.0, 1_451.9),
    (2_055_160.0, 1_687.6),
    (1_618_080.0, 3_021.9),
    (1_298_520.0, 3_859.0),
    (1_118_720.0, 11_164.8),
    (1_037_120.0, 1_712.3),
    (978_800.0, 6_738.0),
];

/// The largest number of hops.
pub const MOST_HOPS: usize = KNOWN.len();

/// The setting in the format of the report's columns.
pub fn chain_label(hops: usize) -> String {
    let word = if hops == 1 { "hop" } else { "hops" };
    format!("udp | 802.11b | {hops} {word} of {SPACING} m | - | 100 | collisions")
}

/// Runs a chain of this many hops, at least 1 and at most [`MOST_HOPS`], in Airlane, and in ns-2 if it is installed;
/// otherwise recorded results are used.
///
/// # Errors
/// If ns-2 fails.
///
/// # Panics
/// If the number of hops is out of range.
pub fn compare_chain(hops: usize, ns2: Option<&Ns2>) -> Result<BesideNs2, Ns2Error> {
    let scenario = scenario(hops);
    let results = repeat(&scenario, SEED, RUNS, 0, |_, _| {}).expect("a valid scenario runs");
    let ours = results.iter().map(|run| {
        let progress = run.flows[0].progress.as_ref();
        let window = progress.and_then(|progress| progress.windows.get("measured"));
        window.and_then(|w| w.good_bps).unwrap_or(f64::NAN)
    });
    let airlane = Estimate::of(&ours.collect::<Vec<_>>()).expect("there are runs");
    let theirs = match ns2 {
        None => {
            let (mean, sd) = KNOWN[hops - 1];
            (mean, sd, RUNS)
        }
        Some(ns2) => {
            let hops = format!("hops={hops}");
            let runs = (0..RUNS).map(|run| ns2.run_chain(&hops, SEED, run));
            let values: Vec<f64> = runs.collect::<Result<_, _>>()?;
            let found = Estimate::of(&values).expect("there are runs");
            (found.mean, found.sd, found.n)
        }
    };
    Ok(BesideNs2 {
        label: chain_label(hops),
        runs: RUNS,
        airlane,
        ns2: theirs,
        timeouts: [0.0; 2],
        paired: None,
    })
}

/// As in `ns2/chain.tcl`.
fn scenario(hops: usize) -> Scenario {
    let mut text = String::from(
        "schema = 1\nname = \"chain\"\nduration = \"42 s\"\ndrain = \"0 s\"\n[media.mesh]\nkind = \"wifi\"\n\
         profile = \"802.11b-short\"\nsource-header = \"20 B\"\n[media.mesh.nodes]\n",
    );
    for node in 0..=hops {
        text += &format!("n{node} = [{}, 0]\n", node * SPACING as usize);
    }
    for node in 0..=hops {
        text += &format!("[nodes.n{node}]\n");
    }
    text += &format!(
        "[[flows]]\nname = \"flow\"\nends = [\"n0\", \"n{hops}\"]\ntransport = {{ kind = \"udp\" }}\n\
         app = {{ kind = \"conferencing\", rate = \"8 Mbit/s\", packet = \"1000 B\", talk = \"1000 s\", silence = \"0 s\" }}\n\
         progress = {{ windows = {{ measured = {{ from = \"2 s\" }} }} }}\n"
    );
    Scenario::from_toml(&text, "chain").unwrap_or_else(|e| panic!("a chain of {hops} hops: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_carry_what_ns2_found() {
        for hops in 1..=MOST_HOPS {
            let comparison = compare_chain(hops, None).unwrap();
            assert!(comparison.gap().abs() < 0.05, "{comparison:?}");
        }
    }
}
