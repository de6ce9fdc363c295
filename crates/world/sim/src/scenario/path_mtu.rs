//! The MTU of a link between live nodes, which may change.

use airlane_base::{Duration, Instant, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest IP packet that a link carries, headers included; longer ones are lost silently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "mtu is a size, or a list of them: [{ from = \"0 s\", size = \"1500 B\" }, ...]"
)]
#[schemars(extend("examples" = ["1400 B", [{ "from": "10 s", "size": "1300 B" }]]))]
pub enum PathMtu {
    /// Constant.
    Same(Size),
    /// Each from a time on, in order; no limit before the first.
    Steps(Vec<MtuStep>),
}

/// An MTU, from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MtuStep {
    /// When it begins.
    pub from: Duration,
    /// The longest packet.
    pub size: Size,
}

impl PathMtu {
    fn steps(&self) -> Vec<MtuStep> {
        match self {
            Self::Same(size) => vec![MtuStep {
                from: Duration::ZERO,
                size: *size,
            }],
            Self::Steps(steps) => steps.clone(),
        }
    }

    /// The limits in bytes, in order of time.
    pub(crate) fn limits(&self) -> Vec<(Instant, usize)> {
        let steps = self.steps().into_iter();
        let limit = |step: MtuStep| (Instant::ORIGIN + step.from, step.size.as_bytes() as usize);
        steps.map(limit).collect()
    }

    /// What is wrong, and what would be right.
    pub(super) fn problem(&self) -> Option<[&'static str; 2]> {
        let steps = self.steps();
        let in_order = steps.is_sorted_by(|a, b| a.from < b.from);
        if steps.is_empty() || !in_order {
            return Some([
                "no length, or not one after the other",
                "at least one, each `from` later than the last",
            ]);
        }
        let possible = |step: &MtuStep| (68..=65_535).contains(&step.size.as_bytes());
        (!steps.iter().all(possible)).then_some([
            "no IP link takes so little or so much",
            "\"68 B\" to \"65535 B\"",
        ])
    }
}
