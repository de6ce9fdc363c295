//! How several scenarios are shown side by side.

use std::path::PathBuf;

use airlane_sim::{Comparison, LinkComparison, MetricComparison, Row};
use anstyle::{AnsiColor, Style};

use crate::chart::{Better, Chart, Measure};
use crate::fault::BadInput;
use crate::metric::{LINK_METRICS, is_headline, metric};
use crate::quantity::{Estimate, Unit};
use crate::table::{Align, Cell, Table};

/// A key of the files and the values that it takes in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vary {
    pub(crate) key: String,
    pub(crate) values: Vec<String>,
}

impl Vary {
    /// From `KEY=V1,V2,..`. Commas within brackets and quotes do not separate values.
    pub(crate) fn parse(text: &str) -> Result<Self, BadInput> {
        let wrong = |why: &str| {
            BadInput(format!(
                "--vary {text}: {why}; write KEY=V1,V2,.., such as links.radio.errors.rate=0.01,0.05"
            ))
        };
        let (key, list) = text
            .split_once('=')
            .ok_or_else(|| wrong("there is no `=` here"))?;
        let (mut values, mut depth, mut quote) = (vec![String::new()], 0, None);
        for c in list.chars() {
            match (c, quote) {
                (c, Some(open)) if c == open => quote = None,
                ('"' | '\'', None) => quote = Some(c),
                ('[' | '{', None) => depth += 1,
                (']' | '}', None) => depth -= 1,
                (',', None) if depth == 0 => {
                    values.push(String::new());
                    continue;
                }
                _ => {}
            }
            if let Some(last) = values.last_mut() {
                last.push(c);
            }
        }
        let values: Vec<String> = values.iter().map(|v| v.trim().to_owned()).collect();
        if values.iter().any(String::is_empty) {
            return Err(wrong("a value is empty"));
        }
        let key = key.trim().to_owned();
        Ok(Self { key, values })
    }
}

/// A short name for each file: its own, or its path where names repeat.
pub(crate) fn names(files: &[PathBuf]) -> Vec<String> {
    let stem = |file: &PathBuf| {
        file.file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    let stems: Vec<String> = files.iter().map(stem).collect();
    let unique = |i: usize| stems.iter().filter(|s| **s == stems[i]).count() == 1;
    let name = |(i, file): (usize, &PathBuf)| {
        if unique(i) {
            stems[i].clone()
        } else {
            file.display().to_string()
        }
    };
    files.iter().enumerate().map(name).collect()
}

/// Kind of the application of `flow`.
fn app<'a>(comparison: &'a Comparison, flow: &str) -> &'a str {
    let found = comparison.scenarios.iter().find_map(|s| s.flow(flow));
    found.map_or("", |flow| flow.app)
}

fn headlines(comparison: &Comparison) -> impl Iterator<Item = &MetricComparison> {
    let shown = |m: &&MetricComparison| is_headline(app(comparison, &m.flow), m.metric);
    comparison.metrics.iter().filter(shown)
}

/// A line for each flow, metric and value of what is varied; a column for each way.
pub(crate) fn table(
    ways: &[String],
    vary: Option<&Vary>,
    comparisons: &[(Option<String>, Comparison)],
) -> String {
    let mut columns = vec![
        ("flow".to_owned(), Align::Left),
        ("measure".to_owned(), Align::Left),
    ];
    if let Some(vary) = vary {
        let last = vary.key.rsplit('.').next().unwrap_or_default();
        columns.push((last.to_owned(), Align::Right));
    }
    for (i, way) in ways.iter().enumerate() {
        columns.push((way.clone(), Align::Right));
        if i > 0 {
            columns.push(("x".to_owned(), Align::Right));
        }
    }
    let mut table = Table::new(columns);
    let Some((_, first)) = comparisons.first() else {
        return table.render();
    };
    for headline in headlines(first) {
        let Some(shown) = metric(headline.metric) else {
            continue;
        };
        let mut names = [headline.flow.as_str(), shown.words];
        for (value, comparison) in comparisons {
            let same =
                |m: &&MetricComparison| m.flow == headline.flow && m.metric == headline.metric;
            let Some(found) = comparison.metrics.iter().find(same) else {
                continue;
            };
            let mut cells: Vec<Cell> = names.map(Cell::from).to_vec();
            names = ["", ""];
            cells.extend(value.as_deref().map(Cell::from));
            for (i, row) in found.rows.iter().enumerate() {
                let value = row
                    .value
                    .as_ref()
                    .map(|v| Estimate::from(v).show(shown.unit).to_string());
                cells.push(value.unwrap_or("-".to_owned()).into());
                if i > 0 {
                    cells.push(ratio(row, shown.better));
                }
            }
            table.row(cells);
        }
        if vary.is_some() {
            table.gap();
        }
    }
    link_rows(&mut table, vary.is_some(), comparisons);
    table.render()
}

