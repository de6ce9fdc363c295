use std::cmp::Reverse;
use std::collections::BinaryHeap;

use airlane_base::{Bucket, Rng, Streams};

use super::*;

const PACKET: f64 = 1_450.0;

/// A sender over the bottleneck.
enum Flow {
    Paced(Box<PathRate>),
    /// A TCP sender that halves its window after a loss, once per round trip.
    Reno {
        window: f64,
        flight: f64,
        halved: Instant,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Send(usize),
    /// An acknowledgment for Reno: whether its packet arrived.
    Ack(usize, bool),
    Report(usize, u32, u64, i64),
}

struct World {
    mbps: f64,
    delay: Duration,
    room: Duration,
    loss: f64,
    /// Drops at once what exceeds its rate.
    policer: Option<Bucket>,
    jitter: Duration,
    rng: Rng,
    free_at: Instant,
    flows: Vec<Flow>,
    sent: Vec<u64>,
    came: Vec<u64>,
    lost: u64,
    waits: Vec<f64>,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    number: u64,
    now: Instant,
}

impl World {
    fn new(mbps: f64, delay_ms: u64, room_ms: u64, loss: f64) -> Self {
        Self {
            mbps,
            delay: Duration::from_millis(delay_ms),
            room: Duration::from_millis(room_ms),
            loss,
            policer: None,
            jitter: Duration::ZERO,
            rng: Streams::new(3, 0).stream("link"),
            free_at: Instant::ORIGIN,
            flows: vec![],
            sent: vec![],
            came: vec![],
            lost: 0,
            waits: vec![],
            events: BinaryHeap::new(),
            number: 0,
            now: Instant::ORIGIN,
        }
    }

    fn at(&mut self, when: Instant, event: Event) {
        self.number += 1;
        self.events.push(Reverse((when, self.number, event)));
    }

    fn paced(&mut self) -> usize {
        let most = Rate::from_bps(1_000_000_000).unwrap();
        self.add(Flow::Paced(Box::new(PathRate::new(most))))
    }

    fn reno(&mut self) -> usize {
        self.add(Flow::Reno {
            window: 10.0,
            flight: 0.0,
            halved: Instant::ORIGIN,
        })
    }

    fn add(&mut self, flow: Flow) -> usize {
        self.flows.push(flow);
        self.sent.push(0);
        self.came.push(0);
        let number = self.flows.len() - 1;
        self.at(self.now, Event::Send(number));
        number
    }

    /// When a packet arrives, if it does.
    fn carry(&mut self, bytes: f64) -> Option<Instant> {
        if let Some(bucket) = &mut self.policer
            && !bucket.take(self.now, bytes as usize)
        {
            self.lost += 1;
            return None;
        }
        let leaves =
            self.free_at.max(self.now) + Duration::from_secs_f64(bytes * 8.0 / self.mbps / 1e6);
        let wait = leaves.saturating_since(self.now);
        if wait > self.room {
            self.lost += 1;
            return None;
        }
        self.waits.push(wait.as_secs_f64());
        self.free_at = leaves;
        let late = self.jitter.mul_f64(self.rng.uniform());
        (!self.rng.chance(self.loss)).then_some(leaves + self.delay + late)
    }

    fn send(&mut self, i: usize) {
        let came = self.carry(PACKET);
        let back = self.delay;
        match &mut self.flows[i] {
            Flow::Paced(rate) => {
                self.sent[i] += PACKET as u64;
                self.came[i] += if came.is_some() { PACKET as u64 } else { 0 };
                rate.departed(self.now, self.sent[i]);
                if rate.is_due() {
                    let number = rate.mark(self.now);
                    let received = self.came[i];
                    if let Some(at) = self.carry(70.0) {
                        let us = (at.as_nanos() / 1_000) as i64;
                        self.at(at + back, Event::Report(i, number, received, us));
                    }
                }
                let Flow::Paced(rate) = &self.flows[i] else {
                    return;
                };
                let next = self.now + Duration::from_secs_f64(PACKET * 8.0 / rate.rate());
                self.at(next, Event::Send(i));
            }
            Flow::Reno { .. } => {
                self.came[i] += if came.is_some() { PACKET as u64 } else { 0 };
                let heard = came.map_or(self.now + back * 2 + self.room, |at| at + back);
                self.at(heard, Event::Ack(i, came.is_some()));
            }
        }
    }

    fn run(&mut self, seconds: f64) -> Vec<f64> {
        let end = self.now + Duration::from_secs_f64(seconds);
        let before = self.came.clone();
        while let Some(Reverse((at, ..))) = self.events.peek()
            && *at < end
            && let Some(Reverse((at, _, event))) = self.events.pop()
        {
            self.now = at;
            match event {
                Event::Send(i) => match &mut self.flows[i] {
                    Flow::Paced(_) => self.send(i),
                    Flow::Reno { window, flight, .. } => {
                        let free = (*window - *flight).max(0.0) as usize;
                        *flight += free as f64;
                        (0..free).for_each(|_| self.send(i));
                    }
                },
                Event::Ack(i, came) => {
                    let now = self.now;
                    let round = self.delay * 2;
                    if let Flow::Reno {
                        window,
                        flight,
                        halved,
                    } = &mut self.flows[i]
                    {
                        *flight -= 1.0;
                        match came {
                            true => *window += 1.0 / *window,
                            false if now.saturating_since(*halved) > round => {
                                *window = (*window / 2.0).max(2.0);
                                *halved = now;
                            }
                            false => {}
                        }
                    }
                    self.at(now, Event::Send(i));
                }
                Event::Report(i, number, received, us) => {
                    let report = Report {
                        received: received as u32,
                        at_us: us as u32,
                    };
                    if let Flow::Paced(rate) = &mut self.flows[i] {
                        rate.handle_report(self.now, number, report);
                    }
                }
            }
        }
        self.now = end;
        let came = self.came.iter().zip(before);
        came.map(|(now, before)| (now - before) as f64 * 8.0 / seconds / 1e6 / self.mbps)
            .collect()
    }

