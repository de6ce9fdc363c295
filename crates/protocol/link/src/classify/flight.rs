//! Detects senders that pace by a model of their path, as BBR does, from what they send before the first
//! answer.
//!
//! ```text
//! ACK-clocked           |||||||||||........................|   a window at once, then nothing until the first answer
//! paced                 ||....||....||....||....||.........|   the same window in volleys, over a part of the round trip
//! application-limited   ||............||...........||.......||..   as slow as its application
//! ```
//! A flight begins with the first full packet after an answer, and ends with the next answer. BBR starts at
//! 2.9 windows per round trip, so that ten packets take a third of it; a node on the path measures a shorter
//! round trip than the sender. Linux nevertheless sends the first ten at once, and paces the next window. An
//! ACK-clocked flight has one volley per answer; far from the sender, all volleys pass after all answers, but
//! as closely spaced as the answers were. So a flight that is not twice as long as its answers is no evidence
//! of pacing.
//!
//! Other senders may be paced, too: CUBIC over `fq` sends two windows per round trip in slow start. Where the
//! handshake has shown the round trip on both sides of the node, a first window that leaves at fewer than 2.4
//! windows per round trip is from such a sender, to which repairs must be delivered in order.

use airlane_base::{Duration, Instant};

/// Packets closer to each other belong to one volley.
const VOLLEY: Duration = Duration::from_micros(150);
/// A flight of this many volleys did not leave as one burst.
const VOLLEYS: u8 = 4;
/// A pacing sender starts with volleys of two or three segments, bytes.
const VOLLEY_LEN: usize = 4_700;
/// Largest ratio of the longest gap between volleys to the shortest.
const UNEVEN: u64 = 3;
/// Shorter flights are no evidence.
const SHORTEST: Duration = Duration::from_millis(1);

/// Windows per round trip that separate the first window of a model (2.9) from slow start (2).
const MODEL: f64 = 2.4;
/// Packets in the first window.
const WINDOW: usize = 10;

/// The first packets of both directions, up to the second change of direction: SYN, SYN-ACK and the next
/// packet.
#[derive(Clone, Copy, Debug, Default)]
struct Handshake {
    /// When the first packet passed, and whether this end sent it; then whether the other direction has
    /// answered.
    began: Option<(Instant, bool)>,
    turned: bool,
    round_trip: Option<Duration>,
}

impl Handshake {
    fn on_packet(&mut self, now: Instant, sent: bool) {
        match self.began {
            None => self.began = Some((now, sent)),
            Some((_, first)) if first != sent => self.turned = true,
            // A retransmission.
            Some(_) if !self.turned => self.began = Some((now, sent)),
            Some((began, _)) if self.round_trip.is_none() => {
                self.round_trip = Some(now.saturating_since(began));
            }
            Some(_) => {}
        }
    }
}

/// The packets sent since the last answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flight {
    /// Times of its first and its last packet.
    span: Option<[Instant; 2]>,
    volleys: u8,
    /// Bytes in the current volley.
    volley: usize,
    /// The shortest and the longest gap between volleys.
    gaps: [Duration; 2],
    /// Whether more than a paced volley has left at once.
    burst: bool,
    /// The first and the last answer since the last flight of several volleys, or since the beginning.
    answers: Option<[Instant; 2]>,
    paced: bool,
    handshake: Handshake,
    /// Bytes of this flight, and the longest packet.
    bytes: usize,
    longest: usize,
    /// Number of completed flights.
    flights: u32,
    /// Whether its first window left as in slow start.
    slow_start: bool,
}

impl Flight {
    /// Records a packet of either direction; the first few are the handshake.
    #[inline]
    pub(super) fn on_packet(&mut self, now: Instant, sent: bool) {
        if self.handshake.round_trip.is_none() {
            self.handshake.on_packet(now, sent);
        }
    }

    /// Windows per round trip of the flight that ends, where the round trip is known.
    fn windows(&self, span: Duration) -> Option<f64> {
        let round_trip = self.handshake.round_trip?.as_secs_f64();
        let window = self.bytes.max(WINDOW * self.longest) as f64;
        let before_last = self.bytes.saturating_sub(self.volley) as f64;
        Some(before_last / span.as_secs_f64() * round_trip / window)
    }

    /// Records a full packet sent.
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

    /// Records an answer.
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
                // It neither left at once nor was limited by the application.
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
        // BBR sends ten packets in pairs, over 50 and 150 ms; seen at the sender, and 25 ms away from it.
        assert!(is_paced(&[0, 3_466, 6_933, 10_400, 13_866], 2, 50_100));
        assert!(is_paced(&[0, 10_400, 20_800, 31_200, 41_600], 2, 150_100));
        assert!(is_paced(&[0, 3_466, 6_933, 10_400, 13_866], 2, 25_100));
        // A window sent at once, one in three volleys for three groups of answers, and one limited by its
        // source.
        assert!(!is_paced(&[0], 10, 50_100));
        assert!(!is_paced(&[0, 2_000, 4_000, 6_000], 4, 50_100));
        assert!(!is_paced(&[0, 1_000, 8_000, 9_000, 20_000], 2, 50_100));
        assert!(!is_paced(
            &[0, 10_000, 20_000, 30_000, 40_000, 49_000],
            1,
            50_100
        ));
        // A burst that a fast cable has spread out is still a burst.
        assert!(!is_paced(&[0, 200, 400, 600, 800, 1_000, 1_200], 1, 50_100));
    }

    /// A first window of ten packets, this many together, over 50 ms, of which `near_ms` is on this side of
    /// the node.
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
    fn paced_slow_start_is_not_taken_for_model_based_control() {
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

    /// Feeds answers and volleys of two, microseconds, in order of time.
    fn is_paced_behind(answers: &[u64], volleys: &[u64]) -> bool {
        let mut flight = Flight::default();
        let at = |us| Instant::ORIGIN + Duration::from_micros(60_000 + us);
        let answers = answers.iter().map(|&us| (us, true));
        let mut all: Vec<_> = answers
            .chain(volleys.iter().map(|&us| (us, false)))
            .collect();
        all.sort_unstable();
        // The handshake does not answer any data.
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
        // Linux's BBR over 20 Mbit/s and 50 ms with 5 % loss: the first window leaves at once, the answers
        // arrive at the link's rate, and the second window leaves evenly.
        let answers: Vec<u64> = (0..10).map(|n| 55_000 + n * 600).collect();
        let next = [105_000];
        let paced: Vec<u64> = (0..9).map(|n| 55_010 + n * 3_890).collect();
        let all = [&answers[..], &next].concat();
        assert!(is_paced_behind(&all, &paced));
        // ACK-clocked flights, seen close to the sender, halfway, and far away, over a link as fast and two
        // slower ones.
        for gap in [600, 2_400, 4_000] {
            let answers: Vec<u64> = (0..10).map(|n| 55_000 + n * gap).collect();
            let all = [&answers[..], &[55_000 + 50_000 + 9 * gap]].concat();
            for delay_us in [50, 2_000, 4_000, 10_000, 20_000, 40_000] {
                let clocked: Vec<u64> = answers.iter().map(|us| us + delay_us).collect();
                assert!(!is_paced_behind(&all, &clocked), "{gap} {delay_us}");
            }
        }
    }

    #[test]
    fn ack_clocked_packets_are_not_paced() {
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
