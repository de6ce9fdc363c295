//! A file, web pages and voice at once over the kernel's own sockets: `serve` at one end, `run` at
//! the other.

use std::error::Error;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use airlane_testkit::live::{self, Experiment};
use airlane_testkit::netns;
use airlane_testkit::traffic::{ClientConfig, ServerConfig, run_client, serve};
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about, long_about = None)]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run everything on this machine: two hosts in namespaces, a lossy link between them.
    #[command(after_help = LIVE_EXAMPLES)]
    Live(Live),
    /// Serve the file, the pages and voice.
    #[command(after_help = "Example:\n  airlane-traffic serve")]
    Serve {
        /// Address to listen on.
        #[arg(long, default_value = "::")]
        listen: IpAddr,
        /// End by itself after this many seconds.
        #[arg(long, default_value_t = 600)]
        lifetime: u64,
    },
    /// Run the applications against a server and report.
    #[command(
        after_help = "Example:\n  airlane-traffic run 10.7.0.1 --warmup 5 --seconds 60 --json"
    )]
    Run {
        /// Address of the server.
        server: IpAddr,
        /// Seconds of load before measuring.
        #[arg(long, default_value_t = 5.0)]
        warmup: f64,
        /// Seconds to measure.
        #[arg(long, default_value_t = 60.0)]
        seconds: f64,
        /// What to carry.
        #[arg(long, value_delimiter = ',', default_value = "file,pages,voice")]
        apps: Vec<App>,
        /// Congestion control of the server's TCP.
        #[arg(long, default_value = "cubic")]
        congestion_control: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Namespaces, the emulator and, with files for both ends, Airlane between two hosts.
#[derive(clap::Args)]
struct Live {
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

fn run_live(args: &Live) -> Result<(), Box<dyn Error>> {
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
        write!(out, "{}\n{}", outcome.traffic, outcome.air)?;
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum App {
    File,
    Pages,
    Voice,
}

const LIVE_EXAMPLES: &str = "\
Examples:
  airlane-traffic live demo/air.toml                                    # the raw link
  airlane-traffic live demo/air.toml demo/left.toml demo/right.toml     # through Airlane
  airlane-traffic live demo/air.toml --seed 2 --seconds 30 --json";

fn main() -> ExitCode {
    match run(Args::parse().verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("airlane-traffic: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout();
    match verb {
        Verb::Live(args) => run_live(&args)?,
        Verb::Serve { listen, lifetime } => {
            let config = ServerConfig {
                listen,
                lifetime: Duration::from_secs(lifetime),
                ..ServerConfig::default()
            };
            serve(&config, &AtomicBool::new(false), || {
                // Whoever waits for this line has gone if it cannot be written.
                let _ = writeln!(io::stdout(), "ready");
            })?;
        }
        Verb::Run {
            server,
            warmup,
            seconds,
            apps,
            congestion_control,
            json,
        } => {
            let config = ClientConfig {
                warmup: Duration::try_from_secs_f64(warmup)?,
                measure: Duration::try_from_secs_f64(seconds)?,
                congestion_control,
                file: apps.contains(&App::File),
                pages: apps.contains(&App::Pages),
                voice: apps.contains(&App::Voice),
                ..ClientConfig::new(server)
            };
            let report = run_client(&config)?;
            if json {
                writeln!(out, "{}", serde_json::to_string(&report)?)?;
            } else {
                write!(out, "{report}")?;
            }
        }
    }
    Ok(())
}
