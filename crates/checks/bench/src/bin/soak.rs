//! `make soak`: checks that a link stays healthy for a long time, under everything that happens to links.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use airlane_bench::soak::{SoakOutcome, SoakPlan, run};
use airlane_testkit::netns;
use clap::Parser;

/// Load a secured link with a file, pages and voice while its loss changes and its ends are killed, restarted, moved
/// and rekeyed
///
/// Fails if memory grows, an application does not recover, the ledgers do not add up, or drops occur that no event
/// explains. Needs root.
#[derive(Parser)]
#[command(
    name = "airlane-soak",
    after_help = "\
Examples:
  airlane-soak                                # 20 minutes
  airlane-soak --minutes 3 --seed 7           # another schedule, and shorter

Exit code 0 if all holds, 1 if not, with what failed."
)]
struct Args {
    /// Minutes of load
    #[arg(long, default_value_t = 20.0, value_parser = minutes)]
    minutes: f64,
    /// Seed of the events and of the losses
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Approximate seconds between two events
    #[arg(long, default_value_t = 18, value_parser = clap::value_parser!(u64).range(12..))]
    every: u64,
    /// Files of the left and the right end; their keys are replaced
    #[arg(long, num_args = 2, value_names = ["LEFT", "RIGHT"],
          default_values = ["demo/left.toml", "demo/right.toml"])]
    ends: Vec<PathBuf>,
    /// Where to write the results
    #[arg(long, value_name = "PATH", default_value = "target/soak.json")]
    json: PathBuf,
    /// The program under test, an optimised build
    #[arg(long, value_name = "PATH", default_value = "target/quick/airlane")]
    airlane: PathBuf,
}

fn minutes(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(minutes) if (3.0..=1440.0).contains(&minutes) => Ok(minutes),
        _ => Err("give 3 to 1440 minutes".to_owned()),
    }
}

fn main() {
    let code = match soak(&Args::parse()) {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(error) => {
            eprintln!("airlane-soak: {error}");
            1
        }
    };
    // Ends the process even if the load is still running.
    netns::exit(code)
}

/// Returns whether all checks passed.
fn soak(args: &Args) -> Result<bool, Box<dyn Error>> {
    netns::available()?;
    netns::clean_up_on_signals()?;
    if !args.airlane.exists() {
        let path = args.airlane.display();
        let build = "build it with: cargo build --release -p airlane-cli";
        return Err(format!("{path} does not exist; {build}").into());
    }
    let outcome = run(&SoakPlan {
        airlane: args.airlane.clone(),
        ends: [args.ends[0].clone(), args.ends[1].clone()],
        total: Duration::from_secs_f64(args.minutes * 60.0),
        every: Duration::from_secs(args.every),
        seed: args.seed,
    })?;
    let mut json = serde_json::to_string_pretty(&outcome)?;
    json.push('\n');
    let written = std::fs::write(&args.json, json);
    written.map_err(|error| format!("{}: {error}", args.json.display()))?;
    print(&outcome, &mut io::stdout())?;
    writeln!(io::stdout(), "all of it is in {}", args.json.display())?;
    Ok(outcome.failures.is_empty())
}

fn print(outcome: &SoakOutcome, out: &mut impl Write) -> io::Result<()> {
    for (number, round) in (1..).zip(&outcome.rounds) {
        writeln!(out, "round {number}")?;
        if let Some(traffic) = &round.traffic {
            write!(out, "{traffic}")?;
        }
        for line in &round.books {
            let verdict = if line.adds_up {
                ""
            } else {
                "  DOES NOT ADD UP"
            };
            writeln!(
                out,
                "{:>5} {:<8} sent {:>8}, delivered {:>8}, lost {:>6}, in new epochs {:>6}; \
                 unexplained {:>6} of {:?}{verdict}",
                line.from,
                line.service,
                line.sent,
                line.delivered,
                line.residual_lost,
                line.epoch_lost,
                line.unexplained,
                line.allowed
            )?;
        }
    }
    let seconds = |s: Option<f64>| s.map_or("-".to_owned(), |s| format!("{s:.2}"));
    for event in &outcome.events {
        let r = &event.recovered;
        writeln!(
            out,
            "{:>5.0} s  {:<20} {:>5.1} s; then voice {} and {} s, page {} s, file {} s",
            event.at_s,
            event.event.to_string(),
            r.outage_s,
            seconds(r.voice_down_s),
            seconds(r.voice_up_s),
            seconds(r.page_s),
            seconds(r.file_s)
        )?;
    }
    for life in &outcome.lives {
        let memory = life.memory.as_ref().map_or("too short".to_owned(), |m| {
            let [a, b, c] = m.medians.map(|bytes| bytes as f64 / 1e6);
            format!(
                "{a:.2}, {b:.2}, {c:.2} MB in its thirds, {} frames each",
                m.frames
            )
        });
        writeln!(
            out,
            "{:<5} lived {:>4.0} s: {memory}; drops {:?}",
            life.end, life.age_s, life.drops
        )?;
    }
    for failure in &outcome.failures {
        writeln!(out, "FAILED: {failure}")?;
    }
    Ok(())
}
