//! The end of the first slow start before a queue overflows: HyStart++ (RFC 9406).
//!
//! A round trip is over when what had been sent at its beginning is acknowledged. If the shortest of its samples is
//! an eighth longer than that of the round before, the window opens at a quarter of the pace (conservative slow
//! start); if that goes on for five rounds, slow start is over; if the round trip falls again, it was a false alarm.
//!
//! Only the first slow start is looked after, as the RFC recommends. It asks for round trips of every
//! acknowledgment, so for timestamps.

use airlane_base::Duration;

use super::acked::Acked;
use crate::tcp::TcpConfig;

/// RFC 9406, section 4.3.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const RTT_SAMPLES: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;
/// Acknowledged segments that one acknowledgment counts for where nothing paces (the RFC's L).
const LIMIT: u64 = 8;

/// The samples of one round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// What was sent before it ends here.
    end: u64,
    shortest: Option<Duration>,
    samples: u32,
}

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// The round trip that began it.
    baseline: Duration,
    rounds: u32,
}

/// The first slow start of a connection.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    paced: bool,
    /// Round trips of conservative slow start that end it.
    rounds: u32,
    round: Round,
    /// The shortest sample of the round before.
    before: Option<Duration>,
    conservative: Option<Conservative>,
}

impl HyStart {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            paced: config.pacing.unwrap_or_default(),
            rounds: config.conservative_rounds.unwrap_or(CSS_ROUNDS),
            round: Round::default(),
            before: None,
            conservative: None,
        }
    }

    /// New data was acknowledged; by how many segments the window opens, or none if slow start is over.
    pub(super) fn on_ack(&mut self, acked: &Acked) -> Option<f64> {
        if self.round.end == 0 {
            self.round.end = acked.max;
        }
        if let Some(rtt) = acked.rtt {
            let shortest = self
                .round
                .shortest
                .map_or(rtt, |shortest| shortest.min(rtt));
            self.round.shortest = Some(shortest);
            self.round.samples += 1;
        }
        let counted = match self.paced {
            true => acked.segments,
            false => acked.segments.min(LIMIT),
        } as f64;
        let opens = match self.conservative {
            None => counted,
            Some(_) => counted / CSS_GROWTH_DIVISOR,
        };
        self.compare();
        if self.rounds == 0 && self.conservative.is_some() {
            return None;
        }
        if acked.una >= self.round.end {
            if let Some(conservative) = &mut self.conservative {
                conservative.rounds += 1;
                if conservative.rounds >= self.rounds {
                    return None;
                }
            }
            self.before = self.round.shortest;
            self.round = Round {
                end: acked.max,
                ..Round::default()
            };
        }
        Some(opens)
    }

    /// Whether the round trip is longer than it was, or short again (section 4.2).
    fn compare(&mut self) {
        let (Some(shortest), true) = (self.round.shortest, self.round.samples >= RTT_SAMPLES)
        else {
            return;
        };
        match self.conservative {
            Some(conservative) => {
                if shortest < conservative.baseline {
                    self.conservative = None;
                }
            }
            None => {
                let Some(before) = self.before else {
                    return;
                };
                let longer = (before / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if shortest >= before + longer {
                    self.conservative = Some(Conservative {
                        baseline: shortest,
                        rounds: 0,
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airlane_base::Instant;

    /// A round of `window` segments, an acknowledgment each; by how much the window opened, none where slow start
    /// ended.
    fn round(hystart: &mut HyStart, una: &mut u64, window: u64, rtt_ms: u64) -> Option<f64> {
        let mut opened = 0.0;
        let end = *una + window;
        for _ in 0..window {
            *una += 1;
            opened += hystart.on_ack(&Acked {
                now: Instant::ORIGIN,
                segments: 1,
                flight: window,
                una: *una,
                nxt: if *una == end { end + window } else { end },
                max: if *una == end { end + window } else { end },
                srtt: Duration::from_millis(rtt_ms),
                rtt: Some(Duration::from_millis(rtt_ms)),
            })?;
        }
        Some(opened)
    }

    #[test]
    fn longer_round_trips_slow_the_growth_and_end_it_after_five_rounds() {
        let (mut hystart, mut una) = (HyStart::new(&TcpConfig::default()), 0);
        assert_eq!(round(&mut hystart, &mut una, 16, 100), Some(16.0));
        assert_eq!(round(&mut hystart, &mut una, 16, 100), Some(16.0));
        // An eighth of 100 ms is 12.5.
        assert_eq!(round(&mut hystart, &mut una, 16, 112), Some(16.0));
        let slower = round(&mut hystart, &mut una, 16, 126).unwrap();
        assert!(slower > 8.0 && slower < 16.0, "{slower}");
        for _ in 0..3 {
            assert_eq!(round(&mut hystart, &mut una, 16, 130), Some(4.0));
        }
        let ends = (0..2).map(|_| round(&mut hystart, &mut una, 16, 130));
        assert!(ends.into_iter().any(|opened| opened.is_none()));
    }

    #[test]
    fn a_false_alarm_is_taken_back() {
        let (mut hystart, mut una) = (HyStart::new(&TcpConfig::default()), 0);
        round(&mut hystart, &mut una, 16, 100);
        round(&mut hystart, &mut una, 16, 100);
        round(&mut hystart, &mut una, 16, 130);
        round(&mut hystart, &mut una, 16, 100);
        assert_eq!(round(&mut hystart, &mut una, 16, 100), Some(16.0));
    }
}
