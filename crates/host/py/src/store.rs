//! The results of a sweep, in memory or in a folder that `airlane study` could read.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use airlane_study::{RunKey, Shard, student_t as quantile};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error;
use crate::table::{self, Table};

/// Results of single runs, by hash of the scenario, seed and run.
#[pyclass(frozen, module = "airlane._native")]
pub(crate) struct Store {
    inner: Mutex<airlane_study::Store>,
    shard: Shard,
}

impl Store {
    fn lock(&self) -> MutexGuard<'_, airlane_study::Store> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Store {
    /// Reads the results in `folder`, or starts empty. New results are appended to the file of
    /// `shard`.
    #[new]
    fn new(folder: Option<PathBuf>, shard: Option<&str>) -> PyResult<Self> {
        let shard = match shard {
            None => Shard::ALL,
            Some(text) => Shard::parse(text).ok_or_else(|| {
                let right = "write \"I/N\" with I from 1 to N, such as \"1/4\"";
                PyValueError::new_err(format!("shard={text:?}: {right}"))
            })?,
        };
        let inner = match folder {
            None => airlane_study::Store::default(),
            Some(folder) => airlane_study::Store::open(&folder).map_err(error::study)?,
        };
        let inner = Mutex::new(inner);
        Ok(Self { inner, shard })
    }

    /// Whether the result of a run is known.
    fn has(&self, scenario: String, seed: u64, run: u64) -> bool {
        self.lock().get(&(scenario, seed, run)).is_some()
    }

    /// Whether a run belongs to this shard.
    fn is_mine(&self, scenario: String, seed: u64, run: u64) -> bool {
        self.shard.has(&(scenario, seed, run))
    }

    /// Adds the output of `simulate` for `runs`.
    fn add(
        &self,
        scenario: &str,
        seed: u64,
        runs: Vec<u64>,
        names: Vec<String>,
        rows: &[u8],
    ) -> PyResult<()> {
        let suffix = self.shard.suffix();
        let (rows, _) = rows.as_chunks();
        let rows: Vec<f64> = rows
            .iter()
            .map(|bytes| f64::from_le_bytes(*bytes))
            .collect();
        if rows.len() != runs.len() * names.len() {
            let message = "there must be one value for each run and name";
            return Err(PyValueError::new_err(message));
        }
        let mut store = self.lock();
        for (run, values) in runs.into_iter().zip(rows.chunks(names.len().max(1))) {
            let key = (scenario.to_owned(), seed, run);
            store
                .add(key, names.clone(), values.to_vec(), &suffix)
                .map_err(error::study)?;
        }
        Ok(())
    }

    /// One metric of these runs, in their order; NaN if it is unknown.
    fn values(&self, scenario: String, seed: u64, runs: Vec<u64>, metric: &str) -> Vec<f64> {
        let store = self.lock();
        let mut key: RunKey = (scenario, seed, 0);
        let value = |run| {
            key.2 = run;
            store
                .get(&key)
                .map_or(f64::NAN, |record| record.get(metric))
        };
        runs.into_iter().map(value).collect()
    }

    /// Names of all metrics in run 0 of these scenarios, sorted.
    fn names(&self, scenarios: Vec<String>, seed: u64) -> Vec<String> {
        let store = self.lock();
        let records = scenarios
            .into_iter()
            .filter_map(|scenario| store.get(&(scenario, seed, 0)));
        let mut names: Vec<String> = records.flat_map(|r| r.names.iter().cloned()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// A row for each known `(index of the scenario, run)`, in this order. Columns `point` (the
    /// index), `scenario_hash`, `seed`, `run`, then `metrics`.
    fn table(
        &self,
        scenarios: Vec<String>,
        seed: u64,
        rows: Vec<(usize, u64)>,
        metrics: Vec<String>,
    ) -> PyResult<Table> {
        if rows.iter().any(|(point, _)| *point >= scenarios.len()) {
            return Err(PyValueError::new_err("a row is of no scenario"));
        }
        table::build(&self.lock(), &scenarios, seed, &rows, &metrics)
    }

    /// Lets other processes write to the folder.
    fn close(&self) {
        self.lock().close();
    }

    /// Puts the results of these runs into one sorted file and removes all others.
    fn merge(&self) -> PyResult<()> {
        self.lock().merge().map_err(error::study)
    }
}

/// The t with P(|T| <= t) = confidence in Student's distribution.
#[pyfunction]
pub(crate) fn student_t(confidence: f64, degrees_of_freedom: usize) -> PyResult<f64> {
    if !(0.0..1.0).contains(&confidence) || degrees_of_freedom == 0 {
        let right = "confidence from 0 to below 1, 1 degree of freedom or more";
        return Err(PyValueError::new_err(right));
    }
    Ok(quantile(confidence, degrees_of_freedom))
}
