//! Handoffs as a file says them.

use airlane_base::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A node leaves one link and joins another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HandoffConfig {
    /// When the node leaves. Handoffs stand in the order of time.
    pub at: Duration,
    /// The node of this name moves.
    #[schemars(example = &"mobile")]
    pub node: String,
    /// It leaves the link of this name.
    #[schemars(example = &"wlan")]
    pub from: String,
    /// It joins the link of this name.
    #[schemars(example = &"cellular")]
    pub to: String,
    /// How long it has neither.
    #[serde(default)]
    pub gap: Duration,
}

/// What a handoff is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandoffKind {
    /// Between links of one technology.
    Horizontal,
    /// Between two technologies.
    Vertical,
}

impl HandoffConfig {
    pub(super) fn leaves(&self) -> Instant {
        Instant::ORIGIN + self.at
    }

    pub(super) fn joins(&self) -> Instant {
        self.leaves() + self.gap
    }
}
