//! Progress of a flow: what is new at its receiver, when, and at what cost (Gopal 2007).
//!
//! A transfer lasts from the first packet that the sender gives to the network to the arrival of the last packet that
//! the receiver lacked; the sender's last acknowledgment may come later, or never. New bytes count once, when their
//! packet arrives, in order or not. Arrivals after the stop only count as not lost.
//!
//! Both ends report to one probe, which no real host could do. A round trip is therefore measured from the packet
//! that caused an acknowledgment, retransmissions included.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant};

use crate::probe::{DelayProbe, rate_bps};
use crate::result::{ProgressResult, WindowResult};
use crate::scenario::{ProgressConfig, WindowConfig};

/// A peak is the mean of this many intervals.
const PEAKS: usize = 3;
/// A flat stretch lasts at least this share of the smallest timeout.
const FLAT: f64 = 0.9;
/// Acknowledgments tracked in flight; beyond this, the oldest are forgotten.
const MOST_ECHOES: usize = 1 << 16;

/// Measurements of one window of time.
#[derive(Clone, Debug)]
struct Window {
    name: String,
    config: WindowConfig,
    bytes: u64,
    round_trips: DelayProbe,
}

/// The progress of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    interval: Duration,
    /// Bytes of the whole transfer, if it is finite.
    size: Option<u64>,
    /// A gap this long is a flat stretch; only if the sender has a retransmission timer.
    flat: Option<Duration>,
    windows: Vec<Window>,
    curve: bool,
    /// When the first packet was sent.
    first: Option<Instant>,
    /// When the last new byte arrived, and when the byte that completed 90 %.
    last: Option<Instant>,
    ninety: Option<Instant>,
    stopped: Option<Instant>,
    bytes: u64,
    flat_intervals: u64,
    /// New bytes, and acknowledgments that left the receiver, in each interval.
    intervals: Vec<[u64; 2]>,
    /// When each acknowledgment left the receiver, and when the packet that caused it left the sender.
    echoes: VecDeque<[Instant; 2]>,
    cause: Option<Instant>,
    round_trips: DelayProbe,
    /// Packets that the station of their own node could not take.
    refused: u64,
}

impl Progress {
    /// Progress of a flow of `size` bytes whose sender has a minimum RTO of `min_rto`, where these exist.
    pub(crate) fn new(
        config: &ProgressConfig,
        size: Option<u64>,
        min_rto: Option<Duration>,
    ) -> Self {
        let window = |(name, config): (&String, &WindowConfig)| Window {
            name: name.clone(),
            config: *config,
            bytes: 0,
            round_trips: DelayProbe::default(),
        };
        Self {
            interval: config.interval,
            size,
            flat: min_rto.map(|rto| Duration::from_secs_f64(rto.as_secs_f64() * FLAT)),
            windows: config.windows.iter().map(window).collect(),
            curve: config.curve,
            first: None,
            last: None,
            ninety: None,
            stopped: None,
            bytes: 0,
            flat_intervals: 0,
            intervals: vec![],
            echoes: VecDeque::new(),
            cause: None,
            round_trips: DelayProbe::default(),
            refused: 0,
        }
    }

