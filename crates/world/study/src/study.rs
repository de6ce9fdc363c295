//! A study: one figure or table of a work, with the worlds that it runs, the metrics that it reads
//! from them, and the published claims.
//!
//! Scenarios are composed, not repeated: the parts are merged in their order (tables key by key,
//! lists of named tables by name, everything else replaced), then the assignments of parts, study
//! and axis values are applied in the same order, then those of the command line.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use airlane_base::config::Validate;
use airlane_sim::Scenario;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use toml::{Table, Value};

use crate::axis::Axis;
use crate::claim::Claim;
use crate::curve::Metric;
use crate::error::StudyError;
use crate::figure::{Figure, FigureFile, Labels};
use crate::over_time::{OverTime, OverTimeFile};
use crate::pattern::Assignment;
use crate::verdict::print::Print;

/// A piece of a scenario.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// This piece of a scenario is merged into that of the study.
    #[serde(default)]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub scenario: Table,
    /// These assignments are made after all merging.
    #[serde(default)]
    pub set: Vec<String>,
    /// Studies may use these axes: each has values, and each value its assignments.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, BTreeMap<String, Vec<String>>>")]
    pub axes: BTreeMap<String, Table>,
    /// What people call axes, values and metrics.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// The file of a study.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyFile {
    /// What the figure or table shows.
    #[schemars(example = &"Throughput over the link")]
    title: String,
    /// Its scenario is put together from these parts of the work, by the names of their files.
    #[serde(default)]
    parts: Vec<String>,
    /// This piece of a scenario is merged over the parts. Left out with all parts: nothing runs, and
    /// claims read other studies.
    #[serde(default)]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    scenario: Table,
    /// These assignments, such as `links.radio*.frame=50 B`, are made after all merging.
    #[serde(default)]
    pub(crate) set: Vec<String>,
    /// What differs between its scenarios: a list of values of an axis that a part defines, or an axis
    /// of its own with assignments for each value.
    #[serde(default)]
    #[schemars(schema_with = "axes_schema")]
    axes: Table,
    /// Claims and figures read these metrics: each has a name here and one in results. `FLOW.good_bps until EXPRESSION`
    /// is what a flow with `progress.curve` had carried by a time that each repetition decides.
    #[serde(default)]
    metrics: BTreeMap<String, String>,
    /// What was published, and how it is judged.
    #[serde(default)]
    pub(crate) claims: Vec<Claim>,
    /// Its results are printed as `numbers` or as `curves`. Left out: as its work's.
    pub(crate) print: Option<Print>,
    /// Of how many runs its printed numbers are. Left out: as its work's.
    #[serde(rename = "of-runs")]
    pub(crate) of_runs: Option<NonZeroU32>,
    /// What people call axes, values and metrics.
    #[serde(default)]
    labels: Labels,
    /// How it is drawn.
    #[serde(default)]
    figure: FigureFile,
    /// What is drawn over the time of one run, the first repetition of its scenarios.
    #[serde(rename = "over-time")]
    over_time: Option<OverTimeFile>,
}

impl Validate for Part {}

impl Validate for StudyFile {}

fn axes_schema(generator: &mut SchemaGenerator) -> Schema {
    let values = generator.subschema_for::<Vec<String>>();
    let own = generator.subschema_for::<BTreeMap<String, Vec<String>>>();
    json_schema!({ "type": "object", "additionalProperties": { "anyOf": [values, own] } })
}

/// One figure or table.
#[derive(Clone, Debug)]
pub struct Study {
    /// Unique in its work, such as `F4.2`.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// The axes on which its scenarios differ; the first one gives the lines of the figure.
    pub axes: Vec<Axis>,
    /// Name in claims, name in results.
    pub metrics: BTreeMap<String, String>,
    /// The same metrics, parsed.
    pub(crate) read: BTreeMap<String, Metric>,
    /// The published claims.
    pub claims: Vec<Claim>,
    /// How it is drawn; `None` if it runs nothing.
    pub(crate) figure: Option<Figure>,
    /// What is drawn over the time of one run.
    pub(crate) over_time: Option<OverTime>,
    /// Names for people.
    pub(crate) labels: Labels,
    scenario: Table,
    set: Vec<Assignment>,
}

