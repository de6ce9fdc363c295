//! The end of slow start before a queue overflows: HyStart++ (RFC 9406), or Linux's older HyStart.
//!
//! For HyStart++ a round trip ends when what had been sent at its beginning is acknowledged. If its shortest sample
//! is an eighth longer than that of the previous round, the window opens at a quarter of the pace (conservative slow
//! start). If that lasts for five rounds, slow start is over; if the round trip falls again, it was a false alarm.
//!
//! HyStart++ applies only to the first slow start, as the RFC recommends. It needs a round trip sample from every
//! acknowledgment, and so timestamps.
//!
//! Linux uses the older HyStart (Ha and Rhee 2008), which applies to each slow start from 16 segments on, one after a
//! timeout included, as if the connection were new. It ends slow start at once in two cases: the shortest of at least
//! nine samples of a round trip is an eighth longer than the shortest of all; or acknowledgments, each at most 2 ms
//! after the previous one, have arrived for half of that (for all of it if segments are paced).

use airlane_base::{Duration, Instant};

use super::acked::Acked;
use crate::tcp::TcpConfig;

/// RFC 9406, section 4.3.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const RTT_SAMPLES: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;
/// The most acknowledged segments that one acknowledgment counts for without pacing (the RFC's L).
const LIMIT: u64 = 8;

/// Linux, `tcp_cubic.c`: the lowest window, segments; the largest gap within a train of acknowledgments; and the
/// allowance for delayed ones.
const LOW_WINDOW: f64 = 16.0;
const TRAIN_GAP: Duration = Duration::from_millis(2);
const HELD_BACK: Duration = Duration::from_millis(1);

/// The round trip samples of one round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// The round ends when this segment is acknowledged.
    end: u64,
    shortest: Option<Duration>,
    samples: u32,
}

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// The shortest sample of the round that began it.
    baseline: Duration,
    rounds: u32,
}

/// The algorithm that ends slow start.
#[derive(Clone, Debug)]
pub(super) enum HyStart {
    Rfc9406(PlusPlus),
    Linux(Linux),
}

impl HyStart {
    pub(super) fn new(config: &TcpConfig) -> Self {
        let paced = config.pacing.unwrap_or_default();
        match config.conservative_rounds {
            Some(0) => Self::Linux(Linux::new(paced)),
            rounds => Self::Rfc9406(PlusPlus::new(paced, rounds.unwrap_or(CSS_ROUNDS))),
        }
    }

    /// New data was acknowledged while the window was `cwnd` segments. Returns by how many segments it opens, or none
    /// if slow start is over.
    pub(super) fn on_ack(&mut self, acked: &Acked, cwnd: f64) -> Option<f64> {
        match self {
            Self::Rfc9406(plus_plus) => plus_plus.on_ack(acked),
            Self::Linux(linux) => (!linux.on_ack(acked, cwnd)).then_some(acked.segments as f64),
        }
    }

    /// Whether it is finished when the first slow start is over.
    pub(super) const fn is_for_the_first(&self) -> bool {
        matches!(self, Self::Rfc9406(_))
    }

    /// A timeout begins another slow start; earlier samples no longer describe the path (Linux, `bictcp_reset`).
    pub(super) fn begin(&mut self) {
        if let Self::Linux(linux) = self {
            *linux = Linux::new(linux.paced);
        }
    }
}

/// Linux's HyStart.
#[derive(Clone, Debug)]
pub(super) struct Linux {
    paced: bool,
    /// The shortest round trip since the last timeout.
    shortest: Option<Duration>,
    round: Round,
    /// When the round began, and when the last acknowledgment of its train arrived.
    begun: Instant,
    train: Instant,
    /// Whether it has ended this slow start.
    found: bool,
}

impl Linux {
    fn new(paced: bool) -> Self {
        Self {
            paced,
            shortest: None,
            round: Round::default(),
            begun: Instant::ORIGIN,
            train: Instant::ORIGIN,
            found: false,
        }
    }

    /// Takes an acknowledgment of new data; true if slow start is over.
    fn on_ack(&mut self, acked: &Acked, cwnd: f64) -> bool {
        let Some(rtt) = acked.rtt else {
            return false;
        };
        let shortest = self.shortest.map_or(rtt, |shortest| shortest.min(rtt));
        self.shortest = Some(shortest);
        if self.found || cwnd < LOW_WINDOW {
            return false;
        }
        if acked.una > self.round.end {
            (self.begun, self.train) = (acked.now, acked.now);
            self.round = Round {
                end: acked.nxt,
                ..Round::default()
            };
        }
        if acked.now.saturating_since(self.train) <= TRAIN_GAP {
            self.train = acked.now;
            let whole = shortest + HELD_BACK;
            let longest = if self.paced { whole } else { whole / 2 };
            self.found = acked.now.saturating_since(self.begun) > longest;
        }
        let round = self.round.shortest.map_or(rtt, |round| round.min(rtt));
        self.round.shortest = Some(round);
        if self.round.samples < RTT_SAMPLES {
            self.round.samples += 1;
        } else {
            let longer = (shortest / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
            self.found |= round > shortest + longer;
        }
        self.found
    }
}

/// HyStart++ for the first slow start of a connection (RFC 9406).
#[derive(Clone, Debug)]
pub(super) struct PlusPlus {
    paced: bool,
    /// Rounds of conservative slow start after which slow start ends.
    rounds: u32,
    round: Round,
    /// The shortest sample of the previous round.
    before: Option<Duration>,
    conservative: Option<Conservative>,
}

impl PlusPlus {
    fn new(paced: bool, rounds: u32) -> Self {
        Self {
            paced,
            rounds,
            round: Round::default(),
            before: None,
            conservative: None,
        }
    }

