//! A port whose link carries less than the stated rate, or that was given no rate (docs/lab/thin-flows.md).

use airlane_base::{Duration, Rate};
use airlane_link::HeaderProfile::Live;
use airlane_link::config::RateLimit;
use airlane_testkit::{Bottleneck, Pair, Setup, TestPacket};

const QUEUE: &str = "kind = \"drop-tail\", limit = \"100 packets\"";
const HEADER: usize = 17;

fn rate(mbps: u64) -> Rate {
    Rate::from_bps(mbps * 1_000_000).expect("a link has a rate")
}

/// The ports are given 20 Mbit/s and 25 ms; 50 ms of queue before the real link.
fn pair(limit: RateLimit, scheme: &str, mbps: u64, loss: f64) -> Pair<Bottleneck> {
    let mut setup = Setup::new(Live).rate("20 Mbit/s");
    setup.config.delay = Duration::from_millis(25);
    setup.config.rate_limit = limit;
    let setup = setup.service(1, 1.0, scheme, QUEUE);
    let longest = Duration::from_millis(50);
    Pair::new(&setup, Bottleneck::new(rate(mbps), HEADER, longest, loss))
}

/// Offers more than the link carries for some seconds; returns the share of `mbps` that was delivered.
fn load(pair: &mut Pair<Bottleneck>, seconds: u64, mbps: u64) -> f64 {
    pair.adversary.forget();
    let before = pair.delivered(1).len();
    for _ in 0..seconds * 1_000 {
        for _ in 0..3 {
            let id = pair.ledger(0, 1).packets_offered;
            pair.offer(0, TestPacket::new(1, id, 1_000));
        }
        pair.run_for(Duration::from_millis(1));
    }
    let came = (pair.delivered(1).len() - before) as f64;
    came * 8_000.0 / (mbps * 1_000_000 * seconds) as f64
}

#[test]
fn a_fixed_rate_fills_the_queue_of_a_slower_link() {
    let mut pair = pair(RateLimit::Fixed, "kind = \"sr-m2\"", 10, 0.0);
    load(&mut pair, 5, 10);
    let bottleneck = &pair.adversary;
    assert!(
        bottleneck.overflowed * 5 > bottleneck.offered,
        "{bottleneck:?}"
    );
    assert!(bottleneck.waited > Duration::from_millis(49));
}

#[test]
fn an_estimated_rate_follows_a_slower_link() {
    for (mbps, loss) in [(10, 0.0), (10, 0.05), (5, 0.05), (17, 0.0)] {
        let scheme = "kind = \"sr-m2\", keepalives = 8, copies = {}";
        let mut pair = pair(RateLimit::Estimated, scheme, mbps, loss);
        // Until the rate is found, a full window leaves gaps.
        load(&mut pair, 3, mbps);
        let copies = pair.ledger(0, 1).copy_frames_sent;
        let part = load(&mut pair, 10, mbps);
        let bottleneck = &pair.adversary;
        let overflows = bottleneck.overflowed as f64 / bottleneck.offered as f64;
        assert!(
            part > 0.85 - loss,
            "{part} of {mbps} Mbit/s: {bottleneck:?}"
        );
        assert!(overflows < 0.002, "{bottleneck:?}");
        assert_eq!(
            pair.ledger(0, 1).copy_frames_sent,
            copies,
            "a bulk flow has no room for copies"
        );
        // The link has the stated rate again.
        pair.adversary.become_as_fast_as(rate(20));
        load(&mut pair, 8, 20);
        let part = load(&mut pair, 4, 20);
        assert!(part > 0.93 - loss, "{part} of 20 Mbit/s again");
    }
}

#[test]
fn losses_on_the_air_are_no_reason_to_slow_down() {
    let mut pair = pair(RateLimit::Estimated, "kind = \"sr-m2\"", 20, 0.1);
    load(&mut pair, 5, 20);
    assert_eq!(pair.port(0).rate(), rate(20));
}

