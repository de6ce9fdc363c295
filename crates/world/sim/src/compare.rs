//! Compares several scenarios, run by run.
//!
//! Repetition `k` of every scenario has the same seed and meets the same errors, so the difference between scenarios
//! is due to the scheme, and is known more precisely than either value.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::error::ScenarioError;
use crate::estimate::Estimate;
use crate::result::RunResult;
use crate::scenario::{FlowConfig, Scenario};
use crate::summary::{Summary, direction_values, metrics, summary, values};

/// Scenarios compared with the first of them, the baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Each scenario by itself; the baseline first.
    pub scenarios: Vec<Summary>,
    /// For each flow and metric, a row for each scenario.
    pub metrics: Vec<MetricComparison>,
    /// Likewise for each direction of the baseline's links; links are matched by name.
    pub links: Vec<LinkComparison>,
}

/// One metric of one direction of a link in all scenarios.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkComparison {
    /// The link's name.
    pub link: String,
    /// `down` or `up`.
    pub direction: &'static str,
    /// Name with unit.
    pub metric: &'static str,
    /// In the order of the scenarios.
    pub rows: Vec<Row>,
}

/// A flow that only one of two scenarios has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpaired {
    /// The flow's name.
    pub flow: String,
    /// Place of the scenario that has it.
    pub here: usize,
    /// Place of the one that lacks it; one of the two is the baseline.
    pub missing: usize,
}

/// Checks, before any run, that scenarios can be compared flow by flow. Returns the flows that cannot be paired:
/// those that the baseline lacks are left out; those that another scenario lacks have no value there.
///
/// # Errors
/// If a scenario has no flow in common with the baseline, or a flow of another kind under the same name.
pub fn comparable(scenarios: &[Scenario]) -> Result<Vec<Unpaired>, ScenarioError> {
    let mut unpaired = vec![];
    let Some(baseline) = scenarios.first() else {
        return Ok(unpaired);
    };
    let known = flows_by_name(baseline);
    for (place, other) in scenarios.iter().enumerate().skip(1) {
        let others = flows_by_name(other);
        let refuse = |reason: String| ScenarioError::Incomparable {
            left: baseline.name.clone(),
            right: other.name.clone(),
            reason,
        };
        let mut common = 0;
        for flow in &baseline.flows {
            let Some(same) = others.get(flow.name.as_str()) else {
                unpaired.push(Unpaired {
                    flow: flow.name.clone(),
                    here: 0,
                    missing: place,
                });
                continue;
            };
            common += 1;
            let (left, right) = (flow.app.kind(), same.app.kind());
            if left != right {
                return Err(refuse(format!(
                    "the flow \"{}\" is {left} in one and {right} in the other",
                    flow.name
                )));
            }
        }
        if common == 0 {
            let names = |scenario: &Scenario| {
                let names = scenario.flows.iter().map(|flow| flow.name.as_str());
                names.collect::<Vec<_>>().join(", ")
            };
            return Err(refuse(format!(
                "they have no flow in common, which are matched by their names: {} and {}",
                names(baseline),
                names(other)
            )));
        }
        let lacking = other
            .flows
            .iter()
            .filter(|flow| !known.contains_key(flow.name.as_str()));
        unpaired.extend(lacking.map(|flow| Unpaired {
            flow: flow.name.clone(),
            here: place,
            missing: 0,
        }));
    }
    Ok(unpaired)
}

fn flows_by_name(scenario: &Scenario) -> BTreeMap<&str, &FlowConfig> {
    let flows = scenario.flows.iter();
    flows.map(|flow| (flow.name.as_str(), flow)).collect()
}

/// One metric of one flow in all scenarios.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricComparison {
    /// The flow's name.
    pub flow: String,
    /// Name with unit.
    pub metric: &'static str,
    /// In the order of the scenarios.
    pub rows: Vec<Row>,
}

/// One metric of one flow in one scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Over all repetitions; none if no repetition could measure it.
    pub value: Option<Estimate>,
    /// Value / baseline, run by run, where both were measured and the baseline is not zero.
    /// None for the baseline itself.
    pub ratio: Option<Estimate>,
    /// Value - baseline, run by run. None for the baseline itself.
    pub difference: Option<Estimate>,
}

