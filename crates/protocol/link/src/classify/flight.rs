//! Whether the sender of a flow paces by a model of its path, as BBR does, by what it sends before anything comes back.
//!
//! ```text
//! answers clock it   |||||||||||........................|   a window at once, then nothing until the first answer
//! it is paced        ||....||....||....||....||.........|   the same window in volleys, for a part of the round trip
//! it has no more     ||............||...........||.......||..   as slow as its application
//! ```
//! A flight begins with a full packet behind an answer, and ends with the next answer. BBR sends 2.9 windows a round trip
//! at first, so that ten packets take a third of it; nearer to the sender than it is itself, a node sees a shorter round trip.
//! Linux sends the first ten at once all the same, and paces the next window. What answers clock has a volley for each of them,
//! and far from its sender all volleys behind all answers, but as close to each other as the answers were: a flight that is not
//! twice as long as these says nothing.
//!
//! Other senders may be paced, too: CUBIC behind `fq` sends two windows a round trip in slow start. Where the handshake has
//! shown the round trip of both sides, a first window that leaves more slowly than 2.4 windows a round trip is such a
//! sender's, whose losses have to be repaired in order.

use airlane_base::{Duration, Instant};

/// Packets nearer to each other leave together.
const VOLLEY: Duration = Duration::from_micros(150);
/// So many volleys in one flight are no window at once.
const VOLLEYS: u8 = 4;
/// What paces sends two or three segments at once at first, bytes.
const VOLLEY_LEN: usize = 4_700;
/// The longest gap between volleys, by the shortest.
const UNEVEN: u64 = 3;
/// A flight that is shorter says nothing.
const SHORTEST: Duration = Duration::from_millis(1);

/// Windows a round trip, by which a model's first window (2.9) is told from slow start (2).
const MODEL: f64 = 2.4;
/// The first window has so many packets.
const WINDOW: usize = 10;

/// The first packets of both ways, up to the third that turns: SYN, SYN-ACK, and what follows.
#[derive(Clone, Copy, Debug, Default)]
struct Handshake {
    /// When the first left, and whether it was sent from here; then the way that came last.
    began: Option<(Instant, bool)>,
    turned: bool,
    round_trip: Option<Duration>,
}

impl Handshake {
    fn on_packet(&mut self, now: Instant, sent: bool) {
        match self.began {
            None => self.began = Some((now, sent)),
            Some((_, first)) if first != sent => self.turned = true,
            // Sent again.
            Some(_) if !self.turned => self.began = Some((now, sent)),
            Some((began, _)) if self.round_trip.is_none() => {
                self.round_trip = Some(now.saturating_since(began));
            }
            Some(_) => {}
        }
    }
}

/// What was sent since the last answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flight {
    /// When its first and its last packet left.
    span: Option<[Instant; 2]>,
    volleys: u8,
    /// Bytes of the volley that leaves.
    volley: usize,
    /// Between volleys, the shortest and the longest gap.
    gaps: [Duration; 2],
    /// More than a paced volley has left at once.
    burst: bool,
    /// The first and the last answer since the last flight of several volleys, or the first of all.
    answers: Option<[Instant; 2]>,
    paced: bool,
    handshake: Handshake,
    /// Bytes of this flight, and the longest packet.
    bytes: usize,
    longest: usize,
    /// Flights that ended.
    flights: u32,
    /// Its first window left as in slow start.
    slow_start: bool,
}

impl Flight {
    /// Any packet passes: the first few are the handshake.
    #[inline]
    pub(super) fn on_packet(&mut self, now: Instant, sent: bool) {
        if self.handshake.round_trip.is_none() {
            self.handshake.on_packet(now, sent);
        }
    }

    /// Windows a round trip of the flight that ends, as far as the round trip is known.
    fn windows(&self, span: Duration) -> Option<f64> {
        let round_trip = self.handshake.round_trip?.as_secs_f64();
        let window = self.bytes.max(WINDOW * self.longest) as f64;
        let before_last = self.bytes.saturating_sub(self.volley) as f64;
        Some(before_last / span.as_secs_f64() * round_trip / window)
    }

