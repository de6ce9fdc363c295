//! What a link between live nodes takes at most, which may change.

use airlane_base::{Duration, Instant, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest IP packets below that a link takes, their headers included; longer ones are lost without a word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "mtu is a size, or a list of them: [{ from = \"0 s\", size = \"1500 B\" }, ...]"
)]
#[schemars(extend("examples" = ["1400 B", [{ "from": "10 s", "size": "1300 B" }]]))]
pub enum PathMtu {
    /// The same all the time.
    Same(Size),
    /// Each from a time on, in order; any length before the first.
    Steps(Vec<MtuStep>),
}

/// A longest packet, since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MtuStep {
    /// Since when.
    pub from: Duration,
    /// The length.
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

    /// In order, what it takes since when, bytes.
    pub(crate) fn limits(&self) -> Vec<(Instant, usize)> {
        let steps = self.steps().into_iter();
        let limit = |step: MtuStep| (Instant::ORIGIN + step.from, step.size.as_bytes() as usize);
        steps.map(limit).collect()
    }

    /// What is wrong with it, and what would be right.
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
