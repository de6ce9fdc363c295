//! Progress measurements of flows (Gopal 2007); docs/metrics.md defines the terms.

use std::collections::BTreeMap;

use serde::Serialize;

/// Progress of a flow. A metric that could not be measured is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProgressResult {
    /// From the first packet sent to the arrival of the last one that the receiver lacked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_s: Option<f64>,
    /// 1 if a file was incomplete when the applications stopped, else 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<u64>,
    /// File: its new bits over the duration of the transfer, or up to the stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thr_bps: Option<f64>,
    /// Likewise, for any flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub good_bps: Option<f64>,
    /// File: likewise, until nine tenths of it had arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub good90_bps: Option<f64>,
    /// The mean of the three highest intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_bps: Option<f64>,
    /// Standard deviation of the intervals' new bytes over their mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_cv: Option<f64>,
    /// Intervals without a new byte; for a file, until nine tenths of it had arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zero_intervals: Option<u64>,
    /// Periods without a new byte that last at least nine tenths of the sender's minimum RTO.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flat_intervals: Option<u64>,
    /// Duplicate packets over new packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_ratio: Option<f64>,
    /// The most acknowledgments that the receiver sent in one interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acks_per_interval_max: Option<u64>,
    /// 5th percentile of the round trip from a packet to the acknowledgment that it caused; overestimated by at most
    /// 1/32.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_p05_s: Option<f64>,
    /// 95th percentile, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_p95_s: Option<f64>,
    /// The longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_max_s: Option<f64>,
    /// Share of the packets that never arrived, of those that the station of their own node accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_end_to_end: Option<f64>,
    /// With `curve`: time since the first packet, and new bytes so far, at the end of each interval and at the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<(f64, u64)>,
    /// The time windows that the file names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub windows: BTreeMap<String, WindowResult>,
}

/// Measurements of a flow in one time window.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WindowResult {
    /// New bits in the window over the time in it during which the flow was active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub good_bps: Option<f64>,
    /// Intervals inside it without a new byte; for a file, until nine tenths of it had arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zero_intervals: Option<u64>,
    /// The longest round trip that ended in the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_max_s: Option<f64>,
}

/// Results of the flows of one group together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GroupResult {
    /// The group's name in the file.
    pub name: String,
    /// When its first file was complete, since the first packet of any of its flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_s: Option<f64>,
    /// When its last file was complete; none if one never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_s: Option<f64>,
    /// New bits of all flows over the time that they took together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agg_bps: Option<f64>,
    /// Jain's index of their goodputs: 1 if all are equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jain: Option<f64>,
}

/// A metric of a run by name, if it could be measured.
pub type Measured = (&'static str, Option<f64>);

impl ProgressResult {
    /// All but the curve and the windows, in a fixed order.
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
    /// All metrics, in a fixed order.
    pub fn scalars(&self) -> [Measured; 3] {
        [
            ("good_bps", self.good_bps),
            ("zero_intervals", self.zero_intervals.map(|n| n as f64)),
            ("rtt_max_s", self.rtt_max_s),
        ]
    }
}

impl GroupResult {
    /// All metrics, in a fixed order.
    pub fn scalars(&self) -> [Measured; 4] {
        [
            ("first_s", self.first_s),
            ("last_s", self.last_s),
            ("agg_bps", self.agg_bps),
            ("jain", self.jain),
        ]
    }
}
