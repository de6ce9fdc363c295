//! Both ends over a path with loss, delay and a limited MTU.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::convert::Infallible;

use airlane_base::{Duration, Instant, Rate, Rng, Streams};
use proptest::prelude::*;

use super::*;

struct Path {
    rng: Rng,
    loss: f64,
    mbps: f64,
    delay: Duration,
    /// Longer datagrams are lost.
    mtu: usize,
    /// Length of the queue, as time.
    queue: Duration,
    free_at: [Instant; 2],
    /// For the interface in each direction: the bytes it accepted and how often it had run dry before; and how many
    /// datagrams of both directions found it full.
    taken: [u64; 2],
    dry: [u32; 2],
    full: u64,
}

impl Path {
    fn new(mbps: f64, delay_ms: u64, loss: f64) -> Self {
        Self {
            rng: Streams::new(5, 0).stream("path"),
            loss,
            mbps,
            delay: Duration::from_millis(delay_ms),
            mtu: 1_448,
            queue: Duration::from_millis(100),
            free_at: [Instant::ORIGIN; 2],
            taken: [0; 2],
            dry: [0; 2],
            full: 0,
        }
    }

    fn bytes_in(&self, time: Duration) -> u64 {
        (time.as_secs_f64() * self.mbps * 1e6 / 8.0) as u64
    }

    /// When a datagram arrives, if it does.
    fn carry(&mut self, now: Instant, way: usize, len: usize) -> Option<Instant> {
        self.dry[way] += u32::from(self.free_at[way] < now);
        let takes = Duration::from_secs_f64((len + 52) as f64 * 8.0 / (self.mbps * 1e6));
        let leaves = self.free_at[way].max(now) + takes;
        let full = leaves.saturating_since(now) > self.queue;
        if len > self.mtu || full {
            self.full += u64::from(full);
            return None;
        }
        self.free_at[way] = leaves;
        self.taken[way] += (len + 52) as u64;
        (!self.rng.chance(self.loss)).then_some(leaves + self.delay)
    }
}

type Wire = BinaryHeap<Reverse<(Instant, u64, bool, Vec<u8>)>>;