    fn wait_ms(&mut self, part: f64) -> f64 {
        self.waits.sort_by(f64::total_cmp);
        self.waits[(self.waits.len() as f64 * part) as usize] * 1e3
    }
}

#[test]
fn a_pause_is_not_a_measure_of_the_path() {
    let mut rate = PathRate::new(Rate::from_bps(1_000_000_000).unwrap());
    for n in 1..4_u32 {
        // One packet every three seconds.
        let left = Instant::ORIGIN + Duration::from_secs(3) * u64::from(n);
        rate.departed(left, 1_500 * u64::from(n));
        let mark = rate.mark(left);
        let report = Report {
            received: 1_500 * n,
            at_us: 3_000_000 * n,
        };
        rate.handle_report(left + Duration::from_millis(50), mark, report);
    }
    assert_eq!((rate.measured(), rate.rate()), (None, FIRST_BPS));
}

#[test]
fn one_sender_uses_the_link_and_keeps_the_queue_short() {
    for (mbps, delay, loss) in [
        (20.0, 25, 0.0),
        (20.0, 25, 0.05),
        (2.0, 100, 0.02),
        (200.0, 5, 0.1),
        (20.0, 300, 0.01),
    ] {
        let mut world = World::new(mbps, delay, 100, loss);
        let alone = world.paced();
        world.run(5.0);
        world.waits.clear();
        let share = world.run(30.0)[alone] / (1.0 - loss);
        let queue = world.wait_ms(0.5) / delay as f64;
        assert!(queue < 0.5, "half of the packets wait {queue} of the delay");
        assert!(
            share > 0.9,
            "{share} of {mbps} Mbit/s over {delay} ms with {loss} lost"
        );
    }
}

#[test]
fn two_senders_share_fairly() {
    for (mbps, delay, room, loss) in [
        (20.0, 25, 50, 0.0),
        (20.0, 25, 50, 0.05),
        (50.0, 10, 100, 0.01),
        (20.0, 50, 30, 0.0),
    ] {
        let mut world = World::new(mbps, delay, room, loss);
        world.paced();
        world.run(10.0);
        world.paced();
        world.run(15.0);
        let shares = world.run(30.0);
        assert!(shares.iter().all(|share| *share > 0.25), "{shares:.2?}");
        assert!(
            shares.iter().sum::<f64>() / (1.0 - loss) > 0.88,
            "{shares:.2?}"
        );
    }
}

#[test]
fn neither_starves_a_tcp_nor_is_starved_by_it() {
    for (mbps, delay, room) in [(20.0, 25, 50), (20.0, 25, 100), (50.0, 10, 20)] {
        let mut world = World::new(mbps, delay, room, 0.0);
        world.reno();
        world.run(10.0);
        world.paced();
        world.run(15.0);
        let shares = world.run(60.0);
        assert!(shares.iter().all(|share| *share > 0.05), "{shares:.2?}");
    }
}

#[test]
fn a_path_that_polices_is_not_flooded() {
    let mut world = World::new(20.0, 25, 3, 0.0);
    world.paced();
    world.run(10.0);
    let (sent, lost) = (world.sent[0], world.lost);
    let share = world.run(30.0)[0];
    let lost = (world.lost - lost) as f64 * PACKET / (world.sent[0] - sent) as f64;
    assert!(share > 0.8 && lost < 0.05, "{share} with {lost} lost");
}

#[test]
fn a_policer_gets_little_more_than_it_passes() {
    let mut wrong = vec![];
    for (mbps, burst) in [(2.0, 30_000), (30.0, 60_000)] {
        for round_trip_ms in [2, 50, 600] {
            let mut world = World::new(1_000.0, round_trip_ms / 2, 100, 0.0);
            let rate = Rate::from_bps((mbps * 1e6) as u64).unwrap();
            world.policer = Some(Bucket::new(rate, Duration::ZERO, burst));
            world.paced();
            let share = world.run(30.0)[0] * 1_000.0 / mbps;
            let sent = world.sent[0] as f64 / world.came[0] as f64;
            let cell = format!("{mbps} Mbit/s, {round_trip_ms} ms: sent {sent:.2}, has {share:.2}");
            println!("{cell}");
            if sent > 1.3 || share < 0.9 {
                wrong.push(cell);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn delays_that_jitter_do_not_starve() {
    let mut world = World::new(20.0, 25, 100, 0.02);
    world.jitter = Duration::from_millis(10);
    world.paced();
    world.run(5.0);
    let share = world.run(30.0)[0] / 0.98;
    assert!(share > 0.85, "{share}");
}
