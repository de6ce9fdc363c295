use super::*;
use airlane_base::{Rng, Streams};
use proptest::prelude::*;
use std::collections::VecDeque;

mod laws;
mod shared;

const FRAME: usize = 1_250;
const MARK: usize = 60;

/// A simulated link that the estimator does not know, and its senders.
struct World {
    estimator: RateEstimator,
    now: Instant,
    mbps: f64,
    delay: Duration,
    loss: f64,
    /// Mean length of a burst of losses, frames.
    burst: f64,
    jitter: Duration,
    /// Additional delay of the next mark.
    stall: Duration,
    /// Limit of the link's queue.
    room: Duration,
    /// What would wait passes at once: a token bucket of this room.
    policed: bool,
    /// Longer frames vanish.
    longest: usize,
    /// Offered traffic.
    offered_mbps: f64,
    /// Traffic of others, of which the link's queue takes as much as it can.
    others_mbps: f64,
    rng: Rng,
    next: Instant,
    free_at: Instant,
    lost_for: u32,
    sent: u64,
    received: u64,
    /// With their arrival times.
    reports: VecDeque<(Instant, u32, Report)>,
    /// Bytes carried by the link, and the queueing delay of each frame.
    carried: u64,
    waits: Vec<f64>,
}

impl World {
    fn new(mbps: f64, delay_ms: u64) -> Self {
        Self {
            estimator: RateEstimator::new(Rate::from_bps(10_000_000_000).unwrap(), false),
            now: Instant::from_nanos(10_000_000_000),
            mbps,
            delay: Duration::from_millis(delay_ms),
            loss: 0.0,
            burst: 1.0,
            jitter: Duration::ZERO,
            stall: Duration::ZERO,
            room: Duration::from_millis(300),
            policed: false,
            longest: FRAME,
            offered_mbps: f64::INFINITY,
            others_mbps: 0.0,
            rng: Streams::new(7, 0).stream("link"),
            next: Instant::from_nanos(10_000_000_000),
            free_at: Instant::ORIGIN,
            lost_for: 0,
            sent: 0,
            received: 0,
            reports: VecDeque::new(),
            carried: 0,
            waits: Vec::new(),
        }
    }

    /// Sends for some seconds; returns the link's utilisation, and the 95th percentile of its queue, ms.
    fn run(&mut self, seconds: f64) -> (f64, f64) {
        let end = self.now + Duration::from_secs_f64(seconds);
        self.waits.clear();
        let before = self.carried;
        while self.now < end {
            let first = self
                .reports
                .front()
                .map_or(Instant::FAR_FUTURE, |report| report.0);
            if first <= self.next {
                self.now = first;
                let (_, number, report) = self.reports.pop_front().unwrap();
                self.estimator.handle_report(self.now, number, report);
                continue;
            }
            self.now = self.next;
            let bytes = match self.estimator.is_due() {
                true => self.send_mark(),
                false => self.send(FRAME),
            };
            let rate = self.estimator.rate().as_bps() as f64;
            let rate = rate.min(self.offered_mbps * 1e6);
            self.next += Duration::from_secs_f64(bytes as f64 * 8.0 / rate);
            self.estimator.departed(self.now, self.sent);
        }
        self.waits.sort_by(f64::total_cmp);
        let waits = self.waits.get(self.waits.len() * 95 / 100);
        let used = (self.carried - before) as f64 * 8.0 / seconds / 1e6;
        (used / self.mbps, waits.copied().unwrap_or(0.0))
    }

    fn send(&mut self, bytes: usize) -> usize {
        self.sent += bytes as u64;
        if self.cross(bytes).is_some() && bytes <= self.longest {
            self.received += bytes as u64;
        }
        bytes
    }

