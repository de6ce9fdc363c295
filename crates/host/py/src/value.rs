//! Converts Python values to TOML.

use airlane_base::config;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDelta, PyDict, PyList, PyString, PyTuple};
use toml::{Table, Value};

use crate::error::ScenarioError;

/// Python's None means no value in TOML; times are written in microseconds, which are exact. Errors
/// name the place, which starts with `path`.
pub(crate) fn to_toml(value: &Bound<'_, PyAny>, path: &str) -> PyResult<Value> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::String(text.to_str()?.to_owned()));
    }
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(Value::Boolean(truth.is_true()));
    }
    if let Ok(table) = value.cast::<PyDict>() {
        return Ok(Value::Table(table_of(table, path)?));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.enumerate();
        let items = items.map(|(i, item)| to_toml(&item?, &format!("{path}[{i}]")));
        return Ok(Value::Array(items.collect::<PyResult<_>>()?));
    }
    if value.is_instance_of::<PyDelta>() {
        let microsecond = value.get_type().call1((0, 0, 1))?;
        let count: i128 = value
            .call_method1("__floordiv__", (microsecond,))?
            .extract()?;
        return Ok(Value::String(format!("{count} us")));
    }
    // NumPy's numbers also have these methods.
    if value.hasattr("__index__")? {
        let too_large = |_| {
            let message = format!("{path}: {value} does not fit into 64 bits");
            ScenarioError::new_err((message, path.to_owned(), value.to_string()))
        };
        return Ok(Value::Integer(value.extract().map_err(too_large)?));
    }
    if value.hasattr("__float__")? {
        return Ok(Value::Float(value.extract()?));
    }
    let kind = value.get_type();
    let kind = kind.name()?;
    Err(PyTypeError::new_err(format!(
        "{path}: {kind} has no form in a scenario; use a number, text with a unit such as \
         \"20 Mbit/s\", timedelta, bool, list or dict"
    )))
}

/// A table of a scenario; its keys are text.
pub(crate) fn table_of(table: &Bound<'_, PyDict>, path: &str) -> PyResult<Table> {
    let mut all = Table::new();
    for (name, value) in table {
        let name: String = name.extract()?;
        if !value.is_none() {
            let dot = if path.is_empty() { "" } else { "." };
            let value = to_toml(&value, &format!("{path}{dot}{}", config::key(&name)))?;
            all.insert(name, value);
        }
    }
    Ok(all)
}
