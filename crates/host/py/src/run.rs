//! Simulates without holding the interpreter lock.

use std::panic::{AssertUnwindSafe, catch_unwind};

use airlane_base::Duration;
use airlane_sim::{Prepared, RunResult};
use airlane_study::metrics as metrics_of;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::RunError;
use crate::scenario::Scenario;

/// Turns a panic of the simulator into an error that names the run.
pub(crate) fn caught<T>(seed: u64, run: u64, simulate: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(simulate)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let reason = text.unwrap_or("it panicked").to_owned();
        RunError::new_err((reason, seed, run))
    })
}

fn one(prepared: &Prepared, seed: u64, run: u64) -> PyResult<RunResult> {
    caught(seed, run, || prepared.run(seed, run))
}

/// The JSON of a result, and its metrics by name (NaN: not measured).
pub(crate) fn told(result: &RunResult) -> PyResult<(String, Vec<String>, Vec<f64>)> {
    let json = serde_json::to_string(result).map_err(|e| PyValueError::new_err(e.to_string()))?;
    let (names, values) = metrics_of(result);
    Ok((json, names, values))
}

/// Simulates one repetition: the JSON of its result, and its metrics by name (NaN: not measured).
///
/// With an interval, the result has what flows achieved in each interval.
#[pyfunction]
#[pyo3(signature = (scenario, seed, run, over_time_s = None))]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &Bound<'_, Scenario>,
    seed: u64,
    run: u64,
    over_time_s: Option<f64>,
) -> PyResult<(String, Vec<String>, Vec<f64>)> {
    let prepared = &scenario.get().prepared;
    let result = match over_time_s {
        None => py.detach(|| one(prepared, seed, run))?,
        Some(interval_s) => {
            let wrong = |why: &str| {
                let text = format!("over_time_s={interval_s}: {why}");
                PyValueError::new_err(text)
            };
            if !(interval_s > 0.0 && interval_s < 1e9) {
                return Err(wrong("seconds, above 0"));
            }
            let interval = Duration::from_secs_f64(interval_s);
            let kept = prepared.clone().over_time(interval, 1);
            let kept = kept.map_err(|error| wrong(&error.to_string()))?;
            py.detach(|| one(&kept, seed, run))?
        }
    };
    told(&result)
}

/// Simulates several repetitions: the names of their metrics, and for each run a row of their
/// values as little-endian doubles (NaN: not measured).
#[pyfunction]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    scenario: &Bound<'py, Scenario>,
    seed: u64,
    runs: Vec<u64>,
) -> PyResult<(Vec<String>, Bound<'py, PyBytes>)> {
    let prepared = &scenario.get().prepared;
    let (names, rows) = py.detach(|| -> PyResult<_> {
        let (mut names, mut rows) = (vec![], vec![]);
        for run in runs {
            let values;
            (names, values) = metrics_of(&one(prepared, seed, run)?);
            rows.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
        Ok((names, rows))
    })?;
    Ok((names, PyBytes::new(py, &rows)))
}