/// How far links were used that carried anything.
fn link_rows(table: &mut Table, varied: bool, comparisons: &[(Option<String>, Comparison)]) {
    let [used, ..] = LINK_METRICS;
    let links = comparisons
        .first()
        .map_or(&[][..], |(_, first)| &first.links);
    for link in links.iter().filter(|link| link.metric == used.name) {
        let all = comparisons.iter().filter_map(|(value, comparison)| {
            let key = |l: &LinkComparison| {
                (&l.link, l.direction, l.metric) == (&link.link, link.direction, link.metric)
            };
            let found = comparison.links.iter().find(|link| key(link))?;
            Some((value, &found.rows))
        });
        let nothing = |rows: &[Row]| {
            rows.iter()
                .all(|row| row.value.is_none_or(|v| v.mean == 0.0))
        };
        if all.clone().all(|(_, rows)| nothing(rows)) {
            continue;
        }
        let mut names = [
            format!("{} {}", link.link, link.direction),
            used.words.to_owned(),
        ];
        for (value, rows) in all {
            let mut cells: Vec<Cell> = std::mem::take(&mut names).map(Cell::from).to_vec();
            cells.extend(value.as_deref().map(Cell::from));
            for (i, row) in rows.iter().enumerate() {
                let value = row.value.as_ref().map(|value| used.show(value.into()));
                cells.push(value.unwrap_or("-".to_owned()).into());
                if i > 0 {
                    let ratio = row
                        .ratio
                        .as_ref()
                        .map(|ratio| Estimate::from(ratio).show(Unit::Count));
                    cells.push(
                        ratio
                            .map_or("-".to_owned(), |ratio| ratio.to_string())
                            .into(),
                    );
                }
            }
            table.row(cells);
        }
        if varied {
            table.gap();
        }
    }
}

/// The ratio to the baseline; in colour where its interval leaves no doubt which one is better.
fn ratio(row: &Row, better: Better) -> Cell {
    let Some(ratio) = &row.ratio else {
        return "-".into();
    };
    let style = match ratio.ci95() {
        Some((low, high)) if low > 1.0 || high < 1.0 => {
            let good = (ratio.mean > 1.0) == (better == Better::Higher);
            let colour = if good {
                AnsiColor::Green
            } else {
                AnsiColor::Red
            };
            colour.on_default()
        }
        _ => Style::new(),
    };
    let shown = Estimate::from(ratio).show(Unit::Count).to_string();
    Cell::styled(shown, style)
}

/// The comparison for bars and pictures.
pub fn picture(title: String, ways: &[String], comparison: &Comparison) -> Chart {
    let measure = |found: &MetricComparison| {
        let shown = metric(found.metric)?;
        Some(Measure {
            flow: found.flow.clone(),
            what: shown.words.to_owned(),
            unit: shown.unit,
            better: shown.better,
            values: found
                .rows
                .iter()
                .map(|r| r.value.as_ref().map(Estimate::from))
                .collect(),
        })
    };
    Chart {
        title,
        ways: ways.to_vec(),
        measures: headlines(comparison).filter_map(measure).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_separated_outside_of_brackets_and_quotes() {
        let vary = Vary::parse("a.b = 1, \"2, 3\",{ kind = 'x', y = [1,2] }").unwrap();
        assert_eq!(vary.key, "a.b");
        assert_eq!(vary.values, ["1", "\"2, 3\"", "{ kind = 'x', y = [1,2] }"]);
        for text in ["a", "a=", "a=1,,2"] {
            let error = Vary::parse(text).unwrap_err().to_string();
            assert!(error.contains("write KEY=V1,V2"), "{error}");
        }
    }

    #[test]
    fn files_go_by_their_names_unless_names_repeat() {
        let named = |files: &[&str]| names(&files.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(named(&["x/raw.toml", "y/sr.toml"]), ["raw", "sr"]);
        assert_eq!(
            named(&["x/a.toml", "y/a.toml", "b.toml"]),
            ["x/a.toml", "y/a.toml", "b"]
        );
    }
}