/// Unpredictable content of a file.
fn content(at: u64) -> u8 {
    (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

fn manifest(lengths: &[u64]) -> Manifest {
    let entries = lengths.iter().enumerate().map(|(i, bytes)| Entry {
        path: format!("file{i}"),
        kind: Kind::File,
        bytes: *bytes,
        mode: 0o600,
        modified_ns: 1,
    });
    Manifest::new(entries.collect()).unwrap()
}

/// 20 ms of speech and the RTP headers.
const CALL: usize = 172;

/// A call: when its next packet leaves, and how it fared.
struct Call {
    next: Instant,
    /// Packets that found the queue full.
    dropped: u64,
    /// The queueing delay of each packet in the files' direction, seconds.
    waits: Vec<f64>,
}

struct World {
    path: Path,
    now: Instant,
    shipper: Shipper,
    receiver: ShipReceiver,
    disk: Vec<u8>,
    /// The bytes missing before anything arrives.
    missing: Ranges,
    wire: Wire,
    number: u64,
    restarts: bool,
    sent: u64,
    /// A call over the same path, if there is one.
    call: Option<Call>,
    /// When the sender's interface next reports its status, and the bytes sent by the previous time; if it reports any.
    interface: Option<(Instant, u64)>,
}

impl World {
    fn new(path: Path, lengths: &[u64]) -> Self {
        let list = manifest(lengths);
        let total = list.total();
        let most = Rate::from_bps(1_000_000_000).unwrap();
        Self {
            path,
            now: Instant::ORIGIN,
            shipper: Shipper::new(Instant::ORIGIN, list, &[1_448, 1_232], 7, most).unwrap(),
            receiver: ShipReceiver::new(Instant::ORIGIN, 1),
            disk: vec![0; total as usize],
            missing: Ranges::all(total),
            wire: Wire::new(),
            number: 0,
            restarts: false,
            sent: 0,
            interface: None,
            call: None,
        }
    }

    /// A packet of the call leaves in each direction every 20 ms.
    fn speak(&mut self) {
        let Some(call) = self.call.as_mut().filter(|call| call.next <= self.now) else {
            return;
        };
        call.next += Duration::from_millis(20);
        for way in [0, 1] {
            let full = self.path.full;
            self.path.carry(self.now, way, CALL);
            call.dropped += u64::from(self.path.full > full);
            if way == 1 {
                let waits = self.path.free_at[way].saturating_since(self.now);
                call.waits.push(waits.as_secs_f64());
            }
        }
    }

    /// The interface reports its status over the last 100 ms.
    fn offer(&mut self) {
        let interval = Duration::from_millis(100);
        let Some((next, before)) = self.interface.filter(|(next, _)| *next <= self.now) else {
            return;
        };
        let waits = self.path.free_at[1].saturating_since(self.now);
        let left = self.path.taken[1] - self.path.bytes_in(waits);
        let room = self
            .path
            .bytes_in(Duration::from_millis(20).saturating_sub(waits));
        let offered = Offered {
            interval,
            out_bytes: (left - before) as u32,
            underflows: std::mem::take(&mut self.path.dry[1]) + u32::from(waits == Duration::ZERO),
            room_bytes: room as u32,
            flows: 1,
        };
        self.shipper.set_offered(self.now, &offered, 52);
        self.interface = Some((next + interval, left));
    }

    fn carry(&mut self, forward: bool, bytes: &[u8]) {
        self.sent += u64::from(forward);
        let Some(at) = self.path.carry(self.now, usize::from(forward), bytes.len()) else {
            return;
        };
        self.number += 1;
        self.wire
            .push(Reverse((at, self.number, forward, bytes.to_vec())));
    }

    fn drain(&mut self) {
        let mut out = [0; 2_048];
        let mut fill = |at: u64, bytes: &mut [u8]| {
            for (i, byte) in bytes.iter_mut().enumerate() {
                *byte = content(at + i as u64);
            }
            Ok::<_, Infallible>(())
        };
        while let Ok(Some(len)) = self.shipper.poll_transmit(self.now, &mut out, &mut fill) {
            self.carry(true, &out[..len]);
        }
        match self.receiver.phase() {
            ShipReceiverPhase::Offered => self.receiver.ask_for(self.missing.clone()),
            ShipReceiverPhase::Comparing => self.receiver.accept(),
            _ => {}
        }
        while let Some(len) = self.receiver.poll_transmit(self.now, &mut out) {
            self.carry(false, &out[..len]);
        }
        if self.shipper.phase() == ShipperPhase::Digests {
            let files = self
                .receiver
                .manifest()
                .map_or(0, |list| list.files().count());
            self.shipper
                .give_digests(vec![Digest(String::new()); files]);
            self.drain();
        }
    }

    fn step(&mut self) {
        let next = self.wire.peek().map(|Reverse((at, ..))| *at);
        let timers = [self.shipper.poll_timeout(), self.receiver.poll_timeout()];
        let says = self.interface.map(|(at, _)| at);
        let speaks = self.call.as_ref().map(|call| call.next);
        let others = next.into_iter().chain(says).chain(speaks);
        let next = timers.into_iter().flatten().chain(others).min();
        self.now = self.now.max(next.expect("something is under way or due"));
        while let Some(Reverse((at, ..))) = self.wire.peek()
            && *at <= self.now
            && let Some(Reverse((_, _, forward, bytes))) = self.wire.pop()
        {
            if !forward {
                self.shipper.handle(self.now, &bytes);
                continue;
            }
            let disk = &mut self.disk;
            let mut keep = |at: u64, bytes: &[u8]| {
                disk[at as usize..][..bytes.len()].copy_from_slice(bytes);
                Ok::<_, Infallible>(())
            };
            let Ok(()) = self.receiver.handle(self.now, &bytes, &mut keep);
        }
        self.speak();
        self.offer();
        self.shipper.handle_timeout(self.now);
        self.receiver.handle_timeout(self.now);
        self.drain();
    }

    /// Runs until the job has ended; returns how long it took.
    fn run(&mut self) -> Duration {
        let begin = self.now;
        for _ in 0..3_000_000 {
            if self.restarts
                && self.receiver.missing_bytes() < self.disk.len() as u64 / 2
                && self.receiver.manifest().is_some()
            {
                self.restarts = false;
                self.missing = self.receiver.missing();
                self.receiver = ShipReceiver::new(self.now, 2);
            }
            if matches!(
                self.shipper.phase(),
                ShipperPhase::Done | ShipperPhase::Failed
            ) {
                return self.now.saturating_since(begin);
            }
            self.step();
        }
        panic!(
            "it does not end: {:?}, {:?}",
            self.shipper.phase(),
            self.receiver.phase()
        );
    }

    fn is_intact(&self) -> bool {
        self.shipper.phase() == ShipperPhase::Done
            && self
                .disk
                .iter()
                .enumerate()
                .all(|(at, byte)| *byte == content(at as u64))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever the path does, files arrive as they were sent.
    #[test]
    fn files_arrive_unchanged(
        lengths in prop::collection::vec(prop_oneof![Just(0), 1_u64..3_000, 1_u64..200_000], 1..5),
        mbps in 0.5_f64..50.0,
        delay in 0_u64..300,
        loss in 0.0_f64..0.3,
        mtu in 1_232_usize..1_500,
        restarts: bool,
    ) {
        let mut world = World::new(Path { mtu, ..Path::new(mbps, delay, loss) }, &lengths);
        world.restarts = restarts;
        world.run();
        prop_assert!(world.is_intact(), "{:?}", world.shipper.failure());
    }

    #[test]
    fn no_bytes_disturb_an_end(datagrams in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..60)), 0..60)) {
        let mut world = World::new(Path::new(10.0, 1, 0.0), &[10]);
        for (forward, bytes) in datagrams {
            let Ok(()) = world.receiver.handle(world.now, &bytes, &mut |_, _: &[u8]| Ok::<_, Infallible>(()));
            if forward { world.shipper.handle(world.now, &bytes) }
            world.drain();
        }
    }
}

