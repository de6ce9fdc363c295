use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;

use airlane_base::Duration;
use proptest::prelude::*;

use super::*;
use crate::flow::{FlowKey, UDP};
use crate::sample;

const MTU: usize = 1500;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Labelled {
    flow: u16,
    number: u64,
    len: usize,
}

sample::payload!(Labelled, packet => packet.len);

impl crate::pack::Divisible for Labelled {}

impl Packet for Labelled {
    fn flow(&self) -> FlowKey {
        sample::flow(UDP, self.flow, 7)
    }
}

fn packet(flow: u16, number: u64, len: usize) -> Labelled {
    Labelled { flow, number, len }
}

fn ms(n: u64) -> Instant {
    Instant::ORIGIN + Duration::from_millis(n)
}

/// A target so long that CoDel never drops.
fn fair(limit: QueueLimit, flows: u32) -> QueueConfig {
    QueueConfig::FqCodel {
        limit: Some(limit),
        target: Some(Duration::MAX),
        interval: Some(Duration::MAX),
        flows: NonZeroU32::new(flows).unwrap(),
    }
}

/// The first `n` flow numbers that share no queue.
fn apart(config: &QueueConfig, n: usize) -> Vec<u16> {
    let queue = IngressQueue::new(config, MTU, 1);
    let Kind::FqCodel(fq) = &queue.kind else {
        panic!("not fq-codel")
    };
    let mut seen = BTreeMap::new();
    for flow in 0..u16::MAX {
        seen.entry(fq.index_of(&packet(flow, 0, 0))).or_insert(flow);
        if seen.len() == n {
            break;
        }
    }
    assert_eq!(seen.len(), n);
    seen.into_values().collect()
}

fn never(reason: DropReason, packet: Labelled) {
    panic!("dropped {packet:?}: {reason:?}");
}

#[test]
fn no_waiting_room_drops_at_once() {
    let mut queue = IngressQueue::new(&QueueConfig::None {}, MTU, 0);
    let mut dropped = Vec::new();
    queue.push(ms(0), packet(1, 0, 100), &mut |reason, p| {
        dropped.push((reason, p.number));
    });
    assert_eq!(dropped, [(DropReason::WindowFull, 0)]);
    assert!(queue.is_empty() && queue.pop(ms(0), &mut never).is_none());
}

#[test]
fn drop_tail_refuses_the_newcomer() {
    let limit = QueueLimit::Packets(2);
    let mut queue = IngressQueue::new(&QueueConfig::DropTail { limit }, MTU, 0);
    let mut dropped = Vec::new();
    for number in 0..3 {
        queue.push(ms(0), packet(1, number, 100), &mut |reason, p| {
            dropped.push((reason, p.number));
        });
    }
    assert_eq!(dropped, [(DropReason::QueueFull, 2)]);
    assert_eq!((queue.len(), queue.bytes()), (2, 200));
    assert_eq!(queue.pop(ms(0), &mut never).unwrap().0.number, 0);
    assert_eq!(queue.pop(ms(0), &mut never).unwrap().0.number, 1);
    assert!(queue.pop(ms(0), &mut never).is_none());
}

#[test]
fn overflow_takes_the_oldest_of_the_fattest_flow() {
    let config = fair(QueueLimit::Bytes(5_000), 64);
    let flows = apart(&config, 2);
    let mut queue = IngressQueue::new(&config, MTU, 1);
    for number in 0..40 {
        queue.push(ms(0), packet(flows[0], number, 100), &mut never);
    }
    let mut dropped = Vec::new();
    queue.push(ms(0), packet(flows[1], 0, 1_350), &mut |reason, p| {
        dropped.push((reason, p.flow, p.number));
    });
    // 4,000 + 1,350 B against 5,000 B: four packets of 100 B have to be dropped.
    let expected: Vec<_> = (0..4)
        .map(|n| (DropReason::QueueFull, flows[0], n))
        .collect();
    assert_eq!(dropped, expected);
    assert_eq!(queue.bytes(), 4_950);
}

