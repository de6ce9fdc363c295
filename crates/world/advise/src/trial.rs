//! Candidates at work: a world for each, the same runs for all.

use airlane_base::Duration;
use airlane_sim::{Prepared, RunResult, Scenario, ScenarioError};
use rayon::prelude::*;
use toml::{Table, Value};

use crate::apps::Apps;
use crate::link::Link;

/// How long, how often and by what is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// A run is so long; applications begin `START` after it.
    pub length: Duration,
    /// So many runs.
    pub runs: u64,
    /// What is drawn depends on this.
    pub seed: u64,
    /// Threads; 0: one for each core.
    pub threads: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            length: Duration::from_secs(20),
            runs: 5,
            seed: 1,
            threads: 0,
        }
    }
}

/// Live sessions begin within a round trip or two; what comes before has no way.
const START: Duration = Duration::from_secs(2);
const NEAR: &str = "left";
const FAR: &str = "right";
/// The name of the link in the scenarios.
pub(crate) const RADIO: &str = "radio";

/// A world: a server behind the first end, applications between it and the second. Without `live`, packets go onto the
/// link as they are.
///
/// # Errors
/// If the live file cannot be simulated.
pub fn scenario(
    link: &Link,
    apps: &Apps,
    live: Option<&Table>,
    length: Duration,
) -> Result<Scenario, ScenarioError> {
    let text = |text: &str| Value::from(text);
    let table = |pairs: Vec<(&str, Value)>| {
        let pairs = pairs
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value));
        Value::Table(pairs.collect())
    };
    let node = || match live {
        Some(live) => table(vec![("live", live.clone().into())]),
        None => table(vec![]),
    };
    let ends = |a: &str, b: &str| Value::Array(vec![text(a), text(b)]);
    let mut radio = link.table();
    radio.insert("ends".to_owned(), ends(NEAR, FAR));
    if live.is_some() {
        radio.insert("node".to_owned(), text("live"));
    }
    let wired = vec![
        ("ends", ends("server", NEAR)),
        ("rate", text("10 Gbit/s")),
        ("delay", text("0.1 ms")),
        ("queue", text("1000 packets")),
    ];
    let apps = apps.0.iter();
    let flows = apps.flat_map(|app| app.flows("server", FAR, &START.to_string()));
    let world = table(vec![
        ("schema", 1.into()),
        ("name", text("a recorded link")),
        ("duration", text(&length.to_string())),
        (
            "nodes",
            table(vec![
                ("server", table(vec![])),
                (NEAR, node()),
                (FAR, node()),
            ]),
        ),
        (
            "links",
            table(vec![("wired", table(wired)), (RADIO, radio.into())]),
        ),
        ("flows", flows.collect::<Vec<_>>().into()),
    ]);
    let text = toml::to_string(&world).expect("tables have a TOML form");
    Ok(Scenario::from_toml(&text, "advice")?)
}

/// Worlds that are run side by side.
#[derive(Debug, Default)]
pub struct Trial {
    /// The worlds of each candidate, run by run.
    worlds: Vec<Vec<Prepared>>,
}

impl Trial {
    /// Adds a candidate; its place among them.
    ///
    /// # Errors
    /// As [`scenario`].
    pub fn add(
        &mut self,
        link: &Link,
        apps: &Apps,
        live: Option<&Table>,
        pace: Pace,
    ) -> Result<usize, ScenarioError> {
        let world = |run: u64| {
            // Each run begins at another place of the recording.
            let link = link.later(run as f64 / pace.runs as f64);
            Prepared::new(&scenario(&link, apps, live, pace.length)?)
        };
        let worlds = (0..pace.runs).map(world).collect::<Result<_, _>>()?;
        self.worlds.push(worlds);
        Ok(self.worlds.len() - 1)
    }

    /// Runs all; `progress` is told how many runs of how many are done.
    ///
    /// # Errors
    /// If the threads cannot be started.
    pub fn run(
        &self,
        pace: Pace,
        progress: impl Fn(u64, u64) + Sync,
    ) -> Result<Vec<Vec<RunResult>>, ScenarioError> {
        let threads = pace.threads;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|e| ScenarioError::Threads {
            threads,
            reason: e.to_string(),
        })?;
        let jobs: Vec<(usize, u64)> = (0..self.worlds.len())
            .flat_map(|world| (0..pace.runs).map(move |run| (world, run)))
            .collect();
        let done = std::sync::atomic::AtomicU64::new(0);
        let one = |&(world, run): &(usize, u64)| {
            let result = self.worlds[world][run as usize].run(pace.seed, run);
            let done = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            progress(done, jobs.len() as u64);
            result
        };
        let mut results: Vec<RunResult> = pool.install(|| jobs.par_iter().map(one).collect());
        let mut all = vec![];
        for _ in &self.worlds {
            let rest = results.split_off(pace.runs as usize);
            all.push(std::mem::replace(&mut results, rest));
        }
        Ok(all)
    }
}
