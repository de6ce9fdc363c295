//! `airlane doctor`.

use airlane_live::doctor::{Check, Grade, examine};
use anstyle::{AnsiColor, Style};
use anyhow::bail;

use crate::args::DaemonArgs;
use crate::{input, output};

const GOOD: Style = AnsiColor::Green.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// Runs `airlane doctor`.
pub(crate) fn doctor(args: &DaemonArgs) -> anyhow::Result<()> {
    let document = input::document(&args.file, &args.set)?;
    let config = input::live(&document, &args.file)?;
    let (mut checks, mut printed) = (Vec::new(), Ok(()));
    examine(&config, &mut |check| {
        if !args.json && printed.is_ok() {
            printed = output::print(&line(&check));
        }
        checks.push(check);
    });
    printed?;
    if args.json {
        output::print(&(serde_json::json!({ "checks": checks }).to_string() + "\n"))?;
    }
    let bad = checks.iter().filter(|c| c.verdict == Grade::Bad).count();
    match bad {
        0 => Ok(()),
        n => bail!("{n} of {} checks failed", checks.len()),
    }
}

fn line(check: &Check) -> String {
    let (style, word) = match check.verdict {
        Grade::Good => (GOOD, "good"),
        Grade::Warning => (WARNING, "warning"),
        Grade::Bad => (BAD, "bad"),
    };
    // It may contain text from a peer.
    let (what, found) = (check.what, output::plain(&check.found));
    let mut line = format!("{style}{word:>7}{style:#}  {what:<9}  {found}\n");
    if let Some(help) = &check.help {
        line.push_str(&format!("{:20}{help}\n", ""));
    }
    line
}
