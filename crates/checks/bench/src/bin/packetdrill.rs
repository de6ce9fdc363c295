//! Plays a folder of packetdrill scripts against the profile `modern`, and prints the results.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use airlane_bench::packetdrill::{Row, play, table};
use clap::Parser;

/// Play packetdrill's TCP scripts against the profile `modern`, and print the results by folder.
///
/// Scripts are not part of Airlane: github.com/google/packetdrill has them in gtests/net/tcp.
#[derive(Parser)]
#[command(
    after_help = "Examples:\n  airlane-packetdrill packetdrill/gtests/net/tcp\n  airlane-packetdrill packetdrill/gtests/net/tcp/sack --json\n\nExit codes: 0 the scripts were played, whatever came out; 2 bad input."
)]
struct Arguments {
    /// Every script (*.pkt) in this folder and below is played.
    folder: PathBuf,
    /// Print JSON, one script after the other.
    #[arg(long)]
    json: bool,
    /// Write the table to this file too.
    #[arg(long)]
    write: Option<PathBuf>,
}

fn main() -> ExitCode {
    airlane_bench::exit_code(run(&Arguments::parse()).map(|()| true))
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let folder = &arguments.folder;
    let mut paths = vec![];
    scripts(folder, &mut paths)?;
    paths.sort();
    if paths.is_empty() {
        return Err(format!("{}: no script (*.pkt) is in it", folder.display()));
    }
    let row = |path: &PathBuf| {
        let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let within = path
            .parent()
            .and_then(|parent| parent.strip_prefix(folder).ok());
        let within = within
            .map(|within| within.display().to_string())
            .filter(|within| !within.is_empty());
        Ok(Row {
            folder: within.unwrap_or_else(|| ".".to_owned()),
            name: path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            verdict: play(&String::from_utf8_lossy(&bytes)),
        })
    };
    let rows: Vec<Row> = paths.iter().map(row).collect::<Result<_, String>>()?;
    let table = table(&rows);
    match arguments.json {
        true => println!(
            "{}",
            serde_json::to_string_pretty(&rows).map_err(|e| e.to_string())?
        ),
        false => print!("{table}"),
    }
    if let Some(path) = &arguments.write {
        fs::write(path, &table).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

fn scripts(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let path = entry.path();
        if entry.file_type().map_err(wrong)?.is_dir() {
            scripts(&path, found)?;
        } else if path.extension().is_some_and(|end| end == "pkt") {
            found.push(path);
        }
    }
    Ok(())
}
