//! Simulates candidates: a scenario for each, with paired runs.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use airlane_base::Duration;
use airlane_sim::{Prepared, RunResult, Scenario, ScenarioError};
use rayon::prelude::*;
use toml::{Table, Value};

use crate::apps::Apps;
use crate::link::Link;

/// Length, number and seed of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Length of a run, of which applications use all but the first `START`.
    pub length: Duration,
    /// Number of runs; fewer suffice where these already settle how a candidate compares.
    pub runs: u64,
    /// Seed of all random streams.
    pub seed: u64,
    /// Threads; 0: one for each core.
    pub threads: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            length: Duration::from_secs(12),
            runs: 5,
            seed: 1,
            threads: 0,
        }
    }
}

/// When applications start: live nodes need a round trip or two to set up their session.
const START: Duration = Duration::from_secs(2);
const NEAR: &str = "left";
const FAR: &str = "right";
/// The name of the link in the scenarios.
pub(crate) const RADIO: &str = "radio";

/// A scenario: a server beyond the first end, and applications between it and the second end. Without `live`, packets are
/// sent over the link as they are.
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

/// Scenarios that are run side by side.
#[derive(Debug, Default)]
pub struct Trial {
    /// The scenarios of each candidate, run by run.
    worlds: Vec<Vec<Prepared>>,
}

impl Trial {
    /// Adds a candidate and returns its index.
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
            // Each run begins at another time of the recording.
            let link = link.later(run as f64 / pace.runs as f64);
            Prepared::new(&scenario(&link, apps, live, pace.length)?)
        };
        let worlds = (0..pace.runs).map(world).collect::<Result<_, _>>()?;
        self.worlds.push(worlds);
        Ok(self.worlds.len() - 1)
    }

    /// Number of worlds.
    pub(crate) const fn len(&self) -> usize {
        self.worlds.len()
    }

    /// Runs everything; `progress` receives the number of finished runs and of all runs.
    ///
    /// # Errors
    /// If the threads cannot be started.
    pub fn run(
        &self,
        pace: Pace,
        progress: impl Fn(u64, u64) + Sync,
    ) -> Result<Vec<Vec<RunResult>>, ScenarioError> {
        let all: Vec<Range<u64>> = self.worlds.iter().map(|_| 0..pace.runs).collect();
        let number = self.worlds.len() as u64 * pace.runs;
        self.run_some(&all, pace, |done| progress(done, number))
    }

    /// Runs these runs of each world; `progress` receives the number of finished ones.
    ///
    /// # Errors
    /// If the threads cannot be started.
    pub(crate) fn run_some(
        &self,
        which: &[Range<u64>],
        pace: Pace,
        progress: impl Fn(u64) + Sync,
    ) -> Result<Vec<Vec<RunResult>>, ScenarioError> {
        let threads = pace.threads;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|e| ScenarioError::Threads {
            threads,
            reason: e.to_string(),
        })?;
        let jobs: Vec<(usize, u64)> = (which.iter().enumerate())
            .flat_map(|(world, runs)| runs.clone().map(move |run| (world, run)))
            .collect();
        let done = AtomicU64::new(0);
        let one = |&(world, run): &(usize, u64)| {
            let result = self.worlds[world][run as usize].run(pace.seed, run);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
            result
        };
        let results: Vec<RunResult> = pool.install(|| jobs.par_iter().map(one).collect());
        let mut results = results.into_iter();
        let mut all = vec![];
        for runs in which {
            all.push(
                results
                    .by_ref()
                    .take((runs.end - runs.start) as usize)
                    .collect(),
            );
        }
        Ok(all)
    }
}