#[test]
fn a_packet_longer_than_the_limit_evicts_none() {
    let mut queue = IngressQueue::new(&fair(QueueLimit::Bytes(1_000), 4), MTU, 1);
    queue.push(ms(0), packet(1, 0, 900), &mut never);
    let mut dropped = Vec::new();
    queue.push(ms(0), packet(1, 1, 1_001), &mut |_, p| {
        dropped.push(p.number)
    });
    assert_eq!(dropped, [1]);
    assert_eq!(queue.len(), 1);
}

#[test]
fn a_sparse_flow_goes_before_standing_ones() {
    let config = fair(QueueLimit::Packets(1_000), 1024);
    let flows = apart(&config, 4);
    let mut queue = IngressQueue::new(&config, MTU, 1);
    for number in 0..100 {
        for flow in &flows[..3] {
            queue.push(ms(0), packet(*flow, number, 1_000), &mut never);
        }
    }
    // The three use up their turns as new flows.
    for _ in 0..12 {
        queue.pop(ms(0), &mut never).unwrap();
    }
    for round in 0..20 {
        queue.push(ms(20 * round), packet(flows[3], round, 160), &mut never);
        let (next, _) = queue.pop(ms(20 * round), &mut never).unwrap();
        assert_eq!((next.flow, next.number), (flows[3], round));
        for _ in 0..5 {
            assert_ne!(
                queue.pop(ms(20 * round), &mut never).unwrap().0.flow,
                flows[3]
            );
        }
    }
}

#[test]
fn a_flow_that_runs_empty_is_not_new_at_once() {
    // A flow that always has exactly one packet queued must not starve the others through `new`.
    let config = fair(QueueLimit::Packets(1_000), 1024);
    let flows = apart(&config, 2);
    let mut queue = IngressQueue::new(&config, MTU, 1);
    for number in 0..50 {
        queue.push(ms(0), packet(flows[0], number, 1_500), &mut never);
    }
    let mut served = [0, 0];
    for number in 0..40 {
        queue.push(ms(0), packet(flows[1], number, 1_500), &mut never);
        let (next, _) = queue.pop(ms(0), &mut never).unwrap();
        served[usize::from(next.flow == flows[1])] += 1;
    }
    assert_eq!(served, [20, 20]);
}

/// RFC 8289 section 5, transcribed for one plain queue: the oracle.
#[derive(Default)]
struct Rfc8289 {
    queue: VecDeque<(Instant, Labelled)>,
    bytes: usize,
    first_above_time: u64,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    dropping: bool,
    dropped: Vec<u64>,
}

impl Rfc8289 {
    const TARGET: u64 = 5_000_000;
    const INTERVAL: u64 = 100_000_000;

    fn control_law(t: u64, count: u32) -> u64 {
        t + (Self::INTERVAL as f64 / f64::from(count).sqrt()) as u64
    }

    fn dodequeue(&mut self, now: u64) -> (Option<Labelled>, bool) {
        let Some((tstamp, p)) = self.queue.pop_front() else {
            self.first_above_time = 0;
            return (None, false);
        };
        self.bytes -= p.len;
        let sojourn_time = now - tstamp.as_nanos();
        let mut ok_to_drop = false;
        if sojourn_time < Self::TARGET || self.bytes <= MTU {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + Self::INTERVAL;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(p), ok_to_drop)
    }

    fn deque(&mut self, now: u64) -> Option<Labelled> {
        let (mut p, mut ok_to_drop) = self.dodequeue(now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.dropped.push(p.unwrap().number);
                self.count += 1;
                (p, ok_to_drop) = self.dodequeue(now);
                if !ok_to_drop {
                    self.dropping = false;
                } else {
                    self.drop_next = Self::control_law(self.drop_next, self.count);
                }
            }
        } else if ok_to_drop {
            self.dropped.push(p.unwrap().number);
            (p, _) = self.dodequeue(now);
            self.dropping = true;
            let delta = self.count.wrapping_sub(self.lastcount);
            self.count = 1;
            if delta > 1 && (delta as i32) > 0 && now - self.drop_next < 16 * Self::INTERVAL {
                self.count = delta;
            }
            self.drop_next = Self::control_law(now, self.count);
            self.lastcount = self.count;
        }
        p
    }
}

