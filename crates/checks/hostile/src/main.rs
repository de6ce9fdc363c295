//! `airlane-hostile`: runs worlds, and reports those that break a law.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]
#![expect(
    clippy::disallowed_methods,
    reason = "how long to go on is said in real time; worlds have their own"
)]

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use airlane_hostile::run;
use clap::Parser;
use rayon::prelude::*;

/// Run live nodes in hostile networks drawn from seeds
#[derive(Debug, Parser)]
#[command(
    after_help = "Examples:\n  airlane-hostile\n  airlane-hostile --from 5000 --seconds 600\n  \
    airlane-hostile --seed 77\n\nExit codes: 0 every law holds; 1 one does not; 2 bad input."
)]
struct Args {
    /// Run only this world, twice, and report what went wrong in it
    #[arg(long)]
    seed: Option<u64>,
    /// Print the state of its ends every half second
    #[arg(long, requires = "seed")]
    watch: bool,
    /// The first of many worlds
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// For how long to start new ones
    #[arg(long, default_value_t = 120)]
    seconds: u64,
    /// The largest number of worlds [default: as many as there is time for]
    #[arg(long)]
    worlds: Option<u64>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match args.seed {
        Some(seed) => one(seed, args.watch),
        None => many(&args),
    }
}

fn one(seed: u64, watch: bool) -> ExitCode {
    let say: fn(u64, &str) = |ms, states| println!("{ms} ms: {states}");
    let (first, again) = (run(seed, watch.then_some(say)), run(seed, None));
    if first != again {
        println!("seed {seed}: it is not the same again: {first:?}, {again:?}");
        return ExitCode::from(1);
    }
    match first {
        Ok(outcome) => {
            for fault in &outcome.faults {
                println!("  {fault}");
            }
            println!(
                "seed {seed}: every law holds; {} of {} packets arrived, {} datagrams, {} events",
                outcome.arrived, outcome.sent, outcome.datagrams, outcome.events
            );
            ExitCode::SUCCESS
        }
        Err(broken) => {
            for fault in &broken.faults {
                println!("  {fault}");
            }
            println!("{broken}");
            ExitCode::from(1)
        }
    }
}

fn many(args: &Args) -> ExitCode {
    let until = Instant::now() + Duration::from_secs(args.seconds);
    let (next, worlds, events) = (
        AtomicU64::new(args.from),
        AtomicU64::new(0),
        AtomicU64::new(0),
    );
    let last = args.from.saturating_add(args.worlds.unwrap_or(u64::MAX));
    let broken: Vec<_> = (0..rayon::current_num_threads())
        .into_par_iter()
        .flat_map_iter(|_| {
            let mut broken = Vec::new();
            while Instant::now() < until {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= last {
                    break;
                }
                worlds.fetch_add(1, Ordering::Relaxed);
                match std::panic::catch_unwind(|| run(seed, None)) {
                    Ok(Ok(outcome)) => {
                        events.fetch_add(outcome.events, Ordering::Relaxed);
                    }
                    Ok(Err(law)) => broken.push((seed, law.to_string())),
                    Err(_) => broken.push((seed, format!("seed {seed}: it panicked"))),
                }
            }
            broken
        })
        .collect();
    for (seed, law) in &broken {
        println!("{law}\n  again: airlane-hostile --seed {seed}");
    }
    let (worlds, events) = (worlds.into_inner(), events.into_inner());
    println!(
        "{worlds} worlds, {events} events; a law is broken in {}",
        broken.len()
    );
    ExitCode::from(u8::from(!broken.is_empty()))
}
