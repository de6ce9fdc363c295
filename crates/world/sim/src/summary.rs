//! Statistics over the repetitions of one scenario.

use serde::{Serialize, Serializer};

use crate::estimate::Estimate;
use crate::result::{FlowService, RunResult, Scalar};
use crate::shares::together;

/// All repetitions of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The scenario's name.
    pub scenario: String,
    /// Equal for equal worlds.
    pub scenario_hash: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// Version of this crate.
    pub version: &'static str,
    /// Repetitions.
    pub runs: u64,
    /// Repetitions in which the flow named by `until` had finished.
    pub finished_runs: u64,
    /// Whether there are several and they differ only in their number: the scenario is not random.
    pub identical_runs: bool,
    /// In the order of the file.
    pub flows: Vec<FlowSummary>,
    /// In the order of the links' names, down before up.
    pub links: Vec<DirectionSummary>,
    /// Radio channels with contention, in the order of their names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub radios: Vec<RadioSummary>,
}

/// One radio channel over all repetitions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RadioSummary {
    /// The medium's name.
    pub name: String,
    /// Its metrics, in the order of [`RadioResult::scalars`](crate::RadioResult::scalars).
    pub metrics: Vec<MetricSummary>,
    /// In the order of their names.
    pub stations: Vec<StationSummary>,
}

/// One station of a radio channel over all repetitions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StationSummary {
    /// Its node.
    pub node: String,
    /// Its metrics, in the order of [`StationResult::scalars`](crate::StationResult::scalars).
    pub metrics: Vec<MetricSummary>,
}

/// The estimate of one metric.
fn estimate<'a>(metrics: &'a [MetricSummary], metric: &str) -> Option<&'a Estimate> {
    let found = metrics.iter().find(|m| m.metric == metric)?;
    found.estimate.as_ref()
}

impl RadioSummary {
    /// The estimate of one metric of the channel.
    pub fn get(&self, metric: &str) -> Option<&Estimate> {
        estimate(&self.metrics, metric)
    }
}

impl StationSummary {
    /// The estimate of one metric.
    pub fn get(&self, metric: &str) -> Option<&Estimate> {
        estimate(&self.metrics, metric)
    }
}

/// One direction of a link over all repetitions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectionSummary {
    /// The link's name.
    pub link: String,
    /// `down` or `up`.
    pub direction: &'static str,
    /// Its metrics, in the order of [`DirectionResult::scalars`](crate::DirectionResult::scalars).
    pub metrics: Vec<MetricSummary>,
}

impl DirectionSummary {
    /// The estimate of one metric.
    pub fn get(&self, metric: &str) -> Option<&Estimate> {
        estimate(&self.metrics, metric)
    }
}

/// One flow over all repetitions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowSummary {
    /// The flow's name.
    pub name: String,
    /// Kind of its application.
    pub app: &'static str,
    /// The services that carried its packets in all repetitions, link by link.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<FlowService>,
    /// Its metrics, in the order of [`FlowResult::scalars`](crate::FlowResult::scalars).
    pub metrics: Vec<MetricSummary>,
}

/// One metric over all repetitions in which it could be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricSummary {
    /// Name with unit.
    pub metric: &'static str,
    /// Repetitions.
    pub runs: u64,
    /// Mean, deviation and confidence interval; none, and an `n` of 0, if no repetition could measure it.
    pub estimate: Option<Estimate>,
}

impl Serialize for MetricSummary {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(untagged)]
        enum Of<'a> {
            Runs(&'a Estimate),
            NoRun { n: u64, runs: u64 },
        }
        #[derive(Serialize)]
        struct Shown<'a> {
            metric: &'static str,
            #[serde(flatten)]
            of: Of<'a>,
        }
        let of = match &self.estimate {
            Some(estimate) => Of::Runs(estimate),
            None => Of::NoRun {
                n: 0,
                runs: self.runs,
            },
        };
        let metric = self.metric;
        Shown { metric, of }.serialize(to)
    }
}

impl MetricSummary {
    /// From one value per repetition, NaN for those without a measurement.
    fn new(metric: &'static str, values: &[f64]) -> Self {
        Self {
            metric,
            runs: values.len() as u64,
            estimate: Estimate::of(values),
        }
    }
}

impl FlowSummary {
    /// The estimate of one metric.
    pub fn get(&self, metric: &str) -> Option<&Estimate> {
        estimate(&self.metrics, metric)
    }
}

impl Summary {
    /// One direction of a link, by name; `down` selects the direction.
    pub fn link(&self, name: &str, down: bool) -> Option<&DirectionSummary> {
        let direction = if down { "down" } else { "up" };
        let mut links = self.links.iter();
        links.find(|link| link.link == name && link.direction == direction)
    }