/// The ports find the rate whatever the service, also with one without repair.
#[test]
fn the_rate_is_found_under_every_scheme() {
    for scheme in [
        "kind = \"default\"",
        "kind = \"xor\"",
        "kind = \"gbn\", window = 4096",
        "kind = \"sr-bitmap\"",
        "kind = \"rlp\"",
        "kind = \"rlp-oos\"",
    ] {
        let mut pair = pair(RateLimit::Estimated, scheme, 5, 0.02);
        load(&mut pair, 3, 5);
        pair.adversary.forget();
        load(&mut pair, 10, 5);
        let bottleneck = &pair.adversary;
        let overflows = bottleneck.overflowed as f64 / bottleneck.offered as f64;
        assert!(overflows < 0.005, "{scheme}: {bottleneck:?}");
        let found = pair.port(0).rate().as_bps() as f64 / 5e6;
        assert!(found > 0.6, "{scheme}: {found} of 5 Mbit/s");
        assert_eq!(
            pair.port(1).rate(),
            rate(20),
            "{scheme}: the receiver has no queue below it"
        );
    }
}

/// An old estimate must not limit a port for long.
#[test]
fn an_estimated_rate_rises_with_demand() {
    let mut pair = pair(RateLimit::Estimated, "kind = \"sr-m2\"", 5, 0.0);
    load(&mut pair, 5, 5);
    assert!(pair.port(0).rate() < rate(7));
    pair.adversary.become_as_fast_as(rate(20));
    pair.run_for(Duration::from_secs(60));
    load(&mut pair, 2, 20);
    let part = load(&mut pair, 2, 20);
    assert!(part > 0.9, "{part} of 20 Mbit/s");
}

/// An unstated rate starts high, and converges to that of the link.
#[test]
fn an_unstated_rate_is_found() {
    for mbps in [2, 20] {
        let mut setup = Setup::new(Live).rate("1 Gbit/s");
        setup.config.delay = Duration::from_millis(25);
        setup.config.rate_limit = RateLimit::Found;
        let setup = setup.service(1, 1.0, "kind = \"sr-m2\"", QUEUE);
        let longest = Duration::from_millis(100);
        let bottleneck = Bottleneck::new(rate(mbps), HEADER, longest, 0.05);
        let mut pair = Pair::new(&setup, bottleneck);
        // After a pause the first frame is followed by a mark: before there is a queue.
        pair.run_for(Duration::from_secs(1));
        load(&mut pair, 2, mbps);
        let part = load(&mut pair, 5, mbps);
        assert!(part > 0.87, "{part} of {mbps} Mbit/s");
        assert!(pair.adversary.waited < Duration::from_millis(60));
    }
}

/// Copies use spare capacity, and an unknown link may have none.
#[test]
fn no_copies_are_sent_while_the_rate_is_unknown() {
    let mut setup = Setup::new(Live).rate("1 Gbit/s");
    setup.config.delay = Duration::from_millis(25);
    setup.config.rate_limit = RateLimit::Found;
    let setup = setup.service(1, 1.0, "kind = \"sr-m2\", copies = {}", QUEUE);
    let bottleneck = Bottleneck::new(rate(5), HEADER, Duration::from_millis(100), 0.0);
    let mut pair = Pair::new(&setup, bottleneck);
    let offer = |pair: &mut Pair<Bottleneck>, within_ms| {
        for id in 0..5 {
            pair.offer(0, TestPacket::new(1, id, 1_000));
        }
        pair.run_for(Duration::from_millis(within_ms));
        pair.ledger(0, 1).copy_frames_sent
    };
    assert_eq!(offer(&mut pair, 40), 0, "before the first answer");
    pair.run_for(Duration::from_secs(1));
    assert!(offer(&mut pair, 40) > 0);
}

/// Study headers have no frames for the limiter.
#[test]
fn an_estimated_limit_without_reports_is_refused() {
    use airlane_link::HeaderProfile::Study;
    use airlane_link::Port;
    let mut setup = Setup::new(Study);
    setup.config.rate_limit = RateLimit::Estimated;
    let problems = Port::<TestPacket>::new(setup.config).expect_err("nothing can be found");
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].path, "rate-limit");
}
