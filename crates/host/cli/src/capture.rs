//! `airlane sim run --pcap LINK[@NODE]=FILE`.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use airlane_sim::{CapturePoint, Scenario, ScenarioError};
use anyhow::Context as _;

use crate::fault::BadInput;

/// Opens the files of `captures`, after checking that all of them can be captured.
pub(crate) fn open(
    scenario: &Scenario,
    captures: &[String],
) -> anyhow::Result<Vec<(CapturePoint, BufWriter<File>)>> {
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
    for (point, _) in &points {
        point.check(scenario).map_err(bad_input)?;
    }
    let open = |(point, path): (CapturePoint, &Path)| {
        let file = File::create(path)
            .with_context(|| BadInput(format!("--pcap: cannot write {}", path.display())))?;
        anyhow::Ok((point, BufWriter::new(file)))
    };
    points.into_iter().map(open).collect()
}

pub(crate) fn bad_input(error: ScenarioError) -> anyhow::Error {
    match error {
        ScenarioError::Refused(error) => error.into(),
        error @ ScenarioError::NoCapture { .. } => BadInput(error.to_string()).into(),
        error => error.into(),
    }
}
