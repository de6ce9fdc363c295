//! Shows several scenarios side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use airlane_sim::{Comparison, LinkComparison, MetricComparison, Row, Summary};
use anstyle::{AnsiColor, Style};

use crate::carried;
use crate::chart::{Better, Chart, Measure};
use crate::fault::BadInput;
use crate::metric::{LINK_METRICS, Metric, is_headline, metric, names_of_metrics};
use crate::quantity::{Estimate, Unit};
use crate::table::{Align, Cell, Table};
use crate::vary::Vary;

/// A short name for each file: its file name, or its path where file names repeat.
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

/// Checks the names of the measures to show.
pub(crate) fn check_measures(asked: &[String]) -> Result<(), BadInput> {
    let known = names_of_metrics();
    match asked.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(BadInput(format!(
            "--measure {name}: there is no such measure; write some of: {}",
            known.join(", ")
        ))),
    }
}

/// Whether to show a measure: if it was asked for, or if none was.
fn is_shown(asked: &[String], name: &str) -> bool {
    asked.is_empty() || asked.iter().any(|asked| asked == name)
}

/// A comparison with the values of the varied keys.
pub(crate) type At<'a> = (&'a [String], &'a Comparison);

/// A line for each flow, measure (those that were `asked` for, or all if none was) and value of the
/// varied keys; a column for each scenario.
pub(crate) fn table(ways: &[String], axes: &[Vary], asked: &[String], all: &[At<'_>]) -> String {
    let words = ["flow", "measure"].map(|head| (head.to_owned(), Align::Left));
    let mut columns = words.to_vec();
    columns.extend(axes.iter().map(|axis| {
        let last = axis.key.rsplit('.').next().unwrap_or_default();
        let same = |other: &&Vary| other.key.rsplit('.').next() == Some(last);
        let unique = axes.iter().filter(same).count() == 1;
        let head = if unique { last } else { &axis.key };
        (head.to_owned(), Align::Right)
    }));
    for (i, way) in ways.iter().enumerate() {
        columns.push((way.clone(), Align::Right));
        if i > 0 {
            columns.push(("x".to_owned(), Align::Right));
        }
    }
    let mut table = Table::new(columns);
    let mut lines = Lines {
        table: &mut table,
        gaps: !axes.is_empty(),
        name: String::new(),
    };
    lines.flows(asked, all);
    lines.links(asked, all);
    table.render()
}

/// The lines of a comparison's table.
struct Lines<'a> {
    table: &'a mut Table,
    /// Whether an empty line separates measures.
    gaps: bool,
    /// The flow or link of the last line; its name is printed only once.
    name: String,
}

/// The rows of one measure in each comparison that has it.
type Measured<'a> = Vec<(&'a [String], &'a [Row])>;

