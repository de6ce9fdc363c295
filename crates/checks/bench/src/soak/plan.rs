//! The settings of a soak: the ends, the duration, and the frequency of events.

use std::path::PathBuf;
use std::time::Duration;

/// The settings.
#[derive(Clone, Debug)]
pub struct SoakPlan {
    /// The program `airlane`.
    pub airlane: PathBuf,
    /// Files of the left and the right end; their keys and listen addresses are replaced.
    pub ends: [PathBuf; 2],
    /// How long it lasts.
    pub total: Duration,
    /// Approximate time between two events.
    pub every: Duration,
    /// Seed of the events and of the losses.
    pub seed: u64,
}
