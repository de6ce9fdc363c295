//! The laws.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use airlane_base::{Duration, Instant};
use airlane_sim::{DirectionResult, Estimate, Prepared, RunResult, ServiceResult, repeat, summary};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::seen::{OfLink, PATIENCE, Place, Seen};
use crate::world::{Link, World};

type Held = Result<(), TestCaseError>;

/// Counts the worlds in which the order of the flows must not matter.
pub(crate) static TURNED: AtomicU32 = AtomicU32::new(0);

/// Longer than most packets are in flight.
const LONG_MS: u32 = 400_000;

fn play(world: &World) -> (Prepared, RunResult) {
    let prepared = Prepared::new(&world.scenario().0).unwrap();
    let result = prepared.run(world.seed.into(), 0);
    (prepared, result)
}

/// The same world gives the same result again. What enters a link or a service has left, was lost, was dropped or is
/// in flight; no link is used beyond its capacity.
pub(crate) fn books_balance(world: &World) -> Held {
    let (prepared, result) = play(world);
    prop_assert_eq!(&prepared.run(world.seed.into(), 0), &result);
    let mut shared = 0.0;
    for link in &result.links {
        let number = link.name.strip_prefix('l').and_then(|n| n.parse().ok());
        let config: Option<&Link> = number.and_then(|n: usize| world.links.get(n));
        for (way, direction) in link.directions() {
            let what = format!("{} {way}", link.name);
            let c = direction.channel;
            let ends = [
                c.dropped_queue,
                c.lost_air,
                c.delivered,
                direction.under_way,
            ];
            let frames = ends.iter().map(|end| end.frames).sum::<u64>();
            prop_assert_eq!(frames, c.offered.frames, "{}: {:?}", &what, c);
            let bytes = ends.iter().map(|end| end.bytes).sum::<u64>();
            prop_assert_eq!(bytes, c.offered.bytes, "{}: {:?}", &what, c);
            let used = direction.utilisation_ratio;
            prop_assert!((0.0..=1.0).contains(&used), "{}: {}", &what, used);
            if config.is_some_and(|link| link.is_half_duplex()) {
                shared += used;
            }
            for service in &direction.services {
                let s = &service.sender;
                let left = s.packets_sent + s.packets_dropped();
                prop_assert_eq!(
                    left + service.waiting_packets,
                    s.packets_offered,
                    "{}: {:?}",
                    &what,
                    s
                );
                let got = service.receiver.packets_delivered;
                prop_assert!(got <= s.packets_sent, "{}: {} {:?}", &what, got, s);
            }
        }
    }
    // One transmitter serves all directions that share it, so their utilisations add up.
    prop_assert!(shared <= 1.0 + 1e-9, "{}", shared);
    for flow in &result.flows {
        // Only for datagrams, which are not retransmitted.
        if let Some(loss) = flow.loss_ratio {
            let came = flow.packets_received + flow.packets_under_way;
            prop_assert!(came <= flow.packets_sent, "{:?}", flow);
            let lost = flow.packets_sent - came;
            let ratio = lost as f64 / flow.packets_sent as f64;
            prop_assert!((loss - ratio).abs() < 1e-9, "{:?}", flow);
        }
    }
    for radio in &result.radios {
        for station in &radio.stations {
            let s = &station.counts;
            prop_assert!(s.taken <= s.accepted, "{:?}", s);
            prop_assert!(s.data_collided + s.data_noise <= s.data_frames, "{:?}", s);
        }
    }
    Ok(())
}

/// The most bits that a hop of a flow's path can carry by a time.
fn most_bits(world: &World, hop: [usize; 2], seconds: f64) -> f64 {
    let [child, down] = match hop {
        [from, to] if from < to => [to, 1],
        [from, _] => [from, 0],
    };
    // The station's sending rate.
    if child > world.links.len() {
        return 11e6 * seconds;
    }
    let link = &world.links[child - 1];
    if let Some(times) = link.opportunities_ms.as_ref().filter(|_| down == 1) {
        let round: u32 = times.iter().sum();
        let ms = seconds * 1e3;
        let rounds = (ms / f64::from(round)).floor();
        let mut at = 0.0;
        let rest = times.iter().filter(|step| {
            at += f64::from(**step);
            at <= ms - rounds * f64::from(round)
        });
        return (rounds * times.len() as f64 + rest.count() as f64) * 1504.0 * 8.0;
    }
    f64::from(link.rates_kbps[1 - down]) * 1e3 * seconds
}

