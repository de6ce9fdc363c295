//! The results of the paths, as JSON and as a table.

use std::fmt;

use airlane_testkit::machine::LostTime;
use serde_json::{Value, json};

use super::figures::{PathFigures, PathVerdicts};
use crate::bench_live::criteria::CriterionVerdict;
use crate::bench_live::measured::Measured;

/// Live, or simulated.
#[derive(Clone, Copy, Debug)]
pub(super) struct WithoutAndWith {
    pub(super) without: PathFigures,
    pub(super) airlane: PathFigures,
    pub(super) verdicts: PathVerdicts,
}

/// One path with one congestion control.
#[derive(Clone, Debug)]
pub struct PathCell {
    pub(super) world: String,
    pub(super) endpoints: &'static str,
    /// The capacity of the path during the measurement.
    pub(super) carries_mbps: f64,
    /// The share of it that must be used; none if the criterion is relative to the figure without Airlane.
    pub(super) asked_part: Option<f64>,
    pub(super) live: WithoutAndWith,
    pub(super) simulated: WithoutAndWith,
    /// CPU time that other work took from the machine during the live part.
    pub(super) lost: LostTime,
}

/// All paths.
#[derive(Debug, Default)]
pub struct Paths {
    /// One row per path and congestion control.
    pub measured: Measured<PathCell>,
}

impl PathCell {
    fn both(&self) -> [(&'static str, &WithoutAndWith); 2] {
        [("live", &self.live), ("simulated", &self.simulated)]
    }
}

impl WithoutAndWith {
    /// The figures that miss their criteria.
    fn missed(&self) -> impl Iterator<Item = &'static str> {
        let verdicts = self.verdicts.all().into_iter();
        let missed = verdicts.filter(|(_, verdict)| *verdict == CriterionVerdict::Missed);
        missed.map(|(what, _)| what)
    }

    fn json(&self) -> Value {
        json!({
            "without": self.without,
            "airlane": self.airlane,
            "missed": self.missed().collect::<Vec<_>>(),
        })
    }
}

impl Paths {
    /// Every cell, with its missed criteria. An infinite 95th percentile, due to loss, is null.
    pub fn json(&self) -> Value {
        let cells = self.measured.rows.iter().map(|cell| {
            json!({
                "path": cell.world,
                "endpoints": cell.endpoints,
                "carries_mbps": cell.carries_mbps,
                "asked_part": cell.asked_part,
                "live": cell.live.json(),
                "simulated": cell.simulated.json(),
                "machine_lost": cell.lost.stolen + cell.lost.others,
            })
        });
        json!({ "paths": cells.collect::<Vec<_>>(), "failures": self.measured.failures })
    }
}

/// A figure with Airlane and without, and a star if it misses its criterion.
fn figure(
    decimals: usize,
    (airlane, without): (Option<f64>, Option<f64>),
    verdict: CriterionVerdict,
) -> String {
    let text = |value: Option<f64>| match value {
        Some(value) if value.is_finite() => format!("{value:.decimals$}"),
        Some(_) => "lost".to_owned(),
        None => "-".to_owned(),
    };
    let star = match verdict {
        CriterionVerdict::Missed => "*",
        CriterionVerdict::Holds | CriterionVerdict::Open => " ",
    };
    format!("{}/{}{star}", text(airlane), text(without))
}

impl WithoutAndWith {
    /// In the order of `COLUMNS`.
    fn figures(&self) -> [String; 5] {
        let (with, without) = (self.airlane, self.without);
        let pair = |of: fn(&PathFigures) -> Option<f64>| (of(&with), of(&without));
        let PathVerdicts {
            sent,
            used,
            page,
            call,
        } = self.verdicts;
        let useless = pair(|of| of.call_useless.map(|part| 100.0 * part));
        [
            figure(2, pair(|of| Some(of.sent_of_carried)), sent),
            figure(0, pair(|of| Some(100.0 * of.used)), used),
            figure(0, pair(|of| of.page_mean_ms), page),
            figure(0, pair(|of| of.call_p95_ms), call),
            figure(0, useless, CriterionVerdict::Open),
        ]
    }
}

