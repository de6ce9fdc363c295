//! Three applications at once over the kernel's own sockets, and what each of them gets.
//!
//! | application | transport | port | what is measured |
//! |---|---|---|---|
//! | file | one TCP connection, server to client | 5001 | bytes that the client's application received |
//! | pages | 20 kB, a fresh TCP connection each, 100 ms pauses | 80 | connect to last byte |
//! | voice | UDP, 50 packets/s of 160 B, both ways, DSCP EF | 4000 | loss, one-way delay |
//!
//! ```text
//! start ── warm-up ──► measuring period ──► grace ──► end        the load is the same throughout
//! ```
//!
//! Besides, for how fast a clean link is: [`bulk_send`] and [`bulk_receive`], one TCP connection that
//! nobody looks into, and [`echo()`].
//!
//! What was *sent* (voice) or *begun* (pages) in the measuring period counts, and has the grace to
//! arrive. Client and server run on one machine: times are CLOCK_MONOTONIC of both, which network
//! namespaces share, so one-way delays need no clock synchronisation.
//!
//! Every socket operation has a timeout and every loop a deadline: client and server always end.

mod bulk;
mod client;
mod control;
mod echo;
mod file;
mod flood;
mod pages;
mod progress;
mod report;
mod server;
mod voice;

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use bulk::{BULK_PORT, bulk_receive, bulk_send};
pub use client::{ClientConfig, run_client};
pub use echo::{Echoes, echo};
pub use flood::flood;
pub use progress::{Counts, Progress};
pub use report::{FileReport, PagesReport, TrafficReport, VoiceReport};
pub use server::{ServerConfig, serve};

/// Where the client tells the server what to do.
pub const CONTROL_PORT: u16 = 4999;
/// The file's port.
pub const FILE_PORT: u16 = 5001;
/// The pages' port.
pub const PAGES_PORT: u16 = 80;
/// The voice stream's port.
pub const VOICE_PORT: u16 = 4000;

/// DSCP EF (46) in the upper six bits of the traffic class.
const EXPEDITED_FORWARDING: u32 = 46 << 2;

/// How long a blocking call may take before a loop looks at its deadline again.
const GLANCE: Duration = Duration::from_millis(100);

/// When things happen, CLOCK_MONOTONIC of this machine.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Plan {
    /// The load starts.
    start_ns: u64,
    /// The measuring period.
    from_ns: u64,
    until_ns: u64,
    /// The load ends.
    end_ns: u64,
}

impl Plan {
    const fn measures(&self, at_ns: u64) -> bool {
        self.from_ns <= at_ns && at_ns < self.until_ns
    }

    fn is_over(&self) -> bool {
        now_ns() >= self.end_ns
    }
}

/// CLOCK_MONOTONIC, ns: the same clock in all processes of this machine.
fn now_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

fn sleep_until(at_ns: u64) {
    std::thread::sleep(Duration::from_nanos(at_ns.saturating_sub(now_ns())));
}

/// Whether a blocking call merely ran into its timeout.
fn is_timeout(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// The value below which the part `q` of the sorted values lies; zero of none.
fn quantile(sorted: &[u64], q: f64) -> u64 {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

fn mean(values: &[u64]) -> f64 {
    values.iter().sum::<u64>() as f64 / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_nearest_rank() {
        let sorted: Vec<u64> = (1..=100).collect();
        assert_eq!(quantile(&sorted, 0.5), 50);
        assert_eq!(quantile(&sorted, 0.99), 99);
        assert_eq!(quantile(&[7], 0.95), 7);
        assert_eq!(quantile(&[], 0.5), 0);
    }
}
