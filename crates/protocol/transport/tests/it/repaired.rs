//! A file over a path that repairs its losses, a round trip late and out of order: the goodput that remains when
//! spurious cuts are undone.

use std::collections::BTreeMap;

use airlane_base::{Duration, Instant};
use airlane_transport::{Endpoint, Segment, Tcp, TcpConfig};

const PACKET: u64 = 1_500;
const QUEUE: u64 = 83;
const DELAY: Duration = Duration::from_millis(25);
/// 20 Mbit/s.
const FRAME: Duration = Duration::from_micros(PACKET * 8 / 20);

/// Runs of one file differ by a factor of 1.7, and by a factor of five without timestamps.
const RUNS: u64 = 8;

/// Means of all runs.
#[derive(Default)]
struct Outcome {
    /// Mbit/s.
    rate: f64,
    cuts: f64,
    undone: f64,
    /// Mean over time, segments.
    cwnd: f64,
    resent: f64,
    /// Segments that arrived too late and were discarded (RFC 7323, section 5).
    outdated: f64,
}

fn file(settings: &str, seconds: u64) -> Outcome {
    let mut means = Outcome::default();
    for run in 1..=RUNS {
        once(&mut means, settings, seconds, run);
    }
    means
}

/// One frame in twenty is lost, copies included, and a copy arrives two delays later.
fn once(means: &mut Outcome, settings: &str, seconds: u64, run: u64) {
    let text = format!("profile = \"modern\"\npacing = false\necn = false\n{settings}");
    let config: TcpConfig = toml::from_str(&text).unwrap();
    let mut ends = [120, 310].map(|ms| Tcp::new(&config, 1_370, Duration::from_millis(ms)));
    ends[0].write(1 << 40);
    let mut travelling = BTreeMap::<(Instant, u64), (usize, Segment)>::new();
    let (mut sent, mut now, mut free) = (0u64, Instant::ORIGIN, [Instant::ORIGIN; 2]);
    let mut random = run.wrapping_mul(0x9e37_79b9_7f4a_7c15);
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
    let outdated = ends[1].receiver().stats().segments_outdated;
    let all = RUNS as f64;
    means.rate += read as f64 * 8e-6 / seconds as f64 / all;
    means.cuts += stats.window_cuts as f64 / all;
    means.undone += stats.undone_cuts as f64 / all;
    means.cwnd += area / seconds as f64 / all;
    means.resent += stats.retransmissions as f64 / all;
    means.outdated += outdated as f64 / all;
}

const UNTIMED: &str = "timestamps = false\neifel = false";

/// Linux's CUBIC reaches 3.9 to 5.7 Mbit/s over such a path, and discards 30 to 40 segments in 12 s: a segment that
/// the link repairs arrives after a copy of an earlier segment, and has an older timestamp. The lower bounds leave
/// room for the spread of runs. The upper bounds leave none: more goodput would mean a sender that its window was
/// given back to.
#[test]
fn repairs_overtaken_by_a_copy_are_dropped_and_cost_cwnd() {
    let timed = file("", 12);
    assert!(timed.outdated > 30.0, "{}", timed.outdated);
    assert!((3.0..5.7).contains(&timed.rate), "{}", timed.rate);
    assert!(timed.undone < 0.7 * timed.cuts);
    let untimed = file(UNTIMED, 12);
    assert!(untimed.outdated == 0.0);
    assert!(untimed.rate > 2.0 * timed.rate, "{}", untimed.rate);
}

/// The other mechanism that keeps such a transfer going is the reordering window that grows with reported duplicates
/// (RFC 8985, section 6.2): without it each repair costs a cut that nothing undoes.
#[test]
fn reported_duplicates_delay_copies_until_repairs_arrive() {
    let [told, silent] = ["", "\ndsack = false"].map(|more| file(&format!("{UNTIMED}{more}"), 12));
    assert!(silent.undone == 0.0);
    assert!(
        silent.rate * 4.0 < told.rate,
        "{} {}",
        silent.rate,
        told.rate
    );
}

/// Segments received after holes are outstanding but were not part of the window. So RFC 4015 gives back more than
/// was taken, and the excess over path and queue is lost and sent again.
#[test]
fn a_restored_window_does_not_exceed_the_one_before_the_cut() {
    let [flight, window] =
        ["rfc4015", "rfc9438"].map(|undo| file(&format!("undo = \"{undo}\"\n{UNTIMED}"), 30));
    assert!(window.cwnd < flight.cwnd, "{} {}", window.cwnd, flight.cwnd);
    let (few, many) = (window.resent, flight.resent);
    assert!(few * 4.0 < many, "{few} {many}");
}
