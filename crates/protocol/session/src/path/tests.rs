use super::*;
use airlane_base::Rng;
use proptest::prelude::*;

const MS: Duration = Duration::from_millis(1);

fn at(ms: u64) -> Instant {
    Instant::ORIGIN + MS * ms
}

/// A path under a search, with the size it carries and its loss.
struct World {
    search: PathSearch,
    now: u64,
    takes: usize,
    /// Share of probes and of answers that are lost, independent of their length.
    loss: f64,
    delay: u64,
    random: Rng,
    /// When answers arrive, and their numbers.
    on_way: Vec<(u64, u64)>,
    sent: u64,
    sent_bytes: u64,
    /// Whether long packets are sent all the time.
    busy: bool,
}

impl World {
    fn new(most: usize, takes: usize, seed: u64) -> Self {
        let mut search = PathSearch::new(most, seed);
        search.set_pace(Some(MS * 50), Duration::ZERO);
        search.begin(at(0));
        Self {
            search,
            now: 0,
            takes,
            loss: 0.0,
            delay: 50,
            random: Streams::new(seed, 1).stream("path.test"),
            on_way: Vec::new(),
            sent: 0,
            sent_bytes: 0,
            busy: true,
        }
    }

    fn mtu(&self) -> usize {
        self.search.mtu()
    }

    fn send(&mut self) {
        while let Some(probe) = self.search.poll_probe() {
            let size = probe.size.unwrap_or(70);
            self.sent += 1;
            self.sent_bytes += size as u64;
            let lost = self.random.chance(self.loss) || self.random.chance(self.loss);
            if size <= self.takes && !lost {
                self.on_way.push((self.now + self.delay, probe.number));
            }
        }
    }

    fn run(&mut self, ms: u64) {
        let end = self.now + ms;
        self.send();
        loop {
            self.search
                .note_sent(if self.busy { self.mtu() } else { 200 });
            let due = self.search.poll_timeout().saturating_since(at(0));
            let due = (due.as_nanos() / 1_000_000).max(self.now);
            self.on_way.sort_unstable();
            let next = self.on_way.first().map_or(due, |(when, _)| due.min(*when));
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            if self.on_way.first().is_some_and(|(when, _)| *when == next) {
                let (_, number) = self.on_way.remove(0);
                self.search.handle_answer(at(self.now), number);
            } else {
                self.search.handle_timeout(at(self.now));
                let later = self.search.poll_timeout();
                assert!(later > at(self.now), "{:?} at {}", self.search, self.now);
            }
            self.send();
        }
    }
}

#[test]
fn a_path_as_wide_as_the_interface_is_confirmed_by_one_pair() {
    let mut world = World::new(1500, 1500, 1);
    world.run(1_000);
    assert_eq!((world.mtu(), world.sent), (1500, 2));
    // After that, one pair every five seconds.
    world.run(60_000);
    assert!((20..=26).contains(&world.sent), "{}", world.sent);
}

#[test]
fn an_idle_path_is_not_probed_and_is_confirmed_when_it_is_used_again() {
    let mut world = World::new(1500, 1400, 11);
    world.run(30_000);
    world.busy = false;
    world.run(10_000);
    let sent = world.sent;
    world.run(3_600_000);
    assert_eq!((world.mtu(), world.sent), (1400, sent));
    // The path has become narrower in the meantime.
    world.takes = 1300;
    world.busy = true;
    world.run(2_000);
    assert!(world.mtu() <= 1300, "{}", world.mtu());
    world.run(20_000);
    assert_eq!(world.mtu(), 1300);
}

#[test]
fn a_black_hole_is_left_at_once_and_its_mtu_found() {
    let mut world = World::new(1500, 1500, 2);
    world.run(1_000);
    world.takes = 1400;
    let mut left = None;
    for ms in (0..20_000).step_by(100) {
        world.run(100);
        if world.mtu() < 1500 && left.is_none() {
            left = Some((ms, world.mtu()));
        }
    }
    let (after, mtu) = left.unwrap();
    assert!(after <= 6_500 && mtu == BASE, "{after} ms: {mtu}");
    assert_eq!(world.mtu(), 1400);
}

#[test]
fn a_hint_is_verified_by_a_probe() {
    let mut world = World::new(1500, 1500, 3);
    world.run(1_000);
    world.search.hear(at(world.now), 576);
    world.run(4_000);
    assert_eq!(world.mtu(), 1500, "a lie");
    world.takes = 1400;
    world.search.hear(at(world.now), 1400);
    world.run(1_000);
    assert!(world.mtu() < 1500, "the truth, within a second");
    world.run(20_000);
    assert_eq!(world.mtu(), 1400);
    // Repeating the hint costs nothing more.
    let (sent, from) = (world.sent, world.now);
    for _ in 0..1_000 {
        world.search.hear(at(world.now), 1400);
        world.run(10);
    }
    assert!(world.sent - sent < 20, "{} since {from}", world.sent - sent);
}

/// Nothing else would search for more on a path that is idle from then on.
#[test]
fn a_hint_does_not_end_a_search() {
    let mut world = World::new(1500, 1400, 12);
    while world.mtu() != BASE {
        world.run(10);
    }
    world.busy = false;
    world.search.hear(at(world.now), 600);
    world.run(30_000);
    assert_eq!(world.mtu(), 1400);
}

