//! Arguments of the simulator.

use std::path::PathBuf;

use airlane_base::Duration;
use airlane_sim::scenario::TrafficSeed;
use clap::{Args, Subcommand, ValueHint};

use super::set::SetArgs;

/// The verbs of the simulator.
#[derive(Debug, Subcommand)]
pub enum SimVerb {
    /// Run one scenario and print what each flow got
    ///
    /// Repetitions differ in their errors alone: the random numbers of applications are the same in
    /// all of them, unless --traffic-seed is each-run. Means come with 95 % confidence intervals.
    /// The result does not depend on the number of threads.
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Run several scenarios with paired seeds and print them side by side
    ///
    /// The first FILE is the baseline. Repetition k of every scenario has the same seed, so that all
    /// of them meet the same fades and differences are tested in pairs.
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
}

/// Arguments of `sim run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The scenario.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// How repetitions are made.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// How many repetitions [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: Option<u32>,
    /// Changes of the file.
    #[command(flatten)]
    pub set: SetArgs,
    /// Print JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
    /// Show what each flow got in each INTERVAL [without one: at most 20 of 1, 2 or 5 times a power of ten]
    ///
    /// Throughput over time, in a table and as `over_time` of the flows in JSON: what the receiving application got, by
    /// simulated time from the start of the run to its stop. docs/metrics.md says what counts.
    #[arg(
        long,
        value_name = "INTERVAL",
        num_args = 0..=1,
        require_equals = true
    )]
    pub over_time: Option<Option<Duration>>,
    /// Replay a recorded link: its losses and delays take the place of the link's errors
    ///
    /// LINK can be left out if one link alone has errors. Can be given several times. Same as
    /// `errors = { kind = "trace", file = "FILE" }` in the file.
    #[arg(long, value_name = "[LINK=]trace:FILE")]
    pub channel: Vec<String>,
    /// Capture a link for Wireshark: LINK is all that goes over it, LINK@NODE the IP packets at one end
    ///
    /// Can be given several times, for one run only. Packets get real headers; what is lost is marked
    /// on the link, and missing at the receiving end.
    #[arg(long, value_name = "LINK[@NODE]=FILE")]
    pub pcap: Vec<String>,
    /// Write what happens to FILE as it happens, one JSON object a line: packets, frames, TCP, pages
    ///
    /// A FILE that ends in .parquet is a table with a row for each event. For one run only. docs/events.md says what each event and field is; names carry their unit.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub events: Option<PathBuf>,
    /// Only events of these kinds, such as frame-lost,timeout [default: all]
    #[arg(
        long,
        value_name = "KIND,..",
        value_delimiter = ',',
        requires = "events"
    )]
    pub event: Vec<String>,
    /// Only events of these flows
    #[arg(
        long,
        value_name = "FLOW,..",
        value_delimiter = ',',
        requires = "events"
    )]
    pub event_flow: Vec<String>,
    /// Only events on these links
    #[arg(
        long,
        value_name = "LINK,..",
        value_delimiter = ',',
        requires = "events"
    )]
    pub event_link: Vec<String>,
}

/// Arguments of `sim compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The scenarios; the first is the baseline.
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Repeat everything for each of these values, such as links.radio.errors.rate=0.01,0.05
    ///
    /// Can be given several times, for several keys: every combination of their values is simulated.
    #[arg(long, value_name = "KEY=V1,V2,..")]
    pub vary: Vec<String>,
    /// Show these measures alone, by their names in JSON, such as throughput_bps,delay_mean_s [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub measure: Vec<String>,
    /// How repetitions are made.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// How many repetitions of each scenario
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Changes of the file.
    #[command(flatten)]
    pub set: SetArgs,
    /// Print JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
    /// Draw a picture too
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,
}

/// How repetitions are made.
#[derive(Debug, Args)]
pub struct RepeatArgs {
    /// Seed of all random streams [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Seed of the applications' random numbers, apart from --seed; each-run draws anew in every
    /// repetition [default: --seed, the same in all]
    #[arg(long, value_name = "N|each-run")]
    pub traffic_seed: Option<TrafficSeed>,
    /// How many repetitions run at once [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
}

const RUN_EXAMPLES: &str = "\
Examples:
  airlane sim run scenarios/three-applications.toml
  airlane sim run scenarios/three-applications.toml --runs 30 --json > result.json
  airlane sim run scenarios/three-applications.toml --set links.radio.errors.rate=0.1
  airlane sim run scenarios/three-applications.toml --seed 7 --traffic-seed 1   # other errors, the same traffic
  airlane sim run scenarios/three-applications.toml --over-time=5s
  airlane sim run scenarios/three-applications.toml --channel trace:hill-top.trace
  airlane sim run scenarios/three-applications-raw.toml --pcap radio@mobile=mobile.pcapng
  airlane sim run scenarios/three-applications.toml --events all.jsonl
  airlane sim run scenarios/three-applications.toml --events tcp.parquet --event tcp-state,timeout";

const COMPARE_EXAMPLES: &str = "\
Examples:
  airlane sim compare raw.toml services.toml
  airlane sim compare default.toml sr-m2.toml rlp.toml --vary links.radio.errors.rate=0.01,0.02,0.05,0.1
  airlane sim compare default.toml sr-m2.toml --vary links.radio.errors.rate=0.01,0.1 --vary links.radio.delay=5ms,50ms
  airlane sim compare default.toml sr-m2.toml --measure throughput_bps,retransmissions,lost_frames
  airlane sim compare raw.toml services.toml --runs 10 --svg comparison.svg";
