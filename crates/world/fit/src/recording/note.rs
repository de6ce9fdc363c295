//! Remarks on a fit.

use airlane_base::Duration;

/// What a recording does not show, or what speaks against the model.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// There are too few losses, or bursts.
    Short {
        /// Their number.
        events: u64,
        /// Whether bursts are too few, not losses.
        bursts: bool,
        /// Length of a recording that would have enough of them.
        needs: Duration,
    },
    /// Frames sample so little of the time that bursts cannot be told from single losses.
    Idle {
        /// The sampled fraction.
        covered: f64,
    },
    /// Loss beyond that of a full queue grows with the load: a policer, or a shared medium.
    GrowsWithLoad {
        /// Loss while little is sent.
        light: f64,
        /// Loss while much is.
        heavy: f64,
    },
    /// The loss differs between the halves of the recording.
    Changed {
        /// Loss in the first half.
        first: f64,
        /// Loss in the second.
        second: f64,
    },
    /// No queue was seen for long enough, so the capacity is a lower bound.
    NeverFilled,
}