    fn send_mark(&mut self) -> usize {
        let number = self.estimator.mark(self.now, self.sent);
        let before = self.received;
        if let Some(came) = self.cross(MARK) {
            let came = came + std::mem::take(&mut self.stall);
            let report = Report {
                received: before as u32,
                at_us: (came.as_nanos() / 1_000) as u32,
            };
            let at = came + self.delay;
            let place = self.reports.iter().rposition(|other| other.0 <= at);
            self.reports
                .insert(place.map_or(0, |i| i + 1), (at, number, report));
            self.received += MARK as u64;
        }
        self.sent += MARK as u64;
        MARK
    }

    /// When the bytes arrive, if they do.
    fn cross(&mut self, bytes: usize) -> Option<Instant> {
        let waits = self.free_at.saturating_since(self.now);
        let is_queued = if self.policed { 0.0 } else { 1e3 };
        self.waits.push(waits.as_secs_f64() * is_queued);
        if waits > self.room {
            return None;
        }
        let rate = (self.mbps - self.others_mbps).max(0.01) * 1e6;
        let takes = Duration::from_secs_f64(bytes as f64 * 8.0 / rate);
        self.free_at = self.free_at.max(self.now) + takes;
        self.carried += bytes as u64;
        if self.lost_for > 0 {
            self.lost_for -= 1;
            return None;
        }
        if self.rng.chance(self.loss / self.burst / (1.0 - self.loss)) {
            self.lost_for = (self.burst as u32).saturating_sub(1);
            return None;
        }
        let late = self.jitter.as_secs_f64() * self.rng.uniform();
        let leaves = if self.policed { self.now } else { self.free_at };
        Some(leaves + self.delay + Duration::from_secs_f64(late))
    }

    fn found(&self) -> f64 {
        self.estimator.rate().as_bps() as f64 / 1e6
    }
}

/// Mbit/s, delay in ms, loss, burst length, jitter in ms, and the required utilisation.
type Case = (f64, u64, f64, f64, u64, f64);

const CASES: [Case; 14] = [
    (2.0, 25, 0.0, 1.0, 0, 0.9),
    (5.0, 25, 0.0, 1.0, 0, 0.9),
    (20.0, 5, 0.0, 1.0, 0, 0.9),
    (20.0, 25, 0.0, 1.0, 0, 0.9),
    (20.0, 75, 0.0, 1.0, 0, 0.9),
    (20.0, 150, 0.0, 1.0, 0, 0.9),
    (50.0, 25, 0.0, 1.0, 0, 0.9),
    (200.0, 25, 0.0, 1.0, 0, 0.9),
    (20.0, 25, 0.05, 1.0, 0, 0.9),
    (20.0, 25, 0.1, 1.0, 0, 0.9),
    (20.0, 25, 0.05, 10.0, 0, 0.9),
    (20.0, 25, 0.1, 10.0, 0, 0.9),
    (20.0, 25, 0.0, 1.0, 10, 0.85),
    (20.0, 25, 0.05, 1.0, 10, 0.85),
];

fn world((mbps, delay, loss, burst, jitter, _): Case) -> World {
    World {
        loss,
        burst,
        jitter: Duration::from_millis(jitter),
        ..World::new(mbps, delay)
    }
}

#[test]
fn a_link_is_found_in_three_seconds_and_kept_without_a_queue() {
    for case in CASES {
        let mut world = world(case);
        world.run(3.0);
        let (soon, _) = world.run(1.0);
        let (used, queue) = world.run(30.0);
        assert!(
            soon > 0.85 && used > case.5,
            "{case:?}: {soon}, then {used}"
        );
        assert!(queue < 30.0, "{case:?}: {queue} ms of queue");
    }
}

#[test]
fn a_link_that_changes_is_followed_up_and_down() {
    for (loss, jitter, room) in [
        (0.0, 0, 300),
        (0.05, 0, 300),
        (0.05, 10, 300),
        (0.0, 0, 50),
        // The queue is shorter than the allowed delay: only losses show the limit.
        (0.0, 0, 5),
    ] {
        let mut world = world((20.0, 25, loss, 1.0, jitter, 0.0));
        world.room = Duration::from_millis(room);
        world.run(5.0);
        for mbps in [5.0, 30.0, 12.0, 20.0] {
            world.mbps = mbps;
            world.run(2.0);
            let (used, queue) = world.run(8.0);
            let case = format!("{mbps} Mbit/s, {loss}, {jitter} ms, {room} ms");
            assert!(used > 0.85, "{case}: {used}");
            assert!(queue < 30.0, "{case}: {queue} ms of queue");
        }
    }
}

