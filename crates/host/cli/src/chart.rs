//! The same measures for several scenarios, as a table and as bars.

use anstyle::{AnsiColor, Style};

use crate::quantity::{Estimate, Unit, times};
use crate::table::{Align, Cell, Table};

/// Whether a higher or a lower value of a measure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// As for throughput.
    Higher,
    /// As for loss and delay.
    Lower,
}

/// One measure of one flow, with a value for each scenario.
#[derive(Clone, Debug)]
pub struct Measure {
    /// The flow's name, such as "file".
    pub flow: String,
    /// The measure's name, such as "throughput".
    pub what: String,
    /// The unit of the values.
    pub unit: Unit,
    /// Which direction is better.
    pub better: Better,
    /// One value for each scenario, in their order; `None` where there is nothing to show.
    pub values: Vec<Option<Estimate>>,
}

/// Scenarios side by side; the first one is the baseline.
#[derive(Clone, Debug)]
pub struct Chart {
    /// One line that names the comparison.
    pub title: String,
    /// Names of the scenarios.
    pub ways: Vec<String>,
    /// The measures.
    pub measures: Vec<Measure>,
}

/// Relative differences below this are called "the same".
const SAME: f64 = 0.02;
/// Length of the longest bar, characters.
const BAR: usize = 36;

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const DIM: Style = Style::new().dimmed();

impl Chart {
    /// A table with a line for each measure and a column for each scenario, and how each compares
    /// with the first.
    pub fn table(&self) -> String {
        let mut columns = vec![(String::new(), Align::Left), (String::new(), Align::Left)];
        for (i, way) in self.ways.iter().enumerate() {
            columns.push((way.clone(), Align::Right));
            if i > 0 {
                columns.push((String::new(), Align::Left));
            }
        }
        let mut table = Table::new(columns);
        let mut last_flow = "";
        for measure in &self.measures {
            let flow = if measure.flow == last_flow {
                ""
            } else {
                &measure.flow
            };
            last_flow = &measure.flow;
            let mut cells: Vec<Cell> = vec![flow.into(), measure.what.as_str().into()];
            let baseline = measure.values.first().copied().flatten();
            for (i, value) in measure.values.iter().enumerate() {
                cells.push(
                    value
                        .map_or("-".to_owned(), |v| v.show(measure.unit).to_string())
                        .into(),
                );
                if i > 0 {
                    cells.push(measure.verdict(baseline, *value));
                }
            }
            table.row(cells);
        }
        format!("{}\n\n{}", self.title, table.render())
    }

    /// Bars for each measure, each measure on its own scale.
    pub fn bars(&self) -> String {
        let name = |m: &Measure| format!("{} {}", m.flow, m.what);
        let mut table = Table::new([("", Align::Left), ("", Align::Left), ("", Align::Left)]);
        for measure in &self.measures {
            let longest = measure.longest();
            for (i, (way, value)) in self.ways.iter().zip(&measure.values).enumerate() {
                let Some(value) = value else { continue };
                let style = if i == 0 { DIM } else { GOOD };
                let length = value.mean / longest;
                let bar = format!("{} {}", bar(length), value.show(measure.unit));
                let head = if i == 0 { name(measure) } else { String::new() };
                table.row([head.into(), way.as_str().into(), Cell::styled(bar, style)]);
            }
            table.gap();
        }
        table.render()
    }
}

impl Better {
    /// The direction in words, for the legend.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Higher => "higher is better",
            Self::Lower => "lower is better",
        }
    }
}

impl Measure {
    /// The largest mean, as the length of a full bar; 1 if all are zero.
    pub fn longest(&self) -> f64 {
        let means = self.values.iter().flatten().map(|v| v.mean);
        let longest = means.filter(|m| m.is_finite()).fold(0.0, f64::max);
        if longest > 0.0 { longest } else { 1.0 }
    }

    /// Compares `value` with `baseline` in words.
    fn verdict(&self, baseline: Option<Estimate>, value: Option<Estimate>) -> Cell {
        let (Some(baseline), Some(value)) = (baseline, value) else {
            return Cell::default();
        };
        if baseline.mean == value.mean {
            return Cell::styled("the same", DIM);
        }
        let ratio = value.mean / baseline.mean;
        if !ratio.is_finite() {
            return Cell::default();
        }
        if (1.0 - SAME..=1.0 + SAME).contains(&ratio) {
            return Cell::styled("the same", DIM);
        }
        let style = if (ratio > 1.0) == (self.better == Better::Higher) {
            GOOD
        } else {
            BAD
        };
        let text = if ratio == 0.0 {
            "none left".to_owned()
        } else if ratio >= 2.0 {
            format!("{} as much", times(ratio))
        } else if ratio > 1.0 {
            format!("{:.0} % more", (ratio - 1.0) * 100.0)
        } else if ratio > 0.5 {
            format!("{:.0} % less", (1.0 - ratio) * 100.0)
        } else {
            format!("{} less", times(1.0 / ratio))
        };
        Cell::styled(text, style)
    }
}

/// A bar of this share of the full length, drawn in eighths of a character.
fn bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * (BAR * 8) as f64 + 0.5) as usize;
    if eighths == 0 {
        // Even zero gets a visible mark.
        return "▏".to_owned();
    }
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison() -> Chart {
        let measure = |flow: &str, what: &str, unit, better, values: [f64; 2]| Measure {
            flow: flow.to_owned(),
            what: what.to_owned(),
            unit,
            better,
            values: values.map(|v| Some(Estimate::single(v))).to_vec(),
        };
        Chart {
            title: "One link".to_owned(),
            ways: vec!["raw".to_owned(), "services".to_owned()],
            measures: vec![
                measure(
                    "file",
                    "throughput",
                    Unit::BitsPerSecond,
                    Better::Higher,
                    [850e3, 15.3e6],
                ),
                measure("voice", "loss", Unit::Ratio, Better::Lower, [0.054, 0.0027]),
                measure(
                    "voice",
                    "delay",
                    Unit::Seconds,
                    Better::Lower,
                    [0.030, 0.0302],
                ),
            ],
        }
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn the_table_names_the_better_value_in_words() {
        let expected = "\
One link

                            raw     services
  file   throughput  850 kbit/s  15.3 Mbit/s  18.0 x as much
  voice  loss            5.40 %      0.270 %  20.0 x less
         delay          30.0 ms      30.2 ms  the same
";
        assert_eq!(plain(&comparison().table()), expected);
    }

    #[test]
    fn bars_share_a_scale_within_a_measure_only() {
        let text = plain(&comparison().bars());
        let lengths: Vec<usize> = text.lines().map(|l| l.matches('█').count()).collect();
        assert_eq!(lengths, [2, 36, 0, 36, 1, 0, 35, 36, 0]);
    }

    #[test]
    fn a_loss_of_zero_divides_nothing_by_zero() {
        let mut comparison = comparison();
        comparison.measures[1].values =
            vec![Some(Estimate::single(0.05)), Some(Estimate::single(0.0))];
        assert!(plain(&comparison.table()).contains("none left"));
        comparison.measures[1].values.reverse();
        assert!(comparison.table().contains("5.00 %"));
        comparison.measures[1].values = vec![Some(Estimate::single(0.0)); 2];
        assert!(plain(&comparison.table()).contains("the same"));
        assert!(!comparison.bars().is_empty());
    }
}