    /// A full packet leaves.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant, len: usize) {
        let Some([_, last]) = &mut self.span else {
            (self.span, self.volleys, self.volley) = (Some([now; 2]), 1, len);
            (self.bytes, self.longest) = (len, len);
            (self.gaps, self.burst) = ([Duration::MAX, Duration::ZERO], len > VOLLEY_LEN);
            return;
        };
        let gap = now.saturating_since(*last);
        *last = now;
        if gap >= VOLLEY {
            self.volleys = self.volleys.saturating_add(1);
            self.volley = 0;
            self.gaps = [self.gaps[0].min(gap), self.gaps[1].max(gap)];
        }
        self.volley += len;
        self.bytes += len;
        self.longest = self.longest.max(len);
        self.burst |= self.volley > VOLLEY_LEN;
    }

    /// Something comes back.
    #[inline]
    pub(super) fn on_answer(&mut self, now: Instant) {
        let answered = self
            .answers
            .map_or(Duration::ZERO, |[first, last]| last.saturating_since(first));
        match self.span.take() {
            Some([began, last]) if self.volleys > 1 => {
                self.answers = Some([now; 2]);
                let even = !self.burst && self.gaps[1] <= self.gaps[0] * UNEVEN;
                let (span, all) = (last.saturating_since(began), now.saturating_since(began));
                let is_long = span >= SHORTEST.max(answered * 2);
                // It is neither a window that left at once nor one that took as long as the application liked.
                let is_part = span * 10 >= all && span * 10 <= all * 9;
                let is_paced = self.volleys >= VOLLEYS && even && is_long && is_part;
                if is_paced && self.flights == 0 {
                    self.slow_start = self.windows(span).is_some_and(|windows| windows < MODEL);
                }
                self.paced |= is_paced && !self.slow_start;
                self.flights = self.flights.saturating_add(1);
            }
            Some(_) => {
                self.flights = self.flights.saturating_add(1);
                self.answers.get_or_insert([now; 2])[1] = now;
            }
            None => self.answers.iter_mut().for_each(|answers| answers[1] = now),
        }
    }

    /// Whether a flight was paced.
    pub(super) fn is_paced(&self) -> bool {
        self.paced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_paced(volleys: &[u64], packets: usize, answer_us: u64) -> bool {
        let mut flight = Flight::default();
        let at = |us| Instant::ORIGIN + Duration::from_micros(us);
        for &volley in volleys {
            for n in 0..packets as u64 {
                flight.on_sent(at(volley + n * 10), 1_500);
            }
        }
        flight.on_answer(at(answer_us));
        flight.is_paced()
    }

    #[test]
    fn a_window_in_volleys_is_paced_and_one_at_once_is_not() {
        // BBR sends ten packets by two over 50 and 150 ms; they are seen at the sender, and 25 ms behind it.
        assert!(is_paced(&[0, 3_466, 6_933, 10_400, 13_866], 2, 50_100));
        assert!(is_paced(&[0, 10_400, 20_800, 31_200, 41_600], 2, 150_100));
        assert!(is_paced(&[0, 3_466, 6_933, 10_400, 13_866], 2, 25_100));
        // These leave at once, in three volleys for three answers that came together, and as slowly as their source makes them.
        assert!(!is_paced(&[0], 10, 50_100));
        assert!(!is_paced(&[0, 2_000, 4_000, 6_000], 4, 50_100));
        assert!(!is_paced(&[0, 1_000, 8_000, 9_000, 20_000], 2, 50_100));
        assert!(!is_paced(
            &[0, 10_000, 20_000, 30_000, 40_000, 49_000],
            1,
            50_100
        ));
        // A burst that a fast cable has drawn out is still one.
        assert!(!is_paced(&[0, 200, 400, 600, 800, 1_000, 1_200], 1, 50_100));
    }

    /// A first window of ten, by so many together, over 50 ms of which so much is on this side of the node.
    fn is_paced_after_handshake(windows: f64, together: usize, near_ms: u64) -> bool {
        let mut flight = Flight::default();
        let at = |us| Instant::ORIGIN + Duration::from_micros(us);
        let (near, far) = (near_ms * 1_000, 50_000 - near_ms * 1_000);
        for (us, sent) in [(0, false), (near, true), (50_000, false)] {
            flight.on_packet(at(us), sent);
        }
        let gap = 50_000.0 / windows / 10.0 * together as f64;
        let began = 50_000 + near;
        for n in 0..10 {
            let us = began + (gap * (n / together) as f64) as u64;
            if us > began + far {
                break;
            }
            flight.on_sent(at(us + (n % together) as u64 * 10), 1_500);
        }
        flight.on_answer(at(began + far));
        flight.is_paced()
    }

    #[test]
    fn slow_start_that_is_paced_is_no_model() {
        for near_ms in [0, 1, 10, 25, 30] {
            for together in [1, 2] {
                assert!(
                    is_paced_after_handshake(2.885, together, near_ms),
                    "{near_ms} {together}"
                );
                assert!(
                    !is_paced_after_handshake(2.0, together, near_ms),
                    "{near_ms} {together}"
                );
            }
        }
    }

    /// Answers and volleys of two, microseconds, in the order of their times.
    fn is_paced_behind(answers: &[u64], volleys: &[u64]) -> bool {
        let mut flight = Flight::default();
        let at = |us| Instant::ORIGIN + Duration::from_micros(60_000 + us);
        let answers = answers.iter().map(|&us| (us, true));
        let mut all: Vec<_> = answers
            .chain(volleys.iter().map(|&us| (us, false)))
            .collect();
        all.sort_unstable();
        // The handshake is no answer to what was sent.
        flight.on_answer(Instant::ORIGIN);
        (0..10).for_each(|_| flight.on_sent(at(0), 1_500));
        for (us, is_answer) in all {
            if is_answer {
                flight.on_answer(at(us));
            } else {
                flight.on_sent(at(us), 1_500);
                flight.on_sent(at(us + 10), 1_500);
            }
        }
        flight.is_paced()
    }

    #[test]
    fn a_second_window_is_paced_if_answers_do_not_clock_it() {
        // Linux's BBR over 20 Mbit/s and 50 ms, of which 5 % are lost: the first window leaves at once, the answers come
        // as the link lets them, and the second window leaves evenly.
        let answers: Vec<u64> = (0..10).map(|n| 55_000 + n * 600).collect();
        let next = [105_000];
        let paced: Vec<u64> = (0..9).map(|n| 55_010 + n * 3_890).collect();
        let all = [&answers[..], &next].concat();
        assert!(is_paced_behind(&all, &paced));
        // What answers clock is seen close to its sender, halfway, and far behind it, over a link as fast and a slower one.
        for gap in [600, 2_400, 4_000] {
            let answers: Vec<u64> = (0..10).map(|n| 55_000 + n * gap).collect();
            let all = [&answers[..], &[55_000 + 50_000 + 9 * gap]].concat();
            for behind in [50, 2_000, 4_000, 10_000, 20_000, 40_000] {
                let clocked: Vec<u64> = answers.iter().map(|us| us + behind).collect();
                assert!(!is_paced_behind(&all, &clocked), "{gap} {behind}");
            }
        }
    }

    #[test]
    fn what_answers_clock_is_not_paced() {
        let mut flight = Flight::default();
        for n in 0..1_000u64 {
            let now = Instant::ORIGIN + Duration::from_micros(n * 1_200);
            flight.on_answer(now);
            flight.on_sent(now, 1_500);
            flight.on_sent(now + Duration::from_micros(300), 1_500);
        }
        assert!(!flight.is_paced());
    }
}
