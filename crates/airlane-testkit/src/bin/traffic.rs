//! A file, web pages and voice at once over the kernel's own sockets: `serve` at one end, `run` at
//! the other.

use std::io::{self, Write};
use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

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

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum App {
    File,
    Pages,
    Voice,
}

fn main() -> ExitCode {
    match run(Args::parse().verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("airlane-traffic: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> io::Result<()> {
    let mut out = io::stdout();
    match verb {
        Verb::Serve { listen, lifetime } => {
            let config = ServerConfig {
                listen,
                lifetime: Duration::from_secs(lifetime),
            };
            serve(&config, &AtomicBool::new(false), || {
                // Whoever waits for this line has gone if it cannot be written.
                let _ = writeln!(io::stdout(), "ready");
            })
        }
        Verb::Run {
            server,
            warmup,
            seconds,
            apps,
            congestion_control,
            json,
        } => {
            let duration = |s| Duration::try_from_secs_f64(s).map_err(io::Error::other);
            let config = ClientConfig {
                warmup: duration(warmup)?,
                measure: duration(seconds)?,
                congestion_control,
                file: apps.contains(&App::File),
                pages: apps.contains(&App::Pages),
                voice: apps.contains(&App::Voice),
                ..ClientConfig::new(server)
            };
            let report = run_client(&config)?;
            if json {
                writeln!(out, "{}", serde_json::to_string(&report)?)
            } else {
                write!(out, "{report}")
            }
        }
    }
}