/// Compares results of [`repeat_all`](crate::repeat_all); the first scenario is the baseline. Flows are matched by
/// name. A flow that the baseline lacks is left out; [`comparable`] reports which.
///
/// # Errors
/// If the scenarios do not have the same repetitions.
pub fn compare(all: &[Vec<RunResult>]) -> Result<Comparison, ScenarioError> {
    let Some(baseline) = all.first() else {
        return Ok(Comparison {
            scenarios: vec![],
            metrics: vec![],
            links: vec![],
        });
    };
    for other in all {
        check_paired(baseline, other)?;
    }
    let flows = baseline.first().map_or(&[][..], |run| &run.flows);
    let mut compared = vec![];
    let flows_of = all
        .iter()
        .map(|runs| runs.first().map_or(&[][..], |run| &run.flows));
    let flows_of = flows_of.map(|flows| places(flows, |flow| &flow.name));
    let flows_of: Vec<BTreeMap<&str, usize>> = flows_of.collect();
    for flow in flows {
        let find = |named: &BTreeMap<&str, usize>| named.get(flow.name.as_str()).copied();
        let places: Vec<Option<usize>> = flows_of.iter().map(find).collect();
        let measured = all.iter().zip(&places);
        let measured: BTreeSet<&'static str> = measured
            .flat_map(|(runs, place)| place.map_or(vec![], |place| metrics(runs, place)))
            .collect();
        let names = flow.all().map(|(name, _)| name).into_iter();
        let names = names.filter(|name| measured.contains(name));
        for metric in names {
            let column = |index: usize| -> Vec<f64> {
                match places[index] {
                    Some(place) => values(&all[index], place, metric).collect(),
                    None => vec![],
                }
            };
            let rows = rows(all.len(), column);
            compared.push(MetricComparison {
                flow: flow.name.clone(),
                metric,
                rows,
            });
        }
    }
    Ok(Comparison {
        scenarios: all.iter().filter_map(|runs| summary(runs)).collect(),
        metrics: compared,
        links: compare_links(all, baseline),
    })
}

fn compare_links(all: &[Vec<RunResult>], baseline: &[RunResult]) -> Vec<LinkComparison> {
    let links = baseline.first().map_or(&[][..], |run| &run.links);
    let mut compared = vec![];
    let links_of = all
        .iter()
        .map(|runs| runs.first().map_or(&[][..], |run| &run.links));
    let links_of = links_of.map(|links| places(links, |link| &link.name));
    let links_of: Vec<BTreeMap<&str, usize>> = links_of.collect();
    for link in links {
        let find = |named: &BTreeMap<&str, usize>| named.get(link.name.as_str()).copied();
        let places: Vec<Option<usize>> = links_of.iter().map(find).collect();
        for (at, (direction, known)) in link.directions().into_iter().enumerate() {
            for (metric, _) in known.scalars() {
                let column = |index: usize| match places[index] {
                    Some(place) => direction_values(&all[index], 2 * place + at, metric).collect(),
                    None => vec![],
                };
                compared.push(LinkComparison {
                    link: link.name.clone(),
                    direction,
                    metric,
                    rows: rows(all.len(), column),
                });
            }
        }
    }
    compared
}

/// Index of each, by name.
fn places<'a, T>(all: &'a [T], name: impl Fn(&'a T) -> &'a str) -> BTreeMap<&'a str, usize> {
    let names = all.iter().map(name);
    names
        .enumerate()
        .map(|(place, name)| (name, place))
        .collect()
}

/// A row for each scenario, from the values of each of its runs.
fn rows(scenarios: usize, column: impl Fn(usize) -> Vec<f64>) -> Vec<Row> {
    let base = column(0);
    (0..scenarios)
        .map(|index| Row::of(&column(index), (index > 0).then_some(base.as_slice())))
        .collect()
}

impl Row {
    /// Values run by run; NaN where none was measured.
    pub fn of(column: &[f64], base: Option<&[f64]>) -> Self {
        let of = |f: &dyn Fn(f64, f64) -> f64| {
            let pairs = column.iter().zip(base?);
            Estimate::of(&pairs.map(|(x, b)| f(*x, *b)).collect::<Vec<_>>())
        };
        Self {
            value: Estimate::of(column),
            // A ratio to zero is undefined.
            ratio: of(&|x, b| if b == 0.0 { f64::NAN } else { x / b }),
            difference: of(&|x, b| x - b),
        }
    }
}

fn check_paired(a: &[RunResult], b: &[RunResult]) -> Result<(), ScenarioError> {
    let key =
        |runs: &[RunResult]| -> Vec<(u64, u64)> { runs.iter().map(|r| (r.seed, r.run)).collect() };
    if key(a) == key(b) {
        return Ok(());
    }
    let name = |runs: &[RunResult]| runs.first().map_or("", |r| &r.scenario).to_owned();
    Err(ScenarioError::Incomparable {
        left: name(a),
        right: name(b),
        reason: "their repetitions have different seeds".to_owned(),
    })
}
