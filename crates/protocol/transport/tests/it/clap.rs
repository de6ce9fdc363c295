//! CLAP over any path: the file arrives complete, or both ends report why not.

use airlane_base::{Duration, Instant, Rng, Streams};
use airlane_transport::clap::wire::{Packet, decode, encode};
use airlane_transport::clap::{
    ClapConfig, ClapReceiver, ClapSender, ClapVersion, Failure, Feedback, Forward, NackKind, Stamp,
    Status, Taken,
};
use proptest::prelude::*;

/// What a path does to each packet, in both directions.
#[derive(Clone, Copy, Debug)]
struct Path {
    loss: f64,
    duplicates: f64,
    delay: Duration,
    /// The largest extra delay, drawn for each packet; more than the gap between packets reorders them.
    jitter: Duration,
    /// Nothing passes from this time on.
    cut: Instant,
}

/// Two ends and a path, which carries bytes. The sender's interface carries 60 packets in each interval.
struct World {
    path: Path,
    random: Rng,
    now: Instant,
    sender: ClapSender,
    receiver: ClapReceiver,
    /// What is in flight: when it arrives, whether at the receiver, and its bytes.
    flying: Vec<(Instant, bool, Vec<u8>)>,
    file: Vec<Option<u8>>,
    kinds: Vec<NackKind>,
    /// The number of each packet sent.
    order: Vec<u32>,
    most_reported: u32,
}

impl World {
    fn new(config: &ClapConfig, count: u32, path: Path, seed: u64) -> Self {
        let mut sender = ClapSender::new(config, count, Duration::from_millis(7)).unwrap();
        sender.open(Instant::ORIGIN);
        sender.set_local(Status {
            out: 60,
            underflows: 0,
            room: 100,
            flows: 1,
        });
        Self {
            path,
            random: Streams::new(seed, 0).stream("path"),
            now: Instant::ORIGIN,
            sender,
            receiver: ClapReceiver::new(config),
            flying: vec![],
            file: vec![None; count as usize],
            kinds: vec![],
            order: vec![],
            most_reported: 0,
        }
    }

    fn fly(&mut self, to_receiver: bool, bytes: &[u8]) {
        let copies = 1 + usize::from(self.random.uniform() < self.path.duplicates);
        for _ in 0..copies {
            if self.random.uniform() < self.path.loss || self.now >= self.path.cut {
                continue;
            }
            let jitter = self.path.jitter.mul_f64(self.random.uniform());
            let at = self.now + self.path.delay + jitter;
            self.flying.push((at, to_receiver, bytes.to_vec()));
        }
    }

    fn drain(&mut self) {
        let now = Stamp::of(self.now);
        while let Some(forward) = self.sender.poll_transmit(self.now) {
            let payload = match forward {
                Forward::Data(data) => {
                    self.order.push(data.seq);
                    [content(data.seq)]
                }
                _ => [0],
            };
            let mut out = [0; 64];
            let packet = Packet::Forward(forward, &payload);
            let len = encode([1, 2], &packet, now, &mut out).unwrap();
            self.fly(true, &out[..len]);
        }
        let mut bitmap = [0; 1_000];
        while let Some(feedback) = self.receiver.poll_transmit(self.now, &mut bitmap) {
            if let Feedback::Nack(nack) = feedback {
                self.kinds.push(nack.kind);
                self.most_reported = self.most_reported.max(nack.count);
            }
            let mut out = [0; 1_100];
            let packet = Packet::Feedback(feedback);
            let len = encode([2, 1], &packet, now, &mut out).unwrap();
            self.fly(false, &out[..len]);
        }
    }

    fn deliver(&mut self, to_receiver: bool, bytes: &[u8]) {
        match decode(bytes).unwrap().1 {
            Packet::Forward(forward, payload) => {
                assert!(to_receiver);
                let taken = self.receiver.handle(self.now, forward);
                if let (Taken::New, Forward::Data(data)) = (taken, forward) {
                    let place = &mut self.file[data.seq as usize];
                    assert!(place.replace(payload[0]).is_none(), "kept twice");
                }
            }
            Packet::Feedback(feedback) => self.sender.handle(self.now, &feedback),
        }
    }

    /// Runs until no event is left.
    fn run(&mut self) {
        self.drain();
        loop {
            let arrival = (0..self.flying.len()).min_by_key(|i| self.flying[*i].0);
            let arrives = arrival.map(|i| self.flying[i].0);
            let timers = [self.sender.poll_timeout(), self.receiver.poll_timeout()];
            let due = timers.into_iter().flatten().min();
            let Some(next) = arrives.into_iter().chain(due).min() else {
                return;
            };
            self.now = self.now.max(next);
            if let Some(i) = arrival.filter(|_| arrives == Some(next)) {
                let (_, to_receiver, bytes) = self.flying.swap_remove(i);
                self.deliver(to_receiver, &bytes);
            } else {
                self.sender.handle_timeout(self.now);
                self.receiver.handle_timeout(self.now);
            }
            self.drain();
            let later = |due: Option<Instant>| due.is_none_or(|due| due > self.now);
            if arrives != Some(next) {
                assert!(later(self.sender.poll_timeout()) && later(self.receiver.poll_timeout()));
            }
            assert!(
                self.now < Instant::ORIGIN + Duration::from_secs(4_000),
                "never ends"
            );
        }
    }

