//! How a claim fared, and the rules that say so: [`print`] has one for each form of claim, `holm` corrects for the
//! number of comparisons.

pub(crate) mod holm;
pub(crate) mod print;

use serde::{Deserialize, Serialize};

/// How a claim fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Not reproduced.
    Misses,
    /// Almost.
    Near,
    /// The source says elsewhere what excludes it.
    SourceInconsistent,
    /// Neither for nor against: a tie where an order is claimed, or what chance may have done.
    Consistent,
    /// Reproduced.
    Holds,
}

impl Verdict {
    /// In words: `holds`, `consistent`, `near`, `misses`, `source inconsistent`.
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
