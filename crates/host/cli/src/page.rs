//! HTML pages of results. The Python package `airlane` draws and writes them; this module finds and
//! calls it, and reports if it is missing.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::Context as _;

use crate::fault::BadInput;
use crate::output;

/// Names the interpreter that has the package; defaults to `python3`.
const PYTHON: &str = "AIRLANE_PYTHON";

/// Writes a page for each work in a folder of results, to `out` or to `report` in that folder. If
/// the package is missing, that is an error if `out` was given, and a note otherwise.
///
/// # Errors
/// If the pages cannot be written.
pub(crate) fn write(folder: &Path, out: Option<&Path>) -> anyhow::Result<()> {
    let python = std::env::var(PYTHON).unwrap_or_else(|_| "python3".to_owned());
    if let Err(problem) = find(&python) {
        let advice = format!(
            "no HTML page: {problem}; `pip install .` in Airlane's sources installs the Python \
             package, {PYTHON} names an interpreter that has it"
        );
        if out.is_some() {
            return Err(BadInput(advice).into());
        }
        output::note(&advice);
        return Ok(());
    }
    let mut command = Command::new(&python);
    command.args(["-m", "airlane.report"]).arg(folder);
    if let Some(out) = out {
        command.arg("--out").arg(out);
    }
    let done = command
        .output()
        .with_context(|| format!("cannot run {python}"))?;
    anyhow::ensure!(done.status.success(), "no HTML page: {}", last_line(&done));
    for page in String::from_utf8_lossy(&done.stdout).lines() {
        output::note(&format!("wrote {page}"));
    }
    Ok(())
}

/// Checks that an interpreter has the package; the error says why not.
fn find(python: &str) -> Result<(), String> {
    let mut command = Command::new(python);
    command.args(["-c", "import airlane.report"]);
    match command.output() {
        Err(error) => Err(format!("{python}: {error}")),
        Ok(done) if !done.status.success() => Err(format!("{python}: {}", last_line(&done))),
        Ok(_) => Ok(()),
    }
}

fn last_line(done: &Output) -> String {
    let text = String::from_utf8_lossy(&done.stderr);
    let last = text.trim_end().lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}
