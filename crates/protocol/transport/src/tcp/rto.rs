//! The retransmission timeout in whole clock ticks (RFC 6298, with the integer arithmetic of 1999).
//!
//! BSD and ns-2 of that time did not measure a round trip but counted the clock ticks during it: a segment sent just
//! before a tick and acknowledged just after it took "one tick". `srtt` has three fractional bits, `rttvar` has two,
//! and all divisions are shifts:
//!
//! ```text
//! first sample m:  srtt = m                   rttvar = m / 2
//! later:           srtt += (m - srtt) / 8     rttvar += (|m - srtt| - rttvar) / 4
//! timeout:         (srtt + 4 rttvar) ticks * backoff, between the smallest and the largest RTO
//! ```
//!
//! `backoff` doubles with every timeout up to 64 and returns to 1 with the next sample. Beyond a backoff of 8 the old
//! estimate is not trusted: it moves into the variance, and the next sample starts a new estimate, while the timeout
//! itself keeps its value until then.
//!
//! A fine clock measures round trips exactly as RFC 6298 says (`fine`), and always trusts its estimate; its backoff
//! ends with the next acknowledgment of new data.
//!
//! Left out: the per-acknowledgment variance of later releases.

mod fine;

use airlane_base::{Duration, Instant};

use super::{TcpConfig, TimerKind};
use fine::Fine;

const SRTT_BITS: u32 = 3;
const RTTVAR_BITS: u32 = 2;
const MAX_BACKOFF: u32 = 64;
/// Above this backoff the smoothed estimate is abandoned.
const TRUSTED_BACKOFF: u32 = 8;

/// The round trip estimator and the retransmission timeout of one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RtoEstimator {
    tick: Duration,
    /// The offset of the clock's ticks from the driver's origin; below one tick.
    phase: Duration,
    min: Duration,
    max: Duration,
    kind: TimerKind,
    fine: Fine,
    /// Smoothed round trip, ticks * 8. Zero until a sample starts it (again).
    srtt: i64,
    /// Mean deviation, ticks * 4.
    rttvar: i64,
    /// Timeout before backoff.
    base: Duration,
    backoff: u32,
}

impl RtoEstimator {
    /// A new estimator whose clock ticks `phase` before each multiple of the tick.
    pub fn new(config: &TcpConfig, phase: Duration) -> Self {
        Self {
            tick: config.tick,
            phase,
            min: config.min_rto,
            max: config.max_rto,
            kind: config.timer.unwrap_or_default(),
            fine: Fine::default(),
            srtt: 0,
            rttvar: 0,
            base: config.initial_rto,
            backoff: 1,
        }
    }

    /// Whether it measures round trips instead of counting ticks.
    #[inline]
    pub(super) fn is_fine(&self) -> bool {
        self.kind == TimerKind::Fine
    }

    /// A segment sent at `sent` was acknowledged at `now`, and the acknowledged copy is known (Karn). A round trip
    /// gives `expected` samples, at least 1.
    pub fn sample(&mut self, sent: Instant, now: Instant, expected: u64) {
        self.backoff = 1;
        if self.is_fine() {
            let rtt = now.saturating_since(sent);
            self.base = self.fine.sample(rtt, self.tick, expected);
            return;
        }
        let crossed = (self.ticks(now) - self.ticks(sent)) as i64;
        // BSD's count begins at 1, which only the first sample keeps.
        let (first, rtt) = match self.kind {
            TimerKind::Ticks | TimerKind::Fine => (crossed.max(1), crossed.max(1)),
            TimerKind::Bsd => (crossed + 1, crossed),
        };
        if self.srtt == 0 {
            self.srtt = first << SRTT_BITS;
            self.rttvar = first << (RTTVAR_BITS - 1);
        } else {
            let delta = rtt - (self.srtt >> SRTT_BITS);
            self.srtt = (self.srtt + delta).max(1);
            let excess = delta.abs() - (self.rttvar >> RTTVAR_BITS);
            self.rttvar = (self.rttvar + excess).max(1);
        }
        // srtt + 4 rttvar, both brought to eighths of a tick: 4 rttvar = 8 * (rttvar / 2 * 4) / 8.
        let eighths = (self.rttvar << (2 + SRTT_BITS - RTTVAR_BITS)) + self.srtt;
        self.base = self.tick * (eighths >> SRTT_BITS) as u64;
    }