#[test]
fn a_longer_path_is_not_taken_for_a_queue() {
    let mut world = World::new(20.0, 25);
    world.run(10.0);
    for delay in [45, 30, 60] {
        world.delay = Duration::from_millis(delay);
        world.run(3.0);
        let (used, _) = world.run(10.0);
        assert!(used > 0.85, "{delay} ms: {used}");
    }
}

#[test]
fn a_rate_recovers_quickly_after_low_demand() {
    let mut world = World::new(20.0, 25);
    world.run(5.0);
    world.offered_mbps = 0.1;
    world.run(60.0);
    assert!(world.found() > 15.0, "{}", world.found());
    world.mbps = 40.0;
    world.offered_mbps = f64::INFINITY;
    world.run(2.0);
    let (used, _) = world.run(2.0);
    assert!(used > 0.85, "{used}");
}

#[test]
fn the_rate_recovers_as_soon_as_an_outage_ends() {
    let mut world = World::new(20.0, 25);
    world.run(5.0);
    world.loss = 0.999;
    world.run(3.0);
    world.loss = 0.0;
    world.run(2.0);
    let (used, _) = world.run(5.0);
    assert!(used > 0.85, "{used}");
}

#[test]
fn the_rate_before_an_outage_is_soon_restored() {
    for (mbps, delay, loss) in [(2.0, 25, 0.0), (20.0, 25, 0.05), (50.0, 75, 0.0)] {
        // A host that is busy when the link returns delays the first mark.
        for stall in [0, 15, 40] {
            let mut world = world((mbps, delay, loss, 1.0, 0, 0.0));
            world.run(5.0);
            world.loss = 1.0;
            world.run(15.0);
            world.loss = loss;
            world.stall = Duration::from_millis(stall);
            world.run(1.0);
            let (used, _) = world.run(2.0);
            let case = format!("{mbps} Mbit/s, {delay} ms, {stall} ms late");
            assert!(used > 0.85, "{case}: {used}");
        }
    }
}

/// A fade takes everything sent during it at any rate, and ends by itself.
#[test]
fn fades_do_not_lower_the_rate() {
    for (fades_ms, delay) in [(50, 25), (100, 25), (150, 75)] {
        let mut world = World::new(20.0, delay);
        world.run(5.0);
        let (mut used, count) = (0.0, 20);
        for _ in 0..count {
            world.loss = 1.0;
            world.run(f64::from(fades_ms) / 1e3);
            world.loss = 0.0;
            used += world.run(1.5).0 / f64::from(count);
        }
        assert!(used > 0.97, "{fades_ms} ms, {delay} ms: {used}");
    }
}

#[test]
fn a_link_that_becomes_six_times_as_fast_is_found_in_two_seconds() {
    for (delay, loss, least) in [
        (10, 0.05, 0.9),
        (50, 0.0, 0.85),
        (50, 0.05, 0.85),
        // A round takes 180 ms here.
        (75, 0.0, 0.8),
        (75, 0.05, 0.8),
    ] {
        let case = format!("{delay} ms, {loss}");
        let (mut third, phases) = (0.0, 5);
        for phase in 0..phases {
            let mut world = World::new(5.0, delay);
            world.loss = loss;
            world.run(8.0 + 0.3 * f64::from(phase));
            world.mbps = 30.0;
            world.run(2.0);
            third += world.run(1.0).0 / f64::from(phases);
            let (used, queue) = world.run(20.0);
            assert!(used > 0.95 && queue < 30.0, "{case}: {used}, {queue} ms");
        }
        assert!(third > least, "{case}: {third}");
    }
}

