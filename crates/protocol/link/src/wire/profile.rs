//! The header profiles: for reproductions of the works, and for real links.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The header profiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HeaderProfile {
    /// The dissertation's 1 to 3 bytes, with numbers modulo 256.
    Study,
    /// A session number and 32-bit sequence numbers, for real links.
    #[default]
    Live,
    /// No session number and shorter sequence numbers, for real links whose frames are sealed in a secure
    /// session.
    Sealed,
}

impl HeaderProfile {
    /// Whether it is for real links, where frames may be delayed, and not for reproductions.
    pub const fn is_live(self) -> bool {
        !matches!(self, Self::Study)
    }

    /// Length of the session number, bytes.
    pub(super) const fn session_len(self) -> usize {
        match self {
            Self::Live => 4,
            Self::Study | Self::Sealed => 0,
        }
    }
}
