//! `airlane emulate`: a scenario simulated, and beside it with the kernel's TCP and UDP over `airlane air`.

mod beside;
mod carry;
mod refuse;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use airlane_emulate::flow::{Carried, Load};
use airlane_emulate::link::EmulatedLink;
use airlane_emulate::machine::MachineWatch;
use airlane_emulate::netns::{self, Folder};
use airlane_sim::scenario::{EachRun, TrafficSeed};
use airlane_sim::{Prepared, RunResult, Scenario};
use anyhow::{Context as _, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::EmulateArgs;
use crate::{input, output, sim, world};
use beside::Beside;
use carry::Carriage;

/// Runs the verb.
pub(crate) fn emulate(args: &EmulateArgs) -> anyhow::Result<()> {
    beside::check(&args.tolerance)?;
    let document = input::document(&args.file, &args.set.set)?;
    let scenario = world::scenario(&document, &args.file)?;
    let path = std::path::absolute(&args.file)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let carriage = match Carriage::of(&scenario, folder) {
        Ok(carriage) => carriage,
        Err(problems) => return Err(document.locate(problems).into()),
    };
    sim::warn_choices(&args.file.display().to_string(), &scenario);
    carriage.notes().iter().for_each(|note| output::warn(note));
    netns::available()?;
    carriage.check_kernel()?;
    netns::clean_up_on_signals().context("cannot wait for signals")?;

    let first = args.seed.unwrap_or(scenario.seed);
    let seeds: Vec<u64> = (0..u64::from(args.runs))
        .map(|run| first.wrapping_add(run))
        .collect();
    let worlds = seeds.iter().map(|seed| prepared(&scenario, first, *seed));
    let worlds: Vec<Prepared> = worlds.collect::<Result<_, _>>()?;
    let simulated: Vec<RunResult> = (worlds.iter().zip(&seeds))
        .map(|(world, seed)| world.run(*seed, 0))
        .collect();

    let watch = MachineWatch::begin().context("cannot watch the machine")?;
    let seconds = Duration::from_nanos(scenario.duration.as_nanos());
    let mut emulated = Vec::new();
    for (run, (world, seed)) in worlds.iter().zip(&seeds).enumerate() {
        let what = format!("emulated: run {} of {}", run + 1, seeds.len());
        emulated.push(watched(&what, seconds, || one(&carriage, world, *seed))?);
    }
    let lost = watch.lost().context("cannot watch the machine")?;
    if lost.spoils() {
        output::warn(&lost.to_string());
    }

    let beside = Beside::new(
        &scenario,
        &simulated,
        &emulated,
        &args.tolerance,
        carriage.is_live(),
    );
    output::print(&if args.json {
        serde_json::to_string_pretty(&beside)? + "\n"
    } else {
        beside.text()
    })?;
    match beside.beyond() {
        beyond if beyond.is_empty() => Ok(()),
        beyond => bail!("beyond the tolerance: {}", beyond.join(", ")),
    }
}

/// The world of the run with this seed. Its traffic is that of the `first` run unless the scenario says otherwise.
fn prepared(scenario: &Scenario, first: u64, seed: u64) -> anyhow::Result<Prepared> {
    let traffic = match scenario.traffic_seed {
        None => first,
        Some(TrafficSeed::Number(traffic)) => traffic,
        Some(TrafficSeed::Word(EachRun::EachRun)) => seed,
    };
    let scenario = Scenario {
        traffic_seed: Some(TrafficSeed::Number(traffic)),
        ..scenario.clone()
    };
    Ok(Prepared::new(&scenario)?)
}

/// One emulated run, in namespaces of its own.
fn one(carriage: &Carriage, world: &Prepared, seed: u64) -> anyhow::Result<Vec<Carried>> {
    let airlane = std::env::current_exe().context("cannot find this program")?;
    let folder = Folder::new().context("cannot make a folder")?;
    let air = folder.path().join("air.toml");
    output::write(&carriage.air()?, Some(&air))?;
    let mut link = EmulatedLink::new(&airlane, &air, seed)?;
    link.silence()?;
    for host in link.hosts() {
        host.sysctl("net/ipv4/tcp_ecn", if carriage.ecn() { "1" } else { "0" })?;
    }
    if let Some(files) = carriage.live_files(folder.path())? {
        link.up(files.each_ref().map(|file| file.as_path()))?;
    }
    // What changes with time begins with the load, as in the simulator.
    link.change_air(&air, seed)?;
    let flows = carriage.flows(world, seed);
    let load = Load {
        hosts: link.hosts(),
        addresses: carriage.addresses(),
        flows: &flows,
        lasts: Duration::from_nanos(world.scenario().duration.as_nanos()),
        until: carriage.until(),
    };
    let carried = load.carry()?;
    link.finish()?;
    Ok(carried)
}

/// Runs `work`, which takes about as long as `lasts`, and shows how long it still takes.
fn watched<T>(what: &str, lasts: Duration, work: impl FnOnce() -> T) -> T {
    if !output::is_watched() {
        output::note(&format!("{what}, {} s", lasts.as_secs_f64()));
        return work();
    }
    let bar =
        ProgressBar::with_draw_target(Some(lasts.as_millis() as u64), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{bar:36} {msg}, {eta} left") {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    let done = AtomicBool::new(false);
    let begun = Instant::now();
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                bar.set_position(begun.elapsed().as_millis() as u64);
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        result
    });
    bar.finish_and_clear();
    result
}
