//! Acknowledgments that come together (BBR v1 as Linux has had it since 5.1, "extra acked"): where a path holds some back, the
//! window has room for what they would have let leave.
//!
//! What has been acknowledged beyond the bandwidth since an epoch's beginning is the excess; where it is none a new
//! epoch begins. The largest of the last five to ten round trips counts.

use airlane_base::Instant;

use crate::tcp::congestion::rate::RateSample;

/// Round trips for which one of the two largest counts alone.
const ROUNDS: u32 = 5;
/// An epoch of more segments is too old.
const LONGEST_EPOCH: u64 = 1 << 20;
/// The window grows by what the path carries in so many seconds at most.
const LONGEST: f64 = 0.1;

/// What was acknowledged beyond the bandwidth.
#[derive(Clone, Debug)]
pub(super) struct Aggregation {
    begin: Instant,
    /// Segments acknowledged since then.
    acked: u64,
    /// The largest excess of these round trips and of those before, segments.
    largest: [u64; 2],
    rounds: u32,
}

impl Aggregation {
    pub(super) const fn new() -> Self {
        Self {
            begin: Instant::ORIGIN,
            acked: 0,
            largest: [0; 2],
            rounds: 0,
        }
    }

    /// A new epoch begins: nothing was to be sent.
    pub(super) const fn restart(&mut self, now: Instant) {
        (self.begin, self.acked) = (now, 0);
    }

    /// An acknowledgment, perhaps the first of a round trip, on a path of so many segments per second, with a window
    /// of so many.
    pub(super) fn on_sample(
        &mut self,
        sample: &RateSample,
        begins_round: bool,
        bandwidth: f64,
        window: u64,
    ) {
        if sample.newly_delivered == 0 {
            return;
        }
        if begins_round {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.largest = [0, self.largest[0]];
            }
        }
        let mut expected = bandwidth * sample.now.saturating_since(self.begin).as_secs_f64();
        let is_slower = self.acked as f64 <= expected;
        if is_slower || self.acked + sample.newly_delivered >= LONGEST_EPOCH {
            self.restart(sample.now);
            expected = 0.0;
        }
        self.acked += sample.newly_delivered;
        let excess = (self.acked - expected as u64).min(window);
        self.largest[0] = self.largest[0].max(excess);
    }

    /// Segments that the window has room for beyond the path's, which carries so many in a second.
    pub(super) fn allowance(&self, bandwidth: f64) -> u64 {
        let [now, before] = self.largest;
        now.max(before).min((bandwidth * LONGEST) as u64)
    }
}
