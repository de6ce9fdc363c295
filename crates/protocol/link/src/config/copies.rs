//! Options of copies: a thin flow's frames are sent again without a request.

use airlane_base::{Duration, Probability, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::Wrong;
use crate::wire::HeaderProfile;

/// Copies of each frame, limited to a share of the link's rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CopiesConfig {
    /// Number of copies of each frame.
    #[serde(default = "one")]
    #[schemars(extend("x-unit" = "copies"))]
    pub number: u32,
    /// How long after the frame, and after each other, the copies leave. It should exceed most bursts of
    /// losses.
    #[serde(default = "soon")]
    pub after: Duration,
    /// The share of the link's rate that copies may use.
    #[serde(default = "a_twentieth")]
    #[schemars(extend("x-unit" = "part of the rate"))]
    pub share: f64,
    /// Longer packets are not copied: this excludes the segments of a file and includes their
    /// acknowledgments. Left out: packets of any length are copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest: Option<Size>,
    /// Copies are sent while at least this share of the frames is lost, as far as requests show. Left out:
    /// always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<Probability>,
}

const fn one() -> u32 {
    1
}

const fn soon() -> Duration {
    Duration::from_millis(5)
}

const fn a_twentieth() -> f64 {
    0.05
}

impl Default for CopiesConfig {
    fn default() -> Self {
        Self {
            number: one(),
            after: soon(),
            share: a_twentieth(),
            longest: None,
            above: None,
        }
    }
}

impl CopiesConfig {
    const MOST: u32 = 4;

    pub(super) fn check(&self, header: HeaderProfile, at: &str, wrong: Wrong<'_>) {
        if header == HeaderProfile::Study {
            wrong(
                at.to_owned(),
                "study headers have no type for copies, which the works do not know".to_owned(),
                "leave it out, or header = \"live\"",
            );
        }
        if !(1..=Self::MOST).contains(&self.number) {
            wrong(
                format!("{at}.number"),
                format!("{} copies of each frame are impossible", self.number),
                "1 to 4 copies; none: leave `copies` out",
            );
        }
        if self.after == Duration::ZERO || self.after > Duration::from_secs(10) {
            wrong(
                format!("{at}.after"),
                format!("a copy {} after its frame helps nobody", self.after),
                "some milliseconds, more than the time of a frame on the link",
            );
        }
        if !(self.share > 0.0 && self.share <= 1.0) {
            wrong(
                format!("{at}.share"),
                format!("{} is no part of the link's rate", self.share),
                "a share above 0 and at most 1, such as 0.05",
            );
        }
    }
}
