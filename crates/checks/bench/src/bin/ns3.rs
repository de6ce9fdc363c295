//! Compares ns-3's 802.11 with Airlane's over one hop, and prints the difference of their goodputs for each setting.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::path::PathBuf;
use std::process::ExitCode;

use airlane_bench::ns2::{Ns2, Ns2Error};
use airlane_bench::ns3::{Beside, Ns3, Ns3Error, compare, markdown, settings};
use clap::Parser;

/// Compare ns-3's 802.11 with Airlane's over one hop, and print the differences of their goodputs.
#[derive(Parser)]
#[command(
    after_help = "Examples:\n  airlane-ns3\n  airlane-ns3 --only hidden\n  airlane-ns3 --write docs/lab/validation-ns3.md\n\nExit codes: 0 every difference is within 5 % or has a known cause, 1 one is not, or ns-3 is missing, 2 bad input or ns-3 failed."
)]
struct Arguments {
    /// Write the report to this file too.
    #[arg(long)]
    write: Option<PathBuf>,
    /// Only settings whose label contains this, such as "hidden pair".
    #[arg(long, conflicts_with = "write")]
    only: Option<String>,
}

fn main() -> ExitCode {
    airlane_bench::exit_code(run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    let ns3 = match Ns3::one_hop() {
        Ok(ns3) => ns3,
        Err(missing @ Ns3Error::Missing) => {
            eprintln!("{missing}");
            return Ok(false);
        }
        Err(error) => return Err(error.to_string()),
    };
    let ns2 = match Ns2::find() {
        Ok(ns2) => Some(ns2),
        Err(missing @ Ns2Error::Missing) => {
            eprintln!("{missing}. It is left out.");
            None
        }
        Err(error) => return Err(error.to_string()),
    };
    let mut settings = settings();
    if let Some(only) = &arguments.only {
        let labels: Vec<String> = settings.iter().map(|setting| setting.label()).collect();
        settings.retain(|setting| setting.label().contains(only));
        if settings.is_empty() {
            return Err(format!(
                "--only {only:?}: no label has this; there are: {}",
                labels.join("; ")
            ));
        }
    }
    let mut rows: Vec<Beside> = Vec::new();
    for (index, setting) in settings.iter().enumerate() {
        eprintln!("{} of {}: {}", index + 1, settings.len(), setting.label());
        rows.extend(compare(setting, &ns3, ns2.as_ref())?.rows);
    }
    let report = markdown(&rows);
    print!("{report}");
    if let Some(path) = &arguments.write {
        std::fs::write(path, &report).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    let missed: Vec<_> = rows.iter().filter(|row| !row.holds()).collect();
    for row in &missed {
        eprintln!("{}: a gap beyond 5 % without a known cause", row.label);
    }
    Ok(missed.is_empty())
}