/// One scenario of a study.
#[derive(Clone, Debug)]
pub struct Point {
    /// One value for each axis, by index.
    pub at: Vec<usize>,
    /// The scenario.
    pub scenario: Scenario,
}

impl Study {
    pub(crate) fn new(
        id: &str,
        file: StudyFile,
        parts: &BTreeMap<String, Part>,
        labels: &Labels,
    ) -> Result<Self, String> {
        let mut labels = labels.clone();
        let mut scenario = Table::new();
        let mut set = vec![];
        let mut known: BTreeMap<&str, &Table> = BTreeMap::new();
        for name in &file.parts {
            let part = parts.get(name).ok_or_else(|| {
                let names: Vec<&str> = parts.keys().map(String::as_str).collect();
                format!(
                    "there is no part \"{name}\"; there are: {}",
                    names.join(", ")
                )
            })?;
            merge(&mut scenario, &part.scenario);
            set.extend(part.set.iter().cloned());
            labels.extend(part.labels.clone());
            known.extend(
                part.axes
                    .iter()
                    .map(|(name, values)| (name.as_str(), values)),
            );
        }
        merge(&mut scenario, &file.scenario);
        set.extend(file.set);
        let mut axes = vec![];
        for (name, choice) in &file.axes {
            axes.push(Axis::new(name, choice, known.get(name.as_str()).copied())?);
        }
        let mut names: Vec<&String> = axes.iter().flat_map(|axis: &Axis| &axis.values).collect();
        names.sort();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("two axis values are called \"{}\"", twice[0]));
        }
        labels.extend(file.labels);
        let read = file.metrics.iter();
        let read = read.map(|(name, text)| Ok((name.clone(), Metric::parse(text)?)));
        let read = read.collect::<Result<_, String>>()?;
        let figure = Figure::new(file.figure, &axes, &file.metrics)?;
        let over_time = file.over_time.map(|file| OverTime::new(file, &axes));
        Ok(Self {
            id: id.to_owned(),
            title: file.title,
            axes,
            metrics: file.metrics,
            read,
            claims: file.claims,
            figure: figure.filter(|_| !scenario.is_empty()),
            over_time: over_time.transpose()?,
            labels,
            scenario,
            set: Assignment::parse_all(&set).map_err(|e| e.to_string())?,
        })
    }

    /// The scenarios of this study, the last axis fastest, with `extra` assignments applied.
    /// `reached` counts, for each assignment, the places that it has changed.
    ///
    /// # Errors
    /// If a composition is not a valid scenario.
    pub fn points(
        &self,
        work: &str,
        extra: &[Assignment],
        reached: &mut BTreeMap<String, usize>,
    ) -> Result<Vec<Point>, StudyError> {
        if self.scenario.is_empty() {
            return Ok(vec![]);
        }
        let count = self.axes.iter().map(|axis| axis.values.len()).product();
        (0..count)
            .map(|index| self.compose(work, self.place(index), extra, reached))
            .collect()
    }

    /// The scenario of the point with these indices on the axes; otherwise like
    /// [`points`](Self::points).
    pub(crate) fn compose(
        &self,
        work: &str,
        at: Vec<usize>,
        extra: &[Assignment],
        reached: &mut BTreeMap<String, usize>,
    ) -> Result<Point, StudyError> {
        let mut table = self.scenario.clone();
        table.insert("name".into(), Value::String(work.to_owned()));
        let chosen = self
            .axes
            .iter()
            .zip(&at)
            .flat_map(|(axis, value)| &axis.set[*value]);
        for assignment in self.set.iter().chain(chosen).chain(extra) {
            let count = assignment.apply(&mut table);
            *reached.entry(assignment.text().to_owned()).or_default() += count;
        }
        let point = self.label(&at);
        let refuse = |problem: String| StudyError::Scenario {
            study: self.id.clone(),
            point: point.clone(),
            problem,
        };
        let text = toml::to_string(&table).map_err(|e| refuse(e.to_string()))?;
        let file = format!("{} [{point}]", self.id);
        let scenario = Scenario::from_toml(&text, &file)?;
        Ok(Point { at, scenario })
    }

    /// Studies whose results its metrics read.
    pub(crate) fn reads(&self) -> impl Iterator<Item = &str> {
        let times = self.read.values().filter_map(|metric| match metric {
            Metric::Until { time, .. } => Some(time.expression.quantities()),
            Metric::Plain(_) => None,
        });
        let quantities = times.flatten();
        quantities.filter_map(|(quantity, _)| quantity.study.as_deref())
    }

    /// The name of what it draws over time: its own unless its figure has that.
    pub(crate) fn over_time_name(&self) -> String {
        match self.figure {
            Some(_) => format!("{}-time", self.id),
            None => self.id.clone(),
        }
    }

    /// Whether it runs anything; some studies only read what other studies of their work ran.
    pub(crate) fn runs_something(&self) -> bool {
        !self.scenario.is_empty()
    }

    /// Indices on the axes of point `index`.
    fn place(&self, mut index: usize) -> Vec<usize> {
        let mut at: Vec<usize> = self
            .axes
            .iter()
            .rev()
            .map(|axis| {
                let value = index % axis.values.len();
                index /= axis.values.len();
                value
            })
            .collect();
        at.reverse();
        at
    }

    /// Values on the axes of point `index`, by name.
    pub fn values(&self, index: usize) -> Vec<String> {
        let at = self.place(index);
        self.axes
            .iter()
            .zip(at)
            .map(|(axis, value)| axis.values[value].clone())
            .collect()
    }

    /// The point with these indices on the axes.
    pub fn index(&self, at: &[usize]) -> usize {
        let axes = self.axes.iter().zip(at);
        axes.fold(0, |index, (axis, value)| index * axis.values.len() + value)
    }

    /// The values in words: `rlp, L1`.
    pub fn label(&self, at: &[usize]) -> String {
        let values = self
            .axes
            .iter()
            .zip(at)
            .map(|(axis, v)| axis.values[*v].as_str());
        values.collect::<Vec<_>>().join(", ")
    }
}

