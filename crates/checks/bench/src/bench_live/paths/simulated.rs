//! A path and its traffic in the simulator.

use std::path::Path;

use airlane_base::{Duration, Instant};
use airlane_link::{Codec, HeaderProfile, Layout};
use airlane_probe::{Times, quantile};
use airlane_sim::event::{Event, Watcher};
use airlane_sim::{Prepared, RunResult, Scenario, ScenarioError};

use super::figures::{CallWay, LATE_MS, PathFigures};
use super::world::PathWorld;
use crate::bench_live::ceiling::Ceiling;
use crate::bench_live::channel::Endpoints;

/// User bytes of a packet, which fits links with and without services.
const PACKET: u32 = 1_370;
/// IPv4 and TCP with timestamps.
const HEADERS: u32 = 52;
/// Intervals in which the file's bytes are counted.
const INTERVAL: Duration = Duration::from_millis(100);

/// Indices of the flows in the scenario; the call comes last.
const FILE: usize = 0;
const PAGES: u32 = 1;
const CALLS: [u32; 2] = [2, 3];

/// The scenario: a server, a gateway, the path, and a client.
fn scenario(world: &PathWorld, times: &Times, endpoints: Endpoints, airlane: bool) -> String {
    let goals = ["bulk", "web", "voice", "interactive", "video", "paced"];
    let services = goals.iter().enumerate().map(|(at, goal)| {
        let number = at + 1;
        format!("{{ number = {number}, name = \"{goal}\", goal = \"{goal}\" }}")
    });
    let services = services.collect::<Vec<_>>().join(", ");
    let services = match airlane {
        true => format!(
            "header = \"sealed\"\nrate-limit = \"found\"\nclasses = \"behaviour\"\nservices = [{services}]\n"
        ),
        false => String::new(),
    };
    let pacing = endpoints == Endpoints::Bbr;
    let call = |name: &str, ends: &str| {
        format!(
            "[[flows]]\nname = \"{name}\"\nends = [{ends}]\ndscp = \"EF\"\nport = 4000\n\
             transport = {{ kind = \"udp\" }}\n\
             app = {{ kind = \"cbr\", packet = \"188 B\", rate = \"75.2 kbit/s\" }}\n"
        )
    };
    let calls = match world.call {
        true => {
            call("call down", "\"server\", \"client\"") + &call("call up", "\"client\", \"server\"")
        }
        false => String::new(),
    };
    let seconds = times.total().as_secs_f64();
    format!(
        "schema = 1\nname = \"{}\"\nduration = \"{seconds} s\"\n\
         [nodes.server]\n[nodes.left]\n[nodes.client]\n\
         [links.wired]\nends = [\"server\", \"left\"]\nrate = \"10 Gbit/s\"\ndelay = \"0.01 ms\"\n\
         queue = \"9000 packets\"\n\
         [links.radio]\nends = [\"left\", \"client\"]\nframe = \"1500 B\"\n{}{services}\
         [[flows]]\nname = \"file\"\nends = [\"server\", \"client\"]\nport = 5001\n\
         transport = {{ kind = \"tcp\", congestion = \"{endpoints}\", pacing = {pacing} }}\n\
         app = {{ kind = \"bulk\", packet = \"{PACKET} B\" }}\n\
         [[flows]]\nname = \"pages\"\nends = [\"server\", \"client\"]\n\
         transport = {{ kind = \"tcp\", congestion = \"{endpoints}\", pacing = {pacing} }}\n\
         app = {{ kind = \"pages\", request = \"100 B\", reply = \"20 kB\", pause = \"100 ms\", packet = \"{PACKET} B\" }}\n\
         {calls}",
        world.name,
        world.lines(),
    )
}

/// Counts what began in the measuring period.
struct Applications {
    from: Instant,
    until: Instant,
    pages: u64,
    page_ms: f64,
    sent: [u64; 2],
    delays_ns: [Vec<u64>; 2],
}

impl Applications {
    fn counts(&self, begun: Instant) -> bool {
        self.from <= begun && begun < self.until
    }

    fn call(&mut self) -> [CallWay; 2] {
        [0, 1].map(|way| {
            let delays = &mut self.delays_ns[way];
            delays.sort_unstable();
            CallWay {
                sent: self.sent[way],
                lost: self.sent[way] - delays.len() as u64,
                late: delays
                    .iter()
                    .filter(|delay| **delay as f64 / 1e6 > LATE_MS)
                    .count() as u64,
                p95_ms: quantile(delays, 0.95) as f64 / 1e6,
            }
        })
    }
}

