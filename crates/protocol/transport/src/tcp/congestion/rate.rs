//! A sample of the path's delivery rate (draft-cheng-iccrg-delivery-rate-estimation).

use airlane_base::{Duration, Instant};

/// What is being repaired, as far as the model needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::tcp) enum Phase {
    Open,
    Recovery,
    Timeout,
}

/// A sample of the delivery rate, given by one acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct RateSample {
    /// When the acknowledgment arrived.
    pub(in crate::tcp) now: Instant,
    /// Segments that had been delivered when the newest of the acknowledged ones was sent.
    pub(in crate::tcp) prior_delivered: u64,
    /// Segments delivered by now.
    pub(in crate::tcp) total_delivered: u64,
    /// How long their delivery took, the longer of the send and the arrival interval; none if the sample is not
    /// valid.
    pub(in crate::tcp) interval: Option<Duration>,
    /// Segments that this acknowledgment newly reports as delivered.
    pub(in crate::tcp) newly_delivered: u64,
    /// Segments that it newly shows to be lost.
    pub(in crate::tcp) lost: u64,
    /// Segments in flight, now and before.
    pub(in crate::tcp) flight: u64,
    pub(in crate::tcp) flight_before: u64,
    /// The shortest round trip that it gives.
    pub(in crate::tcp) rtt: Option<Duration>,
    /// Whether the sender was limited by its application at that time.
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