#[test]
fn a_path_that_becomes_wider_is_noticed_and_one_that_does_not_is_left_alone() {
    let mut world = World::new(1500, 1400, 4);
    world.run(30_000);
    assert_eq!(world.mtu(), 1400);
    world.takes = 1500;
    world.run(60_000);
    assert_eq!(world.mtu(), 1500);

    let mut world = World::new(1500, 1400, 5);
    world.run(3_600_000);
    let bytes = world.sent_bytes;
    // The size in use every five seconds, and one test of a larger size every ten minutes.
    assert!(bytes < 720 * 1500 + 40 * 4 * 1600, "{bytes} B in an hour");
}

#[test]
fn a_path_below_the_least_mtu_is_reported_as_too_narrow() {
    for takes in [600, 500, 300, LEAST] {
        let mut world = World::new(1500, takes, 6);
        world.run(60_000);
        assert_eq!(world.mtu(), takes);
        assert!(!world.search.is_too_narrow(), "{takes}");
    }
    let mut world = World::new(1500, LEAST - 1, 6);
    world.run(20_000);
    assert!(world.search.is_too_narrow());
    let sent = world.sent;
    world.run(3_600_000);
    assert!(world.sent - sent < 100, "{}", world.sent - sent);
    // Nothing else is sent on it, and still it is tested.
    (world.busy, world.takes) = (false, 1_400);
    world.run(620_000);
    assert!(!world.search.is_too_narrow());
    assert_eq!(world.mtu(), 1_400);
    let mut world = World::new(500, 500, 7);
    world.run(60_000);
    assert_eq!(world.mtu(), 500, "the interface decides");
}

#[test]
fn an_outage_does_not_change_the_mtu() {
    let mut world = World::new(1500, 1500, 8);
    world.run(1_000);
    let sent = world.sent;
    world.loss = 1.0;
    world.run(600_000);
    assert_eq!(world.mtu(), 1500);
    assert!(world.sent - sent < 200, "{}", world.sent - sent);
    world.loss = 0.0;
    world.takes = 1300;
    world.run(30_000);
    assert_eq!(world.mtu(), 1300);
}

#[test]
fn unsolicited_answers_change_nothing() {
    let mut world = World::new(9000, 1400, 9);
    let mut random = Streams::new(9, 9).stream("guesses");
    for _ in 0..10_000 {
        world.search.handle_answer(at(0), random.next_u64());
    }
    let before = format!("{:?}", world.search);
    world.search.handle_answer(at(0), 0);
    assert_eq!(before, format!("{:?}", world.search));
    world.run(60_000);
    assert_eq!(world.mtu(), 1400);
}

#[test]
fn the_narrowest_path_is_searched_again_once_it_widens() {
    let mut world = World::new(576, LEAST, 11);
    world.run(100_000);
    assert_eq!(world.mtu(), LEAST);
    world.takes = 332;
    world.run(1_300_000);
    assert_eq!(world.mtu(), 332);
}

#[test]
fn without_a_peer_nothing_is_sent() {
    let mut world = World::new(1500, 1500, 10);
    world.search.stop();
    assert_eq!(world.search.poll_probe(), None);
    assert_eq!(world.search.poll_timeout(), Instant::FAR_FUTURE);
    world.search.hear(at(0), 1300);
    assert_eq!((world.search.poll_probe(), world.mtu()), (None, 1500));
    world.search.begin(at(0));
    assert!(world.search.poll_probe().is_some());
}

/// The answer to a confirmation may arrive when the next search is due; it must not postpone that search.
#[test]
fn a_confirmation_does_not_postpone_a_due_search() {
    for delay in (100..5_000).step_by(100) {
        let mut world = World::new(1_500, 600, delay);
        world.search.set_pace(Some(MS * delay), Duration::ZERO);
        world.delay = delay / 2;
        world.run(400_000);
        assert_eq!(world.mtu(), 600);
        world.takes = 1_400;
        world.run(900_000);
        assert_eq!(world.mtu(), 1_400, "answers take {delay} ms");
    }
}

proptest! {
    /// Whatever a path carries, loses and delays: once it stops changing, exactly its size is found, the size in use is
    /// within bounds at all times, and probes are few.
    #[test]
    fn the_mtu_of_any_path_is_found(
        most in 576..9_001usize,
        paths in prop::collection::vec((0.0..1.0f64, 0.0..0.2f64, 1..120u64), 1..4),
        seed: u64,
    ) {
        let mut world = World::new(most, most, seed);
        for (part, loss, delay) in paths {
            world.takes = LEAST + ((most - LEAST) as f64 * part) as usize;
            (world.loss, world.delay) = (loss, delay);
            for _ in 0..100 {
                let sent = world.sent;
                world.run(1_000);
                prop_assert!((LEAST..=most).contains(&world.mtu()));
                prop_assert!(world.sent - sent <= 60, "{} in a second", world.sent - sent);
            }
            // Bad luck may make a size count as too long, but not forever.
            world.loss = 0.0;
            world.run(1_300_000);
            prop_assert_eq!(world.mtu(), world.takes);
        }
    }
}
