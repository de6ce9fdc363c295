//! Handoffs in a scenario file.

use airlane_base::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A node leaves one link and joins another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HandoffConfig {
    /// When the node leaves. Handoffs must be in order of time.
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
    /// How long it is on neither link.
    #[serde(default)]
    pub gap: Duration,
    /// Whether unacknowledged and waiting data moves along, in both directions, so that nothing is lost; packets then
    /// wait during the gap. Only between circuits (`gsm`), whose sequence numbers move along, too. Source: Ludwig et
    /// al. 1999, section 5. Left out: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub carries: bool,
}

/// The kind of a handoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandoffKind {
    /// Between links of the same technology.
    Horizontal,
    /// Between two technologies.
    Vertical,
}

impl HandoffConfig {
    pub(crate) fn leaves(&self) -> Instant {
        Instant::ORIGIN + self.at
    }

    /// Until then packets for the node go to its old link.
    pub(super) fn routed_until(&self) -> Instant {
        match self.carries {
            true => self.joins(),
            false => self.leaves(),
        }
    }

    pub(crate) fn joins(&self) -> Instant {
        self.leaves() + self.gap
    }
}
