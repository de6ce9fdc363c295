//! Detects a policer on the path, which lets bursts pass and then drops (BBR v1 as in Linux, "long-term bandwidth").
//!
//! From the first loss on, the rate is measured over intervals of 4 to 16 round trips. An interval ends with a loss
//! if at least a fifth of what was delivered was lost. Two such intervals in a row at nearly the same rate indicate a
//! policer: their mean is the pacing rate, without probes, for 48 round trips.

use airlane_base::Instant;

use crate::tcp::congestion::rate::RateSample;

/// The shortest and the longest interval, round trips.
const LEAST_ROUNDS: u32 = 4;
const MOST_ROUNDS: u32 = 16;
/// Lost segments of 256 delivered.
const LOSSES: u64 = 50;
/// Two rates are the same if they differ by at most an eighth, or by 4 kbit/s.
const RATIO: f64 = 0.125;
const DIFFERENCE: f64 = 500.0;
/// Round trips for which the rate is used.
const BELIEVED_ROUNDS: u32 = 48;

/// Where an interval began.
#[derive(Clone, Copy, Debug)]
struct Interval {
    begin: Instant,
    delivered: u64,
    lost: u64,
    rounds: u32,
}

/// What is known of a policer.
#[derive(Clone, Debug, Default)]
pub(super) struct Policer {
    /// Segments lost so far.
    lost: u64,
    interval: Option<Interval>,
    /// The rate of the previous interval, segments per second.
    before: Option<f64>,
    /// The policer's rate, and the round trips since it was found.
    found: Option<(f64, u32)>,
}

impl Policer {
    /// The rate of the policer, segments per second, if one was found.
    pub(super) fn rate(&self) -> Option<f64> {
        self.found.map(|(rate, _)| rate)
    }

    /// Discards everything measured so far.
    pub(super) fn forget(&mut self) {
        *self = Self {
            lost: self.lost,
            ..Self::default()
        };
    }

    /// Takes an acknowledgment, perhaps the first of a round trip, while the bandwidth is `probed`. Full segments
    /// have `segment` bytes. True if the rate of a policer has expired.
    pub(super) fn on_sample(
        &mut self,
        sample: &RateSample,
        begins_round: bool,
        probed: bool,
        segment: f64,
    ) -> bool {
        self.lost += sample.lost;
        if let Some((_, rounds)) = &mut self.found {
            *rounds += u32::from(probed && begins_round);
            let is_over = *rounds >= BELIEVED_ROUNDS;
            if is_over {
                self.forget();
            }
            return is_over;
        }
        self.measure(sample, begins_round, segment);
        false
    }

    /// The retransmission timer has expired: everything in flight is lost.
    pub(super) fn on_timeout(&mut self) {
        self.lost += 1;
    }

    fn measure(&mut self, sample: &RateSample, begins_round: bool, segment: f64) {
        let fresh = Interval {
            begin: sample.now,
            delivered: sample.total_delivered,
            lost: self.lost,
            rounds: 0,
        };
        if self.interval.is_none() && sample.lost == 0 {
            return;
        }
        if sample.app_limited {
            self.forget();
            return;
        }
        let interval = self.interval.get_or_insert(fresh);
        interval.rounds += u32::from(begins_round);
        if interval.rounds < LEAST_ROUNDS {
            return;
        }
        if interval.rounds > MOST_ROUNDS {
            self.forget();
            return;
        }
        let (lost, delivered) = (
            self.lost - interval.lost,
            sample.total_delivered - interval.delivered,
        );
        let took = sample.now.saturating_since(interval.begin).as_secs_f64();
        if sample.lost == 0 || delivered == 0 || lost * 256 < LOSSES * delivered || took < 1e-3 {
            return;
        }
        let rate = delivered as f64 / took;
        if let Some(before) = self.before {
            let apart = (rate - before).abs();
            if apart <= RATIO * before || apart * segment <= DIFFERENCE {
                self.found = Some((rate.midpoint(before), 0));
                return;
            }
        }
        self.before = Some(rate);
        self.interval = Some(fresh);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::congestion::rate::Phase;
    use airlane_base::Duration;

    /// Round trips of 100 ms, each with one acknowledgment, given as segments acknowledged and lost; returns the rate
    /// in use after each round trip.
    fn rates(rounds: &[(u64, u64)]) -> Vec<Option<f64>> {
        let (mut policer, mut total) = (Policer::default(), 0);
        let mut one = |(at, (delivered, lost)): (usize, &(u64, u64))| {
            total += delivered;
            let sample = RateSample {
                now: Instant::ORIGIN + Duration::from_millis(100 * at as u64),
                prior_delivered: total - delivered,
                total_delivered: total,
                interval: Some(Duration::from_millis(100)),
                newly_delivered: *delivered,
                lost: *lost,
                flight: 10,
                flight_before: 10,
                rtt: None,
                app_limited: false,
                phase: Phase::Open,
            };
            policer.on_sample(&sample, true, true, 1_000.0);
            policer.rate()
        };
        rounds.iter().enumerate().map(&mut one).collect()
    }

    #[test]
    fn two_lossy_intervals_of_equal_rate_mark_a_policer_for_48_round_trips() {
        let seen = rates(&[(100, 40); 62]);
        // The first loss begins the first interval; each has four round trips.
        assert_eq!(seen[6], None);
        assert!(
            seen[7].is_some_and(|rate| (rate - 1_000.0).abs() < 1e-6),
            "{seen:?}"
        );
        assert!(seen[7..55].iter().all(Option::is_some));
        assert_eq!(seen[55], None);
    }

    #[test]
    fn few_losses_or_differing_rates_mark_no_policer() {
        assert!(rates(&[(100, 10); 100]).iter().all(Option::is_none));
        let falls: Vec<_> = (0..60)
            .map(|at| (400 >> (at / 4), 200 >> (at / 4)))
            .collect();
        assert!(rates(&falls[..28]).iter().all(Option::is_none));
    }
}
