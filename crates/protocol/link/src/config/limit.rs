//! How far a port trusts the rate that it was told.

use airlane_base::Rate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::ConfigError;
use crate::wire::HeaderProfile;

/// Which rate a port paces itself to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateLimit {
    /// The link's `rate`.
    #[default]
    Fixed,
    /// At most that: what both ends find that the link carries, which is that at first.
    Estimated,
    /// As `estimated`, where nobody can say what the link carries: that begins at 10 Mbit/s, and doubles while it is used.
    Found,
}

impl RateLimit {
    /// What a port is told of a link whose rate nobody states: more than it carries.
    pub const UNSTATED: Rate = Rate::from_bps(10_000_000_000).expect("it is not zero");

    /// What is wrong with it on a link with these headers.
    pub fn check(self, header: HeaderProfile) -> Option<ConfigError> {
        (self != Self::Fixed && !header.is_live()).then(|| ConfigError {
            path: "rate-limit".to_owned(),
            problem: "study headers have no frames by which both ends could find a rate".to_owned(),
            help: "leave it out, or use header = \"live\"".to_owned(),
        })
    }
}
