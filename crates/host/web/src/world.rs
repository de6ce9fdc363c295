//! A scenario of the page: its text, and assignments on top of it.

use std::path::Path;

use airlane_base::config::{Document, Problem, RefusedFile};
use airlane_sim::{Prepared, Scenario, ScenarioError};
use serde::{Deserialize, Serialize};

/// Text of a scenario with assignments as of `--set`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct World {
    text: String,
    /// The file's name in errors.
    file: String,
    #[serde(default)]
    set: Vec<String>,
}

/// Why there is no answer, with the program's own error.
#[derive(Debug, Serialize)]
pub(crate) struct Fault {
    /// The whole error.
    text: String,
    /// Each problem with its place, if it has one.
    problems: Vec<Place>,
}

#[derive(Debug, Serialize)]
struct Place {
    /// Whether it is in the scenario's text, not in an assignment.
    in_text: bool,
    line: usize,
    column: usize,
    width: usize,
    path: String,
    message: String,
    help: String,
    /// The problem as a terminal shows it.
    text: String,
}

impl From<&Problem> for Place {
    fn from(problem: &Problem) -> Self {
        Self {
            in_text: problem.file != "--set",
            line: problem.line,
            column: problem.column,
            width: problem.width,
            path: problem.path.clone(),
            message: problem.message.clone(),
            help: problem.help.clone(),
            text: problem.to_string(),
        }
    }
}

impl From<RefusedFile> for Fault {
    fn from(refused: RefusedFile) -> Self {
        Self {
            text: refused.to_string(),
            problems: refused.problems().iter().map(Place::from).collect(),
        }
    }
}

impl From<String> for Fault {
    fn from(text: String) -> Self {
        Self {
            text,
            problems: vec![],
        }
    }
}

impl From<ScenarioError> for Fault {
    fn from(error: ScenarioError) -> Self {
        match error {
            ScenarioError::Refused(refused) => refused.into(),
            other => other.to_string().into(),
        }
    }
}

impl World {
    pub(crate) fn document(&self) -> Result<Document, RefusedFile> {
        let mut document = Document::parse(&self.text, &self.file)?;
        for assignment in &self.set {
            document.set(assignment)?;
        }
        Ok(document)
    }

    pub(crate) fn read(&self) -> Result<Scenario, Fault> {
        let document = self.document()?;
        let mut scenario: Scenario = document.read()?;
        let nothing = |_: &Path| Err("a page cannot read files".to_owned());
        let loaded = scenario
            .load_tables(nothing)
            .and_then(|()| scenario.load_traces(|_| Err("a page cannot read files".to_owned())));
        match loaded {
            Ok(()) => Ok(scenario),
            Err(error) => Err(match error.named_file() {
                Some((place, problem)) => {
                    let help =
                        "run it with `airlane sim run`, which reads files beside the scenario";
                    document.refuse(place, problem, help).into()
                }
                None => error.into(),
            }),
        }
    }

    pub(crate) fn prepare(&self) -> Result<Prepared, Fault> {
        Ok(Prepared::new(&self.read()?)?)
    }
}
