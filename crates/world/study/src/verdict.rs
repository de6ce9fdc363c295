//! The verdict of a claim, and the rules that decide it: [`print`] has one for each form of claim,
//! `holm` corrects for the number of comparisons.

pub(crate) mod holm;
pub(crate) mod print;

use serde::{Deserialize, Serialize};

/// The verdict of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Not reproduced.
    Misses,
    /// Almost reproduced.
    Near,
    /// Another statement of the source excludes it.
    SourceInconsistent,
    /// Neither supported nor contradicted: a tie where an order is claimed, or a deviation that may
    /// be due to chance.
    Consistent,
    /// Reproduced.
    Holds,
}

impl Verdict {
    /// The verdict in words: `holds`, `consistent`, `near`, `misses`, `source inconsistent`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Misses => "misses",
            Self::Near => "near",
            Self::SourceInconsistent => "source inconsistent",
            Self::Consistent => "consistent",
            Self::Holds => "holds",
        }
    }
}
