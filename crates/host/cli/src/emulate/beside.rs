//! The table: what the simulator and the kernel measured, and how far they are apart.

use airlane_emulate::flow::Carried;
use airlane_probe::quantile;
use airlane_sim::scenario::AppConfig;
use airlane_sim::{Estimate, RunResult, Scenario};
use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::args::Tolerance;
use crate::fault::BadInput;
use crate::metric::{Metric, metric};
use crate::quantity::Unit;
use crate::table::{Align, Cell, Table};

/// What both worlds measure of a file, of pages and of datagrams.
const FILE: &[&str] = &["throughput_bps"];
const PAGES: &[&str] = &["page_time_mean_s", "page_time_p95_s"];
const DATAGRAMS: &[&str] = &["loss_ratio", "delay_median_s", "delay_p99_s"];

/// All that was measured.
#[derive(Debug, Serialize)]
pub(super) struct Beside {
    /// Version of this format: 1.
    schema: u32,
    scenario: String,
    runs: usize,
    /// Seed of the first run.
    seed: u64,
    duration_s: f64,
    /// Whether live nodes ran at both ends.
    live: bool,
    measures: Vec<Measured>,
}

/// One measure of one flow.
#[derive(Debug, Serialize)]
struct Measured {
    flow: String,
    measure: &'static str,
    /// Absent if no run could measure it.
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated: Option<Estimate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    emulated: Option<Estimate>,
    /// Emulated over simulated, less 1; a share is subtracted instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference_ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tolerance_ratio: Option<f64>,
    /// Present with a tolerance.
    #[serde(skip_serializing_if = "Option::is_none")]
    within: Option<bool>,
}

/// Refuses a tolerance for something that is not compared.
pub(super) fn check(tolerances: &[Tolerance]) -> Result<(), BadInput> {
    let known: Vec<&str> = [FILE, PAGES, DATAGRAMS].concat();
    let named = tolerances.iter().filter_map(|one| one.measure.as_deref());
    match named.into_iter().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(name) => Err(BadInput(format!(
            "--tolerance: \"{name}\" is not compared; write one of {}",
            known.join(", ")
        ))),
    }
}

impl Beside {
    pub(super) fn new(
        scenario: &Scenario,
        simulated: &[RunResult],
        emulated: &[Vec<Carried>],
        tolerances: &[Tolerance],
        live: bool,
    ) -> Self {
        let mut measures = Vec::new();
        for (i, flow) in scenario.flows.iter().enumerate() {
            let names = match &flow.app {
                AppConfig::Bulk(_) => FILE,
                AppConfig::Pages(_) => PAGES,
                _ => DATAGRAMS,
            };
            for name in names {
                let of_simulated = simulated.iter().map(|run| {
                    let scalars = run.flows[i].scalars();
                    let found = scalars.into_iter().find(|(known, _)| known == name);
                    found.map_or(f64::NAN, |(_, value)| value)
                });
                let of_emulated = emulated
                    .iter()
                    .map(|run| value(&run[i], name).unwrap_or(f64::NAN));
                measures.push(Measured::new(
                    &flow.name,
                    name,
                    [of_simulated.collect(), of_emulated.collect()],
                    tolerances,
                ));
            }
        }
        Self {
            schema: 1,
            scenario: scenario.name.clone(),
            runs: emulated.len(),
            seed: simulated.first().map_or(scenario.seed, |run| run.seed),
            duration_s: scenario.duration.as_secs_f64(),
            live,
            measures,
        }
    }

    /// The table.
    pub(super) fn text(&self) -> String {
        let heads = ["simulated", "emulated", "difference"].map(|head| (head, Align::Right));
        let words = ["flow", "measure"].map(|head| (head, Align::Left));
        let mut table = Table::new(words.into_iter().chain(heads));
        let mut last = "";
        for measured in &self.measures {
            let Some(metric) = metric(measured.measure) else {
                continue;
            };
            let flow = match measured.flow == last {
                true => "",
                false => &measured.flow,
            };
            last = &measured.flow;
            let shown = |estimate: &Option<Estimate>| {
                let value = estimate
                    .as_ref()
                    .map(|estimate| metric.show(estimate.into()));
                Cell::from(value.unwrap_or_else(|| "-".to_owned()))
            };
            let style = match measured.within {
                Some(false) => AnsiColor::Red.on_default(),
                _ => Style::new(),
            };
            table.row([
                Cell::from(flow),
                metric.words.into(),
                shown(&measured.simulated),
                shown(&measured.emulated),
                Cell::styled(measured.difference(metric), style),
            ]);
        }
        let plural = if self.runs == 1 { "" } else { "s" };
        let ends = match self.live {
            true => ", live nodes at both ends",
            false => "",
        };
        format!(
            "{}: {} run{plural} of {} s, seed {}{ends}\n\n{}",
            self.scenario,
            self.runs,
            self.duration_s,
            self.seed,
            table.render()
        )
    }

