//! Measures the speed of the simulator, and of ns-2 and ns-3 on the same machine in the same minutes.
//!
//! With a scheme and a number of segments, or with a TCP variant and its window, runs only one lossy transfer, for
//! counting its instructions (docs/lab/performance.md).

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::process::ExitCode;
use std::time::Instant;

use airlane_bench::mesh;
use airlane_bench::ns2::{Errors, Load, Ns2, Ns2Error, Setting, Topology, Variant, WirelessLink};
use airlane_bench::ns3::{Ns3, Ns3Error};
use airlane_sim::{Scenario, run};
use airlane_testkit::machine::MachineWatch;

/// Long enough for the start-up time to be negligible.
const SEGMENTS: u64 = 1_000_000;
/// The fastest trial is printed: other load on the machine can only slow one down.
const TRIALS: usize = 5;
/// Simulated time of the grid.
const GRID_SECONDS: u32 = 60;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match &arguments[..] {
        [] => table(),
        [scheme, segments] => once(scheme, segments, "reno", "20"),
        [scheme, segments, variant, window] => once(scheme, segments, variant, window),
        _ => Err(
            "give nothing, or a scheme (\"none\" for no link service) and a number of segments, and then a \
             variant of TCP and its window"
                .to_owned(),
        ),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(2)
        }
    }
}

const LOSSY: Errors = Errors::Bytes(131_072);

const fn wlan(errors: Errors) -> Setting {
    Setting {
        link: WirelessLink::Wlan,
        topology: Topology::Lan1,
        window: 20,
        queue: 50,
        errors,
        segments: SEGMENTS,
        tcp: Variant::Reno,
        load: Load::File,
    }
}

fn service(scheme: &str) -> String {
    format!("{{ number = 0, name = \"all\", rate = 1, scheme = {{ kind = \"{scheme}\" }} }}")
}

fn table() -> Result<(), String> {
    println!(
        "Bulk transfer over WLAN, LAN1: TCP segments per second on one core, Reno unless said,\n\
         the fastest of {TRIALS} runs of {SEGMENTS} segments; lossy: a bad byte in 131072\n"
    );
    let lossy = LOSSY;
    let begin = || MachineWatch::begin().map_err(|error| error.to_string());
    let whole = begin()?;
    let row = |what: &str, speed: &dyn Fn() -> Result<f64, String>| {
        let watch = begin()?;
        let speed = speed()? / 1e6;
        let lost = watch.lost().map_err(|error| error.to_string())?;
        let spoilt = if lost.spoils() { " SPOILT" } else { "" };
        println!("{what:<42} {speed:>6.2} million{spoilt}");
        Ok::<_, String>(())
    };
    let said = || {
        let lost = whole.lost().map_err(|error| error.to_string())?;
        println!("\n{lost}");
        Ok::<_, String>(())
    };
    row("Airlane, no link service", &|| {
        airlane(wlan(Errors::None), "")
    })?;
    row("Airlane, no link service, lossy", &|| {
        airlane(wlan(lossy), "")
    })?;
    for scheme in ["default", "sr-m2", "rlp"] {
        let what = format!("Airlane, {scheme}, lossy");
        row(&what, &|| airlane(wlan(lossy), &service(scheme)))?;
    }
    for tcp in &Variant::ALL[1..] {
        let what = format!("Airlane, no link service, lossy, {}", tcp.name());
        let setting = Setting {
            tcp: *tcp,
            ..wlan(lossy)
        };
        row(&what, &|| airlane(setting, ""))?;
    }
    for window in [200, 2_000] {
        let what = format!("Airlane, no link service, lossy, sack, {window}");
        let setting = Setting {
            tcp: Variant::Sack,
            window,
            queue: window,
            ..wlan(lossy)
        };
        row(&what, &|| airlane(setting, ""))?;
    }
    let ns2 = match Ns2::find() {
        Ok(ns2) => Some(ns2),
        Err(missing @ Ns2Error::Missing) => {
            println!("\n{missing}, to see it beside");
            None
        }
        Err(error) => return Err(error.to_string()),
    };
    if let Some(ns2) = &ns2 {
        row("ns-2, no link service", &|| beside(ns2, wlan(Errors::None)))?;
        row("ns-2, no link service, lossy", &|| beside(ns2, wlan(lossy)))?;
    }
    grid(ns2.as_ref())?;
    said()
}

