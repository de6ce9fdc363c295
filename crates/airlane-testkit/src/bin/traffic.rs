//! A file, web pages and voice at once over an emulated lossy link on this machine: two hosts in
//! namespaces, with Airlane between them or without.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use airlane_testkit::live::{self, Experiment};
use airlane_testkit::netns;
use clap::Parser;

/// Run three applications over an emulated lossy link between two namespaces
///
/// With files for both ends, through Airlane.
#[derive(Parser)]
#[command(after_help = EXAMPLES)]
struct Args {
    /// File of the emulator, between the interfaces to-left and to-right.
    air: PathBuf,
    /// Files of the left and the right end; without them the link is used as it is.
    #[arg(num_args = 2, value_names = ["LEFT", "RIGHT"])]
    ends: Vec<PathBuf>,
    /// The program under test.
    #[arg(long, default_value = "target/release/airlane")]
    airlane: PathBuf,
    /// Seed of the emulator.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seconds of load before measuring.
    #[arg(long, default_value_t = 5.0)]
    warmup: f64,
    /// Seconds to measure.
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    netns::available()?;
    netns::clean_up_on_signals()?;
    let outcome = live::run(&Experiment {
        airlane: &args.airlane,
        air: &args.air,
        seed: args.seed,
        ends: match args.ends.as_slice() {
            [left, right] => Some([left, right]),
            _ => None,
        },
        warmup: Duration::try_from_secs_f64(args.warmup)?,
        measure: Duration::try_from_secs_f64(args.seconds)?,
        pages: true,
    })?;
    let mut out = io::stdout();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&outcome)?)?;
    } else {
        writeln!(out, "{}\n{:#}", outcome.traffic, outcome.air)?;
    }
    Ok(())
}

const EXAMPLES: &str = "\
Examples:
  airlane-traffic demo/air.toml                                    # the raw link
  airlane-traffic demo/air.toml demo/left.toml demo/right.toml     # through Airlane
  airlane-traffic demo/air.toml --seed 2 --seconds 30 --json";

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("airlane-traffic: {error}");
            ExitCode::FAILURE
        }
    }
}
