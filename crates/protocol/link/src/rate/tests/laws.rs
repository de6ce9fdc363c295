//! Laws that an estimate must keep over any path, in worlds drawn from wide ranges: none was chosen for a rule.

use super::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Law {
    /// Steadily at most 1.3 times what is carried is sent,
    Sent,
    /// and never three times as much.
    Flood,
    /// 85 % of the link is used in the fourth second,
    Soon,
    /// then for 20 s,
    Used,
    /// from two seconds after a step of its rate,
    Stepped,
    /// and from one second after each outage.
    Back,
    /// The queue's 95th percentile is at most 30 ms, or half a round trip, and two frames.
    Queue,
}
use Law::{Back, Flood, Queue, Sent, Soon, Stepped, Used};

/// How many worlds may break a law: with a queue and at least 1 Mbit/s, and others. `docs/lab/rate.md` names causes.
const MOST: [(Law, [usize; 2]); 7] = [
    (Sent, [1, 38]),
    (Flood, [0, 1]),
    (Soon, [15, 67]),
    (Used, [1, 4]),
    (Stepped, [10, 53]),
    (Back, [6, 51]),
    (Queue, [9, 20]),
];
const WORLDS: u64 = 1000;

/// Logarithmically uniform.
fn between(rng: &mut Rng, least: f64, most: f64) -> f64 {
    least * libm::pow(most / least, rng.uniform())
}

/// A world, the factor by which its rate steps, and its outages in seconds.
fn draw(seed: u64) -> (World, f64, Vec<f64>) {
    let mut rng = Streams::new(seed, 0).stream("laws");
    let mbps = between(&mut rng, 0.1, 200.0);
    let mut world = World::new(mbps, 0);
    world.rng = Streams::new(seed, 0).stream("link");
    world.delay = Duration::from_secs_f64(between(&mut rng, 0.5e-3, 0.3));
    world.policed = rng.chance(0.25);
    let room = match world.policed {
        true => between(&mut rng, 10e3, 200e3) * 8e-6 / mbps,
        false => between(&mut rng, 0.01, 1.0),
    };
    world.room = Duration::from_secs_f64(room.max(8.0 * frame_s(mbps)));
    if rng.chance(0.5) {
        world.loss = between(&mut rng, 0.001, 0.1);
        world.burst = between(&mut rng, 1.0, 10.0).floor();
    }
    if rng.chance(0.5) {
        world.jitter = Duration::from_secs_f64(between(&mut rng, 0.1e-3, 20e-3));
    }
    let step = (mbps * between(&mut rng, 0.1, 10.0)).clamp(0.1, 200.0);
    let outages = 1 + (3.0 * rng.uniform()) as usize;
    let outages = (0..outages).map(|_| between(&mut rng, 0.3, 30.0)).collect();
    (world, step, outages)
}

fn frame_s(mbps: f64) -> f64 {
    FRAME as f64 * 8e-6 / mbps
}

/// Whether the world is fast and has a queue, and the laws that it breaks.
fn broken(seed: u64) -> (bool, Vec<Law>) {
    let (mut world, step, outages) = draw(seed);
    let is_usual = !world.policed && world.mbps.min(step) >= 1.0;
    let mut broken = vec![];
    let mut check = |world: &mut World, law, seconds: f64| {
        let (sent, carried) = (world.sent, world.carried);
        let (used, queue_ms) = world.run(seconds);
        let longest_ms = (world.delay.as_secs_f64() * 1e3).max(30.0) + 2e3 * frame_s(world.mbps);
        let sent = (world.sent - sent) as f64 / (world.carried - carried) as f64;
        // Before these a queue or a loss was yet to be found.
        let is_steady = law == Used || law == Stepped;
        let holds = [
            (law, used > 0.85),
            (Sent, !is_steady || sent < 1.3),
            (Flood, !is_steady || sent < 3.0),
            (Queue, !is_steady || queue_ms < longest_ms),
        ];
        let new = holds.into_iter().filter(|(_, holds)| !holds);
        for (law, _) in new {
            if !broken.contains(&law) {
                println!("{seed} {law:?}: used {used:.2}, sent {sent:.2}, queue {queue_ms:.0} ms");
                broken.push(law);
            }
        }
    };
    world.run(3.0);
    check(&mut world, Soon, 1.0);
    check(&mut world, Used, 20.0);
    world.mbps = step;
    world.run(2.0);
    check(&mut world, Stepped, 6.0);
    let loss = world.loss;
    for outage_s in outages {
        world.loss = 1.0;
        world.run(outage_s);
        world.loss = loss;
        world.run(1.0);
        check(&mut world, Back, 2.0);
    }
    (is_usual, broken)
}

#[test]
fn laws_hold_over_paths_of_any_kind() {
    let worlds: Vec<_> = (0..WORLDS).map(broken).collect();
    let mut wrong = vec![];
    for (law, most) in MOST {
        for (most, usual) in most.into_iter().zip([true, false]) {
            let of_kind = worlds.iter().filter(|world| world.0 == usual);
            let count = of_kind.clone().count();
            let broken = of_kind.filter(|world| world.1.contains(&law)).count();
            println!("{law:?}: {broken} of {count}, usual: {usual}");
            if broken > most {
                wrong.push((law, usual, broken));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