/// No flow carries more than any link of its path can, and all flows together no more than has left the link.
pub(crate) fn links_bound_flows(world: &World) -> Held {
    let (_, result) = play(world);
    let mut carried = vec![[0; 2]; world.links.len()];
    for (flow, of) in result.flows.iter().zip(&world.flows) {
        let way = world.way(world.ends(of));
        for hop in way.windows(2).map(|hop| [hop[0], hop[1]]) {
            let child = hop[0].max(hop[1]);
            // Pages count one direction, and all other applications but these send in one direction only.
            if child <= world.links.len() && !["telnet", "mail"].contains(&flow.app) {
                carried[child - 1][usize::from(hop[0] > hop[1])] += flow.delivered_bytes;
                let bits = flow.delivered_bytes as f64 * 8.0;
                let most = most_bits(world, hop, result.stopped_s);
                prop_assert!(
                    bits <= most,
                    "{}: {} of {} bits over {:?}",
                    flow.name,
                    bits,
                    most,
                    hop
                );
            }
            // A link with opportunities has no rate: in the flow's own period there may be more of them than on
            // average.
            let steady = match world.links.get(child - 1) {
                Some(link) => hop[0] > hop[1] || link.opportunities_ms.is_none(),
                None => true,
            };
            if let Some(bps) = flow.throughput_bps.filter(|_| steady) {
                let most = most_bits(world, hop, 1.0);
                prop_assert!(
                    bps <= most,
                    "{}: {} of {} bit/s over {:?}",
                    flow.name,
                    bps,
                    most,
                    hop
                );
            }
        }
    }
    for (link, carried) in result.links.iter().zip(carried) {
        for ((way, direction), carried) in link.directions().into_iter().zip(carried) {
            let bytes = direction.channel.delivered.bytes;
            prop_assert!(
                carried <= bytes,
                "{} {way}: {} of {}",
                link.name,
                carried,
                bytes
            );
        }
    }
    Ok(())
}

/// Events against counters, packet by packet: each packet is somewhere between its two hosts.
pub(crate) fn packets_are_somewhere(world: &World) -> Held {
    let (prepared, result) = play(world);
    let mut seen = Seen::new(world);
    let watched = prepared.run_watched(world.seed.into(), 0, &mut seen);
    prop_assert_eq!(&watched, &result);
    for ((flow, ..), places) in &seen.packets {
        let flow = &world.flows[*flow as usize];
        // Packets from station to station enter no link, and a relay sends packets of its own.
        let way = world.way(world.ends(flow));
        let unseen = world.is_air(world.ends(flow)) || world.relay(flow).is_some();
        for (place, n) in places {
            match place {
                // A packet arrives at a node and leaves it at the same instant.
                Place::Node(_) if unseen => {}
                Place::Node(node) => {
                    prop_assert!(*n == 0 && way.contains(node), "{:?} {:?}", flow, places);
                }
                Place::Link(..) => prop_assert!(*n >= 0, "{:?} {:?}", flow, places),
            }
        }
    }
    for (index, link) in result.links.iter().enumerate() {
        for (down, (way, direction)) in [true, false].into_iter().zip(link.directions()) {
            holds_link(
                &format!("{} {way}", link.name),
                direction,
                seen.link(index, down),
            )?;
        }
    }
    for (index, flow) in result.flows.iter().enumerate() {
        // For a split flow, the result has the packets that its source sent and its receiver got; CLAP also sends
        // probes.
        if world.relay(&world.flows[index]).is_some() || flow.nacks.is_some() {
            continue;
        }
        let counts = seen.flow(index);
        prop_assert_eq!(counts.sent, flow.packets_sent, "{:?}", flow);
        if flow.loss_ratio.is_some() {
            prop_assert_eq!(counts.received, flow.packets_received, "{:?}", flow);
            prop_assert!(counts.later <= flow.packets_under_way, "{:?}", flow);
        }
        prop_assert_eq!(
            counts.again,
            flow.retransmissions.unwrap_or(0),
            "{:?}",
            flow
        );
        prop_assert_eq!(counts.timeouts, flow.timeouts.unwrap_or(0), "{:?}", flow);
        let finished = u64::from(flow.finished == Some(true));
        prop_assert_eq!(counts.finished, finished, "{:?}", flow);
    }
    Ok(())
}

