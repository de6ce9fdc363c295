//! The live part: kernel TCP and UDP between two network namespaces joined by `airlane air`, over the
//! raw link and then through `airlane up`, with the files in `demo/`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use airlane_cli::chart::{Better, Chart, Measure};
use airlane_cli::output;
use airlane_cli::quantity::{Estimate, Unit};
use airlane_probe::TrafficReport;
use airlane_testkit::live::{self, Experiment};
use airlane_testkit::netns;
use anyhow::{Context as _, ensure};

use crate::WAYS;

const WARMUP: Duration = Duration::from_secs(3);
const MEASURE: Duration = Duration::from_secs(20);
const SEED: u64 = 1;

/// The title, without the duration, which follows.
const TITLE: &str = "\
Live: kernel TCP (cubic) and UDP over 20 Mbit/s, 25 ms, 5 % of frames lost";

/// Whether this machine allows it, and otherwise why not.
pub(crate) fn possible() -> Result<(), netns::NetnsError> {
    netns::available()
}

pub(crate) fn run(root: &Path) -> anyhow::Result<Chart> {
    // Ctrl-C must not leave namespaces on the machine.
    netns::clean_up_on_signals().context("cannot wait for signals")?;
    let airlane = program()?;
    let files = ["air", "left", "right"].map(|name| root.join(format!("demo/{name}.toml")));
    let ends = [files[1].as_path(), files[2].as_path()];
    let mut reports = Vec::new();
    for (way, ends) in WAYS.iter().zip([None, Some(ends)]) {
        let seconds = (WARMUP + MEASURE).as_secs();
        output::note(&format!("Live, {way}: {seconds} s ..."));
        let outcome = live::run(&Experiment {
            airlane: &airlane,
            air: &files[0],
            seed: SEED,
            ends,
            warmup: WARMUP,
            measure: MEASURE,
            pages: true,
        })?;
        reports.push(outcome.traffic);
    }
    Ok(comparison(&reports))
}

/// The program `airlane`, built in the same directory as this one.
fn program() -> anyhow::Result<PathBuf> {
    let here = std::env::current_exe().context("cannot find the folder of this program")?;
    let folder = here
        .parent()
        .and_then(Path::parent)
        .unwrap_or(Path::new("."));
    let airlane = folder.join("airlane");
    ensure!(
        airlane.exists(),
        "{} is not built; run `make demo`",
        airlane.display()
    );
    Ok(airlane)
}

fn comparison(reports: &[TrafficReport]) -> Chart {
    let row =
        |flow: &str, what: &str, unit, better, value: &dyn Fn(&TrafficReport) -> Option<f64>| {
            Measure {
                flow: flow.to_owned(),
                what: what.to_owned(),
                unit,
                better,
                values: reports
                    .iter()
                    .map(|r| value(r).map(Estimate::single))
                    .collect(),
            }
        };
    let both = |r: &TrafficReport| r.voice_down.clone().zip(r.voice_up.clone());
    let seconds = |ns: u64| ns as f64 / 1e9;
    Chart {
        title: format!("{TITLE}\nOne run of {} s each", MEASURE.as_secs()),
        ways: WAYS.map(str::to_owned).to_vec(),
        measures: vec![
            row(
                "file",
                "throughput",
                Unit::BitsPerSecond,
                Better::Higher,
                &|r| r.file.as_ref().map(|file| file.goodput_bps),
            ),
            row(
                "pages",
                "mean page time",
                Unit::Seconds,
                Better::Lower,
                &|r| r.pages.as_ref().map(|pages| pages.mean_ns / 1e9),
            ),
            row(
                "voice",
                "residual loss",
                Unit::Ratio,
                Better::Lower,
                &TrafficReport::voice_loss,
            ),
            row(
                "voice",
                "median delay",
                Unit::Seconds,
                Better::Lower,
                &|r| both(r).map(|(down, up)| seconds(down.delay_p50_ns.max(up.delay_p50_ns))),
            ),
            row(
                "voice",
                "delay of 99 %",
                Unit::Seconds,
                Better::Lower,
                &|r| both(r).map(|(down, up)| seconds(down.delay_p99_ns.max(up.delay_p99_ns))),
            ),
        ],
    }
}
