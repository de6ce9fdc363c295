//! What a soak runs on, how long, and how often something happens.

use std::path::PathBuf;
use std::time::Duration;

/// What is run.
#[derive(Clone, Debug)]
pub struct SoakPlan {
    /// The program `airlane`.
    pub airlane: PathBuf,
    /// Files of the left and the right end; what they say about keys and listening is replaced.
    pub ends: [PathBuf; 2],
    /// How long it lasts.
    pub total: Duration,
    /// Between two events, about.
    pub every: Duration,
    /// Seed of the events and of the losses.
    pub seed: u64,
}
