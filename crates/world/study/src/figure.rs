//! How a study is drawn; [`outcome`] has the numbers of the drawing.
//!
//! A study needs no `figure` table: by default the last axis is `x`, the first one gives the lines,
//! and each metric with a unit has a panel of its own at each value of the remaining axes. This
//! module does not deal with colours, fonts or file formats; it gives renderers names, numbers and
//! units.

pub(crate) mod outcome;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::axis::{Axis, AxisValues};
use crate::claim::OneOrMany;
use crate::expression::Operand;
use crate::unit::Unit;

/// The `figure` table of a study.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FigureFile {
    /// What stands for a number. Left out: `lines` if `x` has three values or more, else `bars`.
    kind: Option<FigureKind>,
    /// How much of a page it takes. Left out: `double` if panels stand side by side, else `single`.
    width: Option<FigureWidth>,
    /// This axis goes from left to right. Left out: the last one.
    x: Option<String>,
    /// This axis gives the lines. Left out: the first one that is left.
    lines: Option<String>,
    /// These expressions are drawn, with panels for each. Left out: every metric with a unit.
    y: OneOrMany<Operand>,
    /// What `y` is in: `s`, `bit/s` or `ratio`. Left out: as its metrics.
    unit: Option<String>,
    /// These values of axes that are not drawn are chosen; all others of these axes are left out.
    at: Vec<String>,
    /// Whether the axis of `y` is logarithmic.
    log: bool,
    /// More lines beside those of the axis, such as an ideal, each an expression without a value of it.
    references: BTreeMap<String, Operand>,
    /// It stands instead of `x`, `lines`, `y`, `at` and `references`: each line has an expression for each value of
    /// `x`.
    #[schemars(with = "BTreeMap<String, BTreeMap<String, String>>")]
    points: Table,
}

/// What stands for a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// A mark on a line.
    Lines,
    /// A bar.
    Bars,
}

/// How much of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureWidth {
    /// One column.
    Single,
    /// Both columns.
    Double,
}

/// The drawing of a study.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    kind: FigureKind,
    width: FigureWidth,
    log: bool,
    unit: Option<Unit>,
    /// Name and values of the x axis.
    x: (String, Vec<String>),
    /// Name and values of the axis of the lines, then the names of references.
    lines: (String, Vec<String>),
    /// How many of the lines are references.
    references: usize,
    columns: usize,
    panels: Vec<Panel>,
}

#[derive(Clone, Debug)]
struct Panel {
    /// Values of the axes that neither `x` nor the lines show.
    at: AxisValues,
    /// The expression, as written.
    y: String,
    /// By line, then by `x`.
    cells: Vec<Vec<(Operand, AxisValues)>>,
}

/// Names for people, by axis, axis value, metric or expression; a name without an entry is shown as
/// it is.
pub(crate) type Labels = BTreeMap<String, String>;

impl Figure {
    /// The figure of a study; `None` if it runs nothing.
    pub(crate) fn new(
        file: FigureFile,
        axes: &[Axis],
        metrics: &BTreeMap<String, String>,
    ) -> Result<Option<Self>, String> {
        let figure = if file.points.is_empty() {
            let y = file.y.into_vec();
            let y = if y.is_empty() { measured(metrics)? } else { y };
            if y.is_empty() {
                return Ok(None);
            }
            let figure = Self::of_axes(axes, file.x, file.lines, &file.at, &y)?;
            figure.with(file.references, &file.at)?
        } else {
            let own = file.x.is_none() && file.lines.is_none() && file.at.is_empty();
            if !own || !file.references.is_empty() || !file.y.into_vec().is_empty() {
                return Err(
                    "figure.points stands alone, without x, lines, y, at and references".to_owned(),
                );
            }
            Self::of_points(&file.points)?
        };
        let several = figure.x.1.len() > 2;
        let kind = if several {
            FigureKind::Lines
        } else {
            FigureKind::Bars
        };
        let width = if figure.columns > 1 {
            FigureWidth::Double
        } else {
            FigureWidth::Single
        };
        Ok(Some(Self {
            kind: file.kind.unwrap_or(kind),
            width: file.width.unwrap_or(width),
            log: file.log,
            unit: file.unit.map(|unit| Unit::of_base(&unit)).transpose()?,
            ..figure
        }))
    }

