//! Simulates the published figures and prints, claim by claim, what holds.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use airlane_testkit::published::{RUNS, Verdict, cause, figures, markdown, study};
use clap::Parser;

/// Simulate the published figures and print, claim by claim, what holds.
#[derive(Parser)]
#[command(
    after_help = "Examples:\n  airlane-validation\n  airlane-validation --write docs/validation.md\n  airlane-validation --check docs/validation.md\n\nExit codes: 0 as published or only printed, 1 with --check where the file differs or a claim misses, 2 bad input."
)]
struct Arguments {
    /// Repetitions of each scenario; the dissertation has 30.
    #[arg(long, default_value_t = RUNS)]
    runs: u64,
    /// Folder with the scenario files.
    #[arg(long, default_value = "scenarios")]
    scenarios: PathBuf,
    /// Write the report to this file too.
    #[arg(long)]
    write: Option<PathBuf>,
    /// Compare with this file, and fail if it differs or a claim misses without a known cause.
    #[arg(long, conflicts_with = "write")]
    check: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    let progress = |what: &str| eprintln!("{what} ...");
    let studies: Vec<_> = figures()
        .iter()
        .map(|figure| study(figure, &arguments.scenarios, arguments.runs, progress))
        .collect::<Result<_, _>>()?;
    let report = markdown(&studies, arguments.runs);
    print!("{report}");
    let file_error = |path: &Path, e| format!("{}: {e}", path.display());
    if let Some(path) = &arguments.write {
        std::fs::write(path, &report).map_err(|e| file_error(path, e))?;
    }
    let Some(path) = &arguments.check else {
        return Ok(true);
    };
    let committed = std::fs::read_to_string(path).map_err(|e| file_error(path, e))?;
    let same = committed == report;
    if !same {
        eprintln!(
            "{} is not what the simulator gives; `make validation` writes it anew",
            path.display()
        );
    }
    let missed: Vec<&str> = studies
        .iter()
        .flat_map(|study| &study.claims)
        .filter(|claim| claim.verdict == Verdict::Misses && cause(claim.id).is_none())
        .map(|claim| claim.id)
        .collect();
    if !missed.is_empty() {
        eprintln!("missed without a known cause: {}", missed.join(", "));
    }
    Ok(same && missed.is_empty())
}
