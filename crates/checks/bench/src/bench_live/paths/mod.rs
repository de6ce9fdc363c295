//! `--paths`: paths that test the rate estimator, each live and simulated from one description, with and without
//! Airlane.

mod figures;
mod live;
mod outcome;
mod simulated;
mod world;

use std::time::Duration;

use airlane_testkit::live::LiveError;
use airlane_testkit::machine::MachineWatch;

use super::channel::Endpoints;
use super::impaired::{Bench, ImpairedPlan};
use super::site::Programs;
use super::tool::Tool;
use crate::progress::ProgressLine;

use figures::PathVerdicts;
pub use outcome::Paths;
use outcome::{PathCell, WithoutAndWith};
use world::Asked;
pub use world::PathWorld;

/// What is measured.
#[derive(Clone, Debug)]
pub struct PathsPlan {
    /// The paths.
    pub worlds: Vec<PathWorld>,
    /// Congestion controls of the server.
    pub endpoints: Vec<Endpoints>,
    /// Duration of each measurement, instead of the path's own.
    pub measure: Option<Duration>,
    /// Seed of the losses.
    pub seed: u64,
}

/// Measures each path without and with Airlane, first live and then simulated. What cannot be run is noted.
///
/// # Errors
/// If the folder for files cannot be created.
pub fn run(plan: &PathsPlan, programs: &Programs) -> Result<Paths, LiveError> {
    let directory = tempfile::tempdir().map_err(|source| LiveError::File {
        path: std::env::temp_dir(),
        source,
    })?;
    let impaired = ImpairedPlan::of_smallest(plan.seed);
    let bench = Bench {
        plan: &impaired,
        programs,
        directory,
    };
    let cells = plan.worlds.len() * plan.endpoints.len();
    let mut progress = ProgressLine::new(cells as u64);
    let mut paths = Paths::default();
    for world in &plan.worlds {
        for &endpoints in &plan.endpoints {
            let what = format!("{}, {endpoints}", world.name);
            progress.step(&what);
            match cell(&bench, plan, world, endpoints) {
                Ok(cell) => paths.measured.rows.push(cell),
                Err(error) => paths.measured.failed(what, &error),
            }
        }
    }
    Ok(paths)
}

fn cell(
    bench: &Bench<'_>,
    plan: &PathsPlan,
    world: &PathWorld,
    endpoints: Endpoints,
) -> Result<PathCell, LiveError> {
    let times = world.times(plan.measure);
    let part = world.asked_part(&times);
    let both = |without, airlane| WithoutAndWith {
        without,
        airlane,
        verdicts: PathVerdicts::of(world, part, &without, &airlane),
    };
    let watch = MachineWatch::begin().map_err(LiveError::Traffic)?;
    let over = |tool| live::measure(bench, world, &times, endpoints, tool);
    let live = both(over(Tool::Plain)?, over(Tool::Airlane)?);
    let lost = watch.lost().map_err(LiveError::Traffic)?;
    let over = |airlane| {
        let simulated = simulated::measure(world, &times, endpoints, airlane, plan.seed);
        simulated.map_err(|error| LiveError::Traffic(std::io::Error::other(error)))
    };
    let simulated = both(over(false)?, over(true)?);
    Ok(PathCell {
        world: world.name.clone(),
        endpoints: endpoints.name(),
        carries_mbps: world.carries_bps(&times) / 1e6,
        asked_part: (world.asked == Asked::OfPath).then_some(part),
        live,
        simulated,
        lost,
    })
}
