//! The reliable schemes: under any loss and duplication, and reordering within the stated bound, everything is
//! delivered once and in order when loss ends (docs/spec/multi-service.md, sections 7.2 to 7.5 and 18.4).

use crate::strategies::{Offer, cases, fates, losses, play, traffic};
use airlane_base::{Duration, Instant};
use airlane_link::HeaderProfile::{Live, Study};
use airlane_testkit::{
    Fate, FrameDeparture, Pair, RandomAdversary, Reordering, Scripted, Setup, TestPacket,
};
use proptest::prelude::*;

const QUEUE: &str = "kind = \"drop-tail\", limit = \"100000 packets\"";
/// The longest delay of a frame.
const LATE: Duration = Duration::from_secs(2);
const RTO: Duration = Duration::from_millis(80);

const KINDS: [&str; 5] = ["gbn", "sr", "sr-m1", "sr-m2", "sr-bitmap"];

/// Settings of a service, except for its window.
#[derive(Clone, Copy, Debug)]
struct Options {
    kind: &'static str,
    resends: &'static str,
    origin: &'static str,
    unlimited: bool,
}

fn options() -> impl Strategy<Value = Options> {
    let kind = prop::sample::select(KINDS.to_vec());
    let resends = prop::sample::select(vec!["base", "each"]);
    let origin = prop::sample::select(vec!["departure", "hand-over"]);
    (kind, resends, origin, any::<bool>()).prop_map(|(kind, resends, origin, unlimited)| Options {
        kind,
        resends,
        origin,
        unlimited,
    })
}

fn setup(base: Setup, window: u64, options: Options) -> Setup {
    let resends = match options.kind {
        "gbn" | "sr-bitmap" => String::new(),
        _ => format!("timeout-resends = \"{}\", ", options.resends),
    };
    let scheme = format!(
        "kind = \"{}\", window = {window}, {resends}timer-origin = \"{}\", multiplier = 1.0, \
         timers = {{ ack = \"5 ms\", nak = \"1 s\", keepalive = \"1 s\", rto = \"{RTO}\" }}",
        options.kind, options.origin
    );
    let setup = base.service(0, 1.0, &scheme, QUEUE);
    if options.unlimited {
        setup.unlimited()
    } else {
        setup
    }
}

/// The reordering that the scheme tolerates. If a service hands over everything at once, the age of acknowledgments
/// waiting in the scheduler is unknown.
fn bound(modulus: u64, window: u64, options: Options) -> Reordering {
    if options.unlimited {
        Reordering::None
    } else {
        Reordering::Within(modulus - 2 * window)
    }
}

/// Everything offered is delivered once and in order, in bounded time: when loss has ended, each frame of a window
/// costs at most one timeout (if its NAK was lost), and then the backlog must be sent.
fn delivers_all(
    setup: &Setup,
    window: u64,
    reordering: Reordering,
    traffic: &[Offer],
    script: Vec<Fate>,
) -> Result<(), TestCaseError> {
    let mut pair = Pair::new(setup, Scripted::new(script));
    pair.reordering = reordering;
    let offered = play(&mut pair, traffic);
    pair.run_for(Duration::from_millis(200));
    pair.adversary.end();
    let packets = traffic.len() as u64;
    let frame = setup.config.rate.transmission_time(1_020);
    // Frames in flight may still be late.
    let patience = LATE + (RTO + frame * 4) * (window + 2) + frame * (packets * 4);
    let quiet = pair.run_until_quiet(pair.now() + patience);
    for end in 0..2 {
        let expected: Vec<u64> = (0..offered[1 - end][0]).collect();
        prop_assert_eq!(
            pair.ids(end, 0),
            expected,
            "end {} at {:?}",
            end,
            pair.now()
        );
    }
    prop_assert!(quiet, "still busy at {:?}", pair.now());
    Ok(())
}

proptest! {
    #![proptest_config(cases(1_000))]

    /// Small sequence number spaces of any size: every frame is close to a wrap.
    #[test]
    fn few_numbers(
        modulus in 8u64..=11,
        window in 1u64..=4,
        options in options(),
        traffic in traffic(60, 1, 30),
        fates in fates(200, 60),
    ) {
        let base = Setup::new(Study).modulus(modulus);
        delivers_all(&setup(base, window, options), window, bound(modulus, window, options), &traffic, fates)?;
    }

    /// The dissertation's sequence numbers, with windows up to its 127.
    #[test]
    fn study_numbers(
        window in prop::sample::select(vec![1u64, 2, 7, 20, 64, 127]),
        options in options(),
        traffic in traffic(80, 1, 30),
        fates in fates(200, 60),
    ) {
        let base = Setup::new(Study);
        delivers_all(&setup(base, window, options), window, bound(256, window, options), &traffic, fates)?;
    }

    /// Live sequence numbers never repeat: any reordering is tolerated.
    #[test]
    fn live_numbers(
        window in prop::sample::select(vec![1u64, 2, 7, 100, 1_024]),
        options in options(),
        traffic in traffic(80, 1, 30),
        fates in fates(200, 2_000),
    ) {
        let base = Setup::new(Live);
        delivers_all(&setup(base, window, options), window, Reordering::Any, &traffic, fates)?;
    }

    /// Long fades: nothing gets through for many timeouts.
    #[test]
    fn fades(
        (modulus, window) in prop::sample::select(vec![(8u64, 4), (62, 31), (64, 32), (256, 127)]),
        options in options(),
        traffic in traffic(60, 1, 100),
        fates in losses(200),
    ) {
        delivers_all(&setup(Setup::new(Study).modulus(modulus), window, options), window, Reordering::None, &traffic, fates)?;
    }
}

