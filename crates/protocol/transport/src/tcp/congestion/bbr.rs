//! BBR v1 (Cardwell et al. 2016, and its draft of 2017), as in Linux since 4.9. The window and the pacing rate follow
//! a model of the path, not losses: the largest delivery rate of ten round trips and the shortest round trip of ten
//! seconds.
//!
//! ```text
//! startup ─(no growth for three rounds)─► drain ─(in flight is rate * round trip)─► probe bandwidth
//!                  any of them ─(shortest round trip older than 10 s)─► probe round trip, and back
//! ```
//!
//! In the first round of a recovery, as many segments are sent as arrive; after it, the window is restored.
//!
//! If a policer is detected, its rate replaces the largest one (`policer`). If acknowledgments arrive in batches, the
//! window is enlarged (`aggregation`).

mod aggregation;
mod policer;

use airlane_base::{Duration, Instant};

use super::cwnd::Cwnd;
use super::rate::{Phase, RateSample};
use crate::tcp::TcpConfig;
use aggregation::Aggregation;
use policer::Policer;

/// 2 / ln 2, and its inverse.
const STARTUP_GAIN: f64 = 2.885;
const DRAIN_GAIN: f64 = 1.0 / STARTUP_GAIN;
/// The pacing gain of each round trip.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const CWND_GAIN: f64 = 2.0;
/// The pacing rate stays below the estimate, so that queues drain.
const PACING_MARGIN: f64 = 0.99;
/// Round trips for which a delivery rate counts.
const BANDWIDTH_ROUNDS: u64 = 10;
const MIN_RTT_AGE: Duration = Duration::from_secs(10);
const PROBE_RTT: Duration = Duration::from_millis(200);
/// The smallest window, segments.
const LEAST_WINDOW: f64 = 4.0;
/// The pipe is full when the rate has not grown by a quarter in three rounds.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Below this pacing rate, bit/s, hosts send segments one by one; above it, at least two at once.
const SLOW_PACE: f64 = 1.2e6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    /// The index is the place in the cycle.
    ProbeBandwidth(usize),
    /// The end of the probe, at least a round trip after little enough is in flight.
    ProbeRtt(Option<Instant>),
}

/// A windowed maximum: the values of the last rounds that are larger than all later ones, by round.
#[derive(Clone, Debug, Default)]
struct Largest(Vec<(u64, f64)>);

impl Largest {
    fn get(&self) -> f64 {
        self.0.first().map_or(0.0, |(_, value)| *value)
    }

    fn update(&mut self, round: u64, value: f64) {
        while self.0.last().is_some_and(|(_, last)| *last <= value) {
            self.0.pop();
        }
        // A value that is smaller than another of its round is never the largest.
        if self.0.last().is_none_or(|(last, _)| *last < round) {
            self.0.push((round, value));
        }
        while self
            .0
            .first()
            .is_some_and(|(first, _)| round - first > BANDWIDTH_ROUNDS)
        {
            self.0.remove(0);
        }
    }
}

/// The pacing rate and what follows from it. It is cached because it changes less often than segments are sent.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Segments per second.
    rate: f64,
    /// Time between two segments.
    interval: Duration,
    /// Segments that hosts send and acknowledge at once (offload).
    at_once: u64,
}

impl Pace {
    /// `segment` is the user bytes of a full segment.
    fn new(rate: f64, segment: f64) -> Self {
        let least = match rate * segment * 8.0 < SLOW_PACE {
            true => 1,
            false => 2,
        };
        Self {
            rate,
            interval: Duration::from_secs(1).mul_f64(1.0 / rate),
            at_once: ((rate / 1024.0) as u64).max(least),
        }
    }
}

/// The model of the path.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Bbr {
    /// User bytes of a full segment.
    segment: f64,
    initial_window: u64,
    mode: Mode,
    /// Segments per second.
    bandwidth: Largest,
    policer: Policer,
    aggregation: Aggregation,
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    /// Round trips so far; one ends when a segment that was sent after its beginning is delivered.
    round: u64,
    round_end: u64,
    full_bandwidth: f64,
    full_rounds: u32,
    is_full: bool,
    cycle_began: Instant,
    /// The first place in the gain cycle, drawn once per connection.
    first_phase: usize,
    /// Whether a round has passed since the flight became small.
    probed_a_round: bool,
    /// The window before a recovery or a probe of the round trip.
    prior_window: f64,
    phase: Phase,
    conserves: bool,
    /// The connection was idle, so an expired minimum round trip does not start a probe.
    restarts: bool,
    /// None until a round trip is known.
    pace: Option<Pace>,
}

