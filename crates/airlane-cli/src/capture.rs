//! `airlane sim run --pcap LINK[@NODE]=FILE`.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use airlane_sim::{CapturePoint, RunResult, Scenario, ScenarioError, run_captured};
use anyhow::Context as _;

use crate::input::BadInput;

/// Runs repetition 0 and writes its captures.
pub(crate) fn run(
    scenario: &Scenario,
    seed: u64,
    captures: &[String],
) -> anyhow::Result<RunResult> {
    let mut points: Vec<(CapturePoint, &Path)> = Vec::new();
    for capture in captures {
        let Some((point, path)) = capture.split_once('=').filter(|(_, path)| !path.is_empty())
        else {
            let wrong = format!(
                "--pcap {capture}: no file is named; write LINK=FILE, or LINK@NODE=FILE for one end"
            );
            return Err(BadInput(wrong).into());
        };
        let path = Path::new(path);
        if points.iter().any(|(_, other)| *other == path) {
            let wrong = format!("--pcap: {} is named twice", path.display());
            return Err(BadInput(wrong).into());
        }
        points.push((point.parse().map_err(bad_input)?, path));
    }
    // No file is touched before all points are known to exist.
    for (point, _) in &points {
        point.check(scenario).map_err(bad_input)?;
    }
    let open = |(point, path): (CapturePoint, &Path)| {
        let file = File::create(path)
            .with_context(|| BadInput(format!("--pcap: cannot write {}", path.display())))?;
        anyhow::Ok((point, BufWriter::new(file)))
    };
    let points = points.into_iter().map(open).collect::<Result<_, _>>()?;
    run_captured(scenario, seed, 0, points).map_err(bad_input)
}

fn bad_input(error: ScenarioError) -> anyhow::Error {
    match error {
        ScenarioError::Refused(error) => error.into(),
        error @ ScenarioError::NoCapture { .. } => BadInput(error.to_string()).into(),
        error => error.into(),
    }
}
