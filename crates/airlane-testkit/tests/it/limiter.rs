//! A port that was told more than its link can do (docs/thin-flows.md).

use airlane_base::{Duration, Rate};
use airlane_link::HeaderProfile::Live;
use airlane_link::config::RateLimit;
use airlane_testkit::{Bottleneck, Pair, Setup, TestPacket};

const QUEUE: &str = "kind = \"drop-tail\", limit = \"100 packets\"";
const HEADER: usize = 17;

fn rate(mbps: u64) -> Rate {
    Rate::from_bps(mbps * 1_000_000).expect("a link has a rate")
}

/// 20 Mbit/s, they were told, and 25 ms; 50 ms of queue in front of the link that there is.
fn pair(limit: RateLimit, scheme: &str, mbps: u64, loss: f64) -> Pair<Bottleneck> {
    let mut setup = Setup::new(Live).rate("20 Mbit/s");
    setup.config.delay = Duration::from_millis(25);
    setup.config.rate_limit = limit;
    let setup = setup.service(1, 1.0, scheme, QUEUE);
    let longest = Duration::from_millis(50);
    Pair::new(&setup, Bottleneck::new(rate(mbps), HEADER, longest, loss))
}

/// Offers more than the link takes for some seconds; gives the part of `mbps` that was delivered.
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
        load(&mut pair, 3, mbps);
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
            0,
            "a bulk flow has no room for copies"
        );
        // The link is as told again.
        pair.adversary.become_as_fast_as(rate(20));
        load(&mut pair, 8, 20);
        let part = load(&mut pair, 4, 20);
        assert!(part > 0.93 - loss, "{part} of 20 Mbit/s again");
        assert_eq!(pair.port(0).rate(), rate(20));
    }
}

#[test]
fn losses_on_the_air_are_no_reason_to_slow_down() {
    let mut pair = pair(RateLimit::Estimated, "kind = \"sr-m2\"", 20, 0.1);
    load(&mut pair, 5, 20);
    assert_eq!(pair.port(0).rate(), rate(20));
}

/// Every scheme that acknowledges shows round trips. RLP does by what it is asked for, so the air must
/// lose something before the queue is full.
#[test]
fn every_scheme_that_can_shows_its_round_trips() {
    for (scheme, loss) in [
        ("kind = \"gbn\", window = 4096", 0.0),
        ("kind = \"sr-bitmap\"", 0.0),
        ("kind = \"rlp\"", 0.05),
        ("kind = \"rlp-oos\"", 0.05),
    ] {
        let mut pair = pair(RateLimit::Estimated, scheme, 5, loss);
        load(&mut pair, 3, 5);
        let part = load(&mut pair, 10, 5);
        let bottleneck = &pair.adversary;
        let overflows = bottleneck.overflowed as f64 / bottleneck.offered as f64;
        assert!(
            part > 0.7 - loss,
            "{scheme}: {part} of 5 Mbit/s: {bottleneck:?}"
        );
        assert!(overflows < 0.05, "{scheme}: {bottleneck:?}");
        assert_eq!(
            pair.port(1).rate(),
            rate(20),
            "{scheme}: the receiver has no queue below it"
        );
    }
}

/// What shows no round trips any more must not be held down by what others have shown.
#[test]
fn a_rate_rises_again_when_only_voice_is_left() {
    let mut setup = Setup::new(Live).rate("20 Mbit/s");
    setup.config.delay = Duration::from_millis(25);
    setup.config.rate_limit = RateLimit::Estimated;
    let setup = setup.service(1, 1.0, "kind = \"sr-m2\"", QUEUE).service(
        2,
        1.0,
        "kind = \"default\"",
        QUEUE,
    );
    let longest = Duration::from_millis(50);
    let mut pair = Pair::new(&setup, Bottleneck::new(rate(5), HEADER, longest, 0.0));
    load(&mut pair, 5, 5);
    assert!(pair.port(0).rate() < rate(6));
    pair.adversary.become_as_fast_as(rate(20));
    for id in 0..40 * 50 {
        pair.offer(0, TestPacket::new(2, id, 200));
        pair.run_for(Duration::from_millis(20));
    }
    assert_eq!(pair.port(0).rate(), rate(20));
}

/// With study headers nobody echoes anything.
#[test]
fn a_limit_that_can_learn_nothing_is_refused() {
    use airlane_link::HeaderProfile::{self, Study};
    use airlane_link::Port;
    let refused = |header: HeaderProfile, schemes: &[&str]| {
        let mut setup = Setup::new(header);
        setup.config.rate_limit = RateLimit::Estimated;
        for (number, scheme) in (1..).zip(schemes) {
            setup = setup.service(number, 1.0, scheme, QUEUE);
        }
        let problems = Port::<TestPacket>::new(setup.config).err()?;
        assert_eq!(problems.len(), 1, "{problems:?}");
        Some(problems[0].path.clone())
    };
    for (header, schemes, works) in [
        (Study, &["kind = \"sr-m2\""][..], false),
        (Study, &["kind = \"gbn\"", "kind = \"sr-bitmap\""], false),
        (Study, &["kind = \"rlp-oos\""], true),
        (Live, &["kind = \"sr-bitmap\""], true),
        (Live, &["kind = \"default\"", "kind = \"xor\""], false),
        (Live, &["kind = \"xor\"", "kind = \"rlp\""], true),
    ] {
        let expected = (!works).then(|| "rate-limit".to_owned());
        assert_eq!(refused(header, schemes), expected, "{header:?} {schemes:?}");
    }
}
