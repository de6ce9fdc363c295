//! What a flow had carried by a time that each repetition determines, such as the completion time
//! of another flow: `file.good_bps until X23.time[clap-final]`.
//!
//! For a flow with `progress.curve`, each run has the new bytes by the end of each interval;
//! between two ends they are interpolated linearly. Past the last one nothing is known. Each of
//! these points is a named number, like everything else in the store, the tables and Python's
//! results: a series would need a form of its own in each of them, for this one reader.

use crate::expression::Operand;
use crate::store::RunRecord;

/// Stands before the time in a metric, and after the flow in results.
const UNTIL: &str = " until ";
const BYTES_BY: &str = "bytes_by_";
const GOOD_BPS: &str = "good_bps";

/// The name in results of a point of a flow's curve. Zero padding makes names sort in the order of
/// times.
pub(crate) fn name(at_s: f64) -> String {
    format!("{BYTES_BY}{at_s:014.9}")
}

/// What a study reads from results.
#[derive(Clone, Debug)]
pub(crate) enum Metric {
    /// A number, by its name.
    Plain(String),
    /// The rate of new bits of a flow up to that time.
    Until { flow: String, time: Operand },
}

impl Metric {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let Some((name, time)) = text.split_once(UNTIL) else {
            return Ok(Self::Plain(text.to_owned()));
        };
        let flow = name.strip_suffix(GOOD_BPS);
        let flow = flow.ok_or_else(|| format!("`{text}`: only {GOOD_BPS} goes until a time"))?;
        let time = Operand::parse(time).map_err(|e| e.to_string())?;
        let flow = flow.to_owned();
        Ok(Self::Until { flow, time })
    }
}

/// The name in results of a metric.
pub(crate) fn measured(metric: &str) -> &str {
    metric
        .split_once(UNTIL)
        .map_or(metric, |(measured, _)| measured)
}

/// New bits per second of `flow` (a name with its point) over the first `time` seconds after its
/// first packet.
pub(crate) fn good_bps(run: &RunRecord, flow: &str, time: f64) -> f64 {
    let (mut before, mut bytes) = (0.0, 0.0);
    for (name, more) in run.names.iter().zip(&run.values) {
        let at = name
            .strip_prefix(flow)
            .and_then(|name| name.strip_prefix(BYTES_BY));
        let Some(at) = at.and_then(|at| at.parse::<f64>().ok()) else {
            continue;
        };
        if at >= time {
            let part = (time - before) / (at - before);
            return (bytes + part * (more - bytes)) * 8.0 / time;
        }
        (before, bytes) = (at, *more);
    }
    f64::NAN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_read_between_its_points() {
        let points = [(0.1, 1000.0), (0.2, 1000.0), (10.0, 9000.0)];
        let run = RunRecord {
            names: points.map(|(at, _)| format!("file.{}", name(at))).into(),
            values: points.map(|(_, bytes)| bytes).into(),
        };
        assert!(run.names.is_sorted());
        assert_eq!(good_bps(&run, "file.", 0.05), 500.0 * 8.0 / 0.05);
        assert_eq!(good_bps(&run, "file.", 0.15), 1000.0 * 8.0 / 0.15);
        assert_eq!(good_bps(&run, "file.", 10.0), 7200.0);
        assert!(good_bps(&run, "file.", 10.1).is_nan());
        assert!(good_bps(&run, "file.", f64::NAN).is_nan());
        assert!(good_bps(&run, "other.", 1.0).is_nan());
    }

    #[test]
    fn a_time_is_an_expression() {
        let text = "file.good_bps until X23.time[clap-final] / 2";
        let Ok(Metric::Until { flow, time }) = Metric::parse(text) else {
            panic!("no time was found");
        };
        assert_eq!((flow.as_str(), measured(text)), ("file.", "file.good_bps"));
        assert_eq!(time.text, "X23.time[clap-final] / 2");
        assert!(Metric::parse("file.cv until 2").is_err());
        assert!(Metric::parse("file.good_bps until").is_ok_and(|m| matches!(m, Metric::Plain(_))));
        assert!(Metric::parse("file.good_bps until ").is_err());
    }
}
