//! The numbers of a figure.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Figure, FigureKind, FigureWidth, Labels, Panel};
use crate::axis::AxisValues;
use crate::claim::PrintedValue;
use crate::data::MeasuredData;
use crate::expression::Operand;
use crate::statistics::Jackknife;
use crate::unit::Unit;

/// The numbers of a figure.
#[derive(Clone, Debug, Serialize)]
pub struct FigureOutcome {
    /// How a number is drawn.
    pub kind: FigureKind,
    /// Its width on a page.
    pub width: FigureWidth,
    /// Whether the y axis is logarithmic.
    pub log: bool,
    /// The label of the x axis.
    pub x_label: String,
    /// The values on the x axis, in order.
    pub x: Vec<String>,
    /// The same values, as the study names them.
    pub x_ids: Vec<String>,
    /// The label of the legend.
    pub lines_label: String,
    /// The lines, or groups of bars.
    pub lines: Vec<LineOutcome>,
    /// How many panels stand side by side.
    pub columns: usize,
    /// The panels, row by row.
    pub panels: Vec<PanelOutcome>,
    /// Printed values of what it shows.
    pub marks: Vec<MarkOutcome>,
}

/// A printed value of a line at a place on the x axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MarkOutcome {
    /// Index of the panel.
    pub panel: usize,
    /// Index of the line.
    pub line: usize,
    /// Index of the place on the x axis.
    pub x: usize,
    /// The printed value, in the panel's unit.
    pub value: f64,
    /// Values between these agree with it.
    pub band: [f64; 2],
}

/// A line of a figure.
#[derive(Clone, Debug, Serialize)]
pub struct LineOutcome {
    /// Its name in the study.
    pub id: String,
    /// Its name as shown.
    pub label: String,
    /// A number that is equal for equal ids in all figures of a work, and different within a
    /// figure.
    pub slot: usize,
}

/// One drawing area.
#[derive(Clone, Debug, Serialize)]
pub struct PanelOutcome {
    /// Which part of the study it shows; empty if all of it.
    pub title: String,
    /// The expression that is drawn.
    pub y: String,
    /// The label of the y axis.
    pub y_label: String,
    /// Unit of the values: `bit/s`, `s`, `ratio`, or nothing for counts and quotients.
    pub unit: &'static str,
    /// By line, then by place on the x axis; `None` if it could not be measured.
    pub values: Vec<Vec<Option<ValueOutcome>>>,
}

/// A measured value.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ValueOutcome {
    /// The mean over the repetitions.
    pub value: f64,
    /// Half the width of its 95 % confidence interval (jackknife); `None` for a single repetition.
    pub ci95_half_width: Option<f64>,
}

impl Figure {
    /// Computes the numbers of the figure.
    pub(crate) fn outcome(
        &self,
        data: &MeasuredData,
        study: &str,
        labels: &Labels,
        slots: &BTreeMap<String, usize>,
        printed: &[PrintedValue],
    ) -> Result<FigureOutcome, String> {
        let label = |name: &String| labels.get(name).unwrap_or(name).clone();
        let panel = |panel: &Panel| {
            let first = panel.cells.iter().flatten().next();
            let read = first.map_or(Unit::None, |(of, _)| {
                Unit::of(&of.expression, &|quantity| {
                    data.metric_name(study, quantity).map(str::to_owned)
                })
            });
            let unit = self.unit.unwrap_or(read);
            let value = |(of, place): &(Operand, AxisValues)| {
                let known = Jackknife::of(data.runs, |sample| {
                    data.value(study, &of.expression, place, sample)
                })?;
                let half = (data.runs > 1).then(|| known.half_width(0.95));
                Ok(known.value.is_finite().then(|| ValueOutcome {
                    value: known.value,
                    ci95_half_width: half.filter(|half| half.is_finite()),
                }))
            };
            let row = |row: &Vec<_>| row.iter().map(value).collect::<Result<_, String>>();
            let title: Vec<String> = panel.at.iter().map(label).collect();
            Ok(PanelOutcome {
                title: title.join(", "),
                y: panel.y.clone(),
                y_label: label(&panel.y),
                unit: unit.base(),
                values: panel.cells.iter().map(row).collect::<Result<_, String>>()?,
            })
        };
        let lines = self.lines.1.iter().map(|line| LineOutcome {
            id: line.clone(),
            label: label(line),
            slot: slots.get(line).copied().unwrap_or(0),
        });
        Ok(FigureOutcome {
            kind: self.kind,
            width: self.width,
            log: self.log,
            x_label: label(&self.x.0),
            x: self.x.1.iter().map(label).collect(),
            x_ids: self.x.1.clone(),
            lines_label: label(&self.lines.0),
            lines: lines.collect(),
            columns: self.columns,
            panels: self
                .panels
                .iter()
                .map(panel)
                .collect::<Result<_, String>>()?,
            marks: self.marks(data, study, printed)?,
        })
    }

    fn marks(
        &self,
        data: &MeasuredData,
        study: &str,
        printed: &[PrintedValue],
    ) -> Result<Vec<MarkOutcome>, String> {
        let mut marks = vec![];
        for (panel, Panel { cells, .. }) in self.panels.iter().enumerate() {
            for (line, row) in cells.iter().enumerate() {
                for (x, (of, place)) in row.iter().enumerate() {
                    let shown = data.at(study, &of.expression, place)?;
                    for printed in printed.iter().filter(|printed| printed.of == shown) {
                        let mark = MarkOutcome {
                            panel,
                            line,
                            x,
                            value: printed.is,
                            band: printed.band,
                        };
                        // The ends of a gain at one place are one number.
                        if mark.value.is_finite() && !marks.contains(&mark) {
                            marks.push(mark);
                        }
                    }
                }
            }
        }
        Ok(marks)
    }
}
