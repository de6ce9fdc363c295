//! `make demo`: three applications over one lossy link, without and with Airlane.
//!
//! The first part is simulated, the second runs live between two network namespaces of this
//! machine. Tables and bars go to the terminal, a picture to `target/demo/`. The arguments are the
//! command that builds the program for the live part; it runs after the simulated tables, and only
//! if a live part is possible.

mod live;
mod simulated;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use airlane_cli::chart::Chart;
use airlane_cli::{output, svg};
use anyhow::{Context as _, ensure};

const INTRODUCTION: &str = "\
A wireless link loses frames. Three applications share it: a file transfer, a web page fetched again and
again, and a call. \"One raw service\": the link repairs nothing, and TCP takes every loss for congestion.
\"Several services\": Airlane repairs the losses of each application its own way, all that files and pages
lose, and what comes in time for the call, and shares the link among them.
";

/// The two configurations in all parts of the demo.
const WAYS: [&str; 2] = ["one raw service", "several services"];

fn main() -> ExitCode {
    match demo() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::note(&output::error_text(&error));
            ExitCode::FAILURE
        }
    }
}

fn demo() -> anyhow::Result<()> {
    output::print(INTRODUCTION)?;
    let mut comparisons = Vec::new();
    for link in simulated::LINKS {
        let comparison = simulated::run(&link, &root())?;
        show(&comparison)?;
        comparisons.push(comparison);
    }
    match live::possible() {
        Ok(()) => {
            build()?;
            let comparison = live::run(&root())?;
            show(&comparison)?;
            comparisons.push(comparison);
        }
        Err(why) => output::warn(&format!("the live part was left out: {why}")),
    }
    let path = root().join("target/demo/three-applications.svg");
    write(&path, &svg::picture(&comparisons))?;
    output::print(&format!(
        "The picture is in target/demo/{}. docs/metrics.md says what each number means.\n",
        path.file_name().unwrap_or_default().display()
    ))
}

/// Runs the command that builds the program, if one was given.
fn build() -> anyhow::Result<()> {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else {
        return Ok(());
    };
    output::note("Live: the program is built first ...");
    let built = Command::new(&program).args(words).status();
    let built = built.with_context(|| format!("cannot run {}", program.display()))?;
    ensure!(built.success(), "the program could not be built: {built}");
    Ok(())
}

fn show(comparison: &Chart) -> anyhow::Result<()> {
    output::print(&format!("\n{}\n{}", comparison.table(), comparison.bars()))
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, text))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// The root of the repository.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(3).unwrap_or(here).to_owned()
}
