//! What an acknowledgment says of the path's delivery rate (draft-cheng-iccrg-delivery-rate-estimation).

use airlane_base::{Duration, Instant};

/// What the recovery is about, as far as the model asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::tcp) enum Phase {
    Open,
    Recovery,
    Timeout,
}

/// The rate between the last departure of what has come now and its arrival.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct RateSample {
    /// When it came.
    pub(in crate::tcp) now: Instant,
    /// Segments that had been delivered when the newest of these left.
    pub(in crate::tcp) prior_delivered: u64,
    /// Segments that have been delivered by now.
    pub(in crate::tcp) total_delivered: u64,
    /// The time that they took, by departures or arrivals, whichever took longer; none if it says nothing.
    pub(in crate::tcp) interval: Option<Duration>,
    /// Segments that this acknowledgment shows to have come.
    pub(in crate::tcp) newly_delivered: u64,
    /// Segments that it shows to be lost.
    pub(in crate::tcp) lost: u64,
    /// Segments on their way, now and before.
    pub(in crate::tcp) flight: u64,
    pub(in crate::tcp) flight_before: u64,
    /// The shortest round trip that it ends.
    pub(in crate::tcp) rtt: Option<Duration>,
    /// Whether the sender had nothing more to send then.
    pub(in crate::tcp) app_limited: bool,
    /// What is being repaired.
    pub(in crate::tcp) phase: Phase,
}

impl RateSample {
    /// Segments per second.
    pub(super) fn rate(&self) -> Option<f64> {
        let seconds = self.interval?.as_secs_f64();
        (seconds > 0.0).then(|| (self.total_delivered - self.prior_delivered) as f64 / seconds)
    }
}
