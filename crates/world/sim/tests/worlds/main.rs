//! Laws that must hold in any world: random worlds with loss from none to all.
//!
//! `make worlds` runs ten thousand of them; `WORLDS` sets the number and `WORLDS_SEED` the seed. A world that breaks
//! a law is shrunk while it still breaks one, and written as a scenario file whose path is printed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod laws;
mod little;
mod seen;
mod world;

use std::path::PathBuf;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use world::World;

/// The default number of worlds.
const WORLDS: u32 = 200;

fn number(variable: &str, usual: u32) -> u32 {
    let text = std::env::var(variable).ok();
    text.map_or(usual, |text| {
        let number = text.parse();
        number.unwrap_or_else(|_| panic!("{variable}={text}: a whole number"))
    })
}

/// The folder for worlds that break a law.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("worlds")
}

/// Writes a world and its traces, with a comment; returns the path of the scenario.
fn write(world: &World, name: &str, file: &str, say: &str) -> PathBuf {
    let (_, text) = world.scenario();
    let folder = folder().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(file);
    let say = say.lines().map(|line| format!("# {line}\n"));
    std::fs::write(&path, say.collect::<String>() + &text).unwrap();
    for (number, link) in world.links.iter().enumerate() {
        if let Some(times) = link.trace() {
            std::fs::write(folder.join(world::trace_file(number)), times).unwrap();
        }
    }
    path
}

fn hold(name: &str, laws: impl Fn(&World) -> Result<(), TestCaseError>) {
    let seed = number("WORLDS_SEED", 1);
    let config = Config {
        cases: number("WORLDS", WORLDS),
        failure_persistence: None,
        max_shrink_iters: 4_000,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&seed.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, random);
    let held = runner.run(&world::any_world(), |world| {
        // Remains if the run of this world never ends.
        write(&world, name, "running.toml", "");
        laws(&world)
    });
    match held {
        Ok(()) => {}
        Err(TestError::Fail(law, world)) => {
            let path = write(&world, name, "world.toml", &law.to_string());
            panic!("{law}\nof the smallest such world, {}", path.display());
        }
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

#[test]
fn nothing_is_lost_without_being_counted() {
    hold("books-balance", laws::books_balance);
}

#[test]
fn no_flow_carries_more_than_a_link_of_its_path() {
    hold("links-bound-flows", laws::links_bound_flows);
}

#[test]
fn every_packet_is_accounted_for() {
    hold("packets-are-somewhere", laws::packets_are_somewhere);
}

#[test]
fn a_longer_drain_changes_nothing() {
    hold("drain-changes-nothing", laws::drain_changes_nothing);
}

#[test]
fn names_and_order_change_nothing() {
    hold("names-change-nothing", laws::names_change_nothing);
    let turned = laws::TURNED.load(std::sync::atomic::Ordering::Relaxed);
    let worlds = number("WORLDS", WORLDS);
    println!("the order of flows was turned in {turned} of {worlds} worlds");
    assert!(turned * 10 >= worlds, "{turned} of {worlds}");
}

#[test]
fn many_runs_are_the_mean_of_single_ones() {
    hold("runs-are-means", laws::runs_are_means);
}
