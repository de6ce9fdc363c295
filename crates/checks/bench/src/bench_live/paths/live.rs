//! A path and its traffic, live: the emulator between two namespaces, with or without Airlane at both ends.

use airlane_probe::{ClientConfig, Times, TrafficReport, VoiceReport};
use airlane_testkit::live::{LiveError, WIRE_SERVER};

use super::figures::{CallWay, PathFigures};
use super::world::PathWorld;
use crate::bench_live::ceiling::Ceiling;
use crate::bench_live::channel::Endpoints;
use crate::bench_live::impaired::Bench;
use crate::bench_live::tool::Tool;

/// The emulator's file. The name is that of the scenario's link, so that both lose the same frames with one seed.
fn air(world: &PathWorld) -> String {
    format!(
        "schema = 1\nname = \"radio\"\ninterfaces = [\"to-left\", \"to-right\"]\n{}",
        world.lines()
    )
}

/// Measures the applications live.
///
/// # Errors
/// If a program does not start or ends early, or an application could not begin.
pub(super) fn measure(
    bench: &Bench<'_>,
    world: &PathWorld,
    times: &Times,
    endpoints: Endpoints,
    tool: Tool,
) -> Result<PathFigures, LiveError> {
    let folder = bench.directory.path();
    for (name, bytes) in world.files() {
        let path = folder.join(name);
        std::fs::write(&path, bytes).map_err(|source| LiveError::File { path, source })?;
    }
    let config = ClientConfig {
        times: *times,
        congestion_control: Some(endpoints.name().to_owned()),
        voice: world.call,
        ..ClientConfig::new(WIRE_SERVER)
    };
    let (mut link, mut tunnel) = bench.open(tool, &air(world))?;
    // Restarted, so that the path's rates begin with the load, as in the simulator.
    link.change_air(&folder.join("air.toml"), bench.plan.seed)?;
    let config = ClientConfig {
        server: tunnel.server,
        control: std::net::SocketAddr::from((tunnel.server, config.control.port())),
        ..config
    };
    let report = link.traffic_on(bench.plan.traffic.ports(), &config)?;
    tunnel.check()?;
    let mtu = tunnel.mtu;
    drop(tunnel);
    let air = link.finish()?;
    of_report(&report, &air, mtu, tool, world, times)
}

fn of_report(
    report: &TrafficReport,
    air: &serde_json::Value,
    mtu: u32,
    tool: Tool,
    world: &PathWorld,
    times: &Times,
) -> Result<PathFigures, LiveError> {
    let missing =
        |what: &str| LiveError::Traffic(std::io::Error::other(format!("nothing came of {what}")));
    let file = report.file.as_ref().ok_or_else(|| missing("the file"))?;
    if let Some(error) = &file.error {
        return Err(LiveError::Traffic(std::io::Error::other(error.clone())));
    }
    let pages = report.pages.as_ref().ok_or_else(|| missing("pages"))?;
    let call = match world.call {
        true => {
            let ways = report.voice_down.as_ref().zip(report.voice_up.as_ref());
            let (down, up) = ways.ok_or_else(|| missing("the call"))?;
            Some([down, up].map(way))
        }
        false => None,
    };
    let bytes = |what: &str| air["down"][what]["bytes"].as_u64();
    let counts = (bytes("offered"), bytes("in_flight"), bytes("delivered"));
    let (Some(offered), Some(in_flight), Some(carried)) = counts else {
        return Err(missing("the emulator's counts"));
    };
    let ceiling = Ceiling {
        rate_bps: world.carries_bps(times),
        survival: 1.0,
        mtu,
        overhead: tool.overhead(),
        compact_headers: tool.is_airlane(),
        pages_per_s: pages.completed as f64 / times.measure.as_secs_f64(),
        voice: 0.0,
    };
    Ok(PathFigures::of(
        world,
        (offered - in_flight) as f64 / carried.max(1) as f64,
        file.goodput_bps / 1e6,
        (pages.completed > 0).then(|| pages.mean_ns / 1e6),
        call,
        &ceiling,
    ))
}

fn way(voice: &VoiceReport) -> CallWay {
    CallWay {
        sent: voice.sent,
        lost: voice.lost,
        late: voice.late,
        p95_ms: voice.delay_p95_ns as f64 / 1e6,
    }
}