impl Bbr {
    /// `share`, in `[0, 1)`, is drawn for each connection: it selects the first place in the gain cycle.
    pub(super) fn new(config: &TcpConfig, segment: u32, share: f64) -> Self {
        Self {
            segment: f64::from(segment),
            initial_window: u64::from(config.initial_window),
            mode: Mode::Startup,
            bandwidth: Largest::default(),
            policer: Policer::default(),
            aggregation: Aggregation::new(),
            min_rtt: None,
            min_rtt_at: Instant::ORIGIN,
            round: 0,
            round_end: 0,
            full_bandwidth: 0.0,
            full_rounds: 0,
            is_full: false,
            cycle_began: Instant::ORIGIN,
            // Any phase except the one that drains.
            first_phase: [0, 2, 3, 4, 5, 6, 7][(share * 7.0) as usize % 7],
            probed_a_round: false,
            prior_window: 0.0,
            phase: Phase::Open,
            conserves: false,
            restarts: false,
            pace: None,
        }
    }

    /// Time between two segments; none until a round trip is known.
    pub(super) fn interval(&self) -> Option<Duration> {
        self.pace.map(|pace| pace.interval)
    }

    /// The first round trip, from the handshake or from data, sets the pacing rate of slow start.
    pub(super) fn on_first_rtt(&mut self, cwnd: &Cwnd, rtt: Duration) {
        if self.pace.is_none() && rtt > Duration::ZERO {
            let rate = STARTUP_GAIN * cwnd.segments / rtt.as_secs_f64();
            self.pace = Some(Pace::new(rate, self.segment));
        }
    }

    /// A segment is sent after the connection was idle because there was nothing to send.
    pub(super) fn on_restart(&mut self, now: Instant) {
        self.restarts = true;
        self.aggregation.restart(now);
        if let Mode::ProbeBandwidth(_) = self.mode {
            self.set_pace(1.0);
        }
    }

    /// Saves the window when a recovery, a timeout or a probe of the round trip begins.
    pub(super) fn save(&mut self, cwnd: &Cwnd) {
        let probes = matches!(self.mode, Mode::ProbeRtt(_));
        self.prior_window = match self.phase {
            Phase::Open if !probes => cwnd.segments,
            _ => self.prior_window.max(cwnd.segments),
        };
    }

    /// The segments that were retransmitted had not been lost.
    pub(super) fn on_undo(&mut self) {
        self.full_bandwidth = 0.0;
        self.full_rounds = 0;
        self.policer.forget();
    }

    /// The retransmission timer has expired.
    pub(super) fn on_collapse(&mut self, cwnd: &mut Cwnd) {
        self.save(cwnd);
        self.policer.on_timeout();
        self.phase = Phase::Timeout;
        self.full_bandwidth = 0.0;
        cwnd.segments = 1.0;
    }

    /// An acknowledgment has arrived, in recovery or not.
    pub(super) fn on_sample(&mut self, cwnd: &mut Cwnd, sample: &RateSample) {
        let begins_round = match sample.rate() {
            Some(rate) => self.update_bandwidth(sample, rate, cwnd),
            None => false,
        };
        self.update_cycle(sample);
        self.look_for_the_ceiling(begins_round, sample);
        self.look_for_the_drain(sample);
        self.update_min_rtt(cwnd, begins_round, sample);
        let (pacing_gain, window_gain) = match self.mode {
            Mode::Startup => (STARTUP_GAIN, STARTUP_GAIN),
            Mode::Drain => (DRAIN_GAIN, STARTUP_GAIN),
            Mode::ProbeBandwidth(_) if self.policer.rate().is_some() => (1.0, CWND_GAIN),
            Mode::ProbeBandwidth(at) => (CYCLE[at], CWND_GAIN),
            Mode::ProbeRtt(_) => (1.0, 1.0),
        };
        if let Some(rtt) = sample.rtt {
            self.on_first_rtt(cwnd, rtt);
        }
        self.set_pace(pacing_gain);
        self.set_window(cwnd, window_gain, sample);
    }

    /// The delivery rate of the path, segments per second.
    fn rate(&self) -> f64 {
        self.policer.rate().unwrap_or_else(|| self.bandwidth.get())
    }

    fn set_pace(&mut self, gain: f64) {
        let rate = self.rate() * gain * PACING_MARGIN;
        let old = self.pace.map_or(0.0, |pace| pace.rate);
        if rate > old || (self.is_full && 0.0 < rate && rate < old) {
            self.pace = Some(Pace::new(rate, self.segment));
        }
    }

