//! `WORK/outcome.json`: everything found about a work, for programs that draw it and people who
//! write about it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::claim::ComparisonCounts;
use crate::error::StudyError;
use crate::grid::{Choice, choices};
use crate::manifest::ManifestWork;
use crate::outcome::WorkOutcome;
use crate::plan::Plan;
use crate::report::{AlternativeReport, Report};
use crate::verdict::Verdict;

/// The outcome of a work's studies, and the command that reproduces it.
#[derive(Clone, Debug, Serialize)]
pub struct WorkResults {
    /// The outcome that is reported in full.
    #[serde(flatten)]
    pub outcome: WorkOutcome,
    /// How the verdicts change with other choices.
    pub alternatives: Vec<AlternativeReport>,
    /// Each of several choices, if they ran without the committed ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grid: Vec<GridPoint>,
    /// The work or the studies that `airlane study run` was asked for.
    pub asked: Vec<String>,
    /// The options that, after the work or one of its studies, give the same results again.
    pub options: Vec<String>,
}

/// The verdicts of all claims under choices that applied together.
#[derive(Clone, Debug, Serialize)]
pub struct GridPoint {
    /// The choices.
    pub choices: Vec<Choice>,
    /// The verdict of each counted claim; null if nothing was compared.
    pub verdicts: BTreeMap<String, Option<Verdict>>,
    /// Comparisons that agree.
    pub agree: usize,
    /// All comparisons.
    pub all: usize,
}

impl GridPoint {
    fn new(outcome: &WorkOutcome) -> Self {
        let claims = || outcome.claims.iter();
        let sum = |of: fn(&ComparisonCounts) -> usize| {
            let counts = claims().filter_map(|claim| claim.agreement.as_ref());
            counts.map(of).sum()
        };
        Self {
            choices: choices(outcome.alternative.as_deref().unwrap_or_default()),
            verdicts: claims().map(|c| (c.id.clone(), c.verdict)).collect(),
            agree: sum(|counts| counts.agree),
            all: sum(|counts| counts.all),
        }
    }
}

impl WorkResults {
    /// Takes the outcomes of a plan from `outcomes`, which may be of several works; `None` if there
    /// are none. `asked` and `options` are those of the command.
    pub fn new(
        plan: &Plan,
        outcomes: &[WorkOutcome],
        asked: &ManifestWork,
        options: &[String],
    ) -> Option<Self> {
        let own = outcomes.iter().filter(|o| o.work == plan.work.id);
        let own: Vec<WorkOutcome> = own.cloned().collect();
        let alternatives = Report::new(&own).alternatives;
        let several = own.len() > 1 && own.iter().all(|o| o.alternative.is_some());
        let grid = if several {
            own.iter().map(GridPoint::new).collect()
        } else {
            vec![]
        };
        let outcome = own.into_iter().next()?;
        // Both options are given even if they equal the work's own numbers.
        let numbers = [("--runs", plan.runs), ("--seed", plan.seed)];
        let mut full: Vec<String> = vec![];
        for (name, number) in numbers {
            full.extend([name.to_owned(), number.to_string()]);
        }
        let mut options = options.iter();
        while let Some(option) = options.next() {
            if numbers.iter().any(|(name, _)| name == option) {
                options.next();
            } else {
                full.push(option.clone());
            }
        }
        Some(Self {
            outcome,
            alternatives,
            grid,
            asked: asked.named(),
            options: full,
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