/// Headings with the width of each figure.
const COLUMNS: [(&str, usize); 5] = [
    ("sent/carried", 11),
    ("used, %", 9),
    ("page, ms", 11),
    ("call p95, ms", 11),
    ("useless, %", 8),
];

impl fmt::Display for Paths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Each figure with/without Airlane, live and then simulated; * is worse than asked\n"
        )?;
        write!(f, "{:<14}{:<6}", "path", "TCP")?;
        for (heading, width) in COLUMNS {
            let both = 2 * width;
            write!(f, "{heading:^both$}")?;
        }
        writeln!(f)?;
        let mut missed = [0; 2];
        for cell in &self.measured.rows {
            let both = cell.both().map(|(_, both)| both);
            let [live, simulated] = both.map(WithoutAndWith::figures);
            let columns = live.into_iter().zip(simulated).zip(COLUMNS);
            let figures = columns.map(|((live, simulated), (_, width))| {
                format!("{live:>width$}{simulated:>width$}")
            });
            let figures: String = figures.collect();
            let row = format!("{:<14}{:<6}{figures}", cell.world, cell.endpoints);
            writeln!(f, "{}", row.trim_end())?;
            for (missed, of) in missed.iter_mut().zip(both) {
                *missed += of.missed().count();
            }
        }
        let cells = self.measured.rows.len();
        let [live, simulated] = missed;
        writeln!(
            f,
            "\n{cells} cells: {live} figures miss live and {simulated} simulated"
        )?;
        let lost = self.measured.rows.iter().map(|cell| cell.lost);
        let spoilt: Vec<f64> = lost
            .filter(LostTime::spoils)
            .map(|lost| 100.0 * (lost.stolen + lost.others))
            .collect();
        if !spoilt.is_empty() {
            let least = spoilt.iter().copied().fold(f64::MAX, f64::min);
            let most = spoilt.iter().copied().fold(0.0, f64::max);
            writeln!(
                f,
                "SPOILT live: {} cells, in which the machine lost {least:.0} to {most:.0} % of its time",
                spoilt.len()
            )?;
        }
        for failure in &self.measured.failures {
            writeln!(f, "failed: {failure}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_and_spoilt_figures_are_marked_in_the_table_and_named_in_json() {
        let figures = PathFigures {
            sent_of_carried: 1.5,
            file_mbps: 2.0,
            used: 0.4,
            page_mean_ms: None,
            call_p95_ms: Some(f64::INFINITY),
            call_useless: Some(0.2),
        };
        let judged = |sent| WithoutAndWith {
            without: figures,
            airlane: figures,
            verdicts: PathVerdicts {
                sent,
                used: CriterionVerdict::Holds,
                page: CriterionVerdict::Open,
                call: CriterionVerdict::Open,
            },
        };
        let mut paths = Paths::default();
        paths.measured.rows.push(PathCell {
            world: "mars".to_owned(),
            endpoints: "bbr",
            carries_mbps: 5.0,
            asked_part: Some(0.9),
            live: judged(CriterionVerdict::Missed),
            simulated: judged(CriterionVerdict::Holds),
            lost: LostTime {
                stolen: 0.1,
                others: 0.1,
            },
        });
        paths.measured.failed("venus, cubic", &"too hot");
        let text = paths.to_string();
        let line = |start: &str| {
            let line = text.lines().find(|line| line.starts_with(start));
            let words = line.unwrap().split_ascii_whitespace();
            words.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            line("mars"),
            "mars bbr 1.50/1.50* 1.50/1.50 40/40 40/40 -/- -/- lost/lost lost/lost 20/20 20/20"
        );
        assert!(
            line("1 cells").ends_with("1 figures miss live and 0 simulated"),
            "{text}"
        );
        assert!(
            line("SPOILT").ends_with("lost 20 to 20 % of its time"),
            "{text}"
        );
        assert_eq!(line("failed"), "failed: venus, cubic: too hot");
        let json = paths.json();
        assert_eq!(json["paths"][0]["live"]["missed"], json!(["sent"]));
        assert_eq!(json["paths"][0]["simulated"]["missed"], json!([]));
        assert_eq!(json["failures"], json!(["venus, cubic: too hot"]));
        // JSON has no infinity.
        assert!(json["paths"][0]["live"]["airlane"]["call_p95_ms"].is_null());
    }
}
