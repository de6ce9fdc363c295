//! `make bench-live`: compares Airlane with other tunnels, on a clean and on an impaired link.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use airlane_bench::bench_live::channel::{Endpoints, LossChannel};
use airlane_bench::bench_live::clean::CleanPlan;
use airlane_bench::bench_live::impaired::ImpairedPlan;
use airlane_bench::bench_live::never_worse::{self, CellTraffic, NeverWorsePlan};
use airlane_bench::bench_live::paths::{self, PathWorld, PathsPlan};
use airlane_bench::bench_live::site::Programs;
use airlane_bench::bench_live::tool::{Named, NamedParser, Tool};
use airlane_bench::bench_live::traffic::TrafficKind;
use airlane_bench::bench_live::{BenchPlan, forward, forward_offload, install, run};
use airlane_testkit::netns;
use clap::{Parser, Subcommand};

/// Compare Airlane with other tunnels, in network namespaces of this machine
///
/// Prints tables and writes a JSON file. Needs root. Without --clean and --impaired, measures both.
/// docs/lab/bench-live.md describes the method and the figures.
#[derive(Parser)]
#[command(name = "airlane-bench-live", after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Verb {
    /// Forward between a TUN device and a UDP socket; the bench starts this itself
    #[command(hide = true)]
    PlainTun {
        /// Name of the device.
        interface: String,
        /// Address of this end.
        listen: SocketAddr,
        /// Address of the other end.
        peer: SocketAddr,
        /// With super-packets, GSO and GRO.
        #[arg(long)]
        offload: bool,
    },
}

#[derive(clap::Args)]
struct Bench {
    /// Measure the clean link: speed, round trip, processor time (2 min)
    #[arg(long)]
    clean: bool,
    /// Measure the impaired link: a file, pages and voice at once (25 min)
    #[arg(long)]
    impaired: bool,
    /// Measure briefly, and the clean link once, to check that everything works
    #[arg(long)]
    quick: bool,
    /// Seconds of each measurement [default: 3 clean, 30 impaired; quick: 1 and 5]
    #[arg(long, value_parser = seconds)]
    seconds: Option<Duration>,
    /// Runs of each tool on the clean link [default: 5; quick: 1]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Tools to measure, or the path of another build of airlane to compare with; plain is for the impaired link
    /// only, veth and openvpn for the clean one
    #[arg(long, value_delimiter = ',', value_name = "A,B", value_parser = NamedParser)]
    tools: Vec<Named>,
    /// Channels of the impaired link [default: all but steps, steps-5 and bursts-5-frames]
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    channels: Vec<LossChannel>,
    /// Congestion control of the impaired link's server
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "A,B",
        default_value = "cubic,bbr"
    )]
    endpoints: Vec<Endpoints>,
    /// Files of Airlane's left and right end on the impaired link, to try another profile; their keys are replaced
    #[arg(long, num_args = 2, value_names = ["LEFT", "RIGHT"],
          default_values = ["demo/left.toml", "demo/right.toml"])]
    ends: Vec<PathBuf>,
    /// The rate that Airlane's ends state for the impaired link, such as "30 Mbit/s" or auto [default: as in their
    /// files]
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// Which ports and marks tell the impaired link's applications apart
    #[arg(long, value_enum, default_value_t)]
    traffic: TrafficKind,
    /// Measure a grid of links without and with Airlane with the smallest files, and print which figures are worse
    /// (hours; minutes with --quick or a part of the grid). Results are kept next to the JSON file, and an
    /// interrupted run continues there
    #[arg(long, conflicts_with_all = ["clean", "impaired"])]
    never_worse: bool,
    /// Rates of the grid, Mbit/s
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "2,10,20,50",
        requires = "never_worse"
    )]
    grid_mbps: Vec<f64>,
    /// Round trips of the grid, ms
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "5,50,150",
        requires = "never_worse"
    )]
    grid_ms: Vec<f64>,
    /// Losses of the grid, percent
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "0,1,5,10",
        requires = "never_worse"
    )]
    grid_loss: Vec<f64>,
    /// The traffic of the grid
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "file,page,call,all",
        requires = "never_worse"
    )]
    grid_apps: Vec<CellTraffic>,
    /// Measure paths that test the rate estimator, without and with Airlane with the smallest files, live and
    /// simulated (28 min): policers, steps, a satellite, 64 kbit/s, radios; or those whose names begin like this
    #[arg(long, value_delimiter = ',', num_args = 0.., value_name = "A,B",
          conflicts_with_all = ["clean", "impaired", "never_worse"])]
    paths: Option<Vec<String>>,
    /// Seed of the impaired link's losses
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where to write the figures
    #[arg(long, value_name = "PATH", default_value = "target/bench-live.json")]
    json: PathBuf,
    /// The program under test, a release build
    #[arg(long, value_name = "PATH", default_value = "target/release/airlane")]
    airlane: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  airlane-bench-live                                         # everything
  airlane-bench-live --clean --tools veth,wireguard-go,airlane
  airlane-bench-live --clean --tools airlane,../before/target/release/airlane
  airlane-bench-live --impaired --tools plain,airlane --channels uniform-5,bursts-5 --endpoints cubic
  airlane-bench-live --impaired --ends my-left.toml my-right.toml --seconds 60
  airlane-bench-live --traffic one-port --rate auto --impaired --tools plain,airlane --channels uniform-5,steps
  airlane-bench-live --never-worse --quick                   # two links, 3 min
  airlane-bench-live --never-worse --grid-mbps 10 --grid-loss 3 --endpoints bbr --grid-apps file,page
  airlane-bench-live --paths                                 # all of them
  airlane-bench-live --paths police-2,geo --endpoints cubic
  airlane-bench-live --quick --json /tmp/quick.json          # does it work here?

