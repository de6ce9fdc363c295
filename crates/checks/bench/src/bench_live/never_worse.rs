//! Checks that nothing is ever worse with Airlane than without: a grid of links, each with a file, pages and a call,
//! alone and together, over the plain link and through Airlane with the smallest files.
//!
//! Each cell is written to a file as soon as it has been measured, and is not measured again while it is there: an
//! interrupted run continues where it was.

use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airlane_probe::{ClientConfig, TrafficReport};
use airlane_testkit::live::LiveError;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::ceiling::Ceiling;
use super::channel::{self, Endpoints};
use super::impaired::{Bench, ImpairedPlan};
use super::site::Programs;
use super::tool::Tool;
use super::traffic::TrafficKind;
use crate::progress::ProgressLine;

const FILE: &str = "file Mbit/s";

/// Tolerance in addition to the headers.
pub(super) const TOLERATED: f64 = 0.03;

/// The traffic of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellTraffic {
    /// A file alone.
    File,
    /// Pages alone.
    Page,
    /// A call alone.
    Call,
    /// All at once.
    All,
}

impl CellTraffic {
    const fn has(self, one: Self) -> bool {
        matches!(self, Self::All) || self as u8 == one as u8
    }

    fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// The grid.
#[derive(Clone, Debug)]
pub struct NeverWorsePlan {
    /// Rates of the link, Mbit/s.
    pub mbps: Vec<f64>,
    /// Round trips, ms.
    pub round_trips_ms: Vec<f64>,
    /// Losses, uniform, in percent.
    pub losses_pct: Vec<f64>,
    /// Congestion controls of the server.
    pub endpoints: Vec<Endpoints>,
    /// The traffic.
    pub apps: Vec<CellTraffic>,
    /// Load before the measurement.
    pub warmup: Duration,
    /// Load during the measurement.
    pub measure: Duration,
    /// Seed of the losses.
    pub seed: u64,
    /// Which ports and marks tell the applications apart.
    pub traffic: TrafficKind,
    /// The rate that Airlane's ends state.
    pub rate: Option<String>,
    /// Folder of the cells.
    pub kept: PathBuf,
}

/// One link with one kind of traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    mbps: f64,
    round_trip_ms: f64,
    loss_pct: f64,
    endpoints: String,
    apps: CellTraffic,
    /// All other settings that affect the result.
    how: String,
}

/// The results of the applications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellFigures {
    file_mbps: Option<f64>,
    /// The upper bound of the file, given the pages that were fetched.
    #[serde(default)]
    file_ceiling_mbps: Option<f64>,
    page_mean_ms: Option<f64>,
    call_loss_pct: Option<f64>,
    call_p99_ms: Option<f64>,
    /// Packets of the call, which set the resolution of its loss.
    call_packets: u64,
    /// Share of a full frame that is payload.
    share: f64,
}

/// A measured cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredCell {
    /// Which.
    pub cell: Cell,
    /// Without Airlane.
    pub plain: CellFigures,
    /// With it.
    pub airlane: CellFigures,
}

/// A figure that is worse with Airlane than without.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorseFigure {
    what: &'static str,
    plain: f64,
    airlane: f64,
    /// The bound for the figure with Airlane.
    bound: f64,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            mbps,
            round_trip_ms,
            loss_pct,
            endpoints,
            apps,
            ..
        } = self;
        let apps = apps.name();
        write!(
            f,
            "{mbps:>3} Mbit/s {round_trip_ms:>4} ms {loss_pct:>3} % {endpoints:<6}{apps:<5}"
        )
    }
}

impl NeverWorsePlan {
    /// All cells. A call alone has one cell for all congestion controls.
    pub fn cells(&self) -> Vec<Cell> {
        let Self {
            traffic,
            rate,
            measure,
            seed,
            ..
        } = self;
        let how = format!("{traffic:?} {rate:?} {measure:?} {seed}");
        let mut cells = Vec::new();
        for &mbps in &self.mbps {
            for &round_trip_ms in &self.round_trips_ms {
                for &loss_pct in &self.losses_pct {
                    for (at, endpoints) in self.endpoints.iter().enumerate() {
                        let apps = self.apps.iter().copied();
                        for apps in apps.filter(|apps| at == 0 || *apps != CellTraffic::Call) {
                            cells.push(Cell {
                                mbps,
                                round_trip_ms,
                                loss_pct,
                                endpoints: endpoints.name().to_owned(),
                                apps,
                                how: how.clone(),
                            });
                        }
                    }
                }
            }
        }
        cells
    }
}

