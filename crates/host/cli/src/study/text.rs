//! Studies and their results as text.

use std::collections::BTreeMap;

use airlane_study::{Comparison, OfWork, Report, Study, StudyOutcome, Unit, Verdict, Work};
use anstyle::{AnsiColor, Style};

use crate::table::{Align, Cell, Table};

pub(super) fn study_text(work: &Work, study: &Study) -> String {
    let mut text = format!("{}/{}: {}\n\n", work.id, study.id, study.title);
    for axis in &study.axes {
        text += &format!("  {}: {}\n", axis.name, axis.values.join(", "));
    }
    for (name, metric) in &study.metrics {
        text += &format!("  {name} is {metric}\n");
    }
    for claim in &study.claims {
        let apart = match &claim.class {
            Some(class) => format!(
                " ({}: {})",
                class.word(),
                claim.reason.as_deref().unwrap_or("")
            ),
            None => String::new(),
        };
        text += &format!("\n  {}{apart}\n    {}\n", claim.id, claim.published);
        for check in claim.checks() {
            text += &format!("    {check}\n");
        }
    }
    text + "\n"
}

const GOOD: Style = AnsiColor::Green.on_default();
const FAIR: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default();

pub(super) const fn verdict_style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Holds => GOOD,
        Verdict::Consistent | Verdict::SourceInconsistent => Style::new(),
        Verdict::Near => FAIR,
        Verdict::Misses => BAD,
    }
}

pub(super) fn verdict_cell(verdict: Option<Verdict>) -> Cell {
    verdict.map_or(Cell::from("-"), |verdict| {
        Cell::styled(verdict.word(), verdict_style(verdict))
    })
}

/// Number of reasons printed for one claim.
const REASONS: usize = 4;

fn reasons(table: &mut Table, why: &[String]) {
    let (listed, more) = why.split_at(why.len().min(REASONS));
    for why in listed {
        table.row(["", "", &format!("why:       {why}")]);
    }
    if !more.is_empty() {
        let more = format!("why:       and {} more, in --json", more.len());
        table.row(["", "", &more]);
    }
}

/// The checks of a claim by scheme and level: the measured value, the published one, and the
/// outcome. Checks that agree everywhere are left out.
fn comparisons(all: &[Comparison]) -> String {
    let place = |c: &Comparison| {
        let (column, row) =
            c.at.split_last()
                .map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
        (
            column.to_owned(),
            format!("{} {}", c.check, row.join(" "))
                .trim_end()
                .to_owned(),
        )
    };
    let mut columns: Vec<String> = vec![];
    let mut rows: Vec<(String, Vec<&Comparison>)> = vec![];
    for comparison in all {
        let (column, row) = place(comparison);
        if !columns.contains(&column) {
            columns.push(column);
        }
        match rows.iter_mut().find(|(known, _)| *known == row) {
            Some((_, found)) => found.push(comparison),
            None => rows.push((row, vec![comparison])),
        }
    }
    rows.retain(|(_, found)| found.iter().any(|c| c.verdict != Verdict::Holds));
    let heads = columns.iter().map(|column| (column.as_str(), Align::Right));
    let mut table = Table::new(std::iter::once(("", Align::Left)).chain(heads));
    for (row, found) in rows {
        let cells = columns.iter().map(|column| {
            let here = found.iter().find(|c| place(c).0 == *column);
            here.map_or(Cell::from(""), |c| comparison_cell(c))
        });
        table.row(std::iter::once(Cell::from(row)).chain(cells));
    }
    table.render()
}

fn comparison_cell(c: &Comparison) -> Cell {
    let sign = match c.verdict {
        Verdict::Holds => "yes",
        Verdict::Consistent | Verdict::SourceInconsistent => "tie",
        Verdict::Near => "near",
        Verdict::Misses => "no",
    };
    let [measured, against] = [c.measured, c.against].map(three_digits);
    let text = format!("{measured} : {against} {sign}");
    Cell::styled(text, verdict_style(c.verdict))
}

fn three_digits(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let size = value.abs();
    let (factor, letter) = match size {
        1e6.. => (1e-6, "M"),
        1e4.. => (1e-3, "k"),
        _ => (1.0, ""),
    };
    let digits = match size * factor {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 4,
    };
    format!("{:.digits$}{letter}", value * factor)
}

/// What the names in a study's checks mean: its metrics, and the axes whose values are in brackets.
fn meanings(
    checks: &[String],
    metrics: &BTreeMap<String, String>,
    axes: &[(String, Vec<String>)],
) -> Vec<String> {
    let of_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let words: Vec<&str> = checks
        .iter()
        .flat_map(|check| check.split(|c| !of_name(c)))
        .collect();
    let named = metrics
        .iter()
        .filter(|(name, _)| words.contains(&name.as_str()));
    let mut meanings: Vec<String> = named
        .map(|(name, metric)| format!("{name} is {metric}"))
        .collect();
    if !meanings.is_empty() && checks.iter().any(|check| check.contains('[')) {
        let axes: Vec<&str> = axes.iter().map(|(name, _)| name.as_str()).collect();
        meanings.push(format!("in [ ] and ( ): values of {}", axes.join(", ")));
    }
    meanings
}

