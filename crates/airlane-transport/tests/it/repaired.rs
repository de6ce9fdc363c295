//! A file over a path that repairs what it loses, a round trip late and out of order: what undone cuts leave of it.

use std::collections::BTreeMap;

use airlane_base::{Duration, Instant};
use airlane_transport::{Endpoint, Segment, Tcp, TcpConfig};

const PACKET: u64 = 1_500;
const QUEUE: u64 = 83;
const DELAY: Duration = Duration::from_millis(25);
/// 20 Mbit/s.
const FRAME: Duration = Duration::from_micros(PACKET * 8 / 20);

struct Outcome {
    /// Mbit/s.
    rate: f64,
    cuts: u64,
    undone: u64,
    /// Mean over time, segments.
    cwnd: f64,
    resent: u64,
    /// Segments that came too late and were dropped (RFC 7323, section 5).
    outdated: u64,
}

/// One frame in twenty is lost, each copy of it, too, and a copy comes two delays behind.
fn file(settings: &str, seconds: u64) -> Outcome {
    let text = format!("profile = \"modern\"\npacing = false\necn = false\n{settings}");
    let config: TcpConfig = toml::from_str(&text).unwrap();
    let mut ends = [120, 310].map(|ms| Tcp::new(&config, 1_370, Duration::from_millis(ms)));
    ends[0].write(1 << 40);
    let mut travelling = BTreeMap::<(Instant, u64), (usize, Segment)>::new();
    let (mut sent, mut now, mut free) = (0u64, Instant::ORIGIN, [Instant::ORIGIN; 2]);
    let mut random = 88_172_645_463_325_252_u64;
    let mut is_lost = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random.is_multiple_of(20)
    };
    let (mut read, mut area, mut last) = (0, 0.0, now);
    let end = Instant::ORIGIN + Duration::from_secs(seconds);
    while now < end {
        for from in 0..2 {
            while let Some(segment) = ends[from].poll_transmit(now) {
                let frame = if from == 0 { FRAME } else { FRAME / 20 };
                if free[from].saturating_since(now) >= FRAME * QUEUE {
                    continue;
                }
                free[from] = free[from].max(now) + frame;
                let mut at = free[from] + DELAY;
                while is_lost() {
                    at += DELAY * 2;
                }
                travelling.insert((at, sent), (1 - from, segment));
                sent += 1;
            }
        }
        read += ends[1].read().unwrap_or(0);
        let timers = ends.iter().filter_map(Endpoint::poll_timeout);
        let arrival = travelling.keys().next().copied();
        let Some(next) = timers.chain(arrival.map(|(at, _)| at)).min() else {
            break;
        };
        now = now.max(next);
        area += ends[0].sender().cwnd() * now.saturating_since(last).as_secs_f64();
        last = now;
        match arrival.filter(|(at, _)| *at <= next) {
            Some(key) => {
                let (to, segment) = travelling.remove(&key).unwrap();
                ends[to].handle_segment(now, segment);
            }
            None => ends.iter_mut().for_each(|end| end.handle_timeout(now)),
        }
    }
    let stats = ends[0].sender().stats();
    Outcome {
        rate: read as f64 * 8e-6 / seconds as f64,
        cuts: stats.window_cuts,
        undone: stats.undone_cuts,
        cwnd: area / seconds as f64,
        resent: stats.retransmissions,
        outdated: ends[1].receiver().stats().segments_outdated,
    }
}

/// Linux's CUBIC has 3.9 to 5.7 Mbit/s over such a path, and drops 30 to 40 segments in 12 s: what the link repairs comes
/// behind a copy of an earlier segment, and is older than that.
#[test]
fn repairs_that_a_copy_has_overtaken_are_dropped_and_cost_the_file_its_window() {
    let timed = file("", 12);
    assert!(timed.outdated > 20, "{}", timed.outdated);
    assert!((3.0..7.0).contains(&timed.rate), "{}", timed.rate);
    assert!(timed.undone * 10 < timed.cuts * 7);
    let untimed = file("timestamps = false\neifel = false", 12);
    assert_eq!(untimed.outdated, 0);
    assert!(untimed.rate > 15.0, "{}", untimed.rate);
}

/// What carries such a file else is patience that grows with what is reported to have come twice (RFC 8985, section 6.2).
#[test]
fn reported_duplicates_keep_copies_from_leaving_before_repairs_come() {
    let silent = file("timestamps = false\neifel = false\ndsack = false", 12);
    assert!(silent.rate < 10.0, "{}", silent.rate);
}

/// What has come behind holes is outstanding, but was no part of the window: RFC 4015 gives back more than was taken.
#[test]
fn a_window_given_back_is_no_larger_than_the_one_that_was_cut() {
    let [flight, window] = ["rfc4015", "rfc9438"].map(|undo| {
        file(
            &format!("undo = \"{undo}\"\ntimestamps = false\neifel = false"),
            30,
        )
    });
    let room = (2 * QUEUE) as f64;
    assert!(window.cwnd < room, "{}", window.cwnd);
    assert!(
        window.resent * 4 < flight.resent,
        "{} {}",
        window.resent,
        flight.resent
    );
}