#[test]
fn a_lossy_link_is_used() {
    for (loss, least) in [(0.05, 0.85), (0.2, 0.6)] {
        let mut world = World::new(Path::new(20.0, 25, loss), &[60_000_000]);
        world.path.queue = Duration::from_millis(50);
        let took = world.run();
        assert!(world.is_intact());
        let share = 60e6 * 8.0 / took.as_secs_f64() / 20e6;
        assert!(share > least, "{share} of the link at {loss}, {took}");
        let (packets, duplicates) = world.receiver.packets();
        let few = packets as f64 * loss / 3.0;
        assert!(
            (duplicates as f64) < few,
            "{duplicates} of {packets} packets were here already at {loss}"
        );
    }
}

#[test]
fn a_call_takes_its_own_share_from_a_file_and_stays_good() {
    let seconds = 30.0;
    for (mbps, delay, loss, queue) in [
        (20.0, 25, 0.05, 50),
        (20.0, 25, 0.0, 50),
        (5.0, 50, 0.02, 100),
        (100.0, 10, 0.01, 50),
    ] {
        let bytes = mbps * 1e6 / 8.0 * seconds;
        let carry = |seed: u64, call: Option<Call>| {
            let mut world = World::new(Path::new(mbps, delay, loss), &[bytes as u64]);
            world.path.rng = Streams::new(seed, 0).stream("path");
            world.path.queue = Duration::from_millis(queue);
            world.call = call;
            let took = world.run();
            assert!(world.is_intact());
            (bytes * 8.0 / took.as_secs_f64() / mbps / 1e6, world.call)
        };
        let speaks = || Call {
            next: Instant::ORIGIN,
            dropped: 0,
            waits: vec![],
        };
        // Single loss patterns differ by more than is judged.
        let mean = |of: &dyn Fn(u64) -> f64| (5..9).map(of).sum::<f64>() / 4.0;
        let alone = mean(&|seed| carry(seed, None).0);
        let beside = mean(&|seed| carry(seed, Some(speaks())).0);
        let (_, call) = carry(5, Some(speaks()));
        let mut call = call.expect("it was given one");
        let spoken = (CALL + 52) as f64 * 8.0 * 50.0 / mbps / 1e6;
        let path = format!("{mbps} Mbit/s, {delay} ms, {loss}");
        assert!(
            beside > alone - spoken - 0.01,
            "{path}: {beside} of the link, alone {alone}, of which the call takes {spoken}"
        );
        if loss == 0.05 {
            assert!(beside > 0.85, "{beside}");
        }
        let wait_of = |waits: &[f64], share: usize| {
            let mut waits = waits.to_vec();
            waits.sort_by(f64::total_cmp);
            waits[waits.len() * share / 100]
        };
        // In the first two seconds the rate is being found, and the queue may fill.
        let with_start = wait_of(&call.waits, 98);
        call.waits.drain(..100);
        let (all, late) = (call.waits.len(), wait_of(&call.waits, 99));
        println!(
            "{path}: {alone:.3} alone, {beside:.3} beside a call of {spoken:.3}, {} of {all} dropped, 1 % later than {late:.4} s",
            call.dropped
        );
        assert!(
            call.dropped * 100 < all as u64,
            "{path}: {} of {all}",
            call.dropped
        );
        assert!(late < 0.045, "{path}: {late}");
        assert!(with_start < 0.045, "{path}: {with_start} with the start");
    }
}

#[test]
fn a_reported_interface_is_used_and_never_overflows() {
    for loss in [0.0, 0.05] {
        let mut world = World::new(Path::new(20.0, 25, loss), &[20_000_000]);
        world.interface = Some((Instant::ORIGIN, 0));
        let took = world.run();
        assert!(world.is_intact());
        let share = 20e6 * 8.0 / took.as_secs_f64() / (20e6 * (1.0 - loss));
        assert!(share > 0.8, "{share} of what arrives at {loss}, {took}");
        assert_eq!(world.path.full, 0, "at {loss}");
    }
}

