//! Saturated stations compared with closed forms: Bianchi's fixed point, and the sums of Gopal 2007.

mod common;

use airlane_base::{Duration, Instant, QueueLimit, Streams};
use airlane_wifi::place::Thresholds;
use airlane_wifi::profile::{Profile, ProfileName};
use airlane_wifi::station::{Retries, StationConfig};
use airlane_wifi::{Radio, RadioConfig};
use common::{LEN, bianchi};

const BITS: f64 = 8_000.0;

struct Saturated {
    mbps: f64,
    loss_per_frame: f64,
    collisions: f64,
}

/// `n` stations around a receiver, number 0, that always have a packet to send.
fn saturate(name: ProfileName, n: usize, retries: Retries, seconds: u64) -> Saturated {
    saturate_with(Profile::named(name, None), n, retries, seconds)
}

fn saturate_with(profile: Profile, n: usize, retries: Retries, seconds: u64) -> Saturated {
    let config = RadioConfig {
        profile,
        rts_threshold: 3_000,
        capture: true,
        sensed_destroys: true,
        noise: vec![],
        ladder: vec![],
        signal: None,
        sense_delay: Duration::ZERO,
    };
    let station = |i: usize| StationConfig {
        position: match i {
            0 => [0.0, 0.0],
            _ => {
                let angle = i as f64 * 6.0 / n as f64;
                [7.2 * libm::cos(angle), 7.2 * libm::sin(angle)]
            }
        },
        hears: Thresholds::default(),
        retries,
        queue: QueueLimit::Packets(2),
    };
    let stations: Vec<_> = (0..=n).map(station).collect();
    let mut radio = Radio::new(config, &stations, Streams::new(7, n as u64), "radio");
    let fill = |radio: &mut Radio<()>, now, i| while radio.enqueue(now, i, 0, LEN, ()).is_ok() {};
    for i in 1..=n {
        fill(&mut radio, Instant::ORIGIN, i);
    }
    let end = Instant::ORIGIN + Duration::from_secs(seconds);
    let mut delivered = 0u64;
    while let Some(now) = radio.poll_timeout().filter(|at| *at < end) {
        radio.handle_timeout(now);
        while radio.poll_done().is_some() {}
        while radio.poll_deliver().is_some() {
            delivered += 1;
        }
        for i in 1..=n {
            if radio.backlog(i) < 2 {
                fill(&mut radio, now, i);
            }
        }
    }
    let (mut frames, mut collided) = (0, 0);
    for i in 1..=n {
        let stats = radio.station_stats(i);
        frames += stats.data_frames;
        collided += stats.data_collided;
    }
    let stats = radio.stats();
    Saturated {
        mbps: delivered as f64 * BITS / seconds as f64 / 1e6,
        loss_per_frame: collided as f64 / frames as f64,
        collisions: stats.collisions as f64 / stats.busy_periods as f64,
    }
}

#[test]
fn bianchis_fixed_point_is_that_of_the_specification() {
    let expected = [(1, 4.913, 0.0), (2, 5.252, 0.057), (50, 3.996, 0.532)];
    for (n, mbps, p) in expected {
        let (got, collides) = bianchi(&Profile::named(ProfileName::B, None), n);
        assert!((got - mbps).abs() < 0.002, "{n}: {got}");
        assert!((collides - p).abs() < 0.001, "{n}: {collides}");
    }
}

#[test]
fn saturation_throughput_is_bianchis() {
    for name in [ProfileName::B, ProfileName::BShort] {
        for n in [1, 2, 5, 10, 20, 50] {
            let (expected, _) = bianchi(&Profile::named(name, None), n);
            let got = saturate(name, n, Retries::Unlimited, 40).mbps;
            let off = got / expected - 1.0;
            println!(
                "{name:?} {n:2}: {got:.3} {expected:.3} {:+.2} %",
                off * 100.0
            );
            assert!(off.abs() < 0.02, "{name:?} {n}: {got} {expected}");
        }
    }
}

/// 802.11b whose acknowledgment timeout is 4 us shorter. So after a collision the two senders count down from the
/// same moment as all others (314 + 50 and 364 us), not 4 us later, as the closed models assume.
fn aligned() -> Profile {
    let mut profile = Profile::named(ProfileName::B, None);
    profile.grace = profile.grace.saturating_sub(Duration::from_micros(4));
    assert_eq!(profile.answer_timeout() + profile.difs(), profile.eifs());
    profile
}

/// CLAP-D9: a model of the same rules.
const AGGREGATE: [(usize, f64); 7] = [
    (1, 4.91),
    (2, 5.26),
    (3, 5.26),
    (4, 5.17),
    (5, 5.07),
    (6, 4.94),
    (8, 4.67),
];

#[test]
fn without_retries_the_aggregate_has_its_maximum_at_two_or_three() {
    let (mut modelled, mut as_it_is) = (vec![], vec![]);
    for (n, expected) in AGGREGATE {
        let got = saturate_with(aligned(), n, Retries::Off, 40).mbps;
        assert!((got / expected - 1.0).abs() < 0.01, "{n}: {got}");
        modelled.push(got);
        as_it_is.push(saturate(ProfileName::B, n, Retries::Off, 40).mbps);
        println!(
            "{n}: {:.3}, aligned {got:.3}, {expected}",
            as_it_is.last().unwrap()
        );
    }
    // The published maximum is at 2 stations, and 3 may equal it within 0.5 %. The aligned stations agree with that.
    // When colliding stations wait 4 us longer, 3 stations are 0.54 % above 2: fewer collisions, not more airtime,
    // give that.
    assert!(
        modelled.iter().all(|mbps| mbps / modelled[1] < 1.005),
        "{modelled:?}"
    );
    for all in [modelled, as_it_is] {
        assert!(
            all[1] > all[0] && all[2..].is_sorted_by(|a, b| a > b),
            "{all:?}"
        );
    }
}

#[test]
fn collisions_are_as_frequent_as_slots_make_them() {
    // CLAP-D6 to D8: 2.9 to 3.1 % of the busy periods, and this share of the frames.
    for (n, expected) in [(2, 0.06), (3, 0.116), (4, 0.173), (5, 0.22), (6, 0.269)] {
        let got = saturate_with(aligned(), n, Retries::Off, 60);
        let off = got.loss_per_frame / expected - 1.0;
        assert!(off.abs() < 0.03, "{n}: {}", got.loss_per_frame);
        // Senders that count down 4 us later meet fewer of the others in that round; with two stations there are no
        // others.
        let as_it_is = saturate(ProfileName::B, n, Retries::Off, 60);
        println!(
            "{n}: {:.4}, aligned {:.4}, {expected}",
            as_it_is.loss_per_frame, got.loss_per_frame
        );
        assert!(
            n == 2 || as_it_is.loss_per_frame < got.loss_per_frame,
            "{n}"
        );
        if n == 2 {
            let collisions = [as_it_is.collisions, got.collisions];
            assert!(
                collisions
                    .iter()
                    .all(|share| (0.028..0.033).contains(share)),
                "{collisions:?}"
            );
        }
    }
}

#[test]
fn one_station_has_the_air_to_itself() {
    // CLAP-D5 and D15.
    for (name, expected) in [(ProfileName::B, 4.91), (ProfileName::BShort, 5.80)] {
        let got = saturate(name, 1, Retries::Off, 60);
        assert!((got.mbps - expected).abs() < 0.02, "{}", got.mbps);
        assert_eq!(got.loss_per_frame, 0.0);
    }
}