    fn has_all(&self) -> bool {
        let right = |(i, byte): (usize, &Option<u8>)| *byte == Some(content(i as u32));
        self.file.iter().enumerate().all(right)
    }
}

fn content(seq: u32) -> u8 {
    (seq.wrapping_mul(31) >> 2) as u8
}

fn config(version: ClapVersion) -> ClapConfig {
    ClapConfig {
        version,
        packets_per_second: (version == ClapVersion::Carousel).then_some(600),
        ..ClapConfig::default()
    }
}

const CLEAN: Path = Path {
    loss: 0.0,
    duplicates: 0.0,
    delay: Duration::from_millis(5),
    jitter: Duration::ZERO,
    cut: Instant::FAR_FUTURE,
};

const ALL: [ClapVersion; 5] = [
    ClapVersion::Carousel,
    ClapVersion::SenderDriven,
    ClapVersion::Spontaneous,
    ClapVersion::Beta,
    ClapVersion::Final,
];

#[test]
fn a_clean_path_carries_each_packet_once() {
    // The carousel goes round until it hears.
    for version in ALL.into_iter().filter(|v| *v != ClapVersion::Carousel) {
        let mut world = World::new(&config(version), 1_000, CLEAN, 1);
        world.run();
        assert!(world.has_all() && world.sender.is_finished());
        assert_eq!(world.sender.stats().data_sent, 1_000);
        assert_eq!(world.receiver.stats().duplicates, 0);
        let first = world.sender.first_sent().unwrap();
        let time = world.receiver.completed().unwrap().saturating_since(first);
        // 999 gaps of 1/600 s, and the delay of the path.
        let waited = time.as_millis_f64() - 1_670.0;
        // Beta reports every 100 ms; a sender that asks waits for a round trip of 10 ms after each 256 packets, less
        // the gap to the next; the others have nothing to report.
        let (nacks, most) = match version {
            ClapVersion::SenderDriven => (3, 30.0),
            ClapVersion::Beta => (16, 0.0),
            _ => (0, 0.0),
        };
        assert_eq!(world.receiver.stats().nacks, nacks);
        assert!(
            waited > most * 0.5 - 1.0 && waited < most + 1.0,
            "{version:?}: {time}"
        );
    }
}

#[test]
fn the_carousel_sends_the_file_in_turn_until_the_receiver_has_it() {
    let config = ClapConfig {
        packets_per_second: Some(300),
        ..config(ClapVersion::Carousel)
    };
    for (loss, sent) in [(0.0, 1_000..1_010), (0.3, 4_000..15_000)] {
        let mut world = World::new(&config, 1_000, Path { loss, ..CLEAN }, 1);
        world.run();
        assert!(world.has_all() && world.sender.is_finished());
        assert_eq!(world.receiver.stats().nacks, 0);
        let in_turn = |(i, n): (usize, &u32)| *n == i as u32 % 1_000;
        assert!(world.order.iter().enumerate().all(in_turn));
        assert!(sent.contains(&world.order.len()), "{}", world.order.len());
        // At its own rate, whatever the interface says.
        let first = world.sender.first_sent().unwrap();
        let time = world.receiver.completed().unwrap().saturating_since(first);
        let gaps = time.as_secs_f64() * 300.0;
        assert!((world.order.len() as f64 - gaps).abs() < 400.0, "{gaps}");
    }
}

#[test]
fn losses_cost_final_no_duplicate_before_the_first_sweep() {
    let lossy = Path { loss: 0.1, ..CLEAN };
    for seed in 0..20 {
        let mut world = World::new(&config(ClapVersion::Final), 2_000, lossy, seed);
        world.run();
        assert!(world.has_all());
        assert_eq!(world.receiver.stats().duplicates_before_sweep, 0);
        assert!(world.receiver.stats().sweeps > 0);
        let pivots = world.kinds.iter().filter(|k| **k == NackKind::Pivot);
        assert!(pivots.count() > 20);
    }
}

#[test]
fn a_sweep_over_a_long_file_travels_in_several_packets() {
    let lossy = Path {
        loss: 0.02,
        ..CLEAN
    };
    let mut world = World::new(&config(ClapVersion::Final), 20_000, lossy, 3);
    world.run();
    assert!(world.has_all());
    assert_eq!(world.most_reported, 8_000);
}

#[test]
fn a_sender_without_losses_gets_signs_of_life() {
    // 100 s with nothing to report: the sender would give up after 64 s.
    for version in ALL {
        let mut world = World::new(&config(version), 60_000, CLEAN, 1);
        world.run();
        assert!(world.has_all() && world.sender.is_finished());
    }
}