    fn of_axes(
        axes: &[Axis],
        x: Option<String>,
        lines: Option<String>,
        at: &[String],
        y: &[Operand],
    ) -> Result<Self, String> {
        let has = |value: &String| axes.iter().any(|axis| axis.values.contains(value));
        if let Some(value) = at.iter().find(|value| !has(value)) {
            return Err(format!("figure.at: no axis has the value \"{value}\""));
        }
        let mut open: Vec<&Axis> = axes.iter().collect();
        open.retain(|axis| !axis.values.iter().any(|value| at.contains(value)));
        if open.len() + at.len() != axes.len() {
            return Err("figure.at: at most one value of an axis".to_owned());
        }
        let last = open.len().checked_sub(1);
        let mut take = |role: &str, name: Option<String>, default: Option<usize>| {
            let place = match &name {
                None => default.filter(|place| *place < open.len()),
                Some(name) => Some(open.iter().position(|axis| axis.name == *name).ok_or_else(
                    || {
                        let known: Vec<&str> = open.iter().map(|axis| axis.name.as_str()).collect();
                        let known = known.join(", ");
                        format!("figure.{role}: no axis \"{name}\" is left; there are: {known}")
                    },
                )?),
            };
            let axis = place.map(|place| open.remove(place));
            Ok::<_, String>(axis.map_or_else(
                || (String::new(), vec![String::new()]),
                |axis| (axis.name.clone(), axis.values.clone()),
            ))
        };
        // An axis that is named for the lines is not used for x.
        let (x, lines) = if lines.is_some() {
            let lines = take("lines", lines, None)?;
            let last = last.and_then(|last| last.checked_sub(1));
            (take("x", x, last)?, lines)
        } else {
            let x = take("x", x, last)?;
            (x, take("lines", None, Some(0))?)
        };
        let mut columns: Vec<AxisValues> = vec![vec![]];
        for axis in open {
            columns = columns
                .iter()
                .flat_map(|place| {
                    let with =
                        |value: &String| [place.as_slice(), std::slice::from_ref(value)].concat();
                    axis.values.iter().map(with)
                })
                .collect();
        }
        let mut panels = vec![];
        for y in y {
            for column in &columns {
                let cell = |line: &String, x: &String| {
                    let place = [at, column.as_slice(), &[line.clone(), x.clone()]].concat();
                    (y.clone(), place)
                };
                let row = |line: &String| x.1.iter().map(|x| cell(line, x)).collect();
                panels.push(Panel {
                    at: column.clone(),
                    y: y.text.clone(),
                    cells: lines.1.iter().map(row).collect(),
                });
            }
        }
        Ok(Self {
            kind: FigureKind::Lines,
            width: FigureWidth::Single,
            log: false,
            unit: None,
            x,
            references: 0,
            lines,
            columns: columns.len(),
            panels,
        })
    }

    /// The same figure with more lines.
    fn with(
        mut self,
        references: BTreeMap<String, Operand>,
        at: &[String],
    ) -> Result<Self, String> {
        for (name, of) in references {
            if self.lines.1.contains(&name) {
                return Err(format!("figure.references.{name}: a line has this name"));
            }
            for panel in &mut self.panels {
                let place =
                    |x: &String| [at, panel.at.as_slice(), std::slice::from_ref(x)].concat();
                let row = self.x.1.iter().map(|x| (of.clone(), place(x)));
                panel.cells.push(row.collect());
            }
            self.lines.1.push(name);
            self.references += 1;
        }
        Ok(self)
    }

    fn of_points(points: &Table) -> Result<Self, String> {
        let wrong =
            |line: &str| format!("figure.points.{line}: a table such as {{ a = \"loss[a]\" }}");
        let mut x: Vec<String> = vec![];
        let mut cells = vec![];
        for (line, values) in points {
            let values = values.as_table().ok_or_else(|| wrong(line))?;
            let names: Vec<String> = values.keys().cloned().collect();
            if x.is_empty() {
                x = names;
            } else if x != names {
                let x = x.join(", ");
                return Err(format!("figure.points.{line}: other lines have {x}"));
            }
            let read = |value: &Value| {
                let text = value.as_str().ok_or_else(|| wrong(line))?;
                let operand = Operand::parse(text).map_err(|e| e.to_string())?;
                Ok::<_, String>((operand, vec![]))
            };
            cells.push(values.values().map(read).collect::<Result<_, _>>()?);
        }
        Ok(Self {
            kind: FigureKind::Bars,
            width: FigureWidth::Single,
            log: false,
            unit: None,
            x: ("x".to_owned(), x),
            references: 0,
            lines: ("lines".to_owned(), points.keys().cloned().collect()),
            columns: 1,
            panels: vec![Panel {
                at: vec![],
                y: "y".to_owned(),
                cells,
            }],
        })
    }

