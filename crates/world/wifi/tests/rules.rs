//! The rules of channel access, one by one, and invariants of any cell.

use std::num::NonZeroU32;

use airlane_base::{Duration, Instant, Probability, QueueLimit, Streams};
use airlane_wifi::noise::NoiseConfig;
use airlane_wifi::place::{SignalChange, Thresholds, received_w};
use airlane_wifi::profile::{Profile, ProfileName};
use airlane_wifi::signal::SignalConfig;
use airlane_wifi::station::{Retries, StationConfig};
use airlane_wifi::{Delivery, Radio, RadioConfig};
use proptest::prelude::*;

fn config(rts_threshold: usize) -> RadioConfig {
    RadioConfig {
        profile: Profile::named(ProfileName::B, None),
        rts_threshold,
        capture: true,
        sensed_destroys: true,
        noise: vec![],
        ladder: vec![],
        signal: None,
        sense_delay: Duration::ZERO,
    }
}

fn station(x: f64, y: f64, retries: Retries) -> StationConfig {
    StationConfig {
        position: [x, y],
        hears: Thresholds::default(),
        retries,
        queue: QueueLimit::Packets(10),
    }
}

/// Runs until no event is left: what was delivered, and when; what was dropped.
fn finish(radio: &mut Radio<u64>) -> (Vec<(Instant, Delivery<u64>)>, Vec<u64>) {
    let (mut delivered, mut dropped) = (vec![], vec![]);
    while let Some(now) = radio.poll_timeout() {
        radio.handle_timeout(now);
        assert!(radio.poll_timeout().is_none_or(|next| next > now));
        while let Some(delivery) = radio.poll_deliver() {
            delivered.push((now, delivery));
        }
        while let Some(done) = radio.poll_done() {
            dropped.extend((!done.acknowledged).then_some(done.packet));
        }
    }
    (delivered, dropped)
}

#[test]
fn a_packet_waits_for_a_gap_and_whole_slots() {
    for run in 0..100 {
        let stations = [0.0, 7.2].map(|x| station(x, 0.0, Retries::Off));
        let mut radio = Radio::new(config(3_000), &stations, Streams::new(1, run), "r");
        radio.enqueue(Instant::ORIGIN, 0, 1, 1_060, 0).unwrap();
        let (delivered, _) = finish(&mut radio);
        let waited = delivered[0].0.as_nanos() - 983_273 - 50_000;
        assert!(
            waited.is_multiple_of(20_000) && waited / 20_000 < 32,
            "{waited}"
        );
    }
}

#[test]
fn a_station_that_heard_garbage_waits_for_eifs() {
    // CLAP-D17: the access point's short frame collides with a long one, whose rest it hears but cannot decode.
    let profile = Profile::named(ProfileName::B, None);
    let mut collisions = 0;
    for run in 0..500 {
        let stations = [0.0, 7.2].map(|x| station(x, 0.0, Retries::On));
        let mut radio = Radio::new(config(3_000), &stations, Streams::new(1, run), "r");
        radio.enqueue(Instant::ORIGIN, 0, 1, 40, 0).unwrap();
        radio.enqueue(Instant::ORIGIN, 1, 0, 1_060, 1).unwrap();
        let (delivered, dropped) = finish(&mut radio);
        assert!(dropped.is_empty() && delivered.len() == 2);
        if radio.stats().collisions != 1 || delivered[0].1.from != 0 {
            continue;
        }
        collisions += 1;
        // It began when both did; the undecodable frame ended with the long one, and a backoff of up to 64 slots
        // starts now.
        let again = delivered[0].0.as_nanos() - profile.frame(40).as_nanos();
        let slots = (0..64).any(|slot| {
            let before = again - profile.eifs().as_nanos() - slot * 20_000;
            before >= 50_000 + 983_273 && (before - 50_000 - 983_273).is_multiple_of(20_000)
        });
        assert!(slots, "{again}");
    }
    assert!(collisions > 2, "{collisions}");
}

