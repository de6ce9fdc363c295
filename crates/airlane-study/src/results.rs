//! `WORK/outcome.json`: all that was found about a work, for whoever draws it or writes about it.

use std::path::Path;

use serde::Serialize;

use crate::error::StudyError;
use crate::outcome::WorkOutcome;
use crate::plan::Plan;
use crate::report::{AlternativeReport, Report};

/// What the studies of one work gave, and how to get it again.
#[derive(Clone, Debug, Serialize)]
pub struct WorkResults {
    /// What is reported in full.
    #[serde(flatten)]
    pub outcome: WorkOutcome,
    /// How the verdicts move with other choices.
    pub alternatives: Vec<AlternativeReport>,
    /// After `airlane study run WORK` or `WORK/STUDY`, what gives the same results again.
    pub options: Vec<String>,
}

impl WorkResults {
    /// Of `outcomes`, which may be of several works, those of a plan; none if there are none.
    pub fn new(plan: &Plan, outcomes: &[WorkOutcome]) -> Option<Self> {
        let own = outcomes.iter().filter(|o| o.work == plan.work.id);
        let own: Vec<WorkOutcome> = own.cloned().collect();
        let alternatives = Report::new(&own).alternatives;
        let outcome = own.into_iter().next()?;
        let mut options = vec![
            "--runs".to_owned(),
            outcome.runs.to_string(),
            "--seed".to_owned(),
            outcome.seed.to_string(),
        ];
        for set in &plan.set {
            options.extend(["--set".to_owned(), set.clone()]);
        }
        if let Some(name) = &outcome.alternative {
            options.extend(["--alternative".to_owned(), name.clone()]);
        }
        if !outcome.unjudged.is_empty() {
            options.push("--figure-only".to_owned());
        }
        Some(Self {
            outcome,
            alternatives,
            options,
        })
    }

    /// Writes `WORK/outcome.json` into a folder of results.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), StudyError> {
        let folder = folder.join(&self.outcome.work);
        std::fs::create_dir_all(&folder).map_err(StudyError::io(&folder))?;
        let path = folder.join("outcome.json");
        let text = serde_json::to_string(self)
            .map_err(|e| StudyError::Results(format!("the outcome cannot be written: {e}")))?;
        std::fs::write(&path, text + "\n").map_err(StudyError::io(&path))
    }
}