fn codel_of_rfc8289() -> IngressQueue<Labelled> {
    let config = QueueConfig::FqCodel {
        limit: Some(QueueLimit::Packets(100_000)),
        target: Some(Duration::from_nanos(Rfc8289::TARGET)),
        interval: Some(Duration::from_nanos(Rfc8289::INTERVAL)),
        flows: NonZeroU32::MIN,
    };
    IngressQueue::new(&config, MTU, 0)
}

#[test]
fn a_standing_queue_is_dropped_from_by_the_control_law() {
    // 1,000 B arrive each millisecond, before each departure; 50 packets are always queued: 50 ms.
    let mut queue = codel_of_rfc8289();
    let mut number = 0;
    let mut push = |queue: &mut IngressQueue<Labelled>, at: u64| {
        queue.push(ms(at), packet(1, number, 1_000), &mut never);
        number += 1;
    };
    (0..50).for_each(|_| push(&mut queue, 1));
    let mut drops = Vec::new();
    for at in 1..2_000 {
        push(&mut queue, at);
        let before = drops.len();
        queue.pop(ms(at), &mut |reason, _| {
            assert_eq!(reason, DropReason::CoDel);
            drops.push(at);
        });
        // Dropped packets are replaced, so the delay does not fall.
        (before..drops.len()).for_each(|_| push(&mut queue, at));
    }
    // The delay exceeds 5 ms from 6 ms on, for 100 ms, and the k-th drop follows the previous one after 100
    // ms / sqrt(k); departures are 1 ms apart.
    let mut due = 106.0;
    for (k, at) in drops.iter().enumerate() {
        assert!(
            (due..due + 1.0 + 1e-6).contains(&(*at as f64)),
            "drop {k} at {at}, due {due}: {drops:?}"
        );
        due += 100.0 / ((k + 1) as f64).sqrt();
    }
    assert!(drops.len() > 80, "{}", drops.len());
}

#[test]
fn a_short_wait_is_left_alone() {
    let mut queue = codel_of_rfc8289();
    for number in 0..10_000 {
        // Bursts of four, each sent before the next: a delay of at most 4 ms.
        let at = ms(number / 4 * 4 + number % 4);
        if number % 4 == 0 {
            (0..4).for_each(|k| queue.push(at, packet(1, number + k, 1_000), &mut never));
        }
        queue.pop(at, &mut never).unwrap();
    }
}