    /// Updates the bandwidth with a sample of `rate` segments per second; true if a new round trip begins.
    fn update_bandwidth(&mut self, sample: &RateSample, rate: f64, cwnd: &Cwnd) -> bool {
        let begins = sample.prior_delivered >= self.round_end;
        if begins {
            self.round_end = sample.total_delivered;
            self.round += 1;
            self.conserves = false;
        }
        let probed = matches!(self.mode, Mode::ProbeBandwidth(_));
        if self.policer.on_sample(sample, begins, probed, self.segment) {
            self.probe_bandwidth(sample.now);
        }
        if !sample.app_limited || rate >= self.bandwidth.get() {
            self.bandwidth.update(self.round, rate);
        }
        self.aggregation
            .on_sample(sample, begins, self.rate(), cwnd.segments as u64);
        begins
    }

    fn update_cycle(&mut self, sample: &RateSample) {
        let Mode::ProbeBandwidth(at) = self.mode else {
            return;
        };
        let gain = match self.policer.rate() {
            Some(_) => 1.0,
            None => CYCLE[at],
        };
        let since = sample.now.saturating_since(self.cycle_began);
        let lasted = self.min_rtt.is_some_and(|rtt| since > rtt);
        let flight = sample.flight_before;
        let over = if gain > 1.0 {
            // The extra segments of the probe have to be in flight, or lost.
            lasted && (sample.lost > 0 || flight >= self.target(gain, 0))
        } else if gain < 1.0 {
            lasted || flight <= self.target(1.0, 0)
        } else {
            lasted
        };
        if over {
            self.mode = Mode::ProbeBandwidth((at + 1) % CYCLE.len());
            self.cycle_began = sample.now;
        }
    }

