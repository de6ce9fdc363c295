//! Repetitions: parallel across runs, results in order, independent of the number of threads.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use crate::error::ScenarioError;
use crate::result::RunResult;
use crate::run::Prepared;
use crate::scenario::Scenario;

/// Simulates repetitions 0 to `runs - 1` of a scenario on `threads` threads (0: one per core). `progress` is called
/// with the number done and the total, from any thread.
///
/// # Errors
/// As [`run`](crate::run()), and if the threads cannot be started.
pub fn repeat(
    scenario: &Scenario,
    seed: u64,
    runs: u64,
    threads: usize,
    progress: impl Fn(u64, u64) + Sync,
) -> Result<Vec<RunResult>, ScenarioError> {
    let mut all = repeat_all(
        std::slice::from_ref(scenario),
        seed,
        runs,
        threads,
        progress,
    )?;
    Ok(all.pop().unwrap_or_default())
}

/// [`repeat`] for several scenarios at once: their results in the same order.
///
/// Repetition `k` of each has the same seed, so all meet the same errors and the same conversations.
///
/// # Errors
/// As [`repeat`].
pub fn repeat_all(
    scenarios: &[Scenario],
    seed: u64,
    runs: u64,
    threads: usize,
    progress: impl Fn(u64, u64) + Sync,
) -> Result<Vec<Vec<RunResult>>, ScenarioError> {
    let prepared: Vec<Prepared> = scenarios
        .iter()
        .map(Prepared::new)
        .collect::<Result<_, _>>()?;
    repeat_prepared(&prepared, seed, runs, threads, progress)
}

/// [`repeat_all`] for prepared scenarios.
///
/// # Errors
/// If the threads cannot be started.
pub fn repeat_prepared(
    prepared: &[Prepared],
    seed: u64,
    runs: u64,
    threads: usize,
    progress: impl Fn(u64, u64) + Sync,
) -> Result<Vec<Vec<RunResult>>, ScenarioError> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|e| ScenarioError::Threads {
            threads,
            reason: e.to_string(),
        })?;
    let total = runs * prepared.len() as u64;
    let done = AtomicU64::new(0);
    let one = |job: u64| {
        let (scenario, run) = (job / runs.max(1), job % runs.max(1));
        let result = prepared[scenario as usize].run(seed, run);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
        result
    };
    let results: Vec<RunResult> = pool.install(|| (0..total).into_par_iter().map(one).collect());
    let mut results = results.into_iter();
    Ok(prepared
        .iter()
        .map(|_| results.by_ref().take(runs as usize).collect())
        .collect())
}
