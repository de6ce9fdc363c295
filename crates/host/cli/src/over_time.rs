//! Prints what flows achieved in each interval of a run.

use airlane_sim::{OverTimeResult, RunResult};

use crate::quantity::{Estimate, Unit};
use crate::table::{Align, Cell, Table};

/// A line for each interval and a column for each flow, means over the runs; empty if intervals
/// were not asked for.
pub(crate) fn text(results: &[RunResult]) -> String {
    let Some(first) = results.first() else {
        return String::new();
    };
    let Some(OverTimeResult { interval_s, .. }) =
        first.flows.iter().find_map(|f| f.over_time.as_ref())
    else {
        return String::new();
    };
    let flows = first
        .flows
        .iter()
        .map(|flow| (flow.name.clone(), Align::Right));
    let mut table = Table::new([("from".to_owned(), Align::Right)].into_iter().chain(flows));
    let of = |run: &RunResult, flow: usize, at: usize| {
        let kept = run.flows[flow].over_time.as_ref()?;
        kept.throughput_bps.get(at).copied()
    };
    for at in 0.. {
        let of_flow = |flow: usize| {
            let values: Vec<f64> = results
                .iter()
                .map(|run| of(run, flow, at).unwrap_or(f64::NAN))
                .collect();
            airlane_sim::Estimate::of(&values)
        };
        let estimates: Vec<_> = (0..first.flows.len()).map(of_flow).collect();
        if estimates.iter().all(Option::is_none) {
            break;
        }
        let from = Cell::from(format!("{} s", seconds(*interval_s, at)));
        let cells = estimates.iter().map(|estimate| match estimate {
            Some(estimate) => Estimate::from(estimate)
                .show(Unit::BitsPerSecond)
                .to_string()
                .into(),
            None => Cell::from("-"),
        });
        table.row([from].into_iter().chain(cells));
    }
    format!(
        "\nthroughput over time, in intervals of {interval_s} s\n\n{}",
        table.render()
    )
}

/// The start of an interval, without floating-point noise.
fn seconds(interval_s: f64, at: usize) -> f64 {
    (interval_s * at as f64 * 1e9).round() / 1e9
}