#[test]
fn an_unanswered_rts_still_silences_others() {
    // The second station is too far away to answer; the third one hears the RTS.
    let profile = Profile::named(ProfileName::B, None);
    let stations = [0.0, 300.0, -10.0].map(|x| station(x, 0.0, Retries::Off));
    let mut radio = Radio::new(config(0), &stations, Streams::new(1, 0), "r");
    radio.enqueue(Instant::ORIGIN, 0, 1, 1_000, 0).unwrap();
    let access = radio.poll_timeout().unwrap();
    let rts_ends = access + profile.rts();
    while let Some(now) = radio.poll_timeout().filter(|at| *at <= rts_ends) {
        radio.handle_timeout(now);
    }
    radio.enqueue(rts_ends, 2, 0, 1_000, 1).unwrap();
    let (delivered, dropped) = finish(&mut radio);
    assert_eq!(dropped, [0]);
    let whole = profile.sifs * 2 + profile.ack() + profile.rts() + profile.frame(1_000);
    let began = delivered[0].0 - whole;
    assert!(began >= rts_ends + profile.rts_nav(profile.frame(1_000)) + profile.difs());
}

#[test]
fn a_frame_is_tried_as_often_as_its_station_may() {
    let limit = |n| Retries::Limit(NonZeroU32::new(n).unwrap());
    for (retries, frames) in [
        (Retries::Off, 1),
        (Retries::On, 7),
        (limit(1), 1),
        (limit(16), 16),
    ] {
        // The second station is too far away to answer.
        let stations = [0.0, 300.0].map(|x| station(x, 0.0, retries));
        let mut radio = Radio::new(config(3_000), &stations, Streams::new(1, 0), "r");
        radio.enqueue(Instant::ORIGIN, 0, 1, 1_000, 0).unwrap();
        assert_eq!(finish(&mut radio).1, [0]);
        assert_eq!(radio.station_stats(0).data_frames, frames);
    }
}

#[test]
fn an_unanswered_attempt_sends_only_its_first_frame() {
    // The second station is too far away to answer. The first of two packets is preceded by an RTS, and only that is
    // sent.
    let profile = Profile::named(ProfileName::B, None);
    let stations = [0.0, 300.0].map(|x| station(x, 0.0, Retries::On));
    let mut radio = Radio::new(config(500), &stations, Streams::new(1, 0), "r");
    for (len, attempt) in [(100, profile.frame(100)), (1_000, profile.rts())] {
        radio.enqueue(Instant::ORIGIN, 0, 1, len, 0).unwrap();
        let (now, done) = loop {
            let now = radio.poll_timeout().unwrap();
            radio.handle_timeout(now);
            if let Some(done) = radio.poll_done() {
                break (now, done);
            }
        };
        assert!(!done.acknowledged);
        assert_eq!(done.began + attempt + profile.answer_timeout(), now);
    }
}

#[test]
fn announced_frames_collide_only_as_rts() {
    let stations: Vec<_> = (0..6)
        .map(|i| station(f64::from(i), 0.0, Retries::On))
        .collect();
    let mut radio = Radio::new(config(0), &stations, Streams::new(1, 0), "r");
    for number in 0..50u64 {
        radio
            .enqueue(Instant::ORIGIN, 1 + number as usize % 5, 0, 1_000, number)
            .unwrap();
    }
    let (delivered, dropped) = finish(&mut radio);
    assert_eq!((delivered.len(), dropped.len()), (50, 0));
    let stats: Vec<_> = (0..6).map(|i| radio.station_stats(i)).collect();
    assert_eq!(stats.iter().map(|s| s.data_collided).sum::<u64>(), 0);
    assert!(stats.iter().map(|s| s.rts_collided).sum::<u64>() > 0);
    assert_eq!(stats.iter().map(|s| s.data_frames).sum::<u64>(), 50);
}