/// The saturated grid, in each simulator that is installed.
fn grid(ns2: Option<&Ns2>) -> Result<(), String> {
    println!(
        "\n{GRID_SECONDS} s of a saturated grid of 16 stations of 802.11b, on one core, the fastest of some runs, and what its \
         flows got, the one over three hops first\n"
    );
    let row = |what: &str, trials: usize, once: &dyn Fn() -> Result<Vec<f64>, String>| {
        let mut flows = Vec::new();
        let seconds = fastest_of(trials, || {
            flows = once()?;
            Ok(())
        })?;
        let flows: Vec<String> = flows
            .iter()
            .map(|bps| format!("{:.2}", bps / 1e6))
            .collect();
        println!("{what:<42} {seconds:>6.2} s  {} Mbit/s", flows.join(", "));
        Ok::<_, String>(())
    };
    row("Airlane", TRIALS, &|| mesh::airlane(GRID_SECONDS, 1))?;
    if let Some(ns2) = ns2 {
        row("ns-2", 2, &|| {
            ns2.run_mesh(GRID_SECONDS, 1, 0).map_err(|e| e.to_string())
        })?;
    }
    match Ns3::mesh() {
        Ok(ns3) => row("ns-3", 2, &|| {
            ns3.run_mesh(GRID_SECONDS, 1, 0).map_err(|e| e.to_string())
        }),
        Err(missing @ Ns3Error::Missing) => {
            println!("\n{missing}, to see it beside");
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn once(scheme: &str, segments: &str, variant: &str, window: &str) -> Result<(), String> {
    let segments = segments
        .parse()
        .map_err(|_| format!("{segments} is no number of segments"))?;
    let window = window
        .parse()
        .map_err(|_| format!("{window} is no number of segments for a window"))?;
    let known = Variant::ALL.map(Variant::name).join(", ");
    let tcp = Variant::ALL.into_iter().find(|tcp| tcp.name() == variant);
    let setting = Setting {
        segments,
        window,
        queue: wlan(LOSSY).queue.max(window),
        tcp: tcp.ok_or_else(|| format!("{variant} is none of {known}"))?,
        ..wlan(LOSSY)
    };
    let services = match scheme {
        "none" => String::new(),
        scheme => service(scheme),
    };
    transfer(&setting.scenario(&services))
}

fn transfer(scenario: &Scenario) -> Result<(), String> {
    let result = run(scenario, 1, 0).map_err(|e| e.to_string())?;
    match result.finished {
        true => Ok(()),
        false => Err("the transfer did not end".to_owned()),
    }
}

/// Seconds of the fastest trial.
fn fastest(trial: impl FnMut() -> Result<(), String>) -> Result<f64, String> {
    fastest_of(TRIALS, trial)
}

fn fastest_of(trials: usize, mut trial: impl FnMut() -> Result<(), String>) -> Result<f64, String> {
    let mut best = f64::INFINITY;
    for _ in 0..trials {
        let start = Instant::now();
        trial()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

fn airlane(setting: Setting, services: &str) -> Result<f64, String> {
    let scenario: Scenario = setting.scenario(services);
    let seconds = fastest(|| transfer(&scenario))?;
    Ok(SEGMENTS as f64 / seconds)
}

/// Subtracts ns-2's start-up time, which is the time of a transfer of one segment.
fn beside(ns2: &Ns2, setting: Setting) -> Result<f64, String> {
    let once = |setting: &Setting| {
        let measured = ns2.run(setting, 1, 0).map_err(|e| e.to_string());
        measured.map(drop)
    };
    let start = Setting {
        segments: 1,
        ..setting
    };
    let starting = fastest(|| once(&start))?;
    let all = fastest(|| once(&setting))?;
    Ok(SEGMENTS as f64 / (all - starting))
}
