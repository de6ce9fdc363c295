//! What a direction carries: bytes over time between arrivals while a queue stands.
//!
//! A queue stands between two frames where the later one could have come before the earlier one did: then the link was
//! busy for all of the time between their arrivals, with the later frame and what was lost between the two. A receiver
//! that looks at arrivals late makes single gaps too short, so that only long rows of them count.

use airlane_base::{Duration, Rate};

use super::frames::Frame;

/// What a direction carries, bytes of whole Ethernet frames.
#[derive(Clone, Debug, PartialEq)]
pub enum Capacity {
    /// Always the same, as far as it shows.
    Constant(Rate),
    /// One rate after the other.
    Steps {
        /// Each for so long.
        every: Duration,
        /// From the beginning of the recording on.
        rates: Vec<Rate>,
        /// The part of them that was measured; the others are as the one before.
        known: f64,
    },
    /// The link was never seen busy: it carries at least this.
    AtLeast(Rate),
}

impl Capacity {
    /// In the long run.
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

/// Each rate is that of so long a time, s.
const BIN: f64 = 0.5;
/// A row of gaps counts if it is as long, s, and has as many frames.
const ROW: f64 = 0.02;
const ROW_FRAMES: u32 = 8;
/// And a bin if its rows are as long together, s.
const LEAST_BUSY: f64 = 0.04;
/// Rates that differ by no more, from the 10th to the 90th percentile, are one rate.
const ALIKE: f64 = 0.1;
/// By so much two clocks may disagree on what came first, s.
const SLACK: f64 = 50e-6;

/// Rates over time.
#[derive(Clone, Debug)]
pub(super) struct Series {
    /// Of each bin: bytes and time while the link was busy.
    busy: Vec<(f64, f64)>,
    /// And all that arrived, bytes.
    came: Vec<f64>,
    begins: f64,
}

impl Series {
    /// `carried` says of a lost frame how probably the link carried it.
    pub(super) fn of(frames: &[Frame], carried: impl Fn(usize) -> f64) -> Self {
        let begins = frames.first().map_or(0.0, |frame| frame.at);
        let ends = frames.last().map_or(0.0, |frame| frame.at);
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
                    // Rows that go on over several bins count in each.
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

    /// Bits a second in a bin, if it was seen busy.
    fn rate(&self, bin: usize) -> Option<f64> {
        let (bytes, time) = self.busy[bin];
        (time >= LEAST_BUSY).then(|| bytes * 8.0 / time)
    }

    /// Bytes a second at a time, by what is nearest.
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
        // Where no queue stood, more may have come than the link carries where one did.
        if quantile(0.9) - quantile(0.1) <= ALIKE * median && most <= median * (1.0 + ALIKE) {
            let sum = |f: fn(&(f64, f64)) -> f64| self.busy.iter().map(f).sum::<f64>();
            return Capacity::Constant(rate_of(sum(|b| b.0) * 8.0 / sum(|b| b.1)));
        }
        let mut last = known[0];
        let rates = (0..self.busy.len()).map(|bin| {
            // What passed without a queue is a bound as well.
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

/// Three digits: no recording tells more, and people read it.
fn rate_of(bps: f64) -> Rate {
    let bps = bps.max(1.0);
    let digit = libm::pow(10.0, libm::floor(libm::log10(bps)) - 2.0).max(1.0);
    Rate::from_bps((libm::round(bps / digit) * digit) as u64).expect("at least 1 bit/s")
}

/// Arrivals one after the other without a pause of the link.
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
