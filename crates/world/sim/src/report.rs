//! A scenario and what its repetitions measured, in the form that programs exchange.

use serde::Serialize;

use crate::result::RunResult;
use crate::scenario::Scenario;
use crate::summary::{Summary, summary};

/// Version of the form.
pub const REPORT_SCHEMA: u32 = 1;

/// What `airlane sim run --json` prints. Names carry their unit; nothing depends on threads or time.
#[derive(Clone, Debug, Serialize)]
pub struct Report<'a> {
    /// [`REPORT_SCHEMA`].
    pub schema: u32,
    /// Every default filled in.
    pub scenario: Scenario,
    /// Choices in it that hurt, with what to write instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The repetitions in a few numbers.
    pub summary: Summary,
    /// Each of them.
    pub runs: &'a [RunResult],
}

impl<'a> Report<'a> {
    /// Of repetitions of a scenario; none if there are none.
    pub fn new(scenario: &Scenario, runs: &'a [RunResult]) -> Option<Self> {
        Some(Self {
            schema: REPORT_SCHEMA,
            scenario: scenario.resolved(),
            warnings: scenario.warnings(),
            summary: summary(runs)?,
            runs,
        })
    }
}
