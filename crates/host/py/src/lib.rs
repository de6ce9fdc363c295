//! `airlane._native`: the simulator for Python.
//!
//! It is thin on purpose: decisions are made in the Rust libraries, and Python conventions are
//! followed in `python/airlane`.

mod custom;
mod error;
mod events;
mod run;
mod scenario;
mod store;
mod table;
mod value;

use pyo3::prelude::*;

/// The native part of the package; users import `airlane`.
#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use super::custom::{Host, Random, run_custom};
    #[pymodule_export]
    use super::events::{event_kinds, events};
    #[pymodule_export]
    use super::run::{run, simulate};
    #[pymodule_export]
    use super::scenario::{Scenario, shipped, unit_at};
    #[pymodule_export]
    use super::store::{Store, student_t};
    #[pymodule_export]
    use super::table::Table;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("MODEL", airlane_study::VERSION)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("__commit__", option_env!("AIRLANE_COMMIT"))
    }
}
