//! Compares the kernel's TCP with the profile `modern`, and prints the differences.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;

use airlane_bench::kernel::{BesideKernel, Point, Site, limit, markdown, missing, run_simulator};
use airlane_bench::progress::ProgressLine;
use airlane_testkit::netns;
use clap::Parser;

/// Compare the kernel's TCP with the profile `modern`, and print the differences; needs root.
#[derive(Parser)]
#[command(
    after_help = "Examples:\n  airlane-kernel --airlane target/quick/airlane\n  airlane-kernel --airlane target/quick/airlane --only 'file | cubic' --json\n\nExit codes: 0 every point is near enough or its cause is known, 1 one is not, 2 bad input or a run failed."
)]
struct Arguments {
    /// The program whose emulator connects the hosts.
    #[arg(long)]
    airlane: PathBuf,
    /// Seeds of each point; five times as many if the two differ too much.
    #[arg(long, default_value_t = 8)]
    seeds: u64,
    /// Write the report to this file too.
    #[arg(long, conflicts_with = "only")]
    write: Option<PathBuf>,
    /// Only points whose label contains this, such as "file | cubic".
    #[arg(long)]
    only: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    airlane_bench::exit_code(run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    netns::available().map_err(|e| e.to_string())?;
    netns::clean_up_on_signals().map_err(|e| e.to_string())?;
    let missing = missing().map_err(|e| e.to_string())?;
    for congestion in &missing {
        eprintln!("this kernel has no {}: it is left out", congestion.name());
    }
    let mut points = Point::all();
    points.retain(|point| !missing.contains(&point.congestion));
    if let Some(only) = &arguments.only {
        points.retain(|point| point.label().contains(only));
    }
    if points.is_empty() {
        return Err("no point has such a label".to_owned());
    }
    let every: Vec<usize> = (0..points.len()).collect();
    let mut runs = measure(arguments, &points, &every, 1..=arguments.seeds)?;
    // More runs decide whether a difference is due to chance.
    let is_far = |at: &usize| !beside(&points, &runs, *at).is_near();
    let far: Vec<usize> = every.into_iter().filter(is_far).collect();
    let more = arguments.seeds + 1..=arguments.seeds * AGAIN;
    runs.extend(measure(arguments, &points, &far, more)?);
    runs.sort_by_key(|run| (run.point, run.seed));
    let all: Vec<_> = (0..points.len())
        .map(|at| beside(&points, &runs, at))
        .collect();
    let release =
        std::fs::read_to_string("/proc/sys/kernel/osrelease").map_err(|e| e.to_string())?;
    let report = markdown(
        &all,
        &missing,
        release.split('-').next().unwrap_or_default().trim(),
    );
    if arguments.json {
        println!(
            "{}",
            serde_json::to_string_pretty(&all).map_err(|e| e.to_string())?
        );
    } else {
        print!("{report}");
    }
    if let Some(path) = &arguments.write {
        std::fs::write(path, &report).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    let open: Vec<_> = all
        .iter()
        .filter(|one| !one.is_near() && one.cause().is_none())
        .collect();
    for one in &open {
        let (gap, limit) = (one.gap() * 100.0, limit(one.point.congestion) * 100.0);
        eprintln!(
            "{}: {gap:+.1} %, beyond {limit} %, and nobody knows why",
            one.point.label()
        );
    }
    Ok(open.is_empty())
}

/// Paths measured at the same time.
const PATHS: usize = 4;
/// Factor of the number of seeds for a point that differs too much.
const AGAIN: u64 = 5;

/// One seed of one point.
struct Run {
    point: usize,
    seed: u64,
    kernel: f64,
    airlane: Vec<f64>,
}

/// Runs these points with each of the seeds. This takes real time, mostly waiting, so several paths run at once.
fn measure(
    arguments: &Arguments,
    points: &[Point],
    which: &[usize],
    seeds: RangeInclusive<u64>,
) -> Result<Vec<Run>, String> {
    let runs: Vec<(usize, u64)> = seeds
        .flat_map(|seed| which.iter().map(move |point| (*point, seed)))
        .collect();
    let Some(&(first, _)) = runs.first() else {
        return Ok(Vec::new());
    };
    let most = arguments.seeds * AGAIN;
    let progress = Mutex::new(ProgressLine::new(runs.len() as u64));
    let next = Mutex::new(runs.into_iter());
    let measured = Mutex::new(Vec::new());
    let worker = || {
        let mut site = Site::new(&arguments.airlane, &points[first]).map_err(|e| e.to_string())?;
        loop {
            let one = lock(&next).next();
            let Some((at, seed)) = one else {
                return Ok(());
            };
            let point = &points[at];
            lock(&progress).step(&format!("{}, seed {seed}", point.label()));
            let kernel = site
                .run(point, seed)
                .map_err(|e| format!("{}: {e}", point.label()))?;
            let runs = point.application.simulated();
            let seeds = (0..runs).map(|run| run_simulator(point, seed + run * most));
            let airlane = seeds.collect::<Result<Vec<f64>, String>>()?;
            lock(&measured).push(Run {
                point: at,
                seed,
                kernel,
                airlane,
            });
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..PATHS).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })
    .map_err(|problem: String| problem)?;
    drop(progress);
    measured.into_inner().map_err(|e| e.to_string())
}

/// The comparison at a point.
fn beside(points: &[Point], runs: &[Run], at: usize) -> BesideKernel {
    let of = || runs.iter().filter(|run| run.point == at);
    BesideKernel {
        point: points[at],
        kernel: of().map(|run| run.kernel).collect(),
        airlane: of().flat_map(|run| run.airlane.clone()).collect(),
    }
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