#[test]
fn a_silent_interface_is_not_waited_for() {
    let mut world = World::new(Path::new(20.0, 25, 0.02), &[20_000_000]);
    world.interface = Some((Instant::ORIGIN, 0));
    while world.now < Instant::ORIGIN + Duration::from_secs(2) {
        world.step();
    }
    world.interface = None;
    let took = world.run();
    assert!(world.is_intact());
    assert!(took < Duration::from_secs(12), "{took}");
}

#[test]
fn existing_files_are_not_sent_again() {
    let mut world = World::new(Path::new(20.0, 5, 0.0), &[1_000_000, 500_000]);
    world.missing = Ranges::none();
    world.missing.push(1_400_000, 50_000);
    world.disk = (0..1_500_000).map(content).collect();
    world.disk[1_400_000..1_450_000].fill(0);
    world.run();
    assert!(
        world.is_intact() && world.sent < 60,
        "{} datagrams",
        world.sent
    );
}

#[test]
fn a_missing_receiver_is_reported_after_a_minute() {
    let mut world = World::new(Path::new(20.0, 5, 1.0), &[10]);
    let took = world.run();
    assert_eq!(world.shipper.failure(), Some(&Failure::Silence));
    assert!(
        took >= Duration::from_secs(64) && took < Duration::from_secs(70),
        "{took}"
    );
}

#[test]
fn a_refusal_reaches_the_sender() {
    let mut world = World::new(Path::new(20.0, 5, 0.0), &[10]);
    while world.shipper.phase() != ShipperPhase::Failed {
        world.step();
        if matches!(world.receiver.phase(), ShipReceiverPhase::Receiving) {
            world.receiver.refuse("the disk is full");
        }
    }
    assert_eq!(
        world.shipper.failure(),
        Some(&Failure::Refused("the disk is full".to_owned()))
    );
}

/// A receiver that has everything stays for as long as its sender waits for the last message.
#[test]
fn the_final_message_is_repeated_until_acknowledged() {
    let mut world = World::new(Path::new(20.0, 5, 0.0), &[100_000]);
    while world.receiver.phase() != ShipReceiverPhase::Done {
        world.step();
    }
    let back = world.now + Duration::from_secs(50);
    world.path.loss = 1.0;
    world.wire.clear();
    while world.now < back {
        assert!(!world.receiver.is_heard() && !world.receiver.is_alone(world.now));
        world.step();
    }
    world.path.loss = 0.0;
    world.run();
    assert!(world.is_intact());
    while !world.receiver.is_heard() {
        assert!(world.now < back + Duration::from_secs(10));
        world.step();
    }
}

/// Two hosts with one ticket, or one whose clock was set back: the earlier one is told.
#[test]
fn an_earlier_sender_is_told_that_it_is_replaced() {
    let mut world = World::new(Path::new(20.0, 5, 0.02), &[1_000_000]);
    let most = Rate::from_bps(1_000_000_000).unwrap();
    let mut earlier =
        Shipper::new(Instant::ORIGIN, manifest(&[10]), &[1_448, 1_232], 6, most).unwrap();
    let mut out = [0; 2_048];
    while world.receiver.phase() != ShipReceiverPhase::Receiving {
        world.step();
    }
    earlier.handle_timeout(world.now);
    let mut fill = |_, _: &mut [u8]| Ok::<_, Infallible>(());
    while let Ok(Some(len)) = earlier.poll_transmit(world.now, &mut out, &mut fill) {
        let hello = out[..len].to_vec();
        let Ok(()) =
            world.receiver.handle(
                world.now,
                &hello,
                &mut |_, _: &[u8]| Ok::<_, Infallible>(()),
            );
        while let Some(len) = world.receiver.poll_transmit(world.now, &mut out) {
            earlier.handle(world.now, &out[..len]);
            world.shipper.handle(world.now, &out[..len]);
        }
    }
    assert_eq!(earlier.failure(), Some(&Failure::Later));
    world.run();
    assert!(world.is_intact(), "the later one is none the worse");
}

/// Data sent to a receiver that is gone reaches the next holder of its address.
#[test]
fn little_is_sent_to_a_vanished_receiver() {
    for loss in [0.0, 0.05] {
        let mut world = World::new(Path::new(50.0, 20, loss), &[400_000_000]);
        while world.now < Instant::ORIGIN + Duration::from_secs(5) {
            world.step();
        }
        let before = world.sent;
        world.path.loss = 1.0;
        while world.now < Instant::ORIGIN + Duration::from_secs(6) {
            world.step();
        }
        let fell = world.sent;
        while world.now < Instant::ORIGIN + Duration::from_secs(26) {
            world.step();
        }
        let rest = world.sent - fell;
        assert!(
            rest < 20 * 10,
            "{rest} datagrams in 20 s, {} in the first, at {loss}",
            fell - before
        );
    }
}