proptest! {
    #[test]
    fn codel_follows_the_rfc(
        steps in prop::collection::vec((0u64..40, 0usize..12, 0usize..6), 1..400),
    ) {
        let mut queue = codel_of_rfc8289();
        let mut oracle = Rfc8289::default();
        let (mut number, mut dropped) = (0, Vec::new());
        let mut now = ms(1);
        for (wait, arrivals, departures) in steps {
            now += Duration::from_millis(wait);
            for _ in 0..arrivals {
                let p = packet(1, number, 200 + 1_300 * (number as usize % 2));
                number += 1;
                oracle.bytes += p.len;
                oracle.queue.push_back((now, p.clone()));
                queue.push(now, p, &mut never);
            }
            for _ in 0..departures {
                let sent = queue.pop(now, &mut |_, p| dropped.push(p.number));
                let sent = sent.map(|(packet, _)| packet);
                prop_assert_eq!(sent, oracle.deque(now.as_nanos()));
                prop_assert_eq!(&dropped, &oracle.dropped);
            }
        }
    }

    /// Deficit round robin: while flows stay backlogged, the bytes sent of each differ by less than two
    /// quanta and a packet.
    #[test]
    fn backlogged_flows_share_evenly(
        lengths in prop::collection::vec(40usize..=MTU, 2..8),
        pops in 1usize..600,
    ) {
        let config = fair(QueueLimit::Packets(10_000), 1024);
        let flows = apart(&config, lengths.len());
        let mut queue = IngressQueue::new(&config, MTU, 1);
        let mut served = vec![0i64; flows.len()];
        for number in 0..2 {
            for (flow, len) in flows.iter().zip(&lengths) {
                queue.push(ms(0), packet(*flow, number, *len), &mut never);
            }
        }
        for number in 0..pops {
            let (p, _) = queue.pop(ms(0), &mut never).unwrap();
            let i = flows.iter().position(|f| *f == p.flow).unwrap();
            served[i] += p.len as i64;
            queue.push(ms(0), packet(p.flow, 2 + number as u64, p.len), &mut never);
        }
        let bound = (2 * MTU + lengths.iter().max().unwrap()) as i64;
        let spread = served.iter().max().unwrap() - served.iter().min().unwrap();
        prop_assert!(spread <= bound, "{served:?}");
    }

    /// For all operations on a queue: each packet leaves once, the packets of a flow in order, the limit
    /// holds, and memory stays within it.
    #[test]
    fn no_packet_is_lost_duplicated_or_reordered(
        kind in 0..3,
        in_bytes: bool,
        limit in 1u64..60,
        steps in prop::collection::vec((0u64..30, any::<bool>(), 0u16..12, 0usize..1600), 1..500),
    ) {
        let limit = if in_bytes { QueueLimit::Bytes(limit * 200) } else { QueueLimit::Packets(limit) };
        let config = match kind {
            0 => QueueConfig::DropTail { limit },
            1 => fair(limit, 4),
            _ => QueueConfig::FqCodel {
                limit: Some(limit),
                target: Some(Duration::from_millis(5)),
                interval: Some(Duration::from_millis(50)),
                flows: NonZeroU32::new(4).unwrap(),
            },
        };
        let mut queue = IngressQueue::new(&config, MTU, 9);
        let (mut now, mut number) = (ms(0), 0);
        let mut inside: BTreeMap<u64, Labelled> = BTreeMap::new();
        let mut last_sent: BTreeMap<u16, u64> = BTreeMap::new();
        for (wait, push, flow, len) in steps {
            now += Duration::from_millis(wait);
            let mut gone = Vec::new();
            if push {
                inside.insert(number, packet(flow, number, len));
                queue.push(now, packet(flow, number, len), &mut |_, p| gone.push(p));
                number += 1;
            } else {
                let waiting = !queue.is_empty();
                let sent = queue.pop(now, &mut |_, p| gone.push(p));
                prop_assert_eq!(sent.is_some(), waiting);
                if let Some((p, _)) = sent {
                    if let Some(last) = last_sent.insert(p.flow, p.number) {
                        prop_assert!(last < p.number);
                    }
                    gone.push(p);
                }
            }
            for p in gone {
                prop_assert_eq!(inside.remove(&p.number), Some(p));
            }
            let bytes: usize = inside.values().map(charge).sum();
            prop_assert_eq!((queue.len(), queue.bytes()), (inside.len(), bytes));
            match limit {
                QueueLimit::Packets(n) => prop_assert!(queue.len() as u64 <= n),
                QueueLimit::Bytes(n) => prop_assert!(queue.bytes() as u64 <= n),
            }
            if let (Kind::FqCodel(fq), QueueLimit::Packets(n)) = (&queue.kind, limit) {
                prop_assert!(fq.entries() as u64 <= n + 1);
            }
        }
        let mut drained = Vec::new();
        queue.drain(&mut |p| drained.push(p));
        prop_assert!(queue.is_empty() && queue.bytes() == 0);
        drained.sort_by_key(|p| p.number);
        prop_assert_eq!(drained, inside.into_values().collect::<Vec<_>>());
    }
}

#[test]
fn default_bounds_follow_the_link() {
    let [fast, slow] = [40_000_000, 64_000].map(|bps| Rate::from_bps(bps).unwrap());
    let round_trip = Duration::from_millis(600);
    let bounds = |config: QueueConfig, rate| {
        let mut queue = IngressQueue::<Labelled>::new(&config, MTU, 1);
        queue.fit(rate, round_trip);
        let Kind::FqCodel(fq) = &queue.kind else {
            panic!("not fq-codel")
        };
        fq.bounds()
    };
    let patient = QueueConfig::patient(Duration::from_millis(300));
    // Two round trips at 40 Mbit/s, and room for a few packets on a slow link.
    assert_eq!(
        bounds(patient, fast),
        (QueueLimit::Bytes(6_000_000), round_trip)
    );
    assert_eq!(
        bounds(patient, slow),
        (QueueLimit::Bytes(24_000), round_trip)
    );
    let limit = QueueLimit::Packets(9);
    assert_eq!(
        bounds(fair(limit, 4), fast),
        (limit, Duration::MAX),
        "it was stated"
    );
}
