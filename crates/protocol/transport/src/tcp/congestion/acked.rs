//! What a congestion control learns from an acknowledgment.

use airlane_base::{Duration, Instant};

/// An acknowledgment of new data outside of recovery.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Acked {
    /// When it arrived.
    pub(in crate::tcp) now: Instant,
    /// Segments that it acknowledges for the first time.
    pub(in crate::tcp) segments: u64,
    /// Segments that were in flight before it.
    pub(in crate::tcp) flight: u64,
    /// Everything below has arrived.
    pub(in crate::tcp) una: u64,
    /// The next segment to send.
    pub(in crate::tcp) nxt: u64,
    /// One more than the highest segment that has been sent.
    pub(in crate::tcp) max: u64,
    /// Smoothed round trip time; zero before the first sample.
    pub(in crate::tcp) srtt: Duration,
    /// The round trip time that it gives, if one was measured.
    pub(in crate::tcp) rtt: Option<Duration>,
}

/// How much of the window was in use in this round trip: what the last segments of a burst leave unused was in use when
/// the burst was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InUse {
    /// The largest flight of this round trip, segments.
    most: u64,
    /// The segment that ends it.
    round_end: u64,
}

impl InUse {
    /// Adds an acknowledgment; returns the largest flight, segments.
    pub(super) fn note(&mut self, acked: &Acked) -> u64 {
        if acked.una > self.round_end || acked.flight > self.most {
            self.most = acked.flight;
            self.round_end = acked.max;
        }
        self.most
    }
}
