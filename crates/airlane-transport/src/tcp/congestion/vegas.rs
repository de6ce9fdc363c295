//! Vegas (Brakmo and Peterson 1995): the window follows what waits in queues, before anything is lost.
//!
//! Of the window's segments those wait that the round trip is longer for than the shortest one ever:
//! `cwnd (1 - base / rtt)`. Once a round trip the window opens by a segment if fewer than 1 wait, and closes by one
//! if more than 3 do (the paper's alpha and beta). Slow start doubles only every other round trip, so that
//! the one between can be compared, and ends when more than 1 waits (gamma), with an eighth less.
//!
//! Round trips are those of the segments that the retransmission timer times, one each, exact. Losses do
//! what they do to Reno. Left out: the paper's earlier retransmissions, which are a matter of recovery.

use airlane_base::Duration;

use super::acked::Acked;
use super::cwnd::Cwnd;
use super::reno;

/// Segments that may wait, and have to.
const ALPHA: f64 = 1.0;
const BETA: f64 = 3.0;
/// Segments that end slow start by waiting.
const GAMMA: f64 = 1.0;

/// What Vegas knows beside its window.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Vegas {
    /// The shortest round trip so far.
    base: Option<Duration>,
    /// Whether slow start doubles in this round trip.
    doubles: bool,
}

impl Vegas {
    pub(super) const fn new() -> Self {
        Self {
            base: None,
            doubles: true,
        }
    }

    /// New data was acknowledged, and no loss is being repaired.
    pub(super) fn on_ack(&mut self, window: &mut Cwnd, acked: &Acked) {
        let cwnd = window.segments;
        let slow_start = window.in_slow_start();
        if let Some(rtt) = acked.rtt {
            let base = self.base.map_or(rtt, |base| base.min(rtt));
            self.base = Some(base);
            let waiting = cwnd * (1.0 - base.as_secs_f64() / rtt.as_secs_f64());
            if slow_start {
                self.doubles = !self.doubles;
                if waiting > GAMMA {
                    window.segments = (cwnd - cwnd / 8.0).max(2.0);
                    window.ssthresh = window.segments as u64;
                    return;
                }
            } else if waiting < ALPHA && acked.flight as f64 + 1.0 > cwnd {
                window.segments = cwnd + 1.0;
            } else if waiting > BETA {
                window.segments = (cwnd - 1.0).max(2.0);
                window.ssthresh = window.ssthresh.min(window.segments as u64);
            }
        }
        if slow_start && self.doubles {
            reno::on_ack(window, 1.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::TcpConfig;
    use airlane_base::Instant;

    fn round((vegas, cwnd): &mut (Vegas, Cwnd), rtt_ms: u64) -> f64 {
        let window = cwnd.segments as u64;
        for ack in 0..window {
            let acked = Acked {
                now: Instant::ORIGIN,
                segments: 1,
                flight: window,
                una: 1,
                max: 1 + window,
                srtt: Duration::from_millis(rtt_ms),
                rtt: (ack == 0).then(|| Duration::from_millis(rtt_ms)),
            };
            vegas.on_ack(cwnd, &acked);
        }
        cwnd.segments
    }

    fn vegas(window: u32) -> (Vegas, Cwnd) {
        let config = TcpConfig {
            window,
            ..TcpConfig::default()
        };
        (Vegas::new(), Cwnd::new(&config, 1000))
    }

    #[test]
    fn slow_start_doubles_every_other_round_trip_and_ends_when_something_waits() {
        let mut v = vegas(100);
        let seen: Vec<f64> = (0..6).map(|_| round(&mut v, 100)).collect();
        assert_eq!(seen, [1.0, 2.0, 2.0, 4.0, 4.0, 8.0]);
        // 8 (1 - 100 / 120) = 1.3 wait.
        assert_eq!(round(&mut v, 120), 7.0);
        assert_eq!(v.1.ssthresh, 7);
    }

    #[test]
    fn one_to_three_segments_wait() {
        let mut v = vegas(100);
        round(&mut v, 100);
        (v.1.segments, v.1.ssthresh) = (20.0, 10);
        assert_eq!(round(&mut v, 100), 21.0);
        // 21 (1 - 100 / 110) = 1.9 wait.
        assert_eq!(round(&mut v, 110), 21.0);
        // 21 (1 - 100 / 120) = 3.5 wait.
        assert_eq!(round(&mut v, 120), 20.0);
    }
}
