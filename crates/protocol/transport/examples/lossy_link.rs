//! TCP over a bottleneck that also loses packets at random, in virtual time: what each loss recovery makes of it.
//!
//! ```text
//! sender ─► queue of 50 packets ─► 10 Mbit/s, 25 ms, loses 1 % ─► receiver
//!    ▲                                                             │
//!    └────────────── acknowledgments, 25 ms, no loss ◄─────────────┘
//! ```
//!
//! Run it with `cargo run -p airlane-transport --example lossy_link [LOSS_PERCENT]`. The same loss gives the same output
//! on every machine: there is no clock, and the random numbers come from a fixed seed.

#![expect(clippy::print_stdout, reason = "an example prints its table")]

use std::collections::BTreeMap;
use std::error::Error;

use airlane_base::{Duration, Instant, Rng, Streams};
use airlane_transport::tcp::{CongestionKind, RecoveryKind};
use airlane_transport::{Endpoint, Segment, Tcp, TcpConfig};

/// User bytes of a full segment.
const SEGMENT: u32 = 1_448;
const RATE_BPS: f64 = 10e6;
const DELAY: Duration = Duration::from_millis(25);
const QUEUE_PACKETS: u32 = 50;
const SECONDS: u64 = 30;

/// One direction with a finite rate: a drop-tail queue, then random loss.
struct Bottleneck {
    free_at: Instant,
    loss: f64,
    rng: Rng,
    overflowed: u64,
    lost: u64,
}

impl Bottleneck {
    /// When a packet of `len` bytes arrives that is sent now; none if it is dropped or lost.
    fn carry(&mut self, now: Instant, len: u32) -> Option<Instant> {
        let time = Duration::from_secs_f64(f64::from(len) * 8.0 / RATE_BPS);
        let wait = self.free_at.saturating_since(now);
        if wait > time * u64::from(QUEUE_PACKETS) {
            self.overflowed += 1;
            return None;
        }
        self.free_at = now + wait + time;
        if self.rng.chance(self.loss) {
            self.lost += 1;
            return None;
        }
        Some(self.free_at + DELAY)
    }
}

/// Runs an endless transfer for [`SECONDS`]; prints a row of the table.
fn run(name: &str, config: &TcpConfig, loss: f64) {
    let mut ends = [(); 2].map(|()| Tcp::new(config, SEGMENT, Duration::ZERO));
    let mut link = Bottleneck {
        free_at: Instant::ORIGIN,
        loss,
        rng: Streams::new(1, 0).stream("lossy-link.loss"),
        overflowed: 0,
        lost: 0,
    };
    let mut in_flight: BTreeMap<(Instant, u64), (usize, Segment)> = BTreeMap::new();
    let mut sent = 0;
    let mut now = Instant::ORIGIN;
    let stop = Instant::ORIGIN + Duration::from_secs(SECONDS);
    let mut windows = vec![0.0; SECONDS as usize];
    ends[0].write(u64::MAX);
    while now < stop {
        for (from, end) in ends.iter_mut().enumerate() {
            while let Some(segment) = end.poll_transmit(now) {
                let arrival = match &segment {
                    Segment::Data(data) => link.carry(now, data.len + config.header_len()),
                    _ => Some(now + DELAY),
                };
                if let Some(at) = arrival {
                    in_flight.insert((at, sent), (1 - from, segment));
                    sent += 1;
                }
            }
        }
        if let Some(window) = windows.get_mut(now.as_secs_f64() as usize) {
            *window = ends[0].sender().cwnd();
        }

        let arrival = in_flight.keys().next().map(|&(at, _)| at);
        let timer = ends.iter().filter_map(Endpoint::poll_timeout).min();
        let Some(next) = arrival.into_iter().chain(timer).min() else {
            break;
        };
        now = now.max(next);
        if arrival == Some(next)
            && let Some((_, (to, segment))) = in_flight.pop_first()
        {
            ends[to].handle_segment(now, segment);
            ends[to].read();
        } else {
            ends.iter_mut().for_each(|end| end.handle_timeout(now));
        }
    }
    let stats = ends[0].sender().stats();
    let goodput = ends[1].received() as f64 * 8.0 / SECONDS as f64 / 1e6;
    println!(
        "{name:<16} {goodput:>6.2} {:>6} {:>6} {:>6} {:>8} {:>6}  {}",
        link.lost,
        link.overflowed,
        stats.retransmissions,
        stats.timeouts,
        stats.window_cuts,
        sparkline(&windows),
    );
}

/// One character per second, on a scale from 0 to the largest value.
fn sparkline(values: &[f64]) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let largest = values.iter().copied().fold(1.0, f64::max);
    let level = |value: &f64| (value / largest * 7.0).round() as usize;
    values.iter().map(|value| LEVELS[level(value)]).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let percent = match std::env::args().nth(1) {
        None => 1.0,
        Some(text) => text
            .parse()
            .ok()
            .filter(|percent| (0.0..=100.0).contains(percent))
            .ok_or_else(|| format!("LOSS_PERCENT is {text:?}: give a number from 0 to 100"))?,
    };
    println!(
        "10 Mbit/s, 25 ms each way, queue of {QUEUE_PACKETS} packets, {percent} % random loss, {SECONDS} s\n"
    );
    println!(
        "{:<16} {:>6} {:>6} {:>6} {:>6} {:>8} {:>6}  cwnd, each scaled to its own largest",
        "", "Mbit/s", "lost", "queue", "resent", "timeouts", "cuts"
    );
    for (name, recovery, congestion) in [
        ("Reno", RecoveryKind::Reno, CongestionKind::Reno),
        ("NewReno", RecoveryKind::NewReno, CongestionKind::Reno),
        ("SACK", RecoveryKind::Sack, CongestionKind::Reno),
        ("RACK-TLP, Reno", RecoveryKind::Rack, CongestionKind::Reno),
        ("RACK-TLP, CUBIC", RecoveryKind::Rack, CongestionKind::Cubic),
        ("RACK-TLP, BBR v1", RecoveryKind::Rack, CongestionKind::Bbr),
    ] {
        run(name, &config(recovery, congestion)?, percent / 100.0);
    }
    Ok(())
}

/// The default profile with this recovery and this congestion control. Profile values that these parts exclude
/// give way.
fn config(recovery: RecoveryKind, congestion: CongestionKind) -> Result<TcpConfig, Box<dyn Error>> {
    let config: TcpConfig = toml::from_str(&format!(
        "recovery = {}\ncongestion = {}\nwindow = 1000\n",
        toml::Value::try_from(recovery)?,
        toml::Value::try_from(congestion)?,
    ))?;
    config.validate()?;
    Ok(config)
}