impl CellFigures {
    /// 99th percentile of the delay over all packets sent in a call: lost packets count as infinitely late.
    fn p99_of_sent_ms(&self) -> Option<f64> {
        let many_lost = self.call_loss_pct.is_some_and(|loss| loss > 1.0);
        self.call_p99_ms
            .map(|ms| if many_lost { f64::INFINITY } else { ms })
    }
}

impl MeasuredCell {
    /// Figures that are worse by more than the headers, `TOLERATED` and the resolution of the measurement.
    pub fn worse(&self) -> Vec<WorseFigure> {
        let (plain, airlane) = (&self.plain, &self.airlane);
        let headers = airlane.share / plain.share;
        let packet_pct = 100.0 / plain.call_packets.max(1) as f64;
        let figures = [
            (FILE, plain.file_mbps, airlane.file_mbps),
            ("page ms", plain.page_mean_ms, airlane.page_mean_ms),
            ("call lost %", plain.call_loss_pct, airlane.call_loss_pct),
            (
                "call p99 ms",
                plain.p99_of_sent_ms(),
                airlane.p99_of_sent_ms(),
            ),
        ];
        let mut worse = Vec::new();
        for (at, (what, plain, airlane)) in figures.into_iter().enumerate() {
            let (Some(plain), Some(airlane)) = (plain, airlane) else {
                continue;
            };
            let bound = match at {
                0 => plain * headers * (1.0 - TOLERATED),
                2 => plain * (1.0 + TOLERATED) + packet_pct,
                _ => plain / headers * (1.0 + TOLERATED),
            };
            let is_worse = match at {
                0 => airlane < bound,
                _ => airlane > bound,
            };
            if is_worse {
                worse.push(WorseFigure {
                    what,
                    plain,
                    airlane,
                    bound,
                });
            }
        }
        worse
    }
}

/// The results of a grid.
#[derive(Debug, Default)]
pub struct NeverWorse {
    /// Each cell.
    pub cells: Vec<MeasuredCell>,
    /// What could not be run.
    pub failures: Vec<String>,
}

impl NeverWorse {
    /// Every cell, with its worse figures.
    pub fn json(&self) -> serde_json::Value {
        let cells = self.cells.iter().map(|measured| {
            serde_json::json!({
                "cell": measured.cell,
                "plain": measured.plain,
                "airlane": measured.airlane,
                "worse": measured.worse(),
            })
        });
        serde_json::json!({ "cells": cells.collect::<Vec<_>>(), "failures": self.failures })
    }
}

impl fmt::Display for NeverWorse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut count = 0;
        for measured in &self.cells {
            for worse in measured.worse() {
                let WorseFigure {
                    what,
                    plain,
                    airlane,
                    bound,
                } = worse;
                count += 1;
                write!(
                    f,
                    "{}  {what:<12} {airlane:>8.2}, without {plain:>8.2} (bound {bound:.2}",
                    measured.cell
                )?;
                // More pages fetched leave less room for the file, so its ceiling is shown.
                match measured.airlane.file_ceiling_mbps {
                    Some(ceiling) if what == FILE => writeln!(f, ", ceiling {ceiling:.2})")?,
                    _ => writeln!(f, ")")?,
                }
            }
        }
        let cells = self.cells.len();
        writeln!(
            f,
            "{count} figures of {cells} cells are worse than without Airlane by more than the headers and {:.0} %",
            TOLERATED * 100.0
        )?;
        for failure in &self.failures {
            writeln!(f, "failed: {failure}")?;
        }
        Ok(())
    }
}

/// Cells measured before. An incomplete line is ignored.
fn kept(path: &Path) -> Vec<MeasuredCell> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