/// `grid` replaces the lists of what other choices change.
pub(super) fn report_text(report: &Report, grid: Option<String>) -> String {
    let mut text = String::new();
    for OfWork { item: study, .. } in &report.studies {
        text += &figure_text(study);
    }
    for (title, claims) in [("claims", &report.claims), ("counted apart", &report.apart)] {
        if claims.is_empty() {
            continue;
        }
        let mut table = Table::new([(title, Align::Left), ("", Align::Left), ("", Align::Left)]);
        for OfWork { work, item: claim } in claims {
            let heading = [Cell::from(claim.id.as_str()), verdict_cell(claim.verdict)];
            table.row(
                heading
                    .into_iter()
                    .chain([Cell::from(format!("published: {}", claim.published))]),
            );
            if !claim.measured.is_empty() {
                table.row(["", "", &format!("measured:  {}", claim.measured)]);
                let own = |study: &&OfWork<StudyOutcome>| {
                    study.work == *work && study.item.id == claim.study
                };
                if let Some(OfWork { item: study, .. }) = report.studies.iter().find(own) {
                    let meanings = meanings(&claim.checks, &study.metrics, &study.axes);
                    if !meanings.is_empty() {
                        table.row(["", "", &format!("where:     {}", meanings.join("; "))]);
                    }
                }
            }
            if claim.comparisons.is_empty() {
                reasons(&mut table, &claim.why);
            } else if claim.verdict != Some(Verdict::Holds) {
                for line in comparisons(&claim.comparisons).lines() {
                    table.row(["", "", line]);
                }
            }
            if let Some(note) = &claim.note {
                for (i, line) in note.lines().enumerate() {
                    let head = if i == 0 { "note:    " } else { "         " };
                    table.row(["", "", &format!("{head}  {line}")]);
                }
            }
        }
        text += &table.render();
        text.push('\n');
    }
    if !report.unjudged.is_empty() {
        let head = [("not judged", Align::Left), ("", Align::Left)];
        let mut table = Table::new(head);
        for OfWork { item: claim, .. } in &report.unjudged {
            table.row([
                claim.id.as_str(),
                &format!("published: {}", claim.published),
            ]);
            table.row(["", &format!("why not:   {}", claim.why())]);
        }
        text += &table.render();
        text.push('\n');
    }
    if let Some(grid) = grid {
        return text + &grid;
    }
    for other in &report.alternatives {
        text += &format!("{}: {}\n", other.name, other.counts.words());
        let mut table = Table::new([("", Align::Left), ("", Align::Left), ("", Align::Left)]);
        for claim in &other.moved {
            let heading = [Cell::from(claim.id.as_str()), verdict_cell(claim.verdict)];
            table.row(
                heading
                    .into_iter()
                    .chain([Cell::from(claim.measured.as_str())]),
            );
        }
        text += &table.render();
        text.push('\n');
    }
    let counts = report.counts;
    let unjudged = match report.unjudged.len() {
        0 => String::new(),
        more => format!("; {more} more are not judged"),
    };
    text += &format!("{} claims: {}{unjudged}\n", counts.total(), counts.words());
    text
}

/// A table for each metric: lines by the first axis, columns by the last.
pub(super) fn figure_text(study: &StudyOutcome) -> String {
    let mut text = format!("{}: {}\n", study.id, study.title);
    let Some((columns, rows)) = study.axes.split_last() else {
        return text + "\n";
    };
    for (name, metric) in &study.metrics {
        let (unit, factor) = Unit::of_metric(metric).column();
        let heads = columns.1.iter().map(|value| (value.as_str(), Align::Right));
        let head = format!("{name}, {unit}").trim_end_matches(", ").to_owned();
        let mut table = Table::new(std::iter::once((head.as_str(), Align::Left)).chain(heads));
        for line in study.points.chunks(columns.1.len()) {
            let label = line[0].at[..rows.len()].join(", ");
            let cells = line.iter().map(|point| match point.metrics.get(name) {
                None => "-".to_owned(),
                Some(e) => {
                    let half = e.ci95_half_width.unwrap_or(0.0);
                    format!("{:.3} ± {:.3}", e.mean * factor, half * factor)
                }
            });
            table.row(std::iter::once(label).chain(cells));
        }
        // docs/metrics.md defines it.
        text += &format!("\n{name} is {metric}\n{}", table.render());
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_checks_are_explained() {
        let metrics = [("radio", "radio.down.frames"), ("time", "file.time_s")];
        let metrics = metrics.map(|(name, metric)| (name.to_owned(), metric.to_owned()));
        let axes = ["scheme", "path"].map(|name| (name.to_owned(), vec![]));
        let of =
            |check: &str| meanings(&[check.to_owned()], &BTreeMap::from(metrics.clone()), &axes);
        let brackets = "in [ ] and ( ): values of scheme, path";
        let radio = "radio is radio.down.frames";
        assert_eq!(of("radio[ll, lan-8] / 5715 - 1 is 0.04"), [radio, brackets]);
        assert_eq!(of("radio is 3"), [radio]);
        // A name of another study, and a part of a word.
        assert!(of("T3.radio[ll] > radio-up[ll]").is_empty());
    }
}
