//! Results as an Arrow table, which data frames import without a copy.

use std::sync::Arc;

use airlane_study::{RunKey, RunRecord, Store};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray, UInt64Array,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A table that implements the Arrow PyCapsule protocol.
#[pyclass(frozen, module = "airlane._native")]
pub(crate) struct Table {
    batch: RecordBatch,
}

impl Table {
    pub(crate) fn new(batch: RecordBatch) -> Self {
        Self { batch }
    }
}

#[pymethods]
impl Table {
    /// The table as a stream of one record batch. It is never converted: the protocol lets a
    /// producer ignore `requested_schema`.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let schema = self.batch.schema();
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Number of rows.
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }
}

/// Implements [`crate::store::Store::table`].
pub(crate) fn build(
    store: &Store,
    scenarios: &[String],
    seed: u64,
    rows: &[(usize, u64)],
    metrics: &[String],
) -> PyResult<Table> {
    let mut known: Vec<(usize, u64, &RunRecord)> = vec![];
    let mut key: RunKey = (String::new(), seed, 0);
    for (point, run) in rows {
        key.0.clone_from(&scenarios[*point]);
        key.2 = *run;
        known.extend(store.get(&key).map(|record| (*point, *run, record)));
    }
    let points = known.iter().map(|(point, ..)| *point as i64);
    let hashes = known.iter().map(|(point, ..)| scenarios[*point].as_str());
    let runs = known.iter().map(|(_, run, _)| *run as i64);
    let seeds = known.iter().map(|_| seed);
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("point", Arc::new(Int64Array::from_iter_values(points))),
        (
            "scenario_hash",
            Arc::new(StringArray::from_iter_values(hashes)),
        ),
        ("seed", Arc::new(UInt64Array::from_iter_values(seeds))),
        ("run", Arc::new(Int64Array::from_iter_values(runs))),
    ];
    for metric in metrics {
        let values = known.iter().map(|(.., record)| record.get(metric));
        let values: Float64Array = values.map(|v| v.is_finite().then_some(v)).collect();
        columns.push((metric, Arc::new(values)));
    }
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns
            .into_iter()
            .map(|(name, column)| (name, column, true)),
    );
    let batch = batch.map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok(Table::new(batch))
}