fn keep(path: &Path, cell: &MeasuredCell) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)?;
    writeln!(file, "{}", serde_json::to_string(cell)?)
}

/// Measures all cells that have not been measured before.
///
/// # Errors
/// If the folder for files cannot be created.
pub fn run(plan: &NeverWorsePlan, programs: &Programs) -> Result<NeverWorse, LiveError> {
    let directory = tempfile::tempdir().map_err(|source| LiveError::File {
        path: std::env::temp_dir(),
        source,
    })?;
    let impaired = ImpairedPlan {
        warmup: plan.warmup,
        measure: plan.measure,
        rate: plan.rate.clone(),
        traffic: plan.traffic,
        ..ImpairedPlan::of_smallest(plan.seed)
    };
    let bench = Bench {
        plan: &impaired,
        programs,
        directory,
    };
    let (cells, before) = (plan.cells(), kept(&plan.kept));
    let mut progress = ProgressLine::new(cells.len() as u64);
    let mut all = NeverWorse::default();
    for cell in cells {
        progress.step(&cell.to_string());
        if let Some(measured) = before.iter().find(|measured| measured.cell == cell) {
            all.cells.push(measured.clone());
            continue;
        }
        let both = || {
            let plain = figures(&bench, Tool::Plain, &cell)?;
            Ok::<_, LiveError>((plain, figures(&bench, Tool::Airlane, &cell)?))
        };
        match both() {
            Ok((plain, airlane)) => {
                let measured = MeasuredCell {
                    cell,
                    plain,
                    airlane,
                };
                keep(&plan.kept, &measured).map_err(|source| LiveError::File {
                    path: plan.kept.clone(),
                    source,
                })?;
                all.cells.push(measured);
            }
            Err(error) => all.failures.push(format!("{cell}: {error}")),
        }
    }
    Ok(all)
}

fn figures(bench: &Bench<'_>, tool: Tool, cell: &Cell) -> Result<CellFigures, LiveError> {
    let errors = format!("{{ kind = \"uniform\", rate = {} }}", cell.loss_pct / 100.0);
    let air = channel::link(cell.mbps, cell.round_trip_ms / 2.0, &errors);
    let together = cell.apps == CellTraffic::All;
    let config = bench.plan.traffic.of(ClientConfig {
        congestion_control: Some(cell.endpoints.clone()),
        file: cell.apps.has(CellTraffic::File),
        pages: cell.apps.has(CellTraffic::Page),
        voice: cell.apps.has(CellTraffic::Call),
        ..bench.config()
    });
    let config = ClientConfig {
        download: config.download && together,
        ..config
    };
    let (report, mtu) = bench.traffic(tool, &air, &config)?;
    let pages = report.pages.as_ref().map_or(0, |pages| pages.completed);
    let ceiling = Ceiling {
        rate_bps: cell.mbps * 1e6,
        survival: 1.0 - cell.loss_pct / 100.0,
        mtu,
        overhead: tool.overhead(),
        // Without `services` in the file, headers are compressed.
        compact_headers: tool.is_airlane(),
        pages_per_s: pages as f64 / bench.plan.measure.as_secs_f64(),
        voice: 1.0,
    };
    Ok(CellFigures {
        file_ceiling_mbps: together.then(|| ceiling.file_bps() / 1e6),
        ..of_report(&report, f64::from(mtu), f64::from(tool.overhead()))
    })
}

