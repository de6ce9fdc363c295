//! How far a port trusts the rate that it was told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which rate a port paces itself to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateLimit {
    /// The link's `rate`.
    #[default]
    Fixed,
    /// At most that: less while round trips show that a queue grows below.
    Estimated,
}