    /// Takes an acknowledgment of new data. Returns by how many segments the window opens, or none if slow start is
    /// over.
    fn on_ack(&mut self, acked: &Acked) -> Option<f64> {
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

    /// Checks whether the round trip has grown, or has fallen again (section 4.2).
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

    fn plus_plus() -> PlusPlus {
        PlusPlus::new(false, CSS_ROUNDS)
    }

    /// Acknowledges `window` segments one by one. Returns by how much the window opened, or none if slow start ended.
    fn round(hystart: &mut PlusPlus, una: &mut u64, window: u64, rtt_ms: u64) -> Option<f64> {
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
        let (mut hystart, mut una) = (plus_plus(), 0);
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
    fn a_false_exit_from_slow_start_is_undone() {
        let (mut hystart, mut una) = (plus_plus(), 0);
        round(&mut hystart, &mut una, 16, 100);
        round(&mut hystart, &mut una, 16, 100);
        round(&mut hystart, &mut una, 16, 130);
        round(&mut hystart, &mut una, 16, 100);
        assert_eq!(round(&mut hystart, &mut una, 16, 100), Some(16.0));
    }

    /// Acknowledgments from number `first` on, each given as its time and its round trip (ms), in rounds of `window`.
    /// Returns the number of the one that ends slow start.
    fn acknowledge(
        hystart: &mut HyStart,
        window: u64,
        first: u64,
        acks: impl Iterator<Item = (u64, u64)>,
    ) -> Option<u64> {
        for ((at_ms, rtt_ms), una) in acks.zip(first..) {
            let acked = Acked {
                now: Instant::ORIGIN + Duration::from_millis(at_ms),
                segments: 1,
                flight: window,
                una,
                nxt: una + window,
                max: una + window,
                srtt: Duration::from_millis(rtt_ms),
                rtt: Some(Duration::from_millis(rtt_ms)),
            };
            if hystart.on_ack(&acked, window as f64).is_none() {
                return Some(una);
            }
        }
        None
    }

    fn linux(paced: bool, window: u64, acks: impl Iterator<Item = (u64, u64)>) -> Option<u64> {
        acknowledge(&mut HyStart::Linux(Linux::new(paced)), window, 1, acks)
    }

    #[test]
    fn linux_ends_slow_start_by_the_ninth_sample_of_a_longer_round_and_not_below_16_segments() {
        // 20 per round; 25 ms is more than an eighth longer than 20 ms, 24 ms is not.
        let acks = |longer| {
            (0..100).map(move |n| (n / 20 * 100 + n % 20, if n < 40 { 20 } else { longer }))
        };
        assert_eq!(linux(true, 20, acks(25)), Some(51));
        assert_eq!(linux(true, 20, acks(24)), None);
        assert_eq!(linux(true, 15, acks(25)), None);
    }

    #[test]
    fn after_a_timeout_linux_forgets_the_shortest_round_trip() {
        let acks = |from: u64, rtt| (from..from + 60).map(move |n| (n / 20 * 100 + n % 20, rtt));
        let mut hystart = HyStart::Linux(Linux::new(true));
        assert_eq!(acknowledge(&mut hystart, 20, 1, acks(0, 20)), None);
        let mut unaware = hystart.clone();
        assert!(acknowledge(&mut unaware, 20, 81, acks(80, 40)).is_some());
        hystart.begin();
        assert_eq!(acknowledge(&mut hystart, 20, 81, acks(80, 40)), None);
    }

    #[test]
    fn linux_ends_slow_start_by_a_train_of_half_a_round_trip_or_a_whole_one_if_paced() {
        let every = |ms: u64| (0..).map(move |n| (n * ms, 40)).take(60);
        // The round begins with the first acknowledgment; the train has to last longer than 20.5 ms.
        assert_eq!(linux(false, 100, every(1)), Some(22));
        assert_eq!(linux(true, 100, every(1)), Some(43));
        assert_eq!(linux(false, 100, every(3)), None);
    }
}
