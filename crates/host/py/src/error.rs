//! Converts errors of the libraries to exceptions of `airlane.errors`.

use std::fmt::Write as _;
use std::path::Path;

use airlane_base::config::{Document, Problem, RefusedFile};
use airlane_study::StudyError;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

pyo3::import_exception!(airlane.errors, AirlaneError);
pyo3::import_exception!(airlane.errors, RunError);
pyo3::import_exception!(airlane.errors, ScenarioError);

/// `ScenarioError(message, path, value)`: path and value are of the first problem, the message has
/// all of them. The value is the TOML text at its path.
pub(crate) fn refused(error: &RefusedFile, document: Option<&Document>) -> PyErr {
    let all: Vec<String> = error.problems().iter().map(words).collect();
    let path = error.problems().first().map_or("", |p| &p.path).to_owned();
    let value = document.and_then(|document| document.text(&path));
    // A table that is defined only by dotted keys has no text of its own: the text found is one of
    // these keys.
    let value = value.filter(|text| path.is_empty() || !text.starts_with(&path));
    ScenarioError::new_err((all.join("\n\n"), path, value.map(str::to_owned)))
}

/// A problem in a file with its line and column, any other with its path alone.
fn words(problem: &Problem) -> String {
    if !problem.file.is_empty() && problem.file != "--set" {
        return problem.to_string();
    }
    let mut words = problem.message.clone();
    if !problem.path.is_empty() {
        words = format!("{}: {words}", problem.path);
    }
    if problem.width > 0 {
        let _ = write!(words, "\n  in {}", problem.source);
    }
    if !problem.help.is_empty() {
        let _ = write!(words, "\n  help: {}", problem.help);
    }
    words
}

/// The fitting subclass of `OSError`, with errno and file name.
pub(crate) fn io(error: &std::io::Error, path: &Path) -> PyErr {
    let name = path.display().to_string();
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, error.kind().to_string(), name)),
        None => PyOSError::new_err(format!("{name}: {error}")),
    }
}

/// Converts the errors of a result store.
pub(crate) fn study(error: StudyError) -> PyErr {
    match error {
        StudyError::Io { path, source } => io(&source, &path),
        other => AirlaneError::new_err(other.to_string()),
    }
}