Exit code 0 also where a figure misses what is asked of it; 1 if something could not run.";

/// The folder of the tools built for the bench.
const KEPT: &str = "target/bench-live";

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|e| e.to_string())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if (0.1..=3600.0).contains(&seconds) => Ok(duration),
        _ => Err("give 0.1 to 3600 seconds".to_owned()),
    }
}

impl Bench {
    /// The other build.
    fn other(&self) -> Result<Option<PathBuf>, String> {
        let builds = self.tools.iter().filter_map(|named| match named {
            Named::Build(path) => Some(path),
            Named::Tool(_) => None,
        });
        match builds.collect::<Vec<_>>()[..] {
            [] => Ok(None),
            [path] => Ok(Some(path.clone())),
            [first, second, ..] => Err(format!(
                "--tools: {} and {} are two other builds; name one",
                first.display(),
                second.display()
            )),
        }
    }

    fn plan(&self, programs: &Programs) -> BenchPlan {
        // With neither, measure both.
        let both = self.clean == self.impaired;
        let s = Duration::from_secs;
        let pick = |usual: &[Tool], possible: &[Tool]| -> Vec<Tool> {
            let named = |tool: &Tool| match tool {
                Tool::Other => programs.other.is_some(),
                tool => self.tools.contains(&Named::Tool(*tool)),
            };
            match self.tools.is_empty() {
                true => usual.to_vec(),
                false => possible.iter().copied().filter(named).collect(),
            }
        };
        let clean = CleanPlan {
            tools: pick(&Tool::CLEAN, &[&Tool::CLEAN[..], &[Tool::Other]].concat()),
            runs: self.runs.unwrap_or(if self.quick { 1 } else { 5 }),
            warmup: Duration::from_millis(500),
            measure: self.seconds.unwrap_or(s(if self.quick { 1 } else { 3 })),
            echoes: if self.quick { 100 } else { 400 },
        };
        let impaired = ImpairedPlan {
            tools: pick(&Tool::IMPAIRED, &Tool::IMPAIRABLE),
            channels: match self.channels.is_empty() {
                true => LossChannel::USUAL.to_vec(),
                false => self.channels.clone(),
            },
            endpoints: self.endpoints.clone(),
            warmup: s(if self.quick { 2 } else { 5 }),
            measure: self.seconds.unwrap_or(s(if self.quick { 5 } else { 30 })),
            seed: self.seed,
            ends: [0, 1].map(|end| self.ends[end].clone()),
            rate: self.rate.clone(),
            traffic: self.traffic,
        };
        BenchPlan {
            clean: (both || self.clean).then_some(clean),
            impaired: (both || self.impaired).then_some(impaired),
        }
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = match &args.verb {
        Some(Verb::PlainTun {
            interface,
            listen,
            peer,
            offload,
        }) => match offload {
            true => forward_offload(interface, *listen, *peer),
            false => forward(interface, *listen, *peer),
        }
        .map(|()| true)
        .map_err(Into::into),
        None => bench(&args.bench),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("airlane-bench-live: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether all cells ran.
fn never_worse(args: &Bench, programs: &Programs) -> Result<bool, Box<dyn Error>> {
    let s = Duration::from_secs;
    let all = |values: &[f64], quick: &[f64]| match args.quick {
        true => quick.to_vec(),
        false => values.to_vec(),
    };
    let plan = NeverWorsePlan {
        mbps: all(&args.grid_mbps, &[20.0]),
        round_trips_ms: all(&args.grid_ms, &[50.0]),
        losses_pct: all(&args.grid_loss, &[0.0, 5.0]),
        endpoints: match args.quick {
            true => args.endpoints[..1].to_vec(),
            false => args.endpoints.clone(),
        },
        apps: args.grid_apps.clone(),
        warmup: s(if args.quick { 2 } else { 4 }),
        measure: args.seconds.unwrap_or(s(if args.quick { 5 } else { 15 })),
        seed: args.seed,
        traffic: args.traffic,
        rate: args.rate.clone(),
        kept: args.json.with_extension("cells.jsonl"),
    };
    let found = never_worse::run(&plan, programs)?;
    show(&found, &found.json(), args)?;
    writeln!(io::stdout(), "each cell is in {}", plan.kept.display())?;
    Ok(found.failures.is_empty())
}

/// Returns whether all paths ran.
fn paths(names: &[String], args: &Bench, programs: &Programs) -> Result<bool, Box<dyn Error>> {
    let plan = PathsPlan {
        worlds: PathWorld::named(names)?,
        endpoints: args.endpoints.clone(),
        measure: args
            .seconds
            .or(args.quick.then_some(Duration::from_secs(5))),
        seed: args.seed,
    };
    let found = paths::run(&plan, programs)?;
    show(&found, &found.json(), args)?;
    Ok(found.measured.failures.is_empty())
}

/// Prints the table and writes the figures.
fn show(
    found: &dyn Display,
    figures: &serde_json::Value,
    args: &Bench,
) -> Result<(), Box<dyn Error>> {
    write!(io::stdout(), "{found}")?;
    let json = serde_json::to_string_pretty(figures)? + "\n";
    let written = std::fs::write(&args.json, json);
    written.map_err(|e| format!("{}: {e}", args.json.display()))?;
    writeln!(io::stdout(), "the figures are in {}", args.json.display())?;
    Ok(())
}

/// Returns whether everything ran.
fn bench(args: &Bench) -> Result<bool, Box<dyn Error>> {
    netns::available()?;
    netns::clean_up_on_signals()?;
    let kept = Path::new(KEPT);
    let programs = Programs {
        airlane: args.airlane.clone(),
        other: args.other()?,
        wireguard_go: install::wireguard_go(kept),
        own: std::env::current_exe()?,
    };
    // The emulated link is Airlane's, whatever the tool.
    if !programs.airlane.exists() {
        let path = programs.airlane.display();
        return Err(format!(
            "{path} does not exist; build it with: cargo build --release -p airlane-cli"
        )
        .into());
    }
    if args.never_worse {
        return never_worse(args, &programs);
    }
    if let Some(names) = &args.paths {
        return paths(names, args, &programs);
    }
    let results = run(args.plan(&programs), &programs)?;
    show(&results, &results.json(), args)?;
    Ok(results.failures().next().is_none())
}
