//! Measures `airlane send` live.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::path::PathBuf;
use std::process::ExitCode;

use airlane_bench::send::{SendBench, SendRow, Way};
use airlane_testkit::machine::MachineWatch;
use airlane_testkit::netns;
use clap::Parser;

/// Measure `airlane send`: 1 GB over a clean veth, and files over a link of 20 Mbit/s that loses 5 %: alone, with a
/// call at the same time, and with a sender that is killed half-way and restarted.
#[derive(Parser)]
#[command(
    after_help = "Examples:\n  airlane-bench-send --airlane target/release/airlane --air demo/air.toml\n\nExit codes: 0 2 Gbit/s, 85 % of the lossy link, a call that stays good; 1 less; 2 bad input or a measurement failed."
)]
struct Arguments {
    /// The program.
    #[arg(long)]
    airlane: PathBuf,
    /// The emulated link: 20 Mbit/s, 25 ms, 5 % loss.
    #[arg(long)]
    air: PathBuf,
    /// Bytes to send over the veth.
    #[arg(long, default_value_t = 1_000_000_000)]
    bytes: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Required on the clean veth, bit/s.
const CLEAN_BPS: f64 = 2e9;
/// Required on the lossy link, bit/s: 85 % of its rate.
const LOSSY_BPS: f64 = 17e6;
/// Bounds for a good call: hardly more loss than on the link, and hardly more delay than the path and half its queue.
const CALL_LOSS: f64 = 0.06;
const CALL_DELAY_S: f64 = 0.05;

fn main() -> ExitCode {
    airlane_bench::exit_code(run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    netns::available().map_err(|error| error.to_string())?;
    netns::clean_up_on_signals().map_err(|error| error.to_string())?;
    let watch = MachineWatch::begin().map_err(|error| error.to_string())?;
    let bench = SendBench {
        airlane: arguments.airlane.clone(),
        air: arguments.air.clone(),
        bytes: arguments.bytes,
    };
    let mut rows = vec![bench.clean().map_err(|error| error.to_string())?];
    rows.extend(bench.lossy().map_err(|error| error.to_string())?);
    let lost = watch.lost().map_err(|error| error.to_string())?;
    if arguments.json {
        let text = serde_json::to_string_pretty(&rows).map_err(|error| error.to_string())?;
        println!("{text}");
    } else {
        table(&rows);
        println!("\n{lost}");
    }
    let missed: Vec<_> = rows.iter().filter(|row| !holds(row)).collect();
    for row in &missed {
        eprintln!("{}: less than it should be", name(row.way));
    }
    Ok(missed.is_empty())
}

fn table(rows: &[SendRow]) {
    println!(
        "| | MB | Mbit/s | resumed, MB | call: lost, % | 1 % later than, ms |\n|---|---|---|---|---|---|"
    );
    for row in rows {
        let call = row.call.map_or_else(
            || "| |".to_owned(),
            |(loss, delay)| format!("{:.1} | {:.0} |", loss * 100.0, delay * 1e3),
        );
        println!(
            "| {} | {} | {:.1} | {} | {call}",
            name(row.way),
            row.bytes / 1_000_000,
            row.goodput_bps / 1e6,
            row.resumed_bytes / 1_000_000,
        );
    }
}

const fn name(way: Way) -> &'static str {
    match way {
        Way::Clean => "clean veth",
        Way::Lossy => "lossy link",
        Way::BesideCall => "lossy link, beside a call",
        Way::Killed => "lossy link, sender killed half-way",
    }
}

fn holds(row: &SendRow) -> bool {
    match row.way {
        Way::Clean => row.goodput_bps >= CLEAN_BPS,
        Way::Lossy => row.goodput_bps >= LOSSY_BPS,
        Way::BesideCall => {
            let good = |(loss, delay)| loss < CALL_LOSS && delay < CALL_DELAY_S;
            row.goodput_bps >= LOSSY_BPS && row.call.is_some_and(good)
        }
        // Half of the file should have been received before.
        Way::Killed => row.resumed_bytes > row.bytes / 4,
    }
}
