//! Aggregated acknowledgments (BBR v1 as in Linux since 5.1, "extra acked"): if a path delays acknowledgments and
//! delivers them in batches, the window grows by the segments that they would have released.
//!
//! The excess is what has been acknowledged beyond the bandwidth since an epoch began; when it is 0 a new epoch
//! begins. The largest excess of the last five to ten round trips counts.

use airlane_base::Instant;

use crate::tcp::congestion::rate::RateSample;

/// Round trips until the older of the two maxima is dropped.
const ROUNDS: u32 = 5;
/// An epoch of more segments is too old.
const LONGEST_EPOCH: u64 = 1 << 20;
/// The window grows by at most what the path carries in this time, s.
const LONGEST: f64 = 0.1;

/// What was acknowledged beyond the bandwidth.
#[derive(Clone, Debug)]
pub(super) struct Aggregation {
    begin: Instant,
    /// Segments acknowledged since then.
    acked: u64,
    /// The largest excess of the current round trips and of the previous ones, segments.
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

    /// A new epoch begins, because there was nothing to send.
    pub(super) const fn restart(&mut self, now: Instant) {
        (self.begin, self.acked) = (now, 0);
    }

    /// Takes an acknowledgment, perhaps the first of a round trip. The path carries `bandwidth` segments per second,
    /// and the window is `window` segments.
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

    /// Segments by which the window may exceed that of the path, which carries `bandwidth` segments per second.
    pub(super) fn allowance(&self, bandwidth: f64) -> u64 {
        let [now, before] = self.largest;
        now.max(before).min((bandwidth * LONGEST) as u64)
    }
}
