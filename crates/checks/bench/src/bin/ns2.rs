//! Compares ns-2 with Airlane, and prints the difference of their throughputs for each setting.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::path::PathBuf;
use std::process::ExitCode;

use airlane_bench::ns2::{
    AIR, KnownSetting, LIMIT, MOST_HOPS, Ns2, Ns2Error, behind_snoop, beyond, chain_label, compare,
    compare_air, compare_chain, csv, grid, markdown, markdown_air, pages,
};
use clap::Parser;

/// Compare ns-2 with Airlane, and print the differences of their throughputs.
///
/// Without ns-2 on this machine, the figures recorded in the table are used.
#[derive(Parser)]
#[command(
    after_help = "Examples:\n  airlane-ns2\n  airlane-ns2 --write docs/lab/validation-ns2.md\n\nExit codes: 0 every setting is within 5 %, 1 one is not, 2 bad input or ns-2 failed."
)]
struct Arguments {
    /// Write the report to this file too, and every setting to a CSV file beside it, if ns-2 is installed.
    #[arg(long)]
    write: Option<PathBuf>,
    /// Only settings whose label contains this, such as "sack | wlan".
    #[arg(long, conflicts_with = "write")]
    only: Option<String>,
}

fn main() -> ExitCode {
    airlane_bench::exit_code(run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    let ns2 = match Ns2::find() {
        Ok(ns2) => Some(ns2),
        Err(missing @ Ns2Error::Missing) => {
            eprintln!("{missing}. Comparing with what ns-2 gave when the table was made.");
            None
        }
        Err(error) => return Err(error.to_string()),
    };
    let mut settings: Vec<KnownSetting> = grid();
    if ns2.is_some() {
        settings.extend(beyond().into_iter().chain(behind_snoop()).chain(pages()));
    }
    if let Some(only) = &arguments.only {
        settings.retain(|known| known.label.contains(only));
    }
    let mut comparisons = Vec::new();
    for (index, known) in settings.iter().enumerate() {
        eprintln!("{} of {}: {}", index + 1, settings.len(), known.label);
        comparisons.push(compare(known, ns2.as_ref()).map_err(|e| e.to_string())?);
    }
    let is_asked = |label: &str| {
        arguments
            .only
            .as_ref()
            .is_none_or(|only| label.contains(only))
    };
    for hops in (1..=MOST_HOPS).filter(|hops| is_asked(&chain_label(*hops))) {
        eprintln!("{hops} of {MOST_HOPS} hops");
        comparisons.push(compare_chain(hops, ns2.as_ref()).map_err(|e| e.to_string())?);
    }
    let mut air = Vec::new();
    for setting in AIR.iter().filter(|setting| is_asked(&setting.label())) {
        eprintln!("files: {}", setting.label());
        let times = compare_air(setting, ns2.as_ref()).map_err(|e| e.to_string())?;
        air.push((*setting, times));
    }
    let report = markdown(&comparisons) + &markdown_air(&air);
    print!("{report}");
    match (&arguments.write, &ns2) {
        (Some(path), Some(_)) => {
            for (path, text) in [
                (path.clone(), &report),
                (path.with_extension("csv"), &csv(&comparisons)),
            ] {
                std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
            }
        }
        (Some(path), None) => eprintln!("{} is left as it is: ns-2 is not here", path.display()),
        (None, _) => {}
    }
    let missed: Vec<_> = comparisons.iter().filter(|c| !c.holds()).collect();
    for comparison in &missed {
        let (gap, limit) = (comparison.gap() * 100.0, LIMIT * 100.0);
        eprintln!("{}: {gap:+.2} %, beyond {limit} %", comparison.label);
    }
    for (setting, times) in air.iter().filter(|(_, times)| !times.is_inside()) {
        let [least, _, greatest] = times.ns2;
        let (label, mean) = (setting.label(), times.airlane.mean);
        eprintln!("{label}: {mean:.2} s, outside of {least:.2} to {greatest:.2} s");
    }
    Ok(missed.is_empty() && air.iter().all(|(_, times)| times.is_inside()))
}
