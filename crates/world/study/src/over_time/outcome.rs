//! What a renderer needs beside the file of curves.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{OverTime, Series};
use crate::figure::Labels;
use crate::figure::outcome::LineOutcome;
use crate::unit::Unit;

/// The curves of one run.
#[derive(Clone, Debug, Serialize)]
pub struct OverTimeOutcome {
    /// The name of its picture and, with `.csv`, of the file of its curves beside `outcome.json`.
    pub name: String,
    /// The seed of the run, which is the first repetition.
    pub seed: u64,
    /// Where the time axis ends; `None` for the end of the curves.
    pub until_s: Option<f64>,
    /// The label of the legend.
    pub lines_label: String,
    /// The curves of each panel.
    pub lines: Vec<LineOutcome>,
    /// How many panels stand side by side.
    pub columns: usize,
    /// The panels, row by row.
    pub panels: Vec<OverTimePanel>,
}

/// One drawing area.
#[derive(Clone, Debug, Serialize)]
pub struct OverTimePanel {
    /// Which part of the study it shows; empty if all of it.
    pub title: String,
    /// The column `at` of its rows in the file.
    pub at: String,
    /// The label of the y axis.
    pub y_label: &'static str,
    /// Unit of the values: `B`, `bit/s` or `s`.
    pub unit: &'static str,
    /// The quantities of the file that it shows: the curve, then marks.
    pub quantities: &'static [&'static str],
    /// Where a dashed line stands.
    pub level: Option<f64>,
}

impl Series {
    const fn label(self) -> &'static str {
        match self {
            Self::Window => "congestion window",
            Self::Sequence => "sent of the file",
            Self::Goodput => "goodput",
            Self::Duplicates => "came twice",
            Self::RoundTrip => "round trip",
        }
    }

    const fn unit(self) -> &'static str {
        match self {
            Self::Window | Self::Sequence => "B",
            Self::Goodput | Self::Duplicates => Unit::BitRate.base(),
            Self::RoundTrip => Unit::Seconds.base(),
        }
    }
}

impl OverTime {
    pub(crate) fn outcome(
        &self,
        name: String,
        seed: u64,
        labels: &Labels,
        slots: &BTreeMap<String, usize>,
    ) -> OverTimeOutcome {
        let label = |name: &String| labels.get(name).unwrap_or(name).clone();
        let known = self.lines.1.iter().filter_map(|line| slots.get(line));
        let mut free = (0..).filter(|slot| !known.clone().any(|known| known == slot));
        let lines = self.lines.1.iter().map(|line| {
            let slot = slots.get(line).copied();
            LineOutcome {
                id: line.clone(),
                label: label(line),
                slot: slot.or_else(|| free.next()).unwrap_or(0),
            }
        });
        let lines = lines.collect();
        let named = |axis: &String, value: &String| format!("{}: {}", label(axis), label(value));
        let panel = |series: &Series, column: &Vec<String>| OverTimePanel {
            title: (self.axes.iter().zip(column))
                .map(|(axis, value)| named(axis, value))
                .collect::<Vec<_>>()
                .join("; "),
            at: column.join(" "),
            y_label: series.label(),
            unit: series.unit(),
            quantities: series.quantities(),
            level: self.file.levels.get(series).copied(),
        };
        let panels = self.file.y.iter().flat_map(|series| {
            let columns = self.columns.iter();
            columns.map(move |column| panel(series, column))
        });
        OverTimeOutcome {
            name,
            seed,
            until_s: self.file.until.map(|until| until.as_secs_f64()),
            lines_label: label(&self.lines.0),
            lines,
            columns: self.columns.len(),
            panels: panels.collect(),
        }
    }
}
