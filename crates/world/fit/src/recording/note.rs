//! What a recording does not tell, or tells against the model.

use airlane_base::Duration;

/// What a recording does not tell, or tells against the model.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// Too few losses, or bursts: a recording so long would do.
    Short {
        /// How many there were.
        events: u64,
        /// Whether bursts are few and not losses.
        bursts: bool,
        /// How long a recording would have enough of them.
        needs: Duration,
    },
    /// Frames spoke for so small a part of the time that bursts cannot be told from single losses.
    Idle {
        /// That part.
        covered: f64,
    },
    /// Loss is higher while more is sent, not counting a full queue: a policer, or a medium that others use.
    GrowsWithLoad {
        /// Loss while little is sent.
        light: f64,
        /// Loss while much is.
        heavy: f64,
    },
    /// The two halves of the recording are not of one link.
    Changed {
        /// Loss in the first half.
        first: f64,
        /// Loss in the second.
        second: f64,
    },
    /// No queue stood below the node for long enough: what the link carries is at least what it was given.
    NeverFilled,
}
