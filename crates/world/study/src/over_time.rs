//! What a study draws over the time of one run: windows, sequence numbers, goodput, round trips.
//!
//! Claims are about all repetitions, and curves of an example are of one: the first, under the
//! work's seed. [`record`] has what the curves are made of, [`outcome`] what a renderer needs beside
//! them.

pub(crate) mod outcome;
pub(crate) mod record;

use std::collections::BTreeMap;

use airlane_base::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::axis::{Axis, AxisValues};

/// The `over-time` table of a study.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct OverTimeFile {
    /// These are drawn, with a row of panels for each.
    y: Vec<Series>,
    /// Of these flows. Left out: `file`. With several, each is a line.
    #[serde(default = "file")]
    flows: Vec<String>,
    /// This axis gives the lines. Left out: the first one that is left, unless flows are the lines.
    lines: Option<String>,
    /// These values of axes that are not drawn are chosen; all others of these axes are left out.
    #[serde(default)]
    at: Vec<String>,
    /// It is drawn up to this time. Left out: to the end of the longest run.
    until: Option<Duration>,
    /// Goodput is counted in intervals of this length.
    #[serde(default = "tenth")]
    interval: Duration,
    /// A dashed line stands at a number that the work names, by what is drawn, in its unit.
    #[serde(default)]
    levels: BTreeMap<Series, f64>,
}

fn file() -> Vec<String> {
    vec!["file".to_owned()]
}

fn tenth() -> Duration {
    Duration::from_millis(100)
}

/// What is drawn over time.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Series {
    /// The congestion window of a TCP sender, in bytes of full segments.
    Window,
    /// How many bytes of the file have been sent, with marks for what is sent again and why.
    Sequence,
    /// New user bits at the receiver in each interval, per second.
    Goodput,
    /// User bits that had come before at the receiver in each interval, per second.
    Duplicates,
    /// The time from a packet to the acknowledgment that it causes, when that arrives.
    RoundTrip,
}

impl Series {
    const fn name(self) -> &'static str {
        match self {
            Self::Window => "window",
            Self::Sequence => "sequence",
            Self::Goodput => "goodput",
            Self::Duplicates => "duplicates",
            Self::RoundTrip => "round-trip",
        }
    }
}

/// What a study draws over the time of one run.
#[derive(Clone, Debug)]
pub(crate) struct OverTime {
    file: OverTimeFile,
    /// Name and values of the axis of the lines; the flows, if they are the lines.
    lines: (String, Vec<String>),
    /// Whether each flow is a line, rather than each scenario.
    by_flow: bool,
    /// Axes that the lines do not show, and their values from left to right.
    axes: Vec<String>,
    columns: Vec<AxisValues>,
}

impl OverTime {
    /// Reads the table of a study with these axes.
    pub(crate) fn new(file: OverTimeFile, axes: &[Axis]) -> Result<Self, String> {
        if file.y.is_empty() {
            return Err("over-time.y: it draws nothing; name a series, such as goodput".to_owned());
        }
        if file.flows.is_empty() {
            return Err("over-time.flows: no flow is named; leave it out for `file`".to_owned());
        }
        if file.interval == Duration::ZERO {
            return Err("over-time.interval: an interval of 0 holds nothing; 100 ms".to_owned());
        }
        if let Some(series) = file.levels.keys().find(|series| !file.y.contains(series)) {
            return Err(format!(
                "over-time.levels: {} is not among y",
                series.name()
            ));
        }
        let has = |value: &String| axes.iter().any(|axis| axis.values.contains(value));
        if let Some(value) = file.at.iter().find(|value| !has(value)) {
            return Err(format!("over-time.at: no axis has the value \"{value}\""));
        }
        let mut open: Vec<&Axis> = axes.iter().collect();
        open.retain(|axis| !axis.values.iter().any(|value| file.at.contains(value)));
        if open.len() + file.at.len() != axes.len() {
            return Err("over-time.at: at most one value of an axis".to_owned());
        }
        let several = file.flows.len() > 1;
        if several && file.lines.is_some() {
            return Err("over-time.lines: several flows are the lines already".to_owned());
        }
        let place = match &file.lines {
            None => (!several && !open.is_empty()).then_some(0),
            Some(name) => {
                let place = open.iter().position(|axis| axis.name == *name);
                Some(place.ok_or_else(|| {
                    let known: Vec<&str> = open.iter().map(|axis| axis.name.as_str()).collect();
                    let known = known.join(", ");
                    format!("over-time.lines: no axis \"{name}\" is left; there are: {known}")
                })?)
            }
        };
        let axis = place.map(|place| open.remove(place));
        let by_flow = axis.is_none();
        let lines = match axis {
            Some(axis) => (axis.name.clone(), axis.values.clone()),
            None => ("flow".to_owned(), file.flows.clone()),
        };
        let axes = open.iter().map(|axis| axis.name.clone()).collect();
        let mut columns: Vec<AxisValues> = vec![vec![]];
        for axis in open {
            let with = |place: &AxisValues| {
                let place = place.clone();
                axis.values
                    .iter()
                    .map(move |value| [place.as_slice(), std::slice::from_ref(value)].concat())
                    .collect::<Vec<_>>()
            };
            columns = columns.iter().flat_map(with).collect();
        }
        Ok(Self {
            file,
            lines,
            by_flow,
            axes,
            columns,
        })
    }

    /// The flows that are drawn.
    pub(crate) fn flows(&self) -> &[String] {
        &self.file.flows
    }

    /// The column of the point at `values`, and the line that it is; no line if its flows are the
    /// lines. `None` if it is not drawn.
    fn place(&self, values: &[String]) -> Option<(usize, Option<&str>)> {
        let is_there = |wanted: &AxisValues| wanted.iter().all(|value| values.contains(value));
        if !is_there(&self.file.at) {
            return None;
        }
        let column = self.columns.iter().position(is_there)?;
        let line = match self.by_flow {
            true => None,
            false => Some(
                self.lines
                    .1
                    .iter()
                    .find(|line| values.contains(line))?
                    .as_str(),
            ),
        };
        Some((column, line))
    }
}