/// Traffic long before a burst does not tell how fast the burst crosses the link.
#[test]
fn a_burst_after_little_traffic_is_not_a_slow_link() {
    for burst_ms in 3..12 {
        for (seed, pause_ms) in [(1, 40), (2, 40), (3, 100), (4, 100), (5, 250), (6, 250)] {
            let mut world = World::new(20.0, 25);
            world.rng = Streams::new(seed, 0).stream("link");
            world.jitter = Duration::from_micros(200);
            let mut least = f64::INFINITY;
            for _ in 0..8 {
                // One frame per pause.
                let pause = 0.001 * f64::from(pause_ms);
                world.offered_mbps = 0.01 / pause;
                world.run(3.0 * pause);
                (world.next, world.offered_mbps) = (world.now, f64::INFINITY);
                world.run(0.001 * f64::from(burst_ms));
                least = least.min(world.estimator.carries().as_bps() as f64 / 1e6);
            }
            // It starts at that rate.
            assert!(least >= 10.0, "{burst_ms}, {pause_ms} ms: {least} Mbit/s");
        }
    }
}

/// Volleys of a window smaller than the link holds: the queue of each is gone before the next.
#[test]
fn bursts_into_an_unknown_link_measure_it() {
    for (delay, loss) in [(5, 0.0), (25, 0.0), (25, 0.1), (75, 0.05)] {
        let mut world = World::new(20.0, delay);
        (world.loss, world.room) = (loss, Duration::from_millis(50));
        for _ in 0..10 {
            world.offered_mbps = f64::INFINITY;
            world.run(0.009);
            world.offered_mbps = 2.0;
            world.run(0.051);
        }
        let found = world.estimator.rate().as_bps() as f64 / 1e6;
        assert!(
            (10.0..30.0).contains(&found),
            "{delay} ms, {loss}: {found} Mbit/s"
        );
    }
}

/// A call never uses the initial rate of an unknown link. The first answer restores the rate that a silence
/// reduced.
#[test]
fn a_call_finds_its_rate_after_an_outage() {
    for stops in [3.0, 10.0, 40.0] {
        let mut world = World::new(2.0, 25);
        world.offered_mbps = 0.1;
        world.run(5.0);
        world.loss = 1.0;
        world.run(stops);
        world.loss = 0.0;
        world.run(1.0);
        assert!(world.found() > 1.0, "{stops} s: {}", world.found());
    }
}

/// The same holds where the path is longer afterwards: the delay does not fall although next to nothing is
/// sent.
#[test]
fn a_call_finds_its_rate_after_an_outage_on_a_longer_path() {
    for (stops, longer) in [(3.0, 30), (10.0, 30), (3.0, 100), (3.0, 300)] {
        let mut world = World::new(20.0, 10);
        world.offered_mbps = 0.1;
        world.run(5.0);
        world.loss = 1.0;
        world.run(stops);
        (world.loss, world.delay) = (0.0, Duration::from_millis(10 + longer));
        world.run(3.0);
        let found = world.found();
        assert!(found > 1.0, "{stops} s, {longer} ms longer: {found}");
    }
}

/// Losses on a path that no longer accepts long frames tell nothing about its rate.
#[test]
fn a_path_that_narrows_is_as_fast_as_before() {
    for (mbps, lasts) in [(8.0, 2.0), (8.0, 6.0), (50.0, 3.0)] {
        let mut world = World::new(mbps, 40);
        world.run(5.0);
        world.longest = FRAME - 1;
        world.run(lasts);
        assert!(world.estimator.take_losing(), "{mbps} Mbit/s");
        world.longest = FRAME;
        world.estimator.path_changed();
        let (used, _) = world.run(2.0);
        assert!(used > 0.8, "{mbps} Mbit/s, {lasts} s: {used}");
    }
}

/// A sender that keeps a queue full takes its share: this end yields for as long as the old minimum delay is
/// remembered.
#[test]
fn cross_traffic_is_yielded_to_for_a_bounded_time() {
    let mut world = World::new(20.0, 25);
    world.run(5.0);
    // A queue of 40 ms stands regardless of this end.
    world.delay = Duration::from_millis(65);
    world.others_mbps = 10.0;
    world.run(5.0);
    let (used, _) = world.run(20.0);
    assert!(used > 0.35, "{used} of the link, of which half is there");
}