    fn look_for_the_ceiling(&mut self, begins_round: bool, sample: &RateSample) {
        if self.is_full || !begins_round || sample.app_limited {
            return;
        }
        let bandwidth = self.bandwidth.get();
        if bandwidth >= self.full_bandwidth * FULL_GROWTH {
            self.full_bandwidth = bandwidth;
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.is_full = self.full_rounds >= FULL_ROUNDS;
    }

    fn look_for_the_drain(&mut self, sample: &RateSample) {
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && sample.flight <= self.target(1.0, 0) {
            self.probe_bandwidth(sample.now);
        }
    }

    fn probe_bandwidth(&mut self, now: Instant) {
        self.mode = Mode::ProbeBandwidth(self.first_phase);
        self.cycle_began = now;
    }

    fn update_min_rtt(&mut self, cwnd: &mut Cwnd, begins_round: bool, sample: &RateSample) {
        let now = sample.now;
        let is_old = self.min_rtt.is_some() && now > self.min_rtt_at + MIN_RTT_AGE;
        if let Some(rtt) = sample.rtt
            && (is_old || self.min_rtt.is_none_or(|min| rtt < min))
        {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = now;
        }
        if is_old && !self.restarts && !matches!(self.mode, Mode::ProbeRtt(_)) {
            self.save(cwnd);
            self.mode = Mode::ProbeRtt(None);
        }
        match self.mode {
            Mode::ProbeRtt(None) if sample.flight as f64 <= LEAST_WINDOW => {
                self.mode = Mode::ProbeRtt(Some(now + PROBE_RTT));
                self.probed_a_round = false;
                self.round_end = sample.total_delivered;
            }
            Mode::ProbeRtt(Some(until)) => {
                self.probed_a_round |= begins_round;
                if self.probed_a_round && now > until {
                    self.min_rtt_at = now;
                    cwnd.segments = cwnd.segments.max(self.prior_window);
                    match self.is_full {
                        true => self.probe_bandwidth(now),
                        false => self.mode = Mode::Startup,
                    }
                }
            }
            _ => {}
        }
        if sample.newly_delivered > 0 {
            self.restarts = false;
        }
    }

    /// Whether it probes the round trip with a small flight, so that rate samples underestimate the path.
    pub(super) const fn is_probing_rtt(&self) -> bool {
        matches!(self.mode, Mode::ProbeRtt(_))
    }

    /// The segments that the path holds times `gain`, plus `beyond`, plus those that hosts send and acknowledge at
    /// once.
    fn target(&self, gain: f64, beyond: u64) -> u64 {
        let Some(min_rtt) = self.min_rtt else {
            return self.initial_window;
        };
        let path = libm::ceil(self.rate() * min_rtt.as_secs_f64() * gain) as u64;
        let at_once = self.pace.map_or(1, |pace| pace.at_once);
        let even = (path + beyond + 3 * at_once).next_multiple_of(2);
        match self.mode {
            Mode::ProbeBandwidth(0) => even + 2,
            _ => even,
        }
    }

    fn set_window(&mut self, cwnd: &mut Cwnd, gain: f64, sample: &RateSample) {
        let arrived = sample.newly_delivered;
        if arrived > 0 && !self.is_recovering(cwnd, sample) {
            let beyond = match self.is_full {
                true => self.aggregation.allowance(self.rate()),
                false => 0,
            };
            let target = self.target(gain, beyond) as f64;
            let window = cwnd.segments;
            if self.is_full {
                cwnd.segments = (window + arrived as f64).min(target);
            } else if window < target || sample.total_delivered < self.initial_window {
                cwnd.segments += arrived as f64;
            }
            cwnd.segments = cwnd.segments.max(LEAST_WINDOW);
        }
        if self.is_probing_rtt() {
            cwnd.segments = cwnd.segments.min(LEAST_WINDOW);
        }
    }

    /// Follows the recovery; true if the recovery alone sets the window.
    fn is_recovering(&mut self, cwnd: &mut Cwnd, sample: &RateSample) -> bool {
        let (before, phase) = (self.phase, sample.phase);
        self.phase = phase;
        let left = (sample.flight + sample.newly_delivered) as f64;
        if sample.lost > 0 {
            cwnd.segments = (cwnd.segments - sample.lost as f64).max(1.0);
        }
        if phase == Phase::Recovery && before != Phase::Recovery {
            self.conserves = true;
            self.round_end = sample.total_delivered;
            cwnd.segments = left;
        } else if before > Phase::Open && phase == Phase::Open {
            cwnd.segments = cwnd.segments.max(self.prior_window);
            self.conserves = false;
        }
        if self.conserves {
            cwnd.segments = cwnd.segments.max(left);
        }
        self.conserves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Profile;

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + Duration::from_millis(ms)
    }

    #[test]
    fn the_largest_of_ten_rounds_counts() {
        let mut largest = Largest::default();
        let mut seen = vec![];
        for (round, value) in [
            (1, 5.0),
            (2, 9.0),
            (5, 7.0),
            (9, 6.0),
            (12, 3.0),
            (13, 3.0),
            (16, 2.0),
        ] {
            largest.update(round, value);
            seen.push(largest.get());
        }
        assert_eq!(seen, [5.0, 9.0, 9.0, 9.0, 9.0, 7.0, 6.0]);
    }

    /// A path of 1000 segments/s and 100 ms, driven round by round, with `parts` acknowledgments in each.
    fn rounds(
        bbr: &mut Bbr,
        cwnd: &mut Cwnd,
        rounds: std::ops::Range<u64>,
        parts: u64,
    ) -> Vec<f64> {
        let mut windows = vec![];
        for (round, part) in rounds.flat_map(|round| (0..parts).map(move |part| (round, part))) {
            let window = cwnd.segments as u64;
            let (rate, rtt) = (1_000.0, 100);
            let delivered = window.min(100);
            let newly = delivered / parts;
            let total = 1_000 * round + newly * (part + 1);
            bbr.on_sample(
                cwnd,
                &RateSample {
                    now: at(rtt * round + rtt * part / parts),
                    prior_delivered: total - newly * (part + 1).min(parts),
                    total_delivered: total,
                    interval: Some(
                        Duration::from_secs(1).mul_f64((newly * (part + 1)) as f64 / rate),
                    ),
                    newly_delivered: newly,
                    lost: 0,
                    flight: window - delivered,
                    flight_before: window,
                    rtt: Some(Duration::from_millis(rtt)),
                    app_limited: false,
                    phase: Phase::Open,
                },
            );
            windows.push(cwnd.segments);
        }
        windows
    }

    fn fresh() -> (Bbr, Cwnd) {
        let config = TcpConfig {
            initial_window: 10,
            ..TcpConfig::profile(Profile::Ns2In1999)
        };
        (Bbr::new(&config, 1000, 0.5), Cwnd::new(&config, 1000))
    }

    #[test]
    fn startup_drains_and_then_cwnd_is_twice_the_bdp() {
        // 2 * 1000/s * 0.1 s, three bursts of two, and the batch of acknowledgments.
        for (parts, windows) in [(1, 300.0..=310.0), (10, 210.0..=220.0)] {
            let (mut bbr, mut cwnd) = fresh();
            rounds(&mut bbr, &mut cwnd, 1..13, parts);
            assert!(bbr.is_full);
            assert!((bbr.bandwidth.get() - 1_000.0).abs() < 1e-6);
            let last = rounds(&mut bbr, &mut cwnd, 13..22, parts);
            assert!(matches!(bbr.mode, Mode::ProbeBandwidth(_)));
            let last = &last[last.len() / 2..];
            assert!(
                last.iter().all(|window| windows.contains(window)),
                "{parts}: {last:?}"
            );
            let probes = rounds(&mut bbr, &mut cwnd, 22..122, parts);
            assert!(probes.contains(&LEAST_WINDOW), "the round trip is probed");
        }
    }
}
