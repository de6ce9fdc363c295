//! The figures: which scenarios, which levels, which numbers.

use std::path::Path;

use airlane_sim::{Estimate, RunResult, Scenario, ScenarioError, repeat_all};

/// Repetitions, as in the dissertation.
pub const RUNS: u64 = 30;
/// The seed of the committed table.
pub const SEED: u64 = 1;

/// One scheme in a figure.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// What the figure calls it.
    pub scheme: &'static str,
    /// File in `scenarios/`.
    pub file: &'static str,
}

/// A figure, or a pair of figures about the same runs.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// `F4.2`.
    pub id: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// The schemes; the first is the baseline.
    pub lines: &'static [Line],
    /// The flow that is measured.
    pub flow: &'static str,
    /// Which value of the scenario is the error level.
    pub axis: &'static str,
    /// Its values L1 to L4, as written in a scenario.
    pub levels: [&'static str; 4],
    /// The metrics of the table.
    pub metrics: &'static [&'static str],
    /// What else could have been chosen where the source is silent.
    pub alternatives: &'static [Alternative],
}

/// Another choice where the source is silent.
#[derive(Clone, Copy, Debug)]
pub struct Alternative {
    /// What is different.
    pub what: &'static str,
    /// The lines that it concerns; all if empty.
    pub schemes: &'static [&'static str],
    /// The values of the scenario that make it so.
    pub set: &'static [&'static str],
}

const RLP_TIGHT: Alternative = Alternative {
    what: "RLP: `timers = \"tight\"`",
    schemes: &["RLP", "RLP/OOS"],
    set: &["links.radio.services[0].scheme.timers=\"tight\""],
};
const SR_BASE: Alternative = Alternative {
    what: "SR/M2: `timeout-resends = \"base\"`",
    schemes: &["SR/M2"],
    set: &["links.radio.services[0].scheme.timeout-resends=\"base\""],
};
const SR_TIGHT: Alternative = Alternative {
    what: "SR/M2: `timers = \"tight\"`",
    schemes: &["SR/M2"],
    set: &["links.radio.services[0].scheme.timers=\"tight\""],
};
const BUFFER: Alternative = Alternative {
    what: "RLP: `timers = \"buffer\"`",
    schemes: &["RLP", "RLP/OOS"],
    set: &["links.radio.services[0].scheme.timers=\"buffer\""],
};
const PACED: Alternative = Alternative {
    what: "`pacing = \"nominal\"`, `handed-over = \"unlimited\"`",
    schemes: &[],
    set: &[
        "links.radio.pacing=\"nominal\"",
        "links.radio.handed-over=\"unlimited\"",
    ],
};
const FILE_ALTERNATIVES: &[Alternative] = &[RLP_TIGHT, BUFFER, SR_BASE, SR_TIGHT, PACED];

const CELLULAR_LEVELS: [&str; 4] = ["0.01", "0.02", "0.05", "0.1"];
const WLAN_LEVELS: [&str; 4] = [
    "\"131.072 kB\"",
    "\"65.536 kB\"",
    "\"32.768 kB\"",
    "\"16.384 kB\"",
];

