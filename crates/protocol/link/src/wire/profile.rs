//! What headers are for: reproductions, or real links.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The header profiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HeaderProfile {
    /// The dissertation's 1 to 3 bytes, numbers modulo 256.
    Study,
    /// A session and 32-bit numbers, for real links.
    #[default]
    Live,
    /// No session and shorter numbers, for real links whose frames a secure session binds to theirs.
    Sealed,
}

impl HeaderProfile {
    /// For real links, where frames may be late, and not for reproductions.
    pub const fn is_live(self) -> bool {
        !matches!(self, Self::Study)
    }

    /// Bytes of the session.
    pub(super) const fn session_len(self) -> usize {
        match self {
            Self::Live => 4,
            Self::Study | Self::Sealed => 0,
        }
    }
}