#[test]
fn no_end_waits_for_ever_for_a_vanished_peer() {
    for version in ALL {
        for (cut, failures) in [
            (0, [Some(Failure::NoAnswer), None]),
            (400, [Some(Failure::Silence), Some(Failure::Silence)]),
        ] {
            let path = Path {
                cut: Instant::ORIGIN + Duration::from_millis(cut),
                ..CLEAN
            };
            let mut world = World::new(&config(version), 1_000, path, 1);
            world.run();
            let found = [world.sender.failure(), world.receiver.failure()];
            assert_eq!(found, failures, "{version:?} {cut}");
            assert!(!world.sender.is_finished() && world.receiver.completed().is_none());
        }
    }
}

#[test]
fn files_that_no_end_keeps_bits_for_are_refused_at_both_ends() {
    for count in [0, (1 << 24) + 1] {
        let config = ClapConfig::default();
        let failure = ClapSender::new(&config, count, Duration::ZERO).unwrap_err();
        assert_eq!(failure, Failure::Length(count));
        assert!(failure.to_string().contains("16777216"), "{failure}");
        let mut receiver = ClapReceiver::new(&config);
        let syn = Forward::Syn { first: 0, count };
        assert_eq!(receiver.handle(Instant::ORIGIN, syn), Taken::Refused);
        assert_eq!(receiver.poll_timeout(), None);
    }
    let wrapping = Forward::Syn {
        first: u32::MAX,
        count: 2,
    };
    let mut receiver = ClapReceiver::new(&ClapConfig::default());
    assert_eq!(receiver.handle(Instant::ORIGIN, wrapping), Taken::Refused);
}

proptest! {
    #[test]
    fn any_path_delivers_the_file_or_an_error(
        version in prop::sample::select(&ALL[..]),
        count in 1u32..600,
        loss in 0.0f64..0.6,
        duplicates in 0.0f64..0.5,
        jitter in 0u64..200,
        threshold in 1u32..64,
        bitmap in 1u64..64,
        seed: u64,
    ) {
        let path = Path { loss, duplicates, jitter: Duration::from_millis(jitter), ..CLEAN };
        let is_final = version == ClapVersion::Final;
        let has_bitmaps = !is_final && version != ClapVersion::Carousel;
        let config = ClapConfig {
            nack_threshold: is_final.then_some(threshold),
            bitmap: has_bitmaps.then(|| airlane_base::Size::from_bytes(bitmap)),
            ..config(version)
        };
        config.validate().unwrap();
        let mut world = World::new(&config, count, path, seed);
        world.run();
        let complete = world.receiver.completed().is_some();
        prop_assert_eq!(complete, world.has_all());
        prop_assert_eq!(complete, world.receiver.held() == count);
        // The sender finishes or fails; an end that has the whole file must not fail.
        prop_assert!(world.sender.is_finished() != world.sender.failure().is_some());
        prop_assert!(complete || world.sender.failure().is_some());
        prop_assert!(!complete || world.receiver.failure().is_none());
        prop_assert!(!world.sender.is_finished() || complete);
        prop_assert!(world.most_reported <= 8_000);
    }

    #[test]
    fn no_peer_makes_an_end_panic(
        steps in prop::collection::vec((0u8..8, any::<u32>(), any::<u32>(), 0u64..3_000), 0..100),
        count in 1u32..100,
        version in prop::sample::select(&ALL[..]),
    ) {
        let config = config(version);
        let mut sender = ClapSender::new(&config, count, Duration::ZERO).unwrap();
        let mut receiver = ClapReceiver::new(&config);
        sender.set_local(Status { out: u32::MAX, underflows: 1, room: u32::MAX, flows: 0 });
        let mut now = Instant::ORIGIN;
        sender.open(now);
        let mut bitmap = [0; 3];
        for (kind, a, b, ms) in steps {
            now += Duration::from_millis(ms);
            // Most numbers are near the file, so that they have an effect.
            let near = a % (count + 2);
            let stamp = Stamp::from_number(b | 1).unwrap();
            let data = airlane_transport::clap::Data {
                seq: near,
                stamp,
                echo: Stamp::from_number(b),
                again: false,
                solicits: false,
            };
            let nack = airlane_transport::clap::Nack {
                kind: NackKind::Pivot,
                seq: if b % 2 == 0 { a } else { near },
                count: b,
                bitmap: &b.to_be_bytes(),
                stamp,
            };
            match kind {
                0 => { receiver.handle(now, Forward::Syn { first: b % 3, count: near }); }
                1 => { receiver.handle(now, Forward::Data(data)); }
                2 => { receiver.handle(now, Forward::FinAck { first: b % 3 }); }
                3 => sender.handle(now, &Feedback::SynAck { first: b % 3 }),
                4 => sender.handle(now, &Feedback::Nack(nack)),
                5 => sender.handle(now, &Feedback::Fin { first: 0 }),
                6 => sender.set_route(now, Status { out: a, underflows: b, room: b, flows: 1 }),
                _ => {}
            }
            sender.handle_timeout(now);
            receiver.handle_timeout(now);
            while sender.poll_transmit(now).is_some() {}
            while receiver.poll_transmit(now, &mut bitmap).is_some() {}
            prop_assert!(sender.poll_timeout().is_none_or(|due| due > now));
            prop_assert!(receiver.poll_timeout().is_none_or(|due| due > now));
        }
    }
}
