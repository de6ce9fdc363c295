//! A scenario: its text, the values set on top of it, and the files that it names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use airlane_base::config::{Document, LONGEST_DATA, Step, read_file};
use airlane_base::schema::FileSchema;
use airlane_sim::{Prepared, ScenarioError as SimError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::{self, ScenarioError};
use crate::value;

/// Contents of the tables and recordings that a scenario names, by path as written in it.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Arguments of [`Scenario::new`].
type Recipe<'a, 'py> = (&'a str, &'a str, String, &'a [String], Bound<'py, PyDict>);

/// A step of a path, for Python.
#[derive(IntoPyObject)]
enum PathStep {
    Name(String),
    Index(usize),
}

impl From<Step> for PathStep {
    fn from(step: Step) -> Self {
        match step {
            Step::Key(name) | Step::Named(name) => Self::Name(name),
            Step::Index(index) => Self::Index(index),
        }
    }
}

/// A scenario that has been read and checked. It can be sent to another machine, because it carries
/// the files that it names.
#[pyclass(frozen, module = "airlane._native")]
pub(crate) struct Scenario {
    /// The text as written.
    text: String,
    /// The file name for errors; empty if it was not read from a file.
    file: String,
    folder: PathBuf,
    /// `PATH=VALUE`, in the order in which they were set.
    set: Vec<String>,
    files: Files,
    scenario: airlane_sim::Scenario,
    pub(crate) prepared: Prepared,
}

impl Scenario {
    fn build(
        text: String,
        file: String,
        folder: PathBuf,
        set: Vec<String>,
        mut files: Files,
    ) -> PyResult<Self> {
        let mut document =
            Document::parse(&text, &file).map_err(|error| error::refused(&error, None))?;
        for assignment in &set {
            document.set(assignment).map_err(|error| {
                let (path, value) = assignment.split_once('=').unwrap_or((assignment, ""));
                let problem = &error.problems()[0];
                let message = format!("{path:?}: {}", problem.message);
                ScenarioError::new_err((message, path.to_owned(), value.to_owned()))
            })?;
        }
        let refused = |error| error::refused(&error, Some(&document));
        let mut scenario: airlane_sim::Scenario = document.read().map_err(refused)?;
        let mut failed = None;
        let mut read = |path: &Path| {
            if let Some(bytes) = files.get(path) {
                return Ok(bytes.clone());
            }
            let place = folder.join(path);
            let bytes = read_file(&place, LONGEST_DATA).map_err(|error| {
                failed = Some(error::io(&error, &place));
                error.to_string()
            })?;
            files.insert(path.to_owned(), bytes.clone());
            Ok(bytes)
        };
        let text_of = |bytes: Vec<u8>| String::from_utf8(bytes).map_err(|e| e.to_string());
        let loaded = scenario
            .load_tables(|path| read(path).and_then(text_of))
            .and_then(|()| scenario.load_traces(&mut read));
        if let Err(error) = loaded {
            return Err(failed.unwrap_or_else(|| plain(&error)));
        }
        let prepared = Prepared::new(&scenario).map_err(|error| match &error {
            SimError::Refused(refusal) => error::refused(refusal, Some(&document)),
            other => plain(other),
        })?;
        Ok(Self {
            text,
            file,
            folder,
            set,
            files,
            scenario,
            prepared,
        })
    }
}

/// An error that is not about any place in the scenario.
fn plain(error: &SimError) -> PyErr {
    ScenarioError::new_err((error.to_string(), "", None::<String>))
}

#[pymethods]
impl Scenario {
    /// Reads TOML text and applies `set` (`PATH=VALUE`). Files that it names are taken from
    /// `files`, or else read relative to `folder`.
    #[new]
    fn new(
        text: String,
        file: String,
        folder: PathBuf,
        set: Vec<String>,
        files: Files,
    ) -> PyResult<Self> {
        Self::build(text, file, folder, set, files)
    }

    /// Reads nested dictionaries.
    #[staticmethod]
    fn from_dict(table: &Bound<'_, PyDict>, folder: PathBuf) -> PyResult<Self> {
        let text = value::table_of(table, "")?.to_string();
        Self::build(text, String::new(), folder, vec![], Files::new())
    }

    /// The scenario with other values, all of which are set before anything is checked.
    fn with_values(&self, values: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut set = self.set.clone();
        for (path, value) in values {
            let path: String = path.extract()?;
            let value = value::to_toml(&value, &path)?;
            set.push(format!("{path}={value}"));
        }
        let (text, file) = (self.text.clone(), self.file.clone());
        Self::build(text, file, self.folder.clone(), set, self.files.clone())
    }

    /// The steps to each place that a dotted path matches, with list entries by index however they
    /// are written; None if it is not a path.
    fn places(&self, path: &str) -> PyResult<Option<Vec<Vec<PathStep>>>> {
        let document = Document::parse(&self.scenario.to_toml(), "");
        let document = document.map_err(|error| error::refused(&error, None))?;
        let places = document.places(path);
        let steps = |place: Vec<_>| place.into_iter().map(PathStep::from).collect();
        Ok(places.map(|places| places.into_iter().map(steps).collect()))
    }

    /// Canonical TOML; with `resolved`, every default is filled in.
    fn to_toml(&self, resolved: bool) -> String {
        if resolved {
            self.scenario.resolved().to_toml()
        } else {
            self.scenario.to_toml()
        }
    }

    /// 16 hexadecimal digits; equal for equal worlds, whatever their seed.
    #[getter]
    fn hash(&self) -> &str {
        self.prepared.hash()
    }

    /// Its name for people.
    #[getter]
    fn name(&self) -> &str {
        &self.scenario.name
    }

    /// Seed of all random streams, unless another one is given.
    #[getter]
    fn seed(&self) -> u64 {
        self.scenario.seed
    }

    /// Warnings about harmful choices, with advice: services that no flow reaches, windows that do
    /// not fill a link.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.scenario.warnings()
    }

    /// The arguments from which [`new`](Self::new) makes the same scenario on any machine.
    #[getter]
    fn recipe<'py>(&self, py: Python<'py>) -> PyResult<Recipe<'_, 'py>> {
        let files = PyDict::new(py);
        for (path, bytes) in &self.files {
            files.set_item(path.to_string_lossy(), PyBytes::new(py, bytes))?;
        }
        let folder = self.folder.to_string_lossy().into_owned();
        Ok((&self.text, &self.file, folder, &self.set, files))
    }
}

/// The scenarios that ship with the package: text by name.
#[pyfunction]
pub(crate) fn shipped() -> BTreeMap<&'static str, &'static str> {
    airlane_study::shipped::scenarios().collect()
}

/// The unit of the value at a dotted path of scenarios.
#[pyfunction]
pub(crate) fn unit_at(path: &str) -> Option<String> {
    FileSchema::of::<airlane_sim::Scenario>().unit_at(path)
}