/// The events of one direction of a link agree with its counters.
fn holds_link(what: &str, direction: &DirectionResult, seen: OfLink) -> Held {
    let c = direction.channel;
    // The station of a radio channel reports a frame when it has finished it, possibly after the arrival.
    let told = match what.starts_with('w') {
        true => c.offered.frames - direction.under_way.frames,
        false => c.offered.frames - c.dropped_queue.frames,
    };
    if direction.services.is_empty() {
        let under_way = direction.under_way;
        let inside = seen.entered - seen.left - seen.dropped - seen.frames_lost;
        prop_assert_eq!(inside, under_way.frames, "{}: {:?}", what, seen);
        prop_assert_eq!(seen.entered, c.offered.frames, "{}: {:?}", what, seen);
        prop_assert_eq!(seen.entered_bytes, c.offered.bytes, "{}: {:?}", what, seen);
        prop_assert_eq!(seen.left, c.delivered.frames, "{}: {:?}", what, seen);
        prop_assert_eq!(seen.left_bytes, c.delivered.bytes, "{}: {:?}", what, seen);
        prop_assert_eq!(seen.dropped, c.dropped_queue.frames, "{}: {:?}", what, seen);
        // Packets that wait for their turn have been offered and not sent.
        prop_assert!(seen.frames_sent <= told, "{}: {:?}", what, seen);
    } else {
        let of = |sum: fn(&ServiceResult) -> u64| direction.services.iter().map(sum).sum::<u64>();
        let offered = of(|service| service.sender.packets_offered);
        let dropped = of(|service| service.sender.packets_dropped());
        let delivered = of(|service| service.receiver.packets_delivered);
        prop_assert_eq!(seen.entered, offered, "{}: {:?}", what, seen);
        prop_assert_eq!(seen.dropped, dropped, "{}: {:?}", what, seen);
        prop_assert_eq!(seen.left, delivered, "{}: {:?}", what, seen);
        prop_assert_eq!(seen.frames_sent, told, "{}: {:?}", what, seen);
    }
    prop_assert_eq!(seen.frames_lost, c.lost_air.frames, "{}: {:?}", what, seen);
    let came = seen.frames_received - c.delivered.frames;
    prop_assert!(
        came <= u64::from(what.starts_with('w')),
        "{}: {:?}",
        what,
        seen
    );
    Ok(())
}

/// A longer drain changes no number, and shows that all datagrams counted as in flight arrive.
pub(crate) fn drain_changes_nothing(world: &World) -> Held {
    let (_, result) = play(world);
    let longer = World {
        drain_ms: LONG_MS,
        ..world.clone()
    };
    let prepared = Prepared::new(&longer.scenario().0).unwrap();
    let mut seen = Seen::new(&longer);
    let watched = prepared.run_watched(world.seed.into(), 0, &mut seen);
    let scenario_hash = result.scenario_hash;
    let watched = RunResult {
        scenario_hash: scenario_hash.clone(),
        ..watched
    };
    prop_assert_eq!(
        &RunResult {
            scenario_hash,
            ..result
        },
        &watched
    );
    let end = Duration::from_secs(world.seconds.into()) + Duration::from_millis(LONG_MS.into());
    let patient = Instant::ORIGIN + end - PATIENCE;
    for (index, flow) in watched.flows.iter().enumerate() {
        if flow.loss_ratio.is_some() {
            let counts = seen.flow(index);
            prop_assert!(counts.later <= flow.packets_under_way, "{:?}", flow);
            // After a slow link, some arrive later still.
            let silent = counts.last.is_none_or(|last| last < patient);
            if silent {
                prop_assert_eq!(counts.later, flow.packets_under_way, "{:?}", flow);
            }
        }
    }
    Ok(())
}

