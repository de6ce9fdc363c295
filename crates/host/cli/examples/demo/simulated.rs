//! The simulated part: shipped scenarios, 30 repetitions with paired seeds.

use std::path::Path;

use airlane_cli::chart::Chart;
use airlane_cli::compare;
use airlane_cli::output;
use airlane_sim::{Scenario, repeat_all};
use anyhow::Context as _;

use crate::WAYS;

/// Repetitions of each scenario.
const RUNS: u64 = 30;

/// A link of the simulated part.
pub(crate) struct Link {
    title: &'static str,
    /// Its scenarios without and with services.
    files: [&'static str; 2],
}

pub(crate) const LINKS: [Link; 2] = [
    Link {
        title: "Simulated: a cellular link, 14.4 kbit/s, 100 ms, 5 % of frames lost",
        files: ["three-applications-raw.toml", "three-applications.toml"],
    },
    Link {
        title: "Simulated: a wireless LAN, 2 Mbit/s, 3 ms, a byte in 32 kB hit",
        files: [
            "three-applications-wlan-raw.toml",
            "three-applications-wlan.toml",
        ],
    },
];

pub(crate) fn run(link: &Link, root: &Path) -> anyhow::Result<Chart> {
    let load = |file: &str| -> anyhow::Result<Scenario> {
        let path = root.join("scenarios").join(file);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Scenario::from_toml(&text, &format!("scenarios/{file}"))?)
    };
    let scenarios = [load(link.files[0])?, load(link.files[1])?];
    output::note(&format!("Simulating scenarios/{} ...", link.files[1]));
    let results = repeat_all(&scenarios, scenarios[0].seed, RUNS, 0, |_, _| ())?;
    let compared = airlane_sim::compare(&results)?;
    let title = format!(
        "{}\n{RUNS} runs of {}, mean ± 95 % confidence interval",
        link.title, scenarios[0].duration
    );
    Ok(compare::picture(
        title,
        &WAYS.map(str::to_owned),
        &[],
        &compared,
    ))
}
