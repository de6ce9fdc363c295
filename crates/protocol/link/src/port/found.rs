//! What a port that follows its link takes the link to carry, and why: for tables and logs.

use serde::{Deserialize, Serialize};

/// A rate that was found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundRate {
    /// What the link is taken to carry, bit/s.
    pub bps: u64,
    /// What showed that it carries no more.
    pub limit: RateLimitCause,
    /// The part of what is sent that is lost at any rate, 0 to 1.
    pub loss: f64,
}

/// Why a rate is not taken to be higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateLimitCause {
    /// Nothing has shown a limit: the link was not used beyond this rate yet.
    NotYetSeen,
    /// More makes a queue.
    Queue,
    /// Somebody else keeps a queue filled, beside which this end takes what TCP would.
    Rival,
    /// What exceeds it is dropped, as by a policer.
    Policed,
    /// The peer does not answer.
    Silence,
    /// The file allows no more.
    Configured,
}

impl RateLimitCause {
    /// Whether something else than the link or the file sets the limit: a policer, or another sender.
    pub const fn is_of_others(self) -> bool {
        matches!(self, Self::Policed | Self::Rival)
    }

    /// What follows "found, " in a sentence about the rate.
    pub const fn says(self) -> &'static str {
        match self {
            Self::NotYetSeen => "no limit seen yet",
            Self::Queue => "more makes a queue",
            Self::Rival => "another sender keeps the queue filled",
            Self::Policed => "policed: more is dropped",
            Self::Silence => "nothing is heard",
            Self::Configured => "the file allows no more",
        }
    }
}