/// The flows sorted by the given names, and everything else.
fn by_name(result: &RunResult, name: impl Fn(&str) -> String) -> RunResult {
    let mut result = result.clone();
    for flow in &mut result.flows {
        flow.name = name(&flow.name);
    }
    result.flows.sort_by(|a, b| a.name.cmp(&b.name));
    result.paths.sort_by(|a, b| a.ends.cmp(&b.ends));
    result.scenario_hash.clear();
    result
}

/// The order of the flows does not matter if no two ever send at the same instant, and their names do not matter if
/// they draw no random numbers.
pub(crate) fn names_change_nothing(world: &World) -> Held {
    // The place of a flow determines its port, and the port its queue.
    let hashed = |link: &Link| {
        let served = link.served.as_ref();
        served.is_some_and(|served| served.hashes_flows())
    };
    let served_air = world.air.as_ref().is_some_and(|air| air.is_served());
    let (prepared, _) = play(world);
    let mut seen = Seen::new(world);
    let result = prepared.run_watched(world.seed.into(), 0, &mut seen);
    let several = world.flows.len() > 1;
    if several && !seen.tied && !world.links.iter().any(hashed) && !served_air {
        TURNED.fetch_add(1, Relaxed);
        let order: Vec<usize> = (0..world.flows.len()).rev().collect();
        let scenario = world.load(&world.toml(&order, &|index| format!("f{index}")));
        let turned = airlane_sim::run(&scenario, world.seed.into(), 0).unwrap();
        let same = |name: &str| name.to_owned();
        prop_assert_eq!(by_name(&result, same), by_name(&turned, same));
    }
    // Calls without silences draw only their talk time, which is longer than the run.
    let calls = World {
        flows: world
            .flows
            .iter()
            .map(|flow| flow.drawing_nothing())
            .collect(),
        ..world.clone()
    };
    let (_, result) = play(&calls);
    let order: Vec<usize> = (0..calls.flows.len()).collect();
    let scenario = calls.load(&calls.toml(&order, &|index| format!("z{}", 9 - index)));
    let named = airlane_sim::run(&scenario, calls.seed.into(), 0).unwrap();
    let renamed = |name: &str| {
        let index: usize = name[1..].parse().unwrap();
        format!("z{}", 9 - index)
    };
    prop_assert_eq!(by_name(&result, renamed), by_name(&named, str::to_owned));
    Ok(())
}

/// The results of n runs are those of n single ones, and the means are theirs.
pub(crate) fn runs_are_means(world: &World) -> Held {
    const RUNS: u64 = 3;
    let (scenario, _) = world.scenario();
    let prepared = Prepared::new(&scenario).unwrap();
    let together = repeat(&scenario, world.seed.into(), RUNS, 1, |_, _| {}).unwrap();
    let alone: Vec<_> = (0..RUNS)
        .map(|run| prepared.run(world.seed.into(), run))
        .collect();
    prop_assert_eq!(&together, &alone);
    let summary = summary(&together).unwrap();
    for (index, flow) in summary.flows.iter().enumerate() {
        for metric in &flow.metrics {
            let of = |run: &RunResult| {
                let scalars = run.flows[index].scalars();
                scalars
                    .into_iter()
                    .find(|s| s.0 == metric.metric)
                    .map(|s| s.1)
            };
            holds_mean(metric.metric, metric.estimate, alone.iter().filter_map(of))?;
        }
    }
    for (index, link) in summary.links.iter().enumerate() {
        for (at, metric) in link.metrics.iter().enumerate() {
            let of =
                |run: &RunResult| run.links[index / 2].directions()[index % 2].1.scalars()[at].1;
            holds_mean(metric.metric, metric.estimate, alone.iter().map(of))?;
        }
    }
    Ok(())
}

fn holds_mean(what: &str, estimate: Option<Estimate>, values: impl Iterator<Item = f64>) -> Held {
    let values: Vec<f64> = values.collect();
    let n = values.len() as u64;
    prop_assert_eq!(n, estimate.map_or(0, |e| e.n), "{}", what);
    if let Some(estimate) = estimate {
        let mean = values.iter().sum::<f64>() / n as f64;
        let off = (estimate.mean - mean).abs();
        prop_assert!(
            off <= 1e-9 * mean.abs(),
            "{}: {} {}",
            what,
            estimate.mean,
            mean
        );
    }
    Ok(())
}
