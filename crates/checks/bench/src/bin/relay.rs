//! Compares `airlane relay` with other relays.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use airlane_bench::relay::{RelayRow, Tool, measure, raise_limits};
use airlane_testkit::machine::MachineWatch;
use clap::Parser;

/// Measure `airlane relay` over loopback, and socat and HAProxy if they are installed.
///
/// One connection at full speed; a thousand at once, three times, and what the relay still holds afterwards; and how
/// soon one side learns that the other was killed. Loopback takes as much of the machine as the relay does.
#[derive(Parser)]
#[command(
    after_help = "Examples:\n  airlane-bench-relay --airlane target/release/airlane\n  airlane-bench-relay --airlane target/release/airlane --seconds 2 --json\n\nExit codes: 0 the relay carries 1 Gbit/s, keeps nothing and passes on resets; 1 it does not; 2 bad input or a measurement failed."
)]
struct Arguments {
    /// The program.
    #[arg(long)]
    airlane: PathBuf,
    /// Seconds that the single connection runs.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The required throughput, bit/s.
const FAST: f64 = 1e9;
/// Tolerance for the allocator, bytes.
const NOISE: u64 = 1 << 20;
/// "At once", s.
const SOON: f64 = 0.1;

fn main() -> ExitCode {
    airlane_bench::exit_code(run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    raise_limits()?;
    let watch = MachineWatch::begin().map_err(|error| error.to_string())?;
    let ours = Tool::Airlane(arguments.airlane.clone());
    if !ours.is_there() {
        return Err(format!("{} cannot be run", arguments.airlane.display()));
    }
    let mut rows = vec![];
    for tool in [ours, Tool::Socat, Tool::Haproxy] {
        if !tool.is_there() {
            eprintln!("{} is not installed: it is left out", tool.name());
            continue;
        }
        let row = measure(&tool, Duration::from_secs(arguments.seconds));
        rows.push(row.map_err(|error| format!("{}: {error}", tool.name()))?);
    }
    let lost = watch.lost().map_err(|error| error.to_string())?;
    match arguments.json {
        true => println!(
            "{}",
            serde_json::to_string_pretty(&rows).map_err(|e| e.to_string())?
        ),
        false => {
            table(&rows);
            println!("\n{lost}");
        }
    }
    let missed = missed(&rows[0]);
    missed
        .iter()
        .for_each(|what| eprintln!("{}: {what}", rows[0].tool));
    Ok(missed.is_empty())
}

fn table(rows: &[RelayRow]) {
    println!(
        "| | Gbit/s | processor, s/GB | memory, running | 0 / 1,000 / 0 connections: descriptors | memory | reset: client, server |"
    );
    println!("|---|---|---|---|---|---|---|");
    for row in rows {
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let heard = row.reset_s.map(|heard| match heard {
            Some(seconds) => format!("{:.1} ms", seconds * 1e3),
            None => "not heard of".to_owned(),
        });
        let (before, during, after) = (row.before, row.during, row.after);
        println!(
            "| {} | {:.2} | {:.2} | {:.1} MB | {} / {} / {} | {:.1} / {:.1} / {:.1} MB | {}, {} |",
            row.tool,
            row.throughput_bps / 1e9,
            row.processor_s_per_gb,
            megabytes(row.running_resident_bytes),
            before.descriptors,
            during.descriptors,
            after.descriptors,
            megabytes(before.resident_bytes),
            megabytes(during.resident_bytes),
            megabytes(after.resident_bytes),
            heard[0],
            heard[1],
        );
    }
}

/// The criteria that a relay misses.
fn missed(row: &RelayRow) -> Vec<String> {
    let mut missed = vec![];
    if row.throughput_bps < FAST {
        missed.push("less than 1 Gbit/s".to_owned());
    }
    if row.after.descriptors > row.before.descriptors {
        missed.push("descriptors of connections that are over are left".to_owned());
    }
    if row.after.resident_bytes > row.before.resident_bytes + NOISE {
        missed.push("memory of connections that are over is left".to_owned());
    }
    if row
        .reset_s
        .iter()
        .any(|heard| heard.is_none_or(|heard| heard > SOON))
    {
        missed.push("a killed side does not reset the other at once".to_owned());
    }
    missed
}