fn of_report(report: &TrafficReport, mtu: f64, overhead: f64) -> CellFigures {
    let pages = report.pages.as_ref().filter(|pages| pages.completed > 0);
    let ways = [&report.voice_down, &report.voice_up];
    let p99 = ways.into_iter().flatten().map(|way| way.delay_p99_ns);
    let sent = ways.into_iter().flatten().map(|way| way.sent);
    CellFigures {
        file_mbps: report.file.as_ref().map(|file| file.goodput_bps / 1e6),
        file_ceiling_mbps: None,
        page_mean_ms: pages.map(|pages| pages.mean_ns / 1e6),
        call_loss_pct: report.voice_loss().map(|loss| loss * 100.0),
        call_p99_ms: p99.max().map(|ns| ns as f64 / 1e6),
        call_packets: sent.sum(),
        // IPv4 and TCP with timestamps.
        share: (mtu - 52.0) / (mtu + overhead),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(kept: PathBuf) -> NeverWorsePlan {
        NeverWorsePlan {
            mbps: vec![2.0, 20.0],
            round_trips_ms: vec![50.0],
            losses_pct: vec![0.0, 5.0],
            endpoints: vec![Endpoints::Cubic, Endpoints::Bbr],
            apps: CellTraffic::value_variants().to_vec(),
            warmup: Duration::from_secs(1),
            measure: Duration::from_secs(5),
            seed: 1,
            traffic: TrafficKind::OnePort,
            rate: None,
            kept,
        }
    }

    fn measured(file: [f64; 2], page: [f64; 2], call: [f64; 2]) -> MeasuredCell {
        let figures = |at: usize, share| CellFigures {
            file_mbps: Some(file[at]),
            file_ceiling_mbps: None,
            page_mean_ms: Some(page[at]),
            call_loss_pct: Some(call[at]),
            call_p99_ms: None,
            call_packets: 1_000,
            share,
        };
        MeasuredCell {
            cell: plan(PathBuf::new()).cells().remove(0),
            plain: figures(0, 0.95),
            airlane: figures(1, 0.92),
        }
    }

    #[test]
    fn a_call_alone_has_no_congestion_control() {
        let cells = plan(PathBuf::new()).cells();
        assert_eq!(cells.len(), 2 * 2 * 7);
        let calls = cells.iter().filter(|cell| cell.apps == CellTraffic::Call);
        assert_eq!(calls.count(), 4);
    }

    #[test]
    fn a_loss_within_headers_and_three_percent_is_not_worse() {
        assert_eq!(
            measured([10.0, 9.4], [100.0, 106.0], [1.0, 1.1]).worse(),
            []
        );
        let worse = measured([10.0, 9.3], [100.0, 107.0], [1.0, 1.2]).worse();
        let what: Vec<_> = worse.iter().map(|worse| worse.what).collect();
        assert_eq!(what, ["file Mbit/s", "page ms", "call lost %"]);
        assert_eq!(measured([10.0, 99.0], [100.0, 1.0], [5.0, 0.0]).worse(), []);
    }

    #[test]
    fn a_lost_packet_counts_as_later_than_a_repaired_one() {
        let call = |loss, p99| CellFigures {
            call_loss_pct: Some(loss),
            call_p99_ms: Some(p99),
            call_packets: 1_000,
            share: 0.95,
            ..CellFigures::default()
        };
        let worse = |plain, airlane| {
            let cell = plan(PathBuf::new()).cells().remove(0);
            let cell = MeasuredCell {
                cell,
                plain,
                airlane,
            };
            let what = cell.worse().into_iter().map(|worse| worse.what);
            what.collect::<Vec<_>>()
        };
        assert!(worse(call(5.0, 25.0), call(0.0, 36.0)).is_empty());
        assert_eq!(worse(call(0.5, 25.0), call(0.0, 36.0)), ["call p99 ms"]);
        assert_eq!(
            worse(call(0.5, 25.0), call(1.5, 25.0)),
            ["call lost %", "call p99 ms"]
        );
    }

    #[test]
    fn stored_cells_are_read_and_a_truncated_line_is_skipped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cells.jsonl");
        assert_eq!(kept(&path), []);
        let cell = measured([1.0, 1.0], [1.0, 1.0], [0.0, 0.0]);
        keep(&path, &cell).unwrap();
        keep(&path, &cell).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 20]).unwrap();
        assert_eq!(kept(&path), [cell]);
    }

    #[test]
    fn the_smallest_configurations_parse() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        for path in super::super::impaired::SMALLEST.map(|path| root.join(path)) {
            let text = std::fs::read_to_string(&path).unwrap();
            let table: toml::Table = text.parse().unwrap();
            assert_eq!(table["link"].as_table().unwrap().len(), 2, "{text}");
        }
    }
}