    /// A packet leaves the sender, connection requests included.
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.first.get_or_insert(now);
    }

    /// The station of the sender's node has refused a packet.
    pub(crate) fn on_refused(&mut self) {
        self.refused += 1;
    }

    /// A packet that left its sender at `created` has arrived, with this many new bytes.
    pub(super) fn on_arrived(&mut self, now: Instant, created: Instant, bytes: u64) {
        self.cause = Some(created);
        if bytes == 0 || self.stopped.is_some() {
            return;
        }
        self.close_gap(now);
        self.last = Some(now);
        self.bytes += bytes;
        if let Some(slot) = self.slot(now) {
            slot[0] += bytes;
        }
        let at = now.saturating_since(Instant::ORIGIN);
        for window in &mut self.windows {
            if window.config.holds(at) {
                window.bytes += bytes;
            }
        }
        if let Some(size) = self.size
            && self.bytes * 10 >= size * 9
        {
            self.ninety.get_or_insert(now);
        }
    }

    /// An acknowledgment leaves the receiver.
    pub(super) fn on_acknowledges(&mut self, now: Instant) {
        if let Some(slot) = self.slot(now) {
            slot[1] += 1;
        }
        if let Some(cause) = self.cause {
            if self.echoes.len() == MOST_ECHOES {
                self.echoes.pop_front();
            }
            self.echoes.push_back([now, cause]);
        }
    }

    /// An acknowledgment that left the receiver at `created` has arrived at the sender.
    pub(super) fn on_acknowledged(&mut self, now: Instant, created: Instant) {
        // Earlier acknowledgments that have not arrived are lost: a path keeps the order, and each echo is looked up
        // once.
        let before = self.echoes.partition_point(|[left, _]| *left < created);
        self.echoes.drain(..before);
        let Some([left, cause]) = self.echoes.front().copied() else {
            return;
        };
        if left != created {
            return;
        }
        self.echoes.pop_front();
        let round_trip = now.saturating_since(cause);
        self.round_trips.record(round_trip);
        let at = now.saturating_since(Instant::ORIGIN);
        for window in &mut self.windows {
            if window.config.holds(at) {
                window.round_trips.record(round_trip);
            }
        }
    }

    /// The applications stop.
    pub(super) fn stop(&mut self, now: Instant) {
        if !self.is_complete() {
            self.close_gap(now);
        }
        self.stopped = Some(now);
    }

    /// Ends the gap since the last new byte.
    fn close_gap(&mut self, now: Instant) {
        let since = self.last.or(self.first);
        if let Some((flat, since)) = self.flat.zip(since)
            && now.saturating_since(since) >= flat
        {
            self.flat_intervals += 1;
        }
    }

    fn slot(&mut self, now: Instant) -> Option<&mut [u64; 2]> {
        let index = self.index(now)?;
        if self.intervals.len() <= index {
            self.intervals.resize(index + 1, [0; 2]);
        }
        Some(&mut self.intervals[index])
    }

    fn index(&self, now: Instant) -> Option<usize> {
        let passed = now.saturating_since(self.first?).as_nanos();
        Some((passed / self.interval.as_nanos()) as usize)
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.size.is_some_and(|size| self.bytes >= size)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn first(&self) -> Option<Instant> {
        self.first
    }

    /// When the transfer was complete, or when the applications stopped.
    pub(crate) fn end(&self) -> Option<Instant> {
        match self.is_complete() {
            true => self.last,
            false => self.stopped,
        }
    }

    /// New bits over the duration of the transfer.
    pub(crate) fn good_bps(&self) -> Option<f64> {
        let time = self.end()?.saturating_since(self.first?);
        rate_bps(self.bytes, time)
    }

    /// New bytes of each whole interval before a time.
    fn whole(&self, until: Instant) -> impl Iterator<Item = u64> {
        let count = self.index(until).unwrap_or(0);
        let counted = self.intervals.iter().map(|[bytes, _]| *bytes);
        counted.chain(std::iter::repeat(0)).take(count)
    }

    /// The measurements, given how many packets were sent and received, and how many were duplicates.
    pub(crate) fn result(&self, sent: u64, received: u64, duplicates: u64) -> ProgressResult {
        let end = self.end();
        let early = self.ninety.or(end);
        let own = sent.saturating_sub(self.refused);
        let packets = received.saturating_sub(duplicates);
        let good_bps = self.good_bps();
        ProgressResult {
            time_s: self
                .end()
                .filter(|_| self.is_complete())
                .zip(self.first)
                .map(|(end, first)| end.saturating_since(first).as_secs_f64()),
            unfinished: self.size.map(|_| u64::from(!self.is_complete())),
            thr_bps: good_bps.filter(|_| self.size.is_some()),
            good_bps,
            good90_bps: self.ninety.zip(self.first).and_then(|(ninety, first)| {
                let bytes = self.size.unwrap_or(0) * 9 / 10;
                rate_bps(bytes, ninety.saturating_since(first))
            }),
            peak_bps: end.and_then(|end| self.peak(end)),
            interval_cv: end.and_then(|end| variation(self.whole(end))),
            zero_intervals: early
                .map(|early| self.whole(early).filter(|bytes| *bytes == 0).count() as u64),
            flat_intervals: self.flat.map(|_| self.flat_intervals),
            duplicate_ratio: (packets > 0).then(|| duplicates as f64 / packets as f64),
            acks_per_interval_max: self.intervals.iter().map(|[_, acks]| *acks).max(),
            rtt_p05_s: self.round_trips.quantile_s(0.05),
            rtt_p95_s: self.round_trips.quantile_s(0.95),
            rtt_max_s: self.round_trips.max_s(),
            lost_end_to_end: (own > 0).then(|| 1.0 - received.min(own) as f64 / own as f64),
            curve: match self.first.zip(end) {
                Some((first, end)) if self.curve => self.curve(first, end),
                _ => vec![],
            },
            windows: self
                .windows
                .iter()
                .map(|window| (window.name.clone(), self.window_result(window, early)))
                .collect(),
        }
    }

    fn curve(&self, first: Instant, end: Instant) -> Vec<(f64, u64)> {
        let whole = self.whole(end).scan((first, 0), |(at, bytes), more| {
            *at += self.interval;
            *bytes += more;
            Some((*at, *bytes))
        });
        let points = whole.chain([(end, self.bytes)]);
        let since = |(at, bytes): (Instant, u64)| (at.saturating_since(first).as_secs_f64(), bytes);
        points.map(since).collect()
    }

    fn peak(&self, end: Instant) -> Option<f64> {
        let mut all: Vec<u64> = self.whole(end).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.truncate(PEAKS);
        let bytes = all.iter().sum::<u64>();
        rate_bps(bytes, self.interval * all.len() as u64)
    }

    fn window_result(&self, window: &Window, early: Option<Instant>) -> WindowResult {
        let since = |at: Instant| at.saturating_since(Instant::ORIGIN);
        let ends = self.first.zip(self.end());
        let time = ends.map(|(first, end)| {
            let [before, all] = [first, end].map(|at| window.config.until(since(at)));
            all.saturating_sub(before)
        });
        let zero = self.first.zip(early).map(|(first, early)| {
            let whole = self.whole(early).enumerate();
            let inside = |index: usize| {
                let begin = first + self.interval * index as u64;
                let last = begin + self.interval.saturating_sub(Duration::from_nanos(1));
                // An interval counts if all of it lies in the window, and not only its ends.
                let part = window.config.until(since(begin + self.interval));
                let part = part.saturating_sub(window.config.until(since(begin)));
                window.config.holds(since(last)) && part == self.interval
            };
            whole.filter(|(i, bytes)| *bytes == 0 && inside(*i)).count() as u64
        });
        WindowResult {
            good_bps: time.and_then(|time| rate_bps(window.bytes, time)),
            zero_intervals: zero,
            rtt_max_s: window.round_trips.max_s(),
        }
    }
}