impl Watcher for Applications {
    fn on_event(&mut self, now: Instant, event: &Event) {
        let way = |flow: u32| CALLS.iter().position(|call| *call == flow);
        match event {
            Event::PacketSent(packet) if self.counts(packet.created) => {
                if let Some(way) = way(packet.flow) {
                    self.sent[way] += 1;
                }
            }
            Event::PacketReceived(packet) if self.counts(packet.created) => {
                if let Some(way) = way(packet.flow) {
                    let delay = now.saturating_since(packet.created);
                    self.delays_ns[way].push(delay.as_nanos());
                }
            }
            Event::ResponseDone { flow, duration, .. } if *flow == PAGES => {
                let begun = now.as_nanos().saturating_sub(duration.as_nanos());
                if self.counts(Instant::ORIGIN + Duration::from_nanos(begun)) {
                    self.pages += 1;
                    self.page_ms += duration.as_nanos() as f64 / 1e6;
                }
            }
            _ => {}
        }
    }
}

/// Measures the applications in the simulator.
///
/// # Errors
/// If the path is not a valid scenario.
pub(super) fn measure(
    world: &PathWorld,
    times: &Times,
    endpoints: Endpoints,
    airlane: bool,
    seed: u64,
) -> Result<PathFigures, ScenarioError> {
    let text = scenario(world, times, endpoints, airlane);
    let mut scenario = Scenario::from_toml(&text, &world.name)?;
    let files = world.files();
    scenario.load_traces(|path: &Path| {
        let file = files.iter().find(|(name, _)| path == Path::new(name));
        let missing = || format!("{} is none of the path's", path.display());
        file.map(|(_, bytes)| bytes.clone()).ok_or_else(missing)
    })?;
    let at =
        |time: std::time::Duration| Instant::ORIGIN + Duration::from_nanos(time.as_nanos() as u64);
    let mut applications = Applications {
        from: at(times.warmup),
        until: at(times.warmup + times.measure),
        pages: 0,
        page_ms: 0.0,
        sent: [0; 2],
        delays_ns: [Vec::new(), Vec::new()],
    };
    let prepared = Prepared::new(&scenario)?.over_time(INTERVAL, 1)?;
    let result = prepared.run_watched(seed, 0, &mut applications);
    let pages = applications.pages as f64;
    let ceiling = Ceiling {
        rate_bps: world.carries_bps(times),
        survival: 1.0,
        mtu: PACKET + HEADERS,
        overhead: match airlane {
            true => Codec::new(HeaderProfile::Sealed).header_len(&Layout::SEQ_ACK) as u32,
            false => 0,
        },
        // Simulated packets have no headers to compress.
        compact_headers: false,
        pages_per_s: pages / times.measure.as_secs_f64(),
        voice: 0.0,
    };
    Ok(PathFigures::of(
        world,
        sent_of_carried(&result),
        file_mbps(&result, times),
        (pages > 0.0).then(|| applications.page_ms / pages),
        world.call.then(|| applications.call()),
        &ceiling,
    ))
}

/// Bytes sent over bytes carried. Frames still in flight at the end count as neither.
fn sent_of_carried(result: &RunResult) -> f64 {
    let radio = result.links.iter().find(|link| link.name == "radio");
    let way = &radio.expect("the scenario has this link").down.channel;
    let carried = way.delivered.bytes;
    let vain = way.dropped_queue.bytes + way.lost_air.bytes;
    (carried + vain) as f64 / carried.max(1) as f64
}

fn file_mbps(result: &RunResult, times: &Times) -> f64 {
    let over_time = result.flows[FILE].over_time.as_ref();
    let over_time = over_time.expect("it was asked for");
    let at =
        |time: std::time::Duration| (time.as_secs_f64() / over_time.interval_s).round() as usize;
    let measured = at(times.warmup)..at(times.warmup + times.measure);
    let intervals = over_time.throughput_bps.get(measured).unwrap_or_default();
    intervals.iter().sum::<f64>() / intervals.len().max(1) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(name: &str) -> PathWorld {
        let mut all = PathWorld::all().into_iter();
        all.find(|world| world.name == name).unwrap()
    }

    /// Each path must be a valid scenario; otherwise only the live run would show the error.
    #[test]
    fn every_path_makes_a_scenario() {
        for world in PathWorld::all() {
            for endpoints in [Endpoints::Cubic, Endpoints::Bbr] {
                for airlane in [false, true] {
                    let text = scenario(&world, &world.times(None), endpoints, airlane);
                    Scenario::from_toml(&text, &world.name).unwrap();
                }
            }
        }
    }

    /// CUBIC uses a share of a path of 2 Mbit/s, and never more than its capacity.
    #[test]
    fn used_capacity_never_exceeds_carried_capacity() {
        for name in ["police-2-50", "steps-2"] {
            let world = world(name);
            let times = world.times(None);
            for airlane in [false, true] {
                let got = measure(&world, &times, Endpoints::Cubic, airlane, 1).unwrap();
                assert!((0.1..1.02).contains(&got.used), "{name}: {got:?}");
                assert!(got.sent_of_carried >= 1.0, "{name}: {got:?}");
                assert!(got.page_mean_ms.is_some_and(|ms| ms > 50.0), "{got:?}");
                assert!(got.call_p95_ms.is_some_and(|ms| ms > 25.0), "{got:?}");
            }
        }
    }
}