impl Lines<'_> {
    fn flows(&mut self, asked: &[String], all: &[At<'_>]) {
        let key = |m: &&MetricComparison| (m.flow.clone(), m.metric);
        let by_key = all.iter().map(|(values, comparison)| {
            let found = comparison.metrics.iter().map(|m| (key(&m), &m.rows[..]));
            (*values, found.collect::<BTreeMap<_, _>>())
        });
        let by_key: Vec<_> = by_key.collect();
        let metrics = all.iter().flat_map(|(_, comparison)| &comparison.metrics);
        let mut flow = None;
        for key in in_order(metrics.map(|m| key(&m)), |(flow, _)| flow.clone()) {
            let Some(metric) = metric(key.1).filter(|_| is_shown(asked, key.1)) else {
                continue;
            };
            if asked.is_empty() && flow.replace(key.0.clone()).as_ref() != Some(&key.0) {
                self.services(&key.0, all);
            }
            let rows = by_key
                .iter()
                .filter_map(|(values, found)| Some((*values, *found.get(&key)?)));
            let rows: Measured<'_> = rows.collect();
            // A measure without a value in any run is shown only if it is a headline.
            let nobody = |(_, rows): &(_, &[Row])| rows.iter().all(|row| row.value.is_none());
            if metric.headline || !rows.iter().all(nobody) {
                self.add(&key.0, metric, &rows);
            }
        }
    }

    /// Which services carried a flow, if any scenario has services.
    fn services(&mut self, flow: &str, all: &[At<'_>]) {
        let of = |way: &Summary| -> Vec<(&'static str, String)> {
            let used = way.flow(flow).map_or(&[][..], |flow| &flow.services);
            carried::rows(used).collect()
        };
        let ways = all.iter().map(|(values, comparison)| {
            let rows: Vec<_> = comparison.scenarios.iter().map(of).collect();
            (*values, rows)
        });
        let ways: Vec<_> = ways.collect();
        let known = ways.iter().flat_map(|(_, rows)| rows.iter().flatten());
        let known: BTreeSet<&str> = known.map(|(words, _)| *words).collect();
        if known.is_empty() {
            return;
        }
        let mut name = flow;
        self.name = flow.to_owned();
        for known in known {
            let mut words = [std::mem::take(&mut name), known];
            for (values, rows) in &ways {
                let mut cells: Vec<Cell> = std::mem::take(&mut words).map(Cell::from).to_vec();
                cells.extend(values.iter().map(|value| Cell::from(value.as_str())));
                for (i, rows) in rows.iter().enumerate() {
                    let rows = rows.iter().filter(|(words, _)| *words == known);
                    let shares: Vec<&str> = rows.map(|(_, shares)| shares.as_str()).collect();
                    cells.push(match shares[..] {
                        [] => "-".into(),
                        _ => shares.join("; ").into(),
                    });
                    if i > 0 {
                        cells.push("".into());
                    }
                }
                self.table.row(cells);
            }
        }
        if self.gaps {
            self.table.gap();
        }
    }

    /// How links were used, for those that carried anything.
    fn links(&mut self, asked: &[String], all: &[At<'_>]) {
        let key = |l: &LinkComparison| (l.link.clone(), l.direction, l.metric);
        let by_key = all.iter().map(|(values, comparison)| {
            let found = comparison.links.iter().map(|l| (key(l), &l.rows[..]));
            (*values, found.collect::<BTreeMap<_, _>>())
        });
        let by_key: Vec<_> = by_key.collect();
        let links = all.iter().flat_map(|(_, comparison)| &comparison.links);
        for key in in_order(links.map(key), |(link, direction, _)| {
            (link.clone(), *direction)
        }) {
            let known = LINK_METRICS.iter().find(|metric| metric.name == key.2);
            let Some(metric) = known.filter(|_| is_shown(asked, key.2)) else {
                continue;
            };
            let rows = by_key
                .iter()
                .filter_map(|(values, found)| Some((*values, *found.get(&key)?)));
            let rows: Measured<'_> = rows.collect();
            let nothing = |(_, rows): &(_, &[Row])| {
                let mut values = rows.iter().map(|row| row.value);
                values.all(|value| value.is_none_or(|value| value.mean == 0.0))
            };
            if !rows.iter().all(nothing) {
                self.add(&format!("{} {}", key.0, key.1), metric.shown(), &rows);
            }
        }
    }

    /// A line for each comparison.
    fn add(&mut self, name: &str, metric: Metric, measured: &Measured<'_>) {
        let mut words = [name, metric.words];
        if self.name == name {
            words[0] = "";
        }
        self.name = name.to_owned();
        for (values, rows) in measured {
            let mut cells: Vec<Cell> = std::mem::take(&mut words).map(Cell::from).to_vec();
            cells.extend(values.iter().map(|value| Cell::from(value.as_str())));
            for (i, row) in rows.iter().enumerate() {
                let value = row.value.as_ref().map(|value| metric.show(value.into()));
                cells.push(value.unwrap_or("-".to_owned()).into());
                if i > 0 {
                    cells.push(ratio(row, metric.better));
                }
            }
            self.table.row(cells);
        }
        if self.gaps {
            self.table.gap();
        }
    }
}

/// Each key once, grouped by owner, otherwise in order of appearance.
fn in_order<K: Ord + Clone, O: Ord>(
    keys: impl Iterator<Item = K>,
    owner: impl Fn(&K) -> O,
) -> Vec<K> {
    let (mut seen, mut owners, mut all) = (BTreeSet::new(), BTreeMap::new(), vec![]);
    for key in keys {
        if seen.insert(key.clone()) {
            let next = owners.len();
            all.push((*owners.entry(owner(&key)).or_insert(next), key));
        }
    }
    all.sort_by_key(|(owner, _)| *owner);
    all.into_iter().map(|(_, key)| key).collect()
}

/// The ratio to the baseline, coloured if its confidence interval shows which one is better.
fn ratio(row: &Row, better: Option<Better>) -> Cell {
    let Some(ratio) = &row.ratio else {
        return "-".into();
    };
    let style = match (ratio.ci95(), better) {
        (Some((low, high)), Some(better)) if low > 1.0 || high < 1.0 => {
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

/// The comparison for bars and pictures: the measures that were `asked` for, or else the headlines.
pub fn picture(title: String, ways: &[String], asked: &[String], comparison: &Comparison) -> Chart {
    let flows = comparison.scenarios.iter().flat_map(|s| &s.flows);
    let apps: BTreeMap<&str, &str> = flows.map(|flow| (flow.name.as_str(), flow.app)).collect();
    let measure = |found: &MetricComparison| {
        let app = apps.get(found.flow.as_str()).copied().unwrap_or_default();
        let wanted = match asked {
            [] => is_headline(app, found.metric),
            _ => is_shown(asked, found.metric),
        };
        let metric = metric(found.metric).filter(|_| wanted)?;
        Some(Measure {
            flow: found.flow.clone(),
            what: metric.words.to_owned(),
            unit: metric.unit,
            better: metric.better?,
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
        measures: comparison.metrics.iter().filter_map(measure).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_labelled_by_name_unless_names_repeat() {
        let named = |files: &[&str]| names(&files.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(named(&["x/raw.toml", "y/sr.toml"]), ["raw", "sr"]);
        assert_eq!(
            named(&["x/a.toml", "y/a.toml", "b.toml"]),
            ["x/a.toml", "y/a.toml", "b"]
        );
    }

    #[test]
    fn keys_of_one_owner_stand_together() {
        let keys = [("b", 1), ("a", 2), ("b", 1), ("b", 3)];
        let order = in_order(keys.into_iter(), |(owner, _)| *owner);
        assert_eq!(order, [("b", 1), ("b", 3), ("a", 2)]);
    }
}
