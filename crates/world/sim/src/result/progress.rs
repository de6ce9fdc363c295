//! What was measured of flows while they went on (Gopal 2007); docs/metrics.md says what the words mean.

use std::collections::BTreeMap;

use serde::Serialize;

/// How a flow went on. What could not be measured is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProgressResult {
    /// From the first packet sent to the last that the receiver lacked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_s: Option<f64>,
    /// 1 if a file had not come in whole when the applications stopped, else 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<u64>,
    /// Of a file: its new bytes over the time that they took, or over all there was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thr_bps: Option<f64>,
    /// The same of any flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub good_bps: Option<f64>,
    /// Of a file, until nine tenths of it had come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub good90_bps: Option<f64>,
    /// The mean of the three greatest intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_bps: Option<f64>,
    /// Standard deviation of the intervals' new bytes over their mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_cv: Option<f64>,
    /// Intervals without a new byte; of a file until nine tenths of it had come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zero_intervals: Option<u64>,
    /// Stretches without a new byte that are at least nine tenths of the sender's smallest timeout long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flat_intervals: Option<u64>,
    /// Packets that came although they were there, over those that were not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_ratio: Option<f64>,
    /// The most acknowledgments that left the receiver in one interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acks_per_interval_max: Option<u64>,
    /// The round trip that 5 % do not exceed, of packets and the acknowledgments that they caused; at most 1/32 too
    /// large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_p05_s: Option<f64>,
    /// The one that 95 % do not exceed, at most 1/32 too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_p95_s: Option<f64>,
    /// The longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_max_s: Option<f64>,
    /// Share of the packets that never came, of those that the station of their own node took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_end_to_end: Option<f64>,
    /// With `curve`: time since the first packet, and new bytes until then, at the end of each interval and at the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<(f64, u64)>,
    /// The windows of time that the file names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub windows: BTreeMap<String, WindowResult>,
}

/// What a window of time has seen of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WindowResult {
    /// New bytes in it over the time of it in which the flow was on its way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub good_bps: Option<f64>,
    /// Intervals inside of it without a new byte; of a file until nine tenths of it had come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zero_intervals: Option<u64>,
    /// The longest round trip that ended in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_max_s: Option<f64>,
}

/// What the flows of one group did together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GroupResult {
    /// Its word in the file.
    pub name: String,
    /// When the first of its files was complete, since the first packet of any of its flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_s: Option<f64>,
    /// When the last one was; none if one never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_s: Option<f64>,
    /// New bytes of all over the time that they took together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agg_bps: Option<f64>,
    /// Jain's index of their goodputs: 1 where all are equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jain: Option<f64>,
}

/// A number of a run by name, if it could be measured.
pub type Measured = (&'static str, Option<f64>);

impl ProgressResult {
    /// All but what the curve and the windows have, in a fixed order.
    pub fn scalars(&self) -> [Measured; 15] {
        let count = |n: Option<u64>| n.map(|n| n as f64);
        [
            ("time_s", self.time_s),
            ("unfinished", count(self.unfinished)),
            ("thr_bps", self.thr_bps),
            ("good_bps", self.good_bps),
            ("good90_bps", self.good90_bps),
            ("peak_bps", self.peak_bps),
            ("interval_cv", self.interval_cv),
            ("zero_intervals", count(self.zero_intervals)),
            ("flat_intervals", count(self.flat_intervals)),
            ("duplicate_ratio", self.duplicate_ratio),
            ("acks_per_interval_max", count(self.acks_per_interval_max)),
            ("rtt_p05_s", self.rtt_p05_s),
            ("rtt_p95_s", self.rtt_p95_s),
            ("rtt_max_s", self.rtt_max_s),
            ("lost_end_to_end", self.lost_end_to_end),
        ]
    }
}

impl WindowResult {
    /// All of it, in a fixed order.
    pub fn scalars(&self) -> [Measured; 3] {
        [
            ("good_bps", self.good_bps),
            ("zero_intervals", self.zero_intervals.map(|n| n as f64)),
            ("rtt_max_s", self.rtt_max_s),
        ]
    }
}

impl GroupResult {
    /// All of it, in a fixed order.
    pub fn scalars(&self) -> [Measured; 4] {
        [
            ("first_s", self.first_s),
            ("last_s", self.last_s),
            ("agg_bps", self.agg_bps),
            ("jain", self.jain),
        ]
    }
}
