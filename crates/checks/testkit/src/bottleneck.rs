//! A link below the ports' link, slower than the rate that the ports were given.

use airlane_base::{Duration, Instant, Payload, Rate, Rng, Streams};

use crate::{Adversary, Fate, FrameDeparture};

/// In each direction a queue of limited length before a rate, and losses on the air after it.
///
/// On the pair's own channel a frame takes the time of the ports' rate; here it waits for the difference.
#[derive(Clone, Debug)]
pub struct Bottleneck {
    rate: Rate,
    /// Bytes of each frame in addition to its payload.
    overhead: usize,
    longest: Duration,
    free_at: [Instant; 2],
    loss: f64,
    rng: Rng,
    /// The longest wait of a frame since [`Self::forget`].
    pub waited: Duration,
    /// Frames dropped from a full queue.
    pub overflowed: u64,
    /// Frames that arrived at the queue.
    pub offered: u64,
}

impl Bottleneck {
    /// The queue holds what leaves within `longest`.
    pub fn new(rate: Rate, overhead: usize, longest: Duration, loss: f64) -> Self {
        Self {
            rate,
            overhead,
            longest,
            free_at: [Instant::ORIGIN; 2],
            loss,
            rng: Streams::new(1, 0).stream("bottleneck"),
            waited: Duration::ZERO,
            overflowed: 0,
            offered: 0,
        }
    }

    /// Resets the counters.
    pub fn forget(&mut self) {
        (self.waited, self.overflowed, self.offered) = (Duration::ZERO, 0, 0);
    }

    /// Changes the rate.
    pub fn become_as_fast_as(&mut self, rate: Rate) {
        self.rate = rate;
    }
}

impl Adversary for Bottleneck {
    fn fate(&mut self, departure: FrameDeparture<'_>) -> Fate {
        let free_at = &mut self.free_at[departure.from];
        let wait = free_at.saturating_since(departure.now);
        let lost = self.rng.chance(self.loss);
        self.offered += 1;
        if wait > self.longest {
            self.overflowed += 1;
            return Fate::Lose;
        }
        self.waited = self.waited.max(wait);
        let payload = departure.frame.packet();
        let len = payload.map_or(0, Payload::len) + self.overhead;
        *free_at = departure.now + wait + self.rate.transmission_time(len);
        if lost {
            Fate::Lose
        } else {
            Fate::Deliver(wait)
        }
    }
}