    /// Whether the axis of `y` is logarithmic, so that it shows ratios rather than differences.
    pub(crate) const fn is_logarithmic(&self) -> bool {
        self.log
    }

    /// Studies that it reads, other than its own.
    pub(crate) fn studies(&self) -> BTreeSet<&str> {
        let cells = self
            .panels
            .iter()
            .flat_map(|panel| panel.cells.iter().flatten());
        let quantities = cells.flat_map(|(operand, _)| operand.expression.quantities());
        quantities
            .filter_map(|(quantity, _)| quantity.study.as_deref())
            .collect()
    }
}

/// Metrics with a unit, or all if none has one.
fn measured(metrics: &BTreeMap<String, String>) -> Result<Vec<Operand>, String> {
    let with_unit = |name: &&String| Unit::of_metric(&metrics[*name]) != Unit::None;
    let mut names: Vec<&String> = metrics.keys().filter(with_unit).collect();
    if names.is_empty() {
        names = metrics.keys().collect();
    }
    let parsed = names.into_iter().map(|name| Operand::parse(name));
    parsed.collect::<Result<_, _>>().map_err(|e| e.to_string())
}

/// A small number for each line of some figures: equal names have equal numbers in all figures,
/// names that appear together in a figure have different ones, and as few numbers as possible are
/// used. References come last, so that they change no other number.
pub(crate) fn slots<'f>(figures: impl Iterator<Item = &'f Figure>) -> BTreeMap<String, usize> {
    let figures: Vec<&Figure> = figures.collect();
    let mut slots: BTreeMap<String, usize> = BTreeMap::new();
    let split = |f: &&'f Figure| f.lines.1.split_at(f.lines.1.len() - f.references);
    let measured = figures.iter().map(split).flat_map(|(measured, _)| measured);
    let references = figures
        .iter()
        .map(split)
        .flat_map(|(_, references)| references);
    for line in measured.chain(references) {
        if slots.contains_key(line) {
            continue;
        }
        let beside = figures
            .iter()
            .filter(|figure| figure.lines.1.contains(line));
        let beside = beside.flat_map(|figure| &figure.lines.1);
        let taken: BTreeSet<usize> = beside
            .filter_map(|other| slots.get(other).copied())
            .collect();
        let free = (0..).find(|slot| !taken.contains(slot)).unwrap_or(0);
        slots.insert(line.clone(), free);
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{Study, StudyFile};

    fn study(text: &str) -> Result<Study, String> {
        let axes = "title = \"T\"\nscenario.schema = 1\nmetrics.n = \"a.sent\"\n\
                    metrics.loss = \"a.loss_ratio\"\nmetrics.delay = \"a.delay_mean_s\"\n\
                    axes.scheme = { rlp = [], raw = [] }\naxes.link = { lan = [], wan = [] }\n\
                    axes.level = { L1 = [], L2 = [], L3 = [] }\n";
        let file: StudyFile =
            toml::from_str(&format!("{axes}{text}")).map_err(|e| e.to_string())?;
        Study::new("F1", file, &BTreeMap::new(), &Labels::new())
    }

    fn figure(text: &str) -> Figure {
        study(text).unwrap().figure.unwrap()
    }

    #[test]
    fn a_study_without_a_table_is_drawn_by_its_axes_and_metrics() {
        let figure = figure("");
        assert_eq!(figure.x.0, "level");
        assert_eq!(figure.lines.1, ["rlp", "raw"]);
        // Two metrics with a unit, on each of two links; counts are only for claims.
        let panels: Vec<_> = figure
            .panels
            .iter()
            .map(|p| (p.y.as_str(), &p.at[0][..]))
            .collect();
        let expected = [
            ("delay", "lan"),
            ("delay", "wan"),
            ("loss", "lan"),
            ("loss", "wan"),
        ];
        assert_eq!(panels, expected);
        assert_eq!((figure.columns, figure.width), (2, FigureWidth::Double));
        assert_eq!(figure.kind, FigureKind::Lines);
        assert_eq!(figure.panels[1].cells[0][2].1, ["wan", "rlp", "L3"]);
    }

    #[test]
    fn a_figure_table_overrides_the_defaults() {
        let figure = figure(
            "[figure]\nlines = \"level\"\nat = [\"wan\"]\nlog = true\nunit = \"ratio\"\n\
             y = \"loss / loss[raw]\"",
        );
        assert_eq!((&*figure.x.0, &*figure.lines.0), ("scheme", "level"));
        assert_eq!((figure.kind, figure.columns), (FigureKind::Bars, 1));
        assert_eq!((figure.log, figure.unit), (true, Some(Unit::Percent)));
        assert_eq!(figure.panels[0].cells[2][0].1, ["wan", "L3", "rlp"]);
        assert_eq!(slots([&figure].into_iter()).len(), 3);
    }

    #[test]
    fn references_are_lines_that_no_axis_has() {
        let text = "figure.y = \"delay\"\nfigure.references.best = \"F2.delay[rlp] / 2\"";
        let figure = figure(text);
        assert_eq!(figure.lines.1, ["rlp", "raw", "best"]);
        // The links are the columns; the reference has no scheme.
        assert_eq!(figure.panels[1].cells[2][0].1, ["wan", "L1"]);
        assert_eq!(figure.studies(), BTreeSet::from(["F2"]));
        let other = study("figure.lines = \"link\"").unwrap().figure.unwrap();
        let with = slots([&figure, &other].into_iter());
        assert_eq!((with["raw"], with["wan"], with["best"]), (1, 1, 2));
        let twice = study("figure.references.raw = \"1\"").unwrap_err();
        assert_eq!(twice, "figure.references.raw: a line has this name");
    }

    #[test]
    fn points_exclude_other_axes() {
        let points = "[figure.points.one]\na = \"loss[rlp, lan, L1]\"\nb = \"F2.loss[raw]\"\n";
        let figure = figure(points);
        assert_eq!((figure.x.1.len(), figure.lines.1.len()), (2, 1));
        assert_eq!(figure.studies(), BTreeSet::from(["F2"]));
        let other = study(&format!("{points}[figure.points.two]\nb = \"1\"")).unwrap_err();
        assert_eq!(other, "figure.points.two: other lines have a, b");
        let x = study(&format!("figure.x = \"level\"\n{points}")).unwrap_err();
        assert!(x.contains("stands alone"), "{x}");
    }

    #[test]
    fn wrong_tables_are_refused_by_name() {
        for (text, problem) in [
            (
                "figure.x = \"levels\"",
                "figure.x: no axis \"levels\" is left; there are: scheme, link, level",
            ),
            (
                "figure.at = [\"L9\"]",
                "figure.at: no axis has the value \"L9\"",
            ),
            (
                "figure.at = [\"L1\", \"L2\"]",
                "figure.at: at most one value of an axis",
            ),
            (
                "figure.unit = \"ms\"",
                "there is no unit \"ms\"; there are: ratio, bit/s, s",
            ),
            (
                "figure.kind = \"pie\"",
                "unknown variant `pie`, expected `lines` or `bars`",
            ),
            ("figure.colour = \"red\"", "unknown field `colour`"),
            ("figure.y = \"loss[\"", "loss["),
        ] {
            let found = study(text).unwrap_err();
            assert!(found.contains(problem), "{text}: {found}");
        }
    }

    #[test]
    fn lines_of_one_figure_differ_in_style_and_equal_names_share_one() {
        let of = |names: &[&str]| {
            let mut figure = figure("");
            figure.lines.1 = names.iter().map(|name| (*name).to_owned()).collect();
            figure
        };
        let figures = [of(&["a", "b"]), of(&["c"]), of(&["c", "a"])];
        let slots = slots(figures.iter());
        assert_eq!(
            slots,
            BTreeMap::from([("a", 0), ("b", 1), ("c", 1)].map(|(n, s)| (n.to_owned(), s)))
        );
    }
}