    /// One flow by name.
    pub fn flow(&self, name: &str) -> Option<&FlowSummary> {
        self.flows.iter().find(|f| f.name == name)
    }
}

/// Summarizes the repetitions of one scenario; none if there are none.
pub fn summary(runs: &[RunResult]) -> Option<Summary> {
    let first = runs.first()?;
    let flows = first
        .flows
        .iter()
        .enumerate()
        .map(|(index, flow)| FlowSummary {
            name: flow.name.clone(),
            app: flow.app,
            services: together(runs.iter().flat_map(|run| &run.flows[index].services)),
            metrics: metrics(runs, index)
                .into_iter()
                .map(|metric| {
                    let values: Vec<f64> = values(runs, index, metric).collect();
                    MetricSummary::new(metric, &values)
                })
                .collect(),
        })
        .collect();
    Some(Summary {
        scenario: first.scenario.clone(),
        scenario_hash: first.scenario_hash.clone(),
        seed: first.seed,
        version: first.version,
        runs: runs.len() as u64,
        finished_runs: runs.iter().filter(|r| r.finished).count() as u64,
        identical_runs: runs.len() > 1 && runs.iter().all(|run| is_same(run, first)),
        flows,
        links: (0..2 * first.links.len())
            .map(|index| direction_summary(runs, first, index))
            .collect(),
        radios: (0..first.radios.len())
            .map(|index| radio_summary(runs, first, index))
            .collect(),
    })
}

/// Summarizes metrics that every run has in the same order.
fn summaries<S: AsRef<[Scalar]>>(
    runs: &[RunResult],
    of: impl Fn(&RunResult) -> S,
) -> Vec<MetricSummary> {
    let all: Vec<_> = runs.iter().map(of).collect();
    let summary = |at: usize| {
        let values: Vec<f64> = all.iter().map(|run| run.as_ref()[at].1).collect();
        MetricSummary::new(all[0].as_ref()[at].0, &values)
    };
    (0..all[0].as_ref().len()).map(summary).collect()
}

fn radio_summary(runs: &[RunResult], first: &RunResult, index: usize) -> RadioSummary {
    let stations = first.radios[index].stations.iter().enumerate();
    RadioSummary {
        name: first.radios[index].name.clone(),
        metrics: summaries(runs, |run| run.radios[index].scalars()),
        stations: stations
            .map(|(at, station)| StationSummary {
                node: station.node.clone(),
                metrics: summaries(runs, |run| run.radios[index].stations[at].scalars()),
            })
            .collect(),
    }
}

/// Summarizes a direction by its index: down before up.
fn direction_summary(runs: &[RunResult], first: &RunResult, index: usize) -> DirectionSummary {
    let link = &first.links[index / 2];
    let (direction, _) = link.directions()[index % 2];
    DirectionSummary {
        link: link.name.clone(),
        direction,
        metrics: summaries(runs, |run| {
            run.links[index / 2].directions()[index % 2].1.scalars()
        }),
    }
}

/// One metric of one direction of a link, run by run.
pub(crate) fn direction_values<'a>(
    runs: &'a [RunResult],
    index: usize,
    metric: &'a str,
) -> impl Iterator<Item = f64> + 'a {
    runs.iter().map(move |run| {
        let (_, direction) = run.links[index / 2].directions()[index % 2];
        let found = direction.scalars().into_iter().find(|s| s.0 == metric);
        found.map_or(f64::NAN, |s| s.1)
    })
}

/// Whether two repetitions differ only in their number.
fn is_same(one: &RunResult, other: &RunResult) -> bool {
    let run = other.run;
    RunResult { run, ..one.clone() } == *other
}

/// Every metric that the application has or some repetition could measure, in the order of results.
pub(crate) fn metrics(runs: &[RunResult], flow: usize) -> Vec<&'static str> {
    let Some(first) = runs.first() else {
        return vec![];
    };
    let flows = || runs.iter().map(|run| &run.flows[flow]);
    let always = first.flows[flow].measures();
    let all = first.flows[flow].all().into_iter().enumerate();
    all.filter(|(at, (name, _))| {
        always.contains(name) || flows().any(|flow| flow.all()[*at].1.is_some())
    })
    .map(|(_, (name, _))| name)
    .collect()
}

/// One metric of one flow, run by run; NaN where it could not be measured.
pub(crate) fn values<'a>(
    runs: &'a [RunResult],
    flow: usize,
    metric: &'a str,
) -> impl Iterator<Item = f64> + 'a {
    runs.iter().map(move |run| {
        let mut all = run.flows[flow].all().into_iter();
        let found = all.find_map(|(name, value)| value.filter(|_| name == metric));
        found.unwrap_or(f64::NAN)
    })
}
