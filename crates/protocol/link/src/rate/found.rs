//! The estimated rate of a link and its limit, for tables and logs.

use serde::{Deserialize, Serialize};

/// An estimated rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundRate {
    /// Estimated capacity of the link, bit/s.
    pub bps: u64,
    /// What limits the estimate.
    pub limit: RateLimitCause,
    /// Fraction of the sent data that is lost at any rate, 0 to 1.
    pub loss: f64,
}

/// What limits an estimated rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateLimitCause {
    /// Nothing yet: the link has not been used beyond this rate.
    NotYetSeen,
    /// A higher rate builds a queue.
    Queue,
    /// Another sender keeps a queue filled, beside which this end sends what TCP would.
    Rival,
    /// The excess is dropped, as by a policer.
    Policed,
    /// The peer does not answer.
    Silence,
    /// The configuration.
    Configured,
}

impl RateLimitCause {
    /// Whether neither the link nor the configuration sets the limit, but a policer or another sender.
    pub const fn is_of_others(self) -> bool {
        matches!(self, Self::Policed | Self::Rival)
    }

    /// Completes a sentence about the rate after "found, ".
    pub const fn says(self) -> &'static str {
        match self {
            Self::NotYetSeen => "no limit seen yet",
            Self::Queue => "more makes a queue",
            Self::Rival => "another sender keeps the queue filled",
            Self::Policed => "policed: more is dropped",
            Self::Silence => "nothing is heard",
            Self::Configured => "no more is allowed",
        }
    }
}
