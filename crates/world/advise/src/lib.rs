//! Advice for a recorded link: candidate configurations are simulated on the link that a recording shows, compared run
//! by run, and priced.
//!
//! ```text
//! recording ─► LinkFit ─► Link ─┐
//!        applications ──────────┼─► a world for each candidate ─► measures, run by run ─► Advice
//!        candidates ────────────┘
//! ```
//!
//! Runs are paired: all candidates meet the same fades and the same talk spurts, so differences are known better than
//! values. A candidate is advised only if it gains at least [`WORTH`] in some measure; losses as large are its price.
//!
//! The crate neither reads files or clocks nor formats text for people.

#![forbid(unsafe_code)]

mod advice;
mod apps;
mod candidate;
mod goal;
mod knob;
mod link;
mod measure;
mod search;
mod trial;
mod what_if;

pub use advice::{
    Advice, AdviceError, Choice, Compared, Elsewhere, Outcome, Question, Senders, advise, check,
};
pub use apps::{App, AppKind, Apps};
pub use candidate::{Candidate, CandidateError, Kind, candidates, rewritten, simulated};
pub use goal::{Goal, GoalState, Goals};
pub use link::{Assumption, Link, USUAL_ROUND_TRIP, Way};
pub use measure::{Measure, What};
pub use trial::{Pace, Trial, scenario};
pub use what_if::{WhatIf, WhatIfs};

/// Smallest relative gain or loss of a rate or a time that counts. For a call's lost packets it is a tenth of this.
pub const WORTH: f64 = 0.03;

/// A word of the command line that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{word}\": {reason}")]
pub struct BadWord {
    /// The word.
    pub word: String,
    /// The problem, and what would be right.
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