/// Many wraps of sequence numbers of every width, at 20 % loss, with duplication and reordering.
#[test]
fn around_the_ring_many_times() {
    for (base, window, modulus) in [
        (Setup::new(Study).modulus(8), 3, 8),
        (Setup::new(Study).modulus(62), 31, 62),
        (Setup::new(Study), 127, 256),
        (Setup::new(Live).modulus(8), 4, 8),
        (Setup::new(Live).modulus(1_000), 500, 1_000),
        (Setup::new(Live), 512, 1 << 32),
    ] {
        for (kind, seed) in KINDS.into_iter().flat_map(|kind| [(kind, 0), (kind, 1)]) {
            let options = Options {
                kind,
                resends: ["each", "base"][seed as usize],
                origin: "departure",
                unlimited: seed > 0,
            };
            let setup = setup(base.clone(), window, options).rate("10 Mbit/s");
            let loss_ends = Instant::from_nanos(200_000_000_000);
            let adversary = RandomAdversary::losing(seed, 0.2)
                .confusing(0.1, Duration::from_millis(5))
                .until(loss_ends);
            let mut pair = Pair::new(&setup, adversary);
            pair.reordering = bound(modulus, window, options);
            let traffic: Vec<Offer> = (0..6_000)
                .map(|n| Offer {
                    end: n % 2,
                    service: 0,
                    len: 100 + n * 7 % 900,
                    gap: Duration::from_millis(5) * u64::from(n % 3 == 0),
                })
                .collect();
            play(&mut pair, &traffic);
            let quiet = pair.run_until_quiet(loss_ends + Duration::from_secs(100));
            assert!(
                quiet,
                "{kind}, modulus {modulus}, seed {seed}: {:?} {:?} {:?} {:?}",
                pair.ids(0, 0).len(),
                pair.ids(1, 0).len(),
                pair.port(0),
                pair.next_event()
            );
            for end in 0..2 {
                let expected: Vec<u64> = (0..3_000).collect();
                assert_eq!(
                    pair.ids(end, 0),
                    expected,
                    "{kind}, modulus {modulus}, seed {seed}"
                );
            }
        }
    }
}

/// The same with measured timers, without an explicit bound.
#[test]
fn measured_timers_recover_too() {
    for (seed, kind) in (0..40).zip(KINDS.into_iter().cycle()) {
        let scheme = format!("kind = \"{kind}\", window = 64, timers = \"measured\"");
        let setup = Setup::new(Live).service(0, 1.0, &scheme, QUEUE);
        let loss_ends = Instant::from_nanos(5_000_000_000);
        let adversary = RandomAdversary::losing(seed, 0.5)
            .confusing(0.2, Duration::from_millis(20))
            .until(loss_ends);
        let mut pair = Pair::new(&setup, adversary);
        let traffic: Vec<Offer> = (0..400)
            .map(|n| Offer {
                end: n % 2,
                service: 0,
                len: 500,
                gap: Duration::from_millis(10),
            })
            .collect();
        play(&mut pair, &traffic);
        // The timer has backed off to at most 64 times 10 s.
        assert!(pair.run_until_quiet(loss_ends + Duration::from_secs(2 * 640)));
        for end in 0..2 {
            assert_eq!(
                pair.ids(end, 0),
                (0..200).collect::<Vec<_>>(),
                "{kind}, seed {seed}"
            );
        }
    }
}

/// A measured timer backs off once for a lost burst, not once for each of its frames.
#[test]
fn a_lost_burst_is_one_timeout() {
    let scheme = "kind = \"sr-m2\", timers = \"measured\", timeout-resends = \"each\"";
    let setup = Setup::new(Live)
        .rate("20 Mbit/s")
        .service(1, 1.0, scheme, QUEUE);
    let dead = std::rc::Rc::new(std::cell::Cell::new(false));
    let dies = dead.clone();
    let mut pair = Pair::new(&setup, move |_: FrameDeparture<'_>| match dies.get() {
        true => Fate::Lose,
        false => Fate::ARRIVE,
    });
    for id in 0..200 {
        pair.offer(0, TestPacket::new(1, id, 1_000));
        pair.run_for(Duration::from_millis(2));
    }
    pair.run_for(Duration::from_millis(200));
    assert_eq!(pair.delivered(1).len(), 200);
    dead.set(true);
    pair.keeps_journal = true;
    for id in 200..230 {
        pair.offer(0, TestPacket::new(1, id, 1_000));
    }
    pair.run_for(Duration::from_secs(2));
    let left = |frame: &&(usize, Instant, airlane_link::Frame<TestPacket>)| {
        frame.0 == 0 && frame.2.packet().is_some_and(|p| p.id == 200)
    };
    let times: Vec<_> = pair.journal.iter().filter(left).map(|f| f.1).collect();
    let gaps: Vec<_> = times
        .windows(2)
        .map(|t| t[1].saturating_since(t[0]))
        .collect();
    // The first two retransmissions are quick; from then on the interval doubles.
    let first = gaps[0];
    assert!(gaps[1] < first * 3, "{gaps:?}");
    assert!(gaps[2] < first * 4 && gaps[3] > first * 3, "{gaps:?}");
}
