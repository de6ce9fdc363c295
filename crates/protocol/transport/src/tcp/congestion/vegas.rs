//! Vegas (Brakmo and Peterson 1995): the window follows the number of queued segments, before anything is lost.
//!
//! Once per round trip the actual rate is compared with the rate that the shortest round trip would give; the
//! difference is the number of segments in queues. If it is less than 1 (the paper's alpha), the window opens by a
//! segment over the next round trip, unless it is not used anyway; if it is more than 3 (beta), the window closes by
//! one. Slow start doubles the window only every other round trip, so that the one between can be compared, and ends
//! when more than 1 segment is queued (gamma), with the window reduced by an eighth.
//!
//! A round trip is the mean of the samples that acknowledgments gave in it: of every segment sent once with Vegas'
//! own recovery, otherwise of those that the retransmission timer times.

use airlane_base::{Duration, Instant};

use super::acked::Acked;
use super::cwnd::Cwnd;

/// The least and the most segments that should be queued.
const ALPHA: i64 = 1;
const BETA: i64 = 3;
/// Queued segments that end slow start.
const GAMMA: i64 = 1;
/// The window opens only while at most this many segments of it are unused.
const SLACK: f64 = 2.0;
/// The smallest window, also at the end of slow start.
const LEAST: f64 = 2.0;

/// Vegas' state besides the window.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Vegas {
    /// The shortest round trip so far.
    base: Option<Duration>,
    /// The segment whose acknowledgment ends the round trip, and when the round trip began.
    round: Option<(u64, Instant)>,
    /// Sum and number of the round trip samples.
    sum: Duration,
    count: u64,
    /// Whether slow start doubles in this round trip.
    doubles: bool,
    /// By how much each acknowledgment opens the window.
    step: f64,
}

impl Vegas {
    pub(super) const fn new() -> Self {
        Self {
            base: None,
            round: None,
            sum: Duration::ZERO,
            count: 0,
            doubles: true,
            step: 0.0,
        }
    }

    /// New data was acknowledged outside of recovery.
    pub(super) fn on_ack(&mut self, window: &mut Cwnd, acked: &Acked) {
        // The segment that this acknowledgment releases counts.
        let in_use = acked.nxt - acked.una + 1;
        if self.round.is_none_or(|(end, _)| acked.una > end) {
            self.end_round(window, acked, in_use);
        }
        if self.step >= 1.0 && !window.in_slow_start() {
            self.step = 0.0;
        }
        if window.segments - in_use as f64 <= SLACK {
            window.segments += self.step;
        }
        // The acknowledgment that ends a round trip is the first of the next, as in ns-2.
        if let Some(rtt) = acked.rtt {
            self.sum = self.sum + rtt;
            self.count += 1;
            self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
        }
    }

    fn end_round(&mut self, window: &mut Cwnd, acked: &Acked, in_use: u64) {
        let began = self.round.replace((acked.nxt, acked.now));
        let rtt = match (self.count, began) {
            (0, Some((_, began))) => acked.now.saturating_since(began),
            (0, None) => acked.rtt.unwrap_or_default(),
            (count, _) => self.sum / count,
        };
        (self.sum, self.count) = (Duration::ZERO, 0);
        if rtt == Duration::ZERO {
            return;
        }
        let sent = began.map_or(acked.nxt, |(end, _)| acked.nxt - end);
        // A lone segment has met no queue.
        let base = self
            .base
            .filter(|base| *base <= rtt && sent > 1)
            .unwrap_or(rtt);
        self.base = Some(base);
        let arrived = sent as f64 * (base.as_secs_f64() / rtt.as_secs_f64());
        let waiting = (in_use as f64 - arrived + 0.5) as i64;
        let cwnd = window.segments;
        self.step = 0.0;
        if window.in_slow_start() {
            self.doubles = !self.doubles;
            if self.doubles && waiting > GAMMA {
                window.ssthresh = LEAST as u64;
                window.segments = (cwnd - cwnd / 8.0).max(LEAST);
            } else if self.doubles {
                self.step = 1.0;
            }
        } else if waiting > BETA {
            window.segments = (cwnd - 1.0).max(LEAST);
        } else if waiting < ALPHA {
            self.step = 1.0 / cwnd;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Profile;
    use crate::tcp::TcpConfig;
    use airlane_base::Instant;

    /// A sender that always has something to send, over a path that keeps the order.
    struct Path {
        vegas: Vegas,
        cwnd: Cwnd,
        now: Instant,
        una: u64,
        nxt: u64,
    }

    impl Path {
        fn new() -> Self {
            let config = TcpConfig {
                window: 100,
                ..TcpConfig::profile(Profile::Ns2In1999)
            };
            Self {
                vegas: Vegas::new(),
                cwnd: Cwnd::new(&config, 1000),
                now: Instant::ORIGIN,
                una: 0,
                nxt: 1,
            }
        }

        /// Acknowledges everything in flight, segment by segment; returns the window afterwards.
        fn round(&mut self, rtt_ms: u64) -> f64 {
            let rtt = Duration::from_millis(rtt_ms);
            self.now += rtt;
            for _ in self.una..self.nxt {
                self.una += 1;
                self.vegas.on_ack(
                    &mut self.cwnd,
                    &Acked {
                        now: self.now,
                        segments: 1,
                        flight: self.nxt - self.una + 1,
                        una: self.una,
                        nxt: self.nxt,
                        max: self.nxt,
                        srtt: rtt,
                        rtt: Some(rtt),
                    },
                );
                self.nxt = self.nxt.max(self.una + self.cwnd.segments as u64);
            }
            self.cwnd.segments
        }
    }

    #[test]
    fn slow_start_doubles_every_other_round_trip_and_ends_when_a_queue_forms() {
        let mut path = Path::new();
        let seen: Vec<f64> = (0..7).map(|_| path.round(100)).collect();
        assert_eq!(seen, [1.0, 2.0, 2.0, 4.0, 4.0, 8.0, 8.0]);
        // The effect of a round trip shows in the next one: 16 (1 - 100 / 150) are queued.
        assert_eq!(path.round(150), 16.0);
        assert_eq!(path.round(150), 16.0);
        assert_eq!(path.round(150), 14.0);
        assert!(!path.cwnd.in_slow_start());
    }

    #[test]
    fn one_to_three_segments_wait() {
        let mut path = Path::new();
        path.round(100);
        (path.cwnd.segments, path.cwnd.ssthresh) = (20.0, 2);
        path.round(100);
        path.round(100);
        let before = path.cwnd.segments;
        let opened = path.round(100) - before;
        assert!((0.9..=1.0).contains(&opened), "{opened}");
        // About 22 (1 - 100 / 110) = 2 are queued.
        path.round(110);
        let before = path.cwnd.segments;
        assert_eq!(path.round(110), before);
        // About 22 (1 - 100 / 130) = 5 are queued.
        path.round(130);
        let before = path.cwnd.segments;
        assert_eq!(path.round(130), before - 1.0);
    }
}
