//! How far a port trusts the rate that it was told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::ConfigError;
use super::scheme::SchemeConfig;
use super::service::ServiceConfig;
use crate::wire::HeaderProfile;

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

impl RateLimit {
    /// What is wrong with it on a link with these services.
    pub fn check(self, header: HeaderProfile, services: &[ServiceConfig]) -> Option<ConfigError> {
        let shows = |service: &ServiceConfig| service.scheme.shows_round_trips(header);
        if self == Self::Fixed || services.iter().any(shows) {
            return None;
        }
        Some(ConfigError {
            path: "rate-limit".to_owned(),
            problem: "none of the services shows how long a round trip takes, so nothing can be estimated"
                .to_owned(),
            help: "leave it out, or add a service with sr-m2 (with header = \"live\", which has room \
                   for the peer's echo) or rlp"
                .to_owned(),
        })
    }
}

impl SchemeConfig {
    /// Its sender sees how long a round trip takes: by the peer's echo, or by what the peer asks for.
    const fn shows_round_trips(&self, header: HeaderProfile) -> bool {
        self.is_reliable() && header.is_live() || matches!(self, Self::Rlp(_) | Self::RlpOos(_))
    }
}
