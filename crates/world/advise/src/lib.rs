//! What is worth it on a recorded link: candidates are simulated on the link that a recording shows, compared run by run,
//! and priced.
//!
//! ```text
//! recording ─► LinkFit ─► Link ─┐
//!        applications ──────────┼─► a world for each candidate ─► measures, run by run ─► Advice
//!        candidates ────────────┘
//! ```
//!
//! All candidates of one run meet the same fades and the same talk, so differences are known better than values. Nothing
//! is advised that does not gain [`WORTH`] of something; what may cost as much of something else is said, as a price.
//!
//! Nothing here reads a file or a clock, or says anything to people.

#![forbid(unsafe_code)]

mod advice;
mod apps;
mod candidate;
mod goal;
mod link;
mod measure;
mod trial;
mod what_if;

pub use advice::{
    Advice, AdviceError, Choice, Compared, Elsewhere, Outcome, Question, Senders, advise, check,
};
pub use apps::{App, AppKind, Apps};
pub use candidate::{Candidate, CandidateError, Kind, candidates, rewritten};
pub use goal::{Goal, GoalState, Goals};
pub use link::{Assumption, Link, USUAL_ROUND_TRIP};
pub use measure::{Measure, What};
pub use trial::{Pace, Trial, scenario};
pub use what_if::{WhatIf, WhatIfs};

/// What is gained or lost below this part counts as nothing: of a rate or a time. Of a call's packets a tenth of it.
pub const WORTH: f64 = 0.03;

/// A word of the command line that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{word}\": {reason}")]
pub struct BadWord {
    /// The word.
    pub word: String,
    /// What is wrong with it, and what would be right.
    pub reason: String,
}

impl BadWord {
    pub(crate) fn new(word: &str, reason: impl Into<String>) -> Self {
        Self {
            word: word.to_owned(),
            reason: reason.into(),
        }
    }
}