    /// The handshake had to be repeated, so the round trip is unknown (RFC 6298, section 5.7).
    pub(super) fn be_patient(&mut self) {
        self.base = self.base.max(Duration::from_secs(3));
    }

    /// New data was acknowledged. With a fine clock the acknowledgment identifies the copy, so round trips are
    /// measured again and the backoff ends (RFC 7323, section 4).
    pub fn on_progress(&mut self) {
        if self.is_fine() {
            self.backoff = 1;
        }
    }

    /// The timer has expired.
    pub fn on_timeout(&mut self) {
        if self.backoff < MAX_BACKOFF {
            self.backoff *= 2;
        }
        if self.backoff > TRUSTED_BACKOFF && self.kind != TimerKind::Fine {
            self.rttvar += self.srtt >> SRTT_BITS;
            self.srtt = 0;
        }
    }

    /// Smoothed round trip time, if there is one.
    pub fn srtt(&self) -> Option<Duration> {
        if self.is_fine() {
            return self.fine.srtt();
        }
        (self.srtt > 0)
            .then(|| Duration::from_nanos((self.tick.as_nanos() * self.srtt as u64) >> SRTT_BITS))
    }

    /// Ticks of the clock before `at`.
    fn ticks(&self, at: Instant) -> u64 {
        (at + self.phase).as_nanos() / self.tick.as_nanos()
    }

    /// When a timer that is set at `at` expires.
    #[inline]
    pub fn deadline(&self, at: Instant) -> Instant {
        let rto = self.rto();
        match self.kind {
            TimerKind::Ticks | TimerKind::Fine => at + rto,
            TimerKind::Bsd => {
                let since = (at + self.phase).as_nanos() % self.tick.as_nanos();
                // Never at once: the timeout is at least one tick, and `since` is less than one.
                (at + rto) - Duration::from_nanos(since)
            }
        }
    }

    /// The timeout to set now.
    #[inline]
    pub fn rto(&self) -> Duration {
        // RFC 6298 2.4 and 2.5: the minimum applies before the backoff, the maximum after it.
        (self.base.max(self.min) * u64::from(self.backoff)).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Profile;

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + Duration::from_millis(ms)
    }

    fn fresh() -> RtoEstimator {
        RtoEstimator::new(&TcpConfig::profile(Profile::Ns2In1999), Duration::ZERO)
    }

    #[test]
    fn before_the_first_sample_the_timeout_is_the_initial_one() {
        assert_eq!(fresh().rto(), Duration::from_secs(6));
    }

    #[test]
    fn round_trips_are_counted_in_tick_boundaries() {
        // 10 ms across a boundary, and 490 ms across none, are one tick each (at least one).
        for (sent, now) in [(495, 505), (5, 495)] {
            let mut e = fresh();
            e.sample(at(sent), at(now), 1);
            // srtt 1, rttvar 1/2: 1 + 4 * 1/2 = 3 ticks.
            assert_eq!(e.rto(), Duration::from_millis(1_500), "{sent} to {now}");
        }
        let mut e = fresh();
        e.sample(at(400), at(1_600), 1);
        // Boundaries at 500, 1000, 1500: 3 + 4 * 3/2 = 9 ticks.
        assert_eq!(e.rto(), Duration::from_millis(4_500));
        // With its clock 200 ms ahead, the same round trip crosses only 800 and 1300.
        let mut e = RtoEstimator::new(
            &TcpConfig::profile(Profile::Ns2In1999),
            Duration::from_millis(200),
        );
        e.sample(at(400), at(1_600), 1);
        assert_eq!(e.rto(), Duration::from_millis(3_000));
    }