/// Little is sent before the first answer, however long it takes, as over a satellite.
#[test]
fn little_leaves_before_the_first_answer() {
    let mut world = World::new(1_000.0, 450);
    world.run(0.85);
    let eighth = FIRST_BPS as f64 / HELD as f64 / 8.0;
    let most = FIRST_FLIGHT as f64 + eighth * 0.85;
    assert!((world.sent as f64) < 1.1 * most, "{} of {most}", world.sent);
}

/// On a long path a trial takes its own time and a few round trips, not a round trip for every few marks.
#[test]
fn a_probe_of_the_rate_is_short_on_a_long_path() {
    let mut world = World::new(2.0, 350);
    world.room = Duration::from_millis(1);
    world.run(8.0);
    let limit = world.estimator.found().limit;
    assert_eq!(limit, RateLimitCause::Policed, "{:?}", world.estimator);
}

/// `status` names what limits a rate.
#[test]
fn the_cause_of_a_limit_is_named() {
    let limit = |world: &World| world.estimator.found().limit;
    let mut world = World::new(20.0, 25);
    assert_eq!(limit(&world), RateLimitCause::NotYetSeen);
    world.run(5.0);
    assert_eq!(limit(&world), RateLimitCause::Queue);
    world.loss = 1.0;
    world.run(5.0);
    assert_eq!(limit(&world), RateLimitCause::Silence);
    let mut world = World::new(20.0, 25);
    world.room = Duration::from_millis(2);
    world.run(10.0);
    assert_eq!(limit(&world), RateLimitCause::Policed);
    let mut world = World::new(20.0, 25);
    world.estimator = RateEstimator::new("8 Mbit/s".parse().unwrap(), true);
    world.run(5.0);
    assert_eq!(limit(&world), RateLimitCause::Configured);
}

#[test]
fn a_bound_is_kept() {
    let mut world = World::new(20.0, 25);
    world.estimator = RateEstimator::new("8 Mbit/s".parse().unwrap(), true);
    let (used, queue) = world.run(10.0);
    assert!(
        (0.38..0.41).contains(&used) && queue < 1.0,
        "{used}, {queue} ms"
    );
    world.estimator.set_most("12 Mbit/s".parse().unwrap());
    let (used, _) = world.run(10.0);
    assert!((0.58..0.61).contains(&used), "{used}");
    // The rate is no longer stated: the search continues from there.
    world.estimator.set_most(RateLimit::UNSTATED);
    assert_eq!(world.estimator.rate().as_bps(), 12_000_000);
    let (used, queue) = world.run(10.0);
    assert!(used > 0.85 && queue < 30.0, "{used}, {queue} ms");
}

proptest! {
    /// For all reports from a peer, the rate stays within its bounds and memory does not grow.
    #[test]
    fn any_reports_leave_a_rate(reports in prop::collection::vec((any::<u8>(), any::<u32>(), any::<u32>(), 0u64..3_000), 0..300)) {
        let most = Rate::from_bps(50_000_000).unwrap();
        let mut estimator = RateEstimator::new(most, false);
        let (mut now, mut sent) = (Instant::ORIGIN, 0);
        for (back, received, at_us, ms) in reports {
            now += Duration::from_millis(ms);
            sent += 10_000;
            estimator.departed(now, sent);
            if estimator.is_due() {
                estimator.mark(now, sent);
            }
            let number = estimator.marks.count().0.wrapping_sub(u32::from(back % 8));
            estimator.handle_report(now, number, Report { received, at_us });
            prop_assert!((LEAST_BPS..=most.as_bps()).contains(&estimator.rate().as_bps()));
            prop_assert!(estimator.samples.len() <= SAMPLES && estimator.marks.count().1 <= marks::MARKS);
        }
    }
}
