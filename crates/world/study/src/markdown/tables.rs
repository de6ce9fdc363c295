//! Works without claims: their measured values, a table for each figure.

use std::fmt::Write as _;

use crate::figure::outcome::{FigureOutcome, PanelOutcome};
use crate::outcome::WorkOutcome;
use crate::unit::{Unit, digits};
use crate::work::Work;

pub(super) fn page(work: &Work, base: &WorkOutcome) -> String {
    let mut out = String::from("# Measured\n\n");
    let _ = writeln!(
        out,
        "## {}\n\n{}. Means of {} repetitions, seed {}.\n",
        work.id, work.title, base.runs, base.seed
    );
    for study in &base.studies {
        if let Some(figure) = &study.figure {
            let _ = writeln!(out, "{}:\n", study.title);
            table(&mut out, figure);
        }
    }
    out
}

/// A table with the figure's lines as rows, and a column for each value of x in each panel.
fn table(out: &mut String, figure: &FigureOutcome) {
    let mut head = format!("| {} |", figure.lines_label);
    let mut rule = "|---|".to_owned();
    let shown: Vec<(Unit, f64)> = figure.panels.iter().map(unit).collect();
    for (panel, (unit, _)) in figure.panels.iter().zip(&shown) {
        let mut what = panel.y_label.clone();
        for more in [panel.title.as_str(), unit.column().0] {
            if !more.is_empty() {
                what = format!("{what}, {more}");
            }
        }
        for (i, place) in figure.x.iter().enumerate() {
            let _ = match i {
                0 => write!(head, " {what}: {place} |"),
                _ => write!(head, " {place} |"),
            };
            rule += "---|";
        }
    }
    let _ = writeln!(out, "{head}\n{rule}");
    for (i, line) in figure.lines.iter().enumerate() {
        let _ = write!(out, "| {} |", line.label);
        for (panel, (_, factor)) in figure.panels.iter().zip(&shown) {
            for value in panel.values.get(i).into_iter().flatten() {
                let text = value.map_or_else(|| "-".to_owned(), |v| digits(v.value * factor));
                let _ = write!(out, " {text} |");
            }
        }
        out.push('\n');
    }
    out.push('\n');
}

fn unit(panel: &PanelOutcome) -> (Unit, f64) {
    let unit = Unit::of_base(panel.unit).unwrap_or(Unit::None);
    (unit, unit.column().1)
}