    #[test]
    fn constant_short_round_trips_settle_at_four_ticks() {
        // The shifts leave rttvar at 3/4 tick: 3 -> excess 0 - (3 >> 2) = 0. So 1 + 4 * 3/4 = 4,
        // except for a first sample of one tick, whose rttvar starts at 2/4 and stays there.
        let mut e = fresh();
        e.sample(at(0), at(1_000), 1);
        for k in 1..50 {
            e.sample(at(1_000 * k), at(1_000 * k + 100), 1);
        }
        assert_eq!(e.rto(), Duration::from_millis(2_000));
    }

    /// RFC 6298, section 2: `R + 4 R / 2`, then gains of 1/8 and 1/4, and a clock of 1 ms.
    #[test]
    fn a_fine_clock_measures() {
        let config = TcpConfig {
            timer: Some(TimerKind::Fine),
            tick: Duration::from_millis(1),
            min_rto: Duration::from_millis(1),
            ..TcpConfig::profile(Profile::Ns2In1999)
        };
        let mut e = RtoEstimator::new(&config, Duration::ZERO);
        e.sample(at(0), at(100), 1);
        assert_eq!(e.rto(), Duration::from_millis(300));
        e.sample(at(1_000), at(1_180), 1);
        // srtt 110, rttvar (3 * 50 + 80) / 4 = 57.5.
        assert_eq!(e.srtt(), Some(Duration::from_millis(110)));
        assert_eq!(e.rto(), Duration::from_millis(340));
        for k in 2..200 {
            e.sample(at(1_000 * k), at(1_000 * k + 110), 1);
        }
        // The variation is below a quarter of the clock's tick.
        assert_eq!(e.rto(), Duration::from_millis(111));
        for _ in 0..5 {
            e.on_timeout();
        }
        assert_eq!(e.srtt(), Some(Duration::from_millis(110)));
    }

    /// Balakrishnan et al. 1997 on 4.4BSD: round trips below half a tick settle at three ticks; one of two
    /// ticks lifts the timeout to five, then four, then three again.
    #[test]
    fn bsd_settles_at_three_ticks() {
        let config = TcpConfig {
            timer: Some(TimerKind::Bsd),
            ..TcpConfig::profile(Profile::Ns2In1999)
        };
        let mut e = RtoEstimator::new(&config, Duration::ZERO);
        let mut seen = vec![];
        for (sent, now) in [
            (0, 100),
            (100, 200),
            (200, 300),
            (400, 510),
            (600, 700),
            (700, 800),
        ] {
            e.sample(at(sent), at(now), 1);
            seen.push(e.rto().as_millis_f64() / 500.0);
        }
        assert_eq!(seen, [3.0, 3.0, 3.0, 5.0, 4.0, 3.0]);
        // Set between ticks, a timer of three lasts between two and three.
        assert_eq!(e.deadline(at(800)), at(2_000));
        assert_eq!(e.deadline(at(1_000)), at(2_500));
    }

    #[test]
    fn backoff_doubles_to_the_maximum_and_ends_with_a_sample() {
        let mut e = fresh();
        e.sample(at(0), at(10), 1); // 1.5 s
        let mut seen = vec![];
        for _ in 0..8 {
            e.on_timeout();
            seen.push(e.rto().as_millis_f64());
        }
        assert_eq!(
            seen,
            [
                3_000.0, 6_000.0, 12_000.0, 24_000.0, 48_000.0, 64_000.0, 64_000.0, 64_000.0
            ]
        );
        // After a backoff above 8 the next sample starts the estimate afresh.
        e.sample(at(100_000), at(101_000), 1); // 2 ticks: 2 + 4 * 1 = 6 ticks
        assert_eq!(e.rto(), Duration::from_millis(3_000));
    }
}
