//! Stations that hear an access point but not each other.

use airlane_base::{Duration, Instant, QueueLimit, Streams};
use airlane_wifi::place::{SignalChange, Thresholds, received_w};
use airlane_wifi::profile::{Profile, ProfileName};
use airlane_wifi::signal::SignalConfig;
use airlane_wifi::station::{Retries, StationConfig, StationStats};
use airlane_wifi::{Radio, RadioConfig};

/// Bytes of a packet.
const LEN: usize = 500;

/// Two stations, each 150 m from an access point on opposite sides.
#[derive(Clone, Copy, Debug)]
enum Between {
    /// They hear each other.
    Nothing,
    /// Their sensing range is 200 m.
    Distance,
    /// A wall attenuates by 40 dB, so that 300 m is out of range.
    Wall,
}

fn cell(between: Between, rts_threshold: usize) -> Radio<()> {
    let hears = match between {
        Between::Distance => Thresholds {
            receive_w: received_w(200.0),
            sense_w: received_w(200.0),
        },
        Between::Nothing | Between::Wall => Thresholds::default(),
    };
    let wall = matches!(between, Between::Wall).then(|| SignalChange {
        between: [1, 2],
        trace: vec![(Instant::ORIGIN, -40.0)],
    });
    let config = RadioConfig {
        profile: Profile::named(ProfileName::B, None),
        rts_threshold,
        capture: true,
        sensed_destroys: true,
        noise: vec![],
        ladder: vec![],
        signal: Some(SignalConfig {
            noise_w: 4e-13,
            changes: wall.into_iter().collect(),
        }),
        sense_delay: Duration::ZERO,
    };
    let stations = [0.0, -150.0, 150.0].map(|x| StationConfig {
        position: [x, 0.0],
        hears,
        retries: Retries::Off,
        queue: QueueLimit::Packets(50),
    });
    Radio::new(config, &stations, Streams::new(5, 0), "radio")
}

/// Both stations send packets to the access point at random times, at this rate each, 1/s.
fn load(mut radio: Radio<()>, rate: f64, seconds: f64) -> [StationStats; 2] {
    let streams = Streams::new(11, 0);
    let mut arrivals = [1, 2].map(|station| (streams.stream(&format!("load.{station}")), 0.0));
    for (rng, at) in &mut arrivals {
        *at += rng.exponential(1.0 / rate);
    }
    loop {
        let station = if arrivals[0].1 <= arrivals[1].1 { 0 } else { 1 };
        let (rng, at) = &mut arrivals[station];
        let now = Instant::ORIGIN + Duration::from_secs_f64(*at);
        *at += rng.exponential(1.0 / rate);
        while let Some(due) = radio.poll_timeout().filter(|due| *due <= now) {
            radio.handle_timeout(due);
            while radio.poll_done().is_some() || radio.poll_deliver().is_some() {}
        }
        if now > Instant::ORIGIN + Duration::from_secs_f64(seconds) {
            return [1, 2].map(|station| radio.station_stats(station));
        }
        let taken = radio.enqueue(now, station + 1, 0, LEN, ());
        assert!(taken.is_ok(), "no queue fills at these loads");
    }
}

/// The share of about 80,000 data frames that collided.
fn collided(between: Between, rts_threshold: usize, rate: f64) -> f64 {
    let stats = load(cell(between, rts_threshold), rate, 40_000.0 / rate);
    let sum = |of: fn(&StationStats) -> u64| stats.iter().map(of).sum::<u64>() as f64;
    assert_eq!(sum(|s| s.data_noise), 0.0);
    sum(|s| s.data_collided) / sum(|s| s.data_frames)
}

/// Without carrier sense the channel is ALOHA: a frame of duration T survives if no other one begins within T before
/// or after it (Abramson 1970), so 1 - exp(-2 T rate) of them collide. The answers of the access point hold both
/// stations up, and packets that waited are sent close together, which the formula ignores: that adds a share of the
/// load. Two frames collide each time, so the error of n frames is that of n / 2.
#[test]
fn stations_out_of_range_collide_as_in_aloha() {
    let airtime = Profile::named(ProfileName::B, None)
        .frame(LEN)
        .as_secs_f64();
    for rate in [20.0, 60.0, 120.0] {
        let expected = -libm::expm1(-2.0 * airtime * rate);
        for between in [Between::Distance, Between::Wall] {
            let got = collided(between, 3_000, rate);
            println!("{between:?} {rate}: {got:.4} {expected:.4}");
            let error = 3.0 * (2.0 / (80_000.0 * expected)).sqrt();
            let off = got / expected - 1.0;
            let load = 2.0 * airtime * rate;
            assert!(
                (-error..load + error).contains(&off),
                "{between:?} {rate}: {got} {expected}"
            );
        }
        let together = collided(Between::Nothing, 3_000, rate);
        println!("together {rate}: {together:.4}");
        assert!(together < expected / 8.0, "{rate}: {together}");
    }
}

#[test]
fn an_rts_silences_stations_that_hear_the_cts() {
    let bare = collided(Between::Distance, 3_000, 60.0);
    let announced = collided(Between::Distance, 0, 60.0);
    println!("{bare} {announced}");
    assert!(bare > 0.05 && announced < bare / 20.0, "{bare} {announced}");
}
