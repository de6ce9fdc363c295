//! Capacity of a direction: bytes over time between arrivals while a queue stands.
//!
//! A queue stands between two frames if the later one was sent before the earlier one arrived, by enough to have waited
//! for it: then the link was busy between their arrivals, with the later frame and the frames lost between the two. A
//! receiver that reads late makes single gaps too short, so only long rows of gaps count.

use airlane_base::{Duration, Rate};

use super::frames::Frame;

/// Capacity of a direction, counted in bytes of whole frames on the wire.
#[derive(Clone, Debug, PartialEq)]
pub enum Capacity {
    /// Constant, as far as the recording shows.
    Constant(Rate),
    /// A series of rates.
    Steps {
        /// Duration of each.
        every: Duration,
        /// The rates from the beginning of the recording on.
        rates: Vec<Rate>,
        /// Fraction of them that was measured; the others repeat the one before.
        known: f64,
    },
    /// No queue was seen: the link carries at least this.
    AtLeast(Rate),
}

impl Capacity {
    /// The mean.
    pub fn mean(&self) -> Rate {
        match self {
            Self::Constant(rate) | Self::AtLeast(rate) => *rate,
            Self::Steps { rates, .. } => {
                let sum: f64 = rates.iter().map(|rate| rate.as_bps() as f64).sum();
                rate_of(sum / rates.len().max(1) as f64)
            }
        }
    }
}

/// Duration of one rate, s.
const BIN: f64 = 0.5;
/// Minimum length, s, and number of frames of a row of gaps.
const ROW: f64 = 0.02;
const ROW_FRAMES: u32 = 8;
/// Minimum total length of the rows of a bin, s.
const LEAST_BUSY: f64 = 0.04;
/// A capacity is constant if its 10th and 90th percentile differ by at most this fraction.
const ALIKE: f64 = 0.1;
/// Tolerance in the order of events by two clocks, s.
const SLACK: f64 = 50e-6;

/// Rates over time.
#[derive(Clone, Debug)]
pub(super) struct Series {
    /// Bytes and time while the link was busy, for each bin.
    busy: Vec<(f64, f64)>,
    /// All bytes that arrived, for each bin.
    came: Vec<f64>,
    begins: f64,
}

impl Series {
    /// `carried` gives the probability that the link carried a lost frame.
    pub(super) fn of(frames: &[Frame], carried: impl Fn(usize) -> f64) -> Self {
        let begins = frames.first().map_or(0.0, |frame| frame.at);
        // Until the last arrival: what still waited when the last frame was sent is not of the bin of that time.
        let arrivals = frames
            .iter()
            .map(|frame| frame.at + frame.late.unwrap_or(0.0));
        let ends = arrivals.fold(begins, f64::max);
        let bins = ((ends - begins) / BIN) as usize + 1;
        let mut series = Self {
            busy: vec![(0.0, 0.0); bins],
            came: vec![0.0; bins],
            begins,
        };
        let mut row = Row::default();
        let mut lost = 0.0;
        let mut before: Option<f64> = None;
        for (i, frame) in frames.iter().enumerate() {
            if frame.lost {
                lost += carried(i) * frame.bytes;
                continue;
            }
            let arrived = series.bin(frame.at + frame.late.unwrap_or(0.0));
            series.came[arrived] += frame.bytes;
            let Some(late) = frame.late else { continue };
            let bin = series.bin(frame.at);
            let came = frame.at + late;
            match before {
                Some(before) if frame.at + SLACK < before && came >= before => {
                    row.add(came - before, frame.bytes + lost);
                    // A row that spans several bins counts in each.
                    if row.time >= BIN / 4.0 {
                        series.take(bin, &mut row);
                    }
                }
                _ => series.take(bin, &mut row),
            }
            lost = 0.0;
            before = Some(before.map_or(came, |before| before.max(came)));
        }
        if let Some(last) = bins.checked_sub(1) {
            series.take(last, &mut row);
        }
        series
    }

    fn bin(&self, at: f64) -> usize {
        (((at - self.begins) / BIN) as usize).min(self.busy.len() - 1)
    }

    fn take(&mut self, bin: usize, row: &mut Row) {
        if row.time >= ROW && row.frames >= ROW_FRAMES {
            self.busy[bin].0 += row.bytes;
            self.busy[bin].1 += row.time;
        }
        *row = Row::default();
    }

    /// The capacity in a bin, bit/s, if a queue was seen.
    fn rate(&self, bin: usize) -> Option<f64> {
        let (bytes, time) = self.busy[bin];
        (time >= LEAST_BUSY).then(|| bytes * 8.0 / time)
    }

    /// The capacity at a time, byte/s, from the nearest bin with a queue.
    pub(super) fn bytes_per_s(&self, at: f64) -> Option<f64> {
        let bin = self.bin(at);
        let before = (0..=bin).rev().find_map(|bin| self.rate(bin));
        let rate = before.or_else(|| (bin..self.busy.len()).find_map(|bin| self.rate(bin)));
        rate.map(|rate| rate / 8.0)
    }

    pub(super) fn capacity(&self) -> Capacity {
        let known: Vec<f64> = (0..self.busy.len()).filter_map(|i| self.rate(i)).collect();
        let most = self.came.iter().copied().fold(0.0, f64::max) * 8.0 / BIN;
        if known.is_empty() {
            return Capacity::AtLeast(rate_of(most));
        }
        let mut sorted = known.clone();
        sorted.sort_by(f64::total_cmp);
        let quantile = |q: f64| sorted[((sorted.len() - 1) as f64 * q) as usize];
        let median = quantile(0.5);
        // More may have arrived while no queue stood than the capacity seen at other times.
        if quantile(0.9) - quantile(0.1) <= ALIKE * median && most <= median * (1.0 + ALIKE) {
            let sum = |f: fn(&(f64, f64)) -> f64| self.busy.iter().map(f).sum::<f64>();
            return Capacity::Constant(rate_of(sum(|b| b.0) * 8.0 / sum(|b| b.1)));
        }
        let mut last = known[0];
        let rates = (0..self.busy.len()).map(|bin| {
            // What arrived without a queue is a lower bound.
            let least = self.came[bin] * 8.0 / BIN;
            last = self.rate(bin).unwrap_or(last.max(least));
            rate_of(last)
        });
        Capacity::Steps {
            every: Duration::from_secs_f64(BIN),
            rates: rates.collect(),
            known: known.len() as f64 / self.busy.len() as f64,
        }
    }
}

/// Rounds to three digits: no recording is more precise.
fn rate_of(bps: f64) -> Rate {
    let bps = bps.max(1.0);
    let digit = libm::pow(10.0, libm::floor(libm::log10(bps)) - 2.0).max(1.0);
    Rate::from_bps((libm::round(bps / digit) * digit) as u64).expect("at least 1 bit/s")
}

/// Successive arrivals during which the link does not pause.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    time: f64,
    bytes: f64,
    frames: u32,
}

impl Row {
    const fn add(&mut self, time: f64, bytes: f64) {
        self.time += time;
        self.bytes += bytes;
        self.frames += 1;
    }
}