    /// The measures beyond their tolerance, in words.
    pub(super) fn beyond(&self) -> Vec<String> {
        let beyond = self.measures.iter().filter(|one| one.within == Some(false));
        let words = beyond.filter_map(|one| {
            let metric = metric(one.measure)?;
            Some(format!(
                "{}, {} ({})",
                one.flow,
                metric.words,
                one.difference(metric)
            ))
        });
        words.collect()
    }
}

impl Measured {
    fn new(
        flow: &str,
        measure: &'static str,
        [simulated, emulated]: [Vec<f64>; 2],
        tolerances: &[Tolerance],
    ) -> Self {
        let (simulated, emulated) = (Estimate::of(&simulated), Estimate::of(&emulated));
        let is_share = metric(measure).is_some_and(|metric| metric.unit == Unit::Ratio);
        let both = simulated.as_ref().zip(emulated.as_ref());
        let difference = both.map(|(simulated, emulated)| match is_share {
            true => emulated.mean - simulated.mean,
            // Nothing that came in neither world is no difference.
            false if simulated.mean == emulated.mean => 0.0,
            false => emulated.mean / simulated.mean - 1.0,
        });
        let fits = |one: &&Tolerance| one.measure.as_deref().is_none_or(|name| name == measure);
        let tolerance = tolerances.iter().rfind(fits).map(|one| one.part);
        let within = tolerance.map(|tolerance| match difference {
            Some(difference) => difference.abs() <= tolerance,
            // What one world alone could measure is no agreement.
            None => simulated.is_none() && emulated.is_none(),
        });
        Self {
            flow: flow.to_owned(),
            measure,
            simulated,
            emulated,
            difference_ratio: difference.filter(|difference| difference.is_finite()),
            tolerance_ratio: tolerance,
            within,
        }
    }

    fn difference(&self, metric: Metric) -> String {
        match (self.difference_ratio, metric.unit) {
            (None, _) => "-".to_owned(),
            (Some(points), Unit::Ratio) => format!("{:+.2} points", points * 100.0),
            (Some(part), _) => format!("{:+.1} %", part * 100.0),
        }
    }
}

/// A measure of what the kernel carried, as the simulator defines it.
fn value(carried: &Carried, measure: &str) -> Option<f64> {
    let seconds = |times: &[std::time::Duration], q: f64| {
        let mut sorted: Vec<u64> = times.iter().map(|time| time.as_nanos() as u64).collect();
        sorted.sort_unstable();
        (!sorted.is_empty()).then(|| quantile(&sorted, q) as f64 / 1e9)
    };
    match (carried, measure) {
        (Carried::File { bytes: 0, .. }, "throughput_bps") => Some(0.0),
        (Carried::File { bytes, took }, "throughput_bps") => {
            Some(*bytes as f64 * 8.0 / took.as_secs_f64())
        }
        (Carried::Pages(times), "page_time_mean_s") => {
            let sum: std::time::Duration = times.iter().sum();
            (!times.is_empty()).then(|| sum.as_secs_f64() / times.len() as f64)
        }
        (Carried::Pages(times), "page_time_p95_s") => seconds(times, 0.95),
        (Carried::Datagrams { sent, delays }, "loss_ratio") => {
            (*sent > 0).then(|| 1.0 - delays.len() as f64 / *sent as f64)
        }
        (Carried::Datagrams { delays, .. }, "delay_median_s") => seconds(delays, 0.5),
        (Carried::Datagrams { delays, .. }, "delay_p99_s") => seconds(delays, 0.99),
        _ => None,
    }
}