/// Merges tables key by key and lists of named tables by name, and replaces everything else.
fn merge(into: &mut Table, from: &Table) {
    for (key, new) in from {
        match (into.get_mut(key), new) {
            (Some(Value::Table(old)), Value::Table(new)) => merge(old, new),
            (Some(Value::Array(old)), Value::Array(new))
                if new.iter().all(|v| name(v).is_some()) =>
            {
                for item in new {
                    let place = old
                        .iter_mut()
                        .find(|o| name(o).is_some() && name(o) == name(item));
                    match (place, item) {
                        (Some(Value::Table(old)), Value::Table(new)) => merge(old, new),
                        _ => old.push(item.clone()),
                    }
                }
            }
            _ => {
                into.insert(key.clone(), new.clone());
            }
        }
    }
}

fn name(value: &Value) -> Option<&str> {
    value.get("name").and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_merge_tables_by_key_and_lists_by_name() {
        let mut into: Table = toml::from_str(
            "a = 1\nlist = [1]\nflows = [{ name = \"x\", p = 1, q = 1 }]\n[t]\nu = 1\n",
        )
        .unwrap();
        let from: Table = toml::from_str(
            "a = 2\nlist = [2, 3]\nflows = [{ name = \"y\" }, { name = \"x\", p = 2 }]\n[t]\nv = 1\n",
        )
        .unwrap();
        merge(&mut into, &from);
        let expected: Table = toml::from_str(
            "a = 2\nlist = [2, 3]\nflows = [{ name = \"x\", p = 2, q = 1 }, { name = \"y\" }]\n\
             [t]\nu = 1\nv = 1\n",
        )
        .unwrap();
        assert_eq!(into, expected);
    }
}