#[test]
fn lost_acknowledgments_deliver_nothing_twice() {
    let mut config = config(3_000);
    config.noise.push(NoiseConfig {
        loss: Probability::new(0.5).unwrap(),
        on: Duration::from_secs(1),
        off: Duration::ZERO,
        from: Duration::ZERO,
        to: None,
        on_first: true,
        control: None,
    });
    let stations = [0.0, 7.2].map(|x| station(x, 0.0, Retries::Unlimited));
    let mut radio = Radio::new(config, &stations, Streams::new(1, 0), "r");
    let mut numbers = vec![];
    for number in 0..11 {
        radio.enqueue(Instant::ORIGIN, 0, 1, 1_000, number).unwrap();
    }
    let (delivered, _) = finish(&mut radio);
    numbers.extend(delivered.iter().map(|(_, delivery)| delivery.packet));
    assert_eq!(numbers, (0..11).collect::<Vec<_>>());
    assert!(radio.station_stats(1).repeated > 0 && radio.station_stats(0).data_noise > 0);
}

fn any_retries() -> impl Strategy<Value = Retries> {
    prop_oneof![Just(Retries::Off), Just(Retries::On)]
}

fn any_ears() -> impl Strategy<Value = Thresholds> {
    (50.0..600.0f64, 1.0..3.0f64).prop_map(|(range, times)| Thresholds {
        receive_w: received_w(range),
        sense_w: received_w(range * times),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Each accepted packet is delivered at most once, dropped at most once, and at least one of both; equal inputs
    /// give equal outputs. This holds for any hearing between stations and any change of it; no station sends for
    /// longer than there was time.
    #[test]
    fn no_packet_is_lost_silently(
        places in prop::collection::vec((0.0..900.0f64, 0.0..900.0f64, any_retries(), any_ears()), 2..8),
        packets in prop::collection::vec((0u64..20_000_000, 0usize..8, 0usize..8, 1usize..1_500), 1..80),
        rts in prop_oneof![Just(0usize), Just(500), Just(3_000)],
        capture: bool,
        sensed_destroys: bool,
        noise in 0.0..0.9f64,
        changes in prop::collection::vec((0u64..20_000_000, -60.0..20.0f64), 0..6),
        seed: u64,
    ) {
        let own = |(x, y, retries, hears): &(f64, f64, Retries, Thresholds)| StationConfig {
            hears: *hears,
            ..station(*x, *y, *retries)
        };
        let stations: Vec<_> = places.iter().map(own).collect();
        let mut changes = changes;
        changes.sort_unstable_by_key(|(at, _)| *at);
        let change = |(at, db)| (Instant::from_nanos(at), db);
        let change = SignalChange { between: [0, 1], trace: changes.into_iter().map(change).collect() };
        let signal = Some(SignalConfig { noise_w: 4e-13, changes: vec![change] });
        let mut config = RadioConfig { capture, sensed_destroys, signal, ..config(rts) };
        config.noise.push(NoiseConfig {
            loss: Probability::new(noise).unwrap(),
            on: Duration::from_millis(3),
            off: Duration::from_millis(4),
            from: Duration::ZERO,
            to: None,
            on_first: false,
            control: None,
        });
        let mut packets = packets;
        packets.sort_unstable();
        let run = || {
            let mut radio = Radio::new(config.clone(), &stations, Streams::new(seed, 0), "r");
            let (mut refused, mut log) = (vec![], vec![]);
            for (number, (at, from, to, len)) in packets.iter().enumerate() {
                let (from, to) = (from % stations.len(), to % stations.len());
                let at = Instant::from_nanos(*at);
                while let Some(now) = radio.poll_timeout().filter(|next| *next <= at) {
                    radio.handle_timeout(now);
                }
                if from == to || radio.enqueue(at, from, to, *len, number as u64).is_err() {
                    refused.push(number as u64);
                }
                while let Some(delivery) = radio.poll_deliver() {
                    log.push((at, delivery));
                }
            }
            let (delivered, mut dropped) = finish(&mut radio);
            while let Some(done) = radio.poll_done() {
                dropped.extend((!done.acknowledged).then_some(done.packet));
            }
            let end = delivered.last().map_or(Instant::FAR_FUTURE, |(at, _)| *at + Duration::from_secs(1));
            log.extend(delivered);
            for i in 0..stations.len() {
                assert_eq!(radio.backlog(i), 0);
                let counts = radio.station_stats(i);
                assert!(counts.airtime_ns <= end.as_nanos());
                assert!((counts.airtime_ns > 0) == (counts.frames() > 0) && counts.collided() <= counts.frames());
                let attempts = counts.taken + counts.retries;
                assert!(counts.data_frames <= attempts && attempts <= counts.data_frames + counts.rts_frames);
            }
            (refused, log, dropped)
        };
        let (refused, log, dropped) = run();
        prop_assert_eq!(&run(), &(refused.clone(), log.clone(), dropped.clone()));
        for number in 0..packets.len() as u64 {
            let arrived = log.iter().filter(|(_, d)| d.packet == number).count();
            let gone = dropped.iter().filter(|d| **d == number).count();
            let back = refused.iter().filter(|d| **d == number).count();
            prop_assert!(arrived <= 1 && gone <= 1 && back <= 1);
            prop_assert!(arrived + gone + back >= 1, "packet {} vanished", number);
            prop_assert!(back == 0 || arrived + gone == 0);
        }
    }
}

#[test]
fn stations_that_start_within_the_sense_delay_collide() {
    let collisions = |delay: u64| {
        let of = |run| {
            let stations = [0.0, 7.2, 14.4].map(|x| station(x, 0.0, Retries::Off));
            let config = RadioConfig {
                sense_delay: Duration::from_micros(delay),
                ..config(3_000)
            };
            let mut radio = Radio::new(config, &stations, Streams::new(1, run), "r");
            radio.enqueue(Instant::ORIGIN, 0, 1, 1_000, 0).unwrap();
            // Half a slot later: never at the same instant.
            let later = Instant::ORIGIN + Duration::from_micros(10);
            radio.enqueue(later, 2, 1, 1_000, 1).unwrap();
            finish(&mut radio).1.len()
        };
        (0..300).map(of).sum::<usize>()
    };
    assert_eq!((collisions(0), collisions(9)), (0, 0));
    // The starts are 10 us apart in about 63 of 1,024 draws, and both frames are lost.
    let both = collisions(15);
    assert!((16..70).contains(&both), "{both}");
}

/// How many packets arrive from 100 m away when the signal falls by this many dB after the first one.
fn come_weakly(fall: f64, ladder: bool) -> (usize, usize) {
    // They sense signals as weak as the noise.
    let hears = Thresholds {
        sense_w: 4e-13,
        ..Thresholds::default()
    };
    let stations = [0.0, 100.0].map(|x| StationConfig {
        hears,
        ..station(x, 0.0, Retries::Off)
    });
    let profile = Profile::named(ProfileName::G, None);
    let change = SignalChange {
        between: [1, 0],
        trace: vec![(Instant::ORIGIN + Duration::from_secs(1), -fall)],
    };
    let config = RadioConfig {
        profile,
        ladder: if ladder {
            Profile::ladder(ProfileName::G)
        } else {
            vec![]
        },
        signal: Some(SignalConfig {
            noise_w: 4e-13,
            changes: vec![change],
        }),
        ..config(3_000)
    };
    let mut radio = Radio::new(config, &stations, Streams::new(3, 0), "r");
    let mut come = |from_ms: u64| {
        let come = (0..500).filter(|n| {
            let at = Instant::ORIGIN + Duration::from_millis(from_ms + 2 * n);
            radio.handle_timeout(at);
            assert!(radio.enqueue(at, 0, 1, 1_000, *n).is_ok());
            finish(&mut radio).0.len() == 1
        });
        come.count()
    };
    (come(0), come(1_000))
}

#[test]
fn weak_frames_are_lost_and_slower_ones_come() {
    assert_eq!(come_weakly(0.0, false), (500, 500));
    let (before, after) = come_weakly(30.0, false);
    assert_eq!((before, after), (500, 0));
    let (before, after) = come_weakly(30.0, true);
    assert!(before > 490 && after > 400, "{before} {after}");
}