/// Standard deviation over mean; none if nothing arrived.
fn variation(values: impl Iterator<Item = u64>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0_u64, 0_u128, 0_u128);
    for value in values {
        count += 1;
        sum += u128::from(value);
        squares += u128::from(value) * u128::from(value);
    }
    if sum == 0 {
        return None;
    }
    let mean = sum as f64 / count as f64;
    let variance = squares as f64 / count as f64 - mean * mean;
    Some(variance.max(0.0).sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::ORIGIN + Duration::from_millis(ms)
    }

    fn config() -> ProgressConfig {
        toml::from_str(
            "interval = \"100 ms\"\ncurve = true\nwindows = { late = { from = \"500 ms\", to = \"2 s\" } }",
        )
        .unwrap()
    }

    #[test]
    fn a_stall_is_measured() {
        let rto = Some(Duration::from_millis(1_000));
        let mut progress = Progress::new(&config(), Some(10_000), rto);
        progress.on_sent(ms(50));
        // Nine packets arrive in the middle of one interval each; after a gap of 950 ms a duplicate arrives, then the
        // last.
        for n in 0..9 {
            progress.on_arrived(ms(100 + 100 * n), ms(50), 1_000);
            progress.on_acknowledges(ms(100 + 100 * n));
        }
        progress.on_acknowledged(ms(920), ms(900));
        progress.on_arrived(ms(1_000), ms(950), 0);
        assert!(!progress.is_complete());
        progress.on_arrived(ms(1_850), ms(1_800), 1_000);
        progress.stop(ms(5_000));
        progress.on_arrived(ms(5_100), ms(4_900), 1_000);
        let result = progress.result(12, 11, 1);
        assert_eq!(result.time_s, Some(1.8));
        assert_eq!(result.unfinished, Some(0));
        assert_eq!(result.thr_bps, Some(80_000.0 / 1.8));
        assert_eq!(result.good90_bps, Some(72_000.0 / 0.85));
        assert_eq!(result.peak_bps, Some(80_000.0));
        assert_eq!(result.flat_intervals, Some(1));
        assert_eq!(result.zero_intervals, Some(0));
        assert_eq!(result.acks_per_interval_max, Some(1));
        assert_eq!(result.rtt_max_s, Some(0.87));
        assert_eq!(result.duplicate_ratio, Some(0.1));
        assert_eq!(result.curve[..2], [(0.1, 1_000), (0.2, 2_000)]);
        assert_eq!(result.curve[17..], [(1.8, 9_000), (1.8, 10_000)]);
        let late = &result.windows["late"];
        // From 500 ms to the end of the file, six packets arrive in 1350 ms.
        assert_eq!(late.good_bps, Some(48_000.0 / 1.35));
        assert_eq!(late.rtt_max_s, Some(0.87));
        assert_eq!(late.zero_intervals, Some(0));
    }

    #[test]
    fn an_endless_flow_has_no_completion_time() {
        let mut progress = Progress::new(&config(), None, None);
        progress.on_sent(ms(0));
        progress.on_arrived(ms(10), ms(0), 1_000);
        progress.on_refused();
        progress.stop(ms(2_000));
        let result = progress.result(5, 1, 0);
        assert_eq!((result.time_s, result.unfinished), (None, None));
        assert_eq!(result.good_bps, Some(4_000.0));
        assert_eq!(result.zero_intervals, Some(19));
        assert_eq!(result.windows["late"].zero_intervals, Some(15));
        assert_eq!(result.flat_intervals, None);
        assert_eq!(result.lost_end_to_end, Some(0.75));
        assert!((result.interval_cv.unwrap() - 19_f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn a_flow_that_sent_nothing_has_no_measures() {
        let mut progress = Progress::new(&config(), Some(1_000), None);
        progress.stop(ms(1_000));
        let result = progress.result(0, 0, 0);
        assert_eq!(result.good_bps, None);
        assert_eq!(result.unfinished, Some(1));
    }
}
