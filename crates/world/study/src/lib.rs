//! Published figures as files: which worlds they ran, what they claim, and how the claims compare
//! with simulations.
//!
//! A [`Work`] is a folder with one TOML file for each figure or table. A [`Plan`] says which
//! distinct worlds its studies need, [`Plan::execute`] simulates those that the [`Store`] does not
//! have yet, [`Plan::outcome`] judges the claims. docs/studies.md describes the files.
//!
//! * The same work, seed and version give the same bytes, whether or not the run was interrupted,
//!   on any number of threads or machines.
//! * The rule that turns numbers into a verdict is the same for all claims of a form: [`verdict`].
//! * Nothing is simulated here; [`airlane_sim`] does that.

#![forbid(unsafe_code)]

mod axis;
mod claim;
mod comparisons;
mod curve;
mod data;
mod error;
#[cfg(feature = "tables")]
mod event_table;
mod execute;
pub mod expression;
mod figure;
mod grid;
mod manifest;
mod markdown;
mod metrics;
mod outcome;
mod over_time;
mod pattern;
mod plain;
mod plan;
mod point;
mod report;
mod results;
pub mod schema;
pub mod shipped;
mod statistics;
mod store;
mod study;
#[cfg(feature = "tables")]
mod table;
mod unit;
pub mod verdict;
mod work;

pub use axis::Axis;
pub use claim::{Claim, ClaimClass, ClaimKind, Comparison, ComparisonCounts, Judgement};
pub use comparisons::comparisons;
pub use error::StudyError;
#[cfg(feature = "tables")]
pub use event_table::EventTable;
pub use execute::{Done, ExecutionWatch, Shard};
pub use figure::outcome::{FigureOutcome, LineOutcome, MarkOutcome, PanelOutcome, ValueOutcome};
pub use figure::{FigureKind, FigureWidth};
pub use grid::{Choice, Grid, alternatives_of};
pub use manifest::{Manifest, ManifestVariant, ManifestWork};
pub use markdown::{Page, markdown};
pub use metrics::metrics;
pub use outcome::{
    ClaimOutcome, PointOutcome, StudyOutcome, Unjudged, VerdictCounts, Verdicts, WorkOutcome,
};
pub use over_time::Series;
pub use over_time::outcome::{OverTimeOutcome, OverTimePanel};
pub use pattern::{Assignment, Pattern};
pub use plan::{Needs, Plan, PlannedStudy, PlannedVariant, RunRequest};
pub use report::{AlternativeReport, OfWork, Report};
pub use results::{GridPoint, WorkResults};
pub use statistics::student_t;
pub use store::{RunKey, RunRecord, Store, VERSION};
pub use study::{Part, Point, Study, StudyFile};
pub use unit::Unit;
pub use verdict::Verdict;
pub use work::{Alternative, Cause, Note, Work};
