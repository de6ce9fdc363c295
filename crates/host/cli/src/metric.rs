//! How result metrics are shown: their names in words, units, and which direction is better.
//!
//! `docs/metrics.md` defines them. Their names in results and in JSON carry the unit.

use crate::chart::Better;
use crate::quantity::{Estimate, Unit};

/// How a metric is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name in words.
    pub words: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// Which direction is better, if one is.
    pub better: Option<Better>,
    /// Whether it says how well the application does, rather than why.
    pub headline: bool,
}

impl Metric {
    /// Formats a value. A count of a single run is a whole number.
    pub fn show(&self, value: Estimate) -> String {
        match (self.unit, value.half_width) {
            (Unit::Count, None) if value.mean.fract() == 0.0 => format!("{:.0}", value.mean),
            _ => value.show(self.unit).to_string(),
        }
    }
}

/// The metric with this name in results.
pub fn metric(name: &str) -> Option<Metric> {
    use Better::{Higher, Lower};
    use Unit::{BitsPerSecond, Bytes, Count, Ratio, Seconds};
    let (words, unit, better, headline) = match name {
        "throughput_bps" => ("throughput", BitsPerSecond, Higher, true),
        "goodput_ratio" => ("goodput", Ratio, Higher, false),
        "packets_under_way" => ("packets under way", Count, Lower, false),
        "loss_ratio" => ("residual loss", Ratio, Lower, true),
        "delay_mean_s" => ("mean delay", Seconds, Lower, false),
        "delay_sd_s" => ("deviation of the delay", Seconds, Lower, false),
        "delay_mean_plus_2sd_s" => ("delay (mean + 2 sd)", Seconds, Lower, true),
        "delay_median_s" => ("median delay", Seconds, Lower, false),
        "delay_p95_s" => ("delay of 95 %", Seconds, Lower, false),
        "delay_p99_s" => ("delay of 99 %", Seconds, Lower, false),
        "jitter_mean_s" => ("mean jitter (RFC 3550)", Seconds, Lower, false),
        "pages" => ("pages", Count, Higher, false),
        "page_time_mean_s" => ("mean page time", Seconds, Lower, true),
        "page_time_median_s" => ("median page time", Seconds, Lower, false),
        "page_time_p95_s" => ("page time of 95 %", Seconds, Lower, false),
        "page_time_max_s" => ("longest page time", Seconds, Lower, false),
        "responses" => ("responses", Count, Higher, false),
        "response_time_mean_s" => ("mean response time", Seconds, Lower, true),
        "response_time_median_s" => ("median response time", Seconds, Lower, false),
        "response_time_p95_s" => ("response time of 95 %", Seconds, Lower, false),
        "response_time_max_s" => ("longest response time", Seconds, Lower, false),
        "retransmissions" => ("retransmissions", Count, Lower, false),
        "timeouts" => ("TCP timeouts", Count, Lower, false),
        "window_cuts" => ("TCP window cuts", Count, Lower, false),
        "duplicates" => ("duplicates", Count, Lower, false),
        "duplicates_before_sweep" => ("duplicates before sweep", Count, Lower, false),
        "nacks" => ("CLAP reports", Count, Lower, false),
        "pause_max_s" => ("longest pause", Seconds, Lower, false),
        "cwnd_mean_bytes" => ("mean congestion window", Bytes, Higher, false),
        "window_mean_bytes" => ("mean usable window", Bytes, Higher, false),
        "timeout_wait_s" => ("time waited for timeouts", Seconds, Lower, false),
        "window_falls" => ("falls of the congestion window", Count, Lower, false),
        "duplicate_acks" => ("duplicate acknowledgments", Count, Lower, false),
        "relay_retransmissions" => ("retransmissions of the relay", Count, Lower, false),
        "relay_timeouts" => ("timeouts of the relay", Count, Lower, false),
        "relay_early_bytes" => ("bytes acknowledged early", Count, Lower, false),
        "relay_held_bytes" => ("bytes held by the relay", Count, Lower, false),
        _ => return None,
    };
    Some(Metric {
        words,
        unit,
        better: Some(better),
        headline,
    })
}

/// A metric of one direction of a link, or of a station on a radio channel, and how it is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MediumMetric {
    /// Its name in results.
    pub(crate) name: &'static str,
    /// Its name in words.
    pub(crate) words: &'static str,
    unit: Unit,
}

impl MediumMetric {
    const fn of(name: &'static str, words: &'static str, unit: Unit) -> Self {
        Self { name, words, unit }
    }

    /// Without a better direction: how much a link carries is neither good nor bad.
    pub(crate) const fn shown(&self) -> Metric {
        Metric {
            words: self.words,
            unit: self.unit,
            better: None,
            headline: false,
        }
    }

    /// Formats a value. Frames of a single run are whole numbers; "-" means that no run measured
    /// it.
    pub(crate) fn show(&self, value: Option<&airlane_sim::Estimate>) -> String {
        let value = value.map(Estimate::from);
        value.map_or("-".to_owned(), |value| self.shown().show(value))
    }
}

/// The metrics of links that tables show.
pub(crate) const LINK_METRICS: [MediumMetric; 7] = [
    MediumMetric::of("utilisation_ratio", "utilisation", Unit::Ratio),
    MediumMetric::of("frames", "offered", Unit::Count),
    MediumMetric::of("dropped_frames", "dropped, queue full", Unit::Count),
    MediumMetric::of("lost_frames", "lost on the air", Unit::Count),
    MediumMetric::of("delivered_frames", "delivered", Unit::Count),
    MediumMetric::of("under_way_frames", "under way", Unit::Count),
    MediumMetric::of("overtaken_frames", "overtaken", Unit::Count),
];

/// The metrics of stations on radio channels that tables show.
pub(crate) const STATION_METRICS: [MediumMetric; 6] = [
    MediumMetric::of("airtime_ratio", "airtime", Unit::Ratio),
    MediumMetric::of("frames", "frames", Unit::Count),
    MediumMetric::of("collided_frames", "collided", Unit::Count),
    MediumMetric::of("retries", "retries", Unit::Count),
    MediumMetric::of("retry_drops", "given up", Unit::Count),
    MediumMetric::of("queue_drops", "dropped, queue full", Unit::Count),
];

/// The metrics of radio channels that are printed.
pub(crate) const RADIO_METRICS: [MediumMetric; 2] = [
    MediumMetric::of("busy_periods", "busy periods", Unit::Count),
    MediumMetric::of("collisions", "with a collision", Unit::Count),
];

/// Whether a picture that compares schemes shows the metric for this kind of application.
/// Throughput is left out for a conference, which chooses its rate, and for pages of one size,
/// where it follows from their times.
pub fn is_headline(app: &str, name: &str) -> bool {
    let own = matches!(app, "bulk" | "web") || name != "throughput_bps";
    own && metric(name).is_some_and(|m| m.headline)
}

/// The result names of all metrics that tables show, those of applications first.
pub(crate) fn names_of_metrics() -> Vec<&'static str> {
    let of_flows = airlane_sim::FlowResult::metric_names();
    of_flows
        .into_iter()
        .chain(LINK_METRICS.map(|metric| metric.name))
        .collect()
}

impl From<&airlane_sim::Estimate> for Estimate {
    fn from(estimate: &airlane_sim::Estimate) -> Self {
        Self {
            mean: estimate.mean,
            half_width: estimate.ci95_half_width,
            of_runs: (estimate.n < estimate.runs).then_some([estimate.n, estimate.runs]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_measure_has_words() {
        for name in airlane_sim::FlowResult::metric_names() {
            assert!(metric(name).is_some(), "{name}");
        }
    }
}
