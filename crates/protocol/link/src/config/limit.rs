//! How a port determines the rate to pace itself to.

use airlane_base::Rate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::ConfigError;
use crate::wire::HeaderProfile;

/// How a port determines its pacing rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateLimit {
    /// The link's `rate`.
    #[default]
    Fixed,
    /// At most `rate`: both ends estimate what the link carries, starting from `rate`.
    Estimated,
    /// As `estimated`, for links of unknown rate: the estimate starts at 10 Mbit/s, and doubles as long as it
    /// is fully used.
    Found,
}

impl RateLimit {
    /// The configured rate of a link of unknown rate: more than any such link carries.
    pub const UNSTATED: Rate = Rate::from_bps(10_000_000_000).expect("it is not zero");

    /// This rate, if a file states it.
    pub fn stated(rate: Rate) -> Option<Rate> {
        (rate != Self::UNSTATED).then_some(rate)
    }

    /// The problem with this choice on a link with these headers.
    pub fn check(self, header: HeaderProfile) -> Option<ConfigError> {
        (self != Self::Fixed && !header.is_live()).then(|| ConfigError {
            path: "rate-limit".to_owned(),
            problem: "study headers have no frames by which both ends could find a rate".to_owned(),
            help: "leave it out, or use header = \"live\"".to_owned(),
        })
    }
}