/// Every figure that is judged.
pub const fn figures() -> &'static [Figure] {
    &[
        Figure {
            id: "F4.2",
            title: "File transfer over Cellular/LAN1",
            lines: &[
                Line {
                    scheme: "Default",
                    file: "cellular-lan1.toml",
                },
                Line {
                    scheme: "SR/M2",
                    file: "cellular-lan1-sr-m2.toml",
                },
                Line {
                    scheme: "RLP",
                    file: "cellular-lan1-rlp.toml",
                },
            ],
            flow: "file",
            axis: "links.radio.errors.rate",
            levels: CELLULAR_LEVELS,
            metrics: &["throughput_bps"],
            alternatives: FILE_ALTERNATIVES,
        },
        Figure {
            id: "F4.8",
            title: "File transfer over WLAN/LAN1",
            lines: &[
                Line {
                    scheme: "Default",
                    file: "wlan-lan1.toml",
                },
                Line {
                    scheme: "SR/M2",
                    file: "wlan-lan1-sr-m2.toml",
                },
                Line {
                    scheme: "RLP",
                    file: "wlan-lan1-rlp.toml",
                },
            ],
            flow: "file",
            axis: "links.radio.errors.mean",
            levels: WLAN_LEVELS,
            metrics: &["throughput_bps"],
            alternatives: FILE_ALTERNATIVES,
        },
        Figure {
            id: "F5.4/F5.5",
            title: "Conferencing over Cellular/LAN1",
            lines: &[
                Line {
                    scheme: "Default",
                    file: "conferencing-cellular-lan1.toml",
                },
                Line {
                    scheme: "RLP",
                    file: "conferencing-cellular-lan1-rlp.toml",
                },
                Line {
                    scheme: "RLP/OOS",
                    file: "conferencing-cellular-lan1-rlp-oos.toml",
                },
            ],
            flow: "talk",
            axis: "links.radio.errors.rate",
            levels: CELLULAR_LEVELS,
            metrics: &["loss_ratio", "delay_mean_plus_2sd_s"],
            alternatives: &[RLP_TIGHT, BUFFER, PACED],
        },
    ]
}

/// What a figure measured: repetitions of each level of each line.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The figure.
    pub figure: Figure,
    /// `runs[line][level]`, in order of repetition.
    runs: Vec<Vec<Vec<RunResult>>>,
}

impl Grid {
    /// The values of a metric: one a repetition.
    ///
    /// # Panics
    /// If the scenario has no such scheme, flow or metric, which is a mistake in [`figures`].
    pub fn values(&self, scheme: &str, level: usize, metric: &str) -> Vec<f64> {
        let line = self
            .figure
            .lines
            .iter()
            .position(|line| line.scheme == scheme)
            .expect("a scheme of the figure");
        let value = |run: &RunResult| {
            let flow = run
                .flows
                .iter()
                .find(|flow| flow.name == self.figure.flow)?;
            let scalar = flow.scalars().into_iter().find(|s| s.0 == metric)?;
            Some(scalar.1)
        };
        self.runs[line][level]
            .iter()
            .map(|run| value(run).expect("a metric of the flow"))
            .collect()
    }

    /// Mean and interval of a metric.
    ///
    /// # Panics
    /// As [`Grid::values`].
    pub fn estimate(&self, scheme: &str, level: usize, metric: &str) -> Estimate {
        Estimate::of(&self.values(scheme, level, metric)).expect("at least one repetition")
    }
}

/// Simulates a figure, with another choice if one is given. `scenarios` is the folder with the
/// scenario files.
///
/// # Errors
/// If a scenario file is missing or wrong.
pub fn measure(
    figure: &Figure,
    alternative: Option<&Alternative>,
    scenarios: &Path,
    runs: u64,
) -> Result<Grid, String> {
    let mut worlds = Vec::new();
    for line in figure.lines {
        let path = scenarios.join(line.file);
        let name = path.display().to_string();
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{name}: {e}"))?;
        for level in figure.levels {
            let mut set = vec![format!("{}={level}", figure.axis)];
            if let Some(other) = alternative
                && (other.schemes.is_empty() || other.schemes.contains(&line.scheme))
            {
                set.extend(other.set.iter().map(ToString::to_string));
            }
            let world = Scenario::from_toml_with(&text, &name, &set).map_err(|e| e.to_string())?;
            worlds.push(world);
        }
    }
    let results =
        repeat_all(&worlds, SEED, runs, 0, |_, _| {}).map_err(|e: ScenarioError| e.to_string())?;
    let mut results = results.into_iter();
    let runs = figure
        .lines
        .iter()
        .map(|_| results.by_ref().take(figure.levels.len()).collect())
        .collect();
    Ok(Grid {
        figure: *figure,
        runs,
    })
}
