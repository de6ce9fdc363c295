//! Measures a file, web pages and voice over a path between two machines: the traffic generators of `airlane test`,
//! and of the project's own live tests.
//!
//! | application | transport | port | what is measured |
//! |---|---|---|---|
//! | file | one TCP connection, server to client | 5001 | bytes delivered to the client's application |
//! | pages | 20 kB, a fresh TCP connection each, 100 ms pauses | 80 | time from connecting to the last byte |
//! | voice | UDP, 50 packets/s of 160 B, both ways, DSCP EF | 4000 | loss, one-way delay |
//! | download | UDP like QUIC, server to client, if requested | that of pages | bytes received, without duplicates |
//! | echoes | UDP, 10/s of 64 B | 5001 | round trips; offset between the clocks |
//!
//! ```text
//! client                                                    server: serves one test at a time
//!    ├── order ───────────── control, TCP 4999 ────────────────►│
//!    │◄───────────────────────────── a token, the ports, or the reason for refusing
//!    │◄── echoes on the idle path ──►│
//!    ├── go ───────────────────────────────────────────────────►│  voice begins
//!    │◄───────────────────────────────────────────────── started
//!    │   warm-up ──► measuring period ──► grace      the load is the same throughout
//!    │◄── echoes on the idle path ──►│
//!    ├── finish, with the clocks ──────────────────────────────►│
//!    │◄─────────────────────────── what the server sent and received
//! ```
//!
//! File and pages may share one port: the first bytes of a connection tell them apart.
//!
//! Voice packets *sent* and pages *begun* in the measuring period count, and have the grace period to arrive. Each
//! end measures with its own clock; [`clock`] relates the two.
//!
//! The control connection may take another path than the load: `airlane test` keeps it inside the tunnel while the
//! plain path is measured. Everything else that a client sends carries the test's token, and is ignored without it.
//!
//! Every socket operation has a timeout, every loop a deadline and every buffer a limit: client and server always
//! end.
//!
//! Left out: files from the client to the server (run the test from the other end), and more than
//! one client at a time.

#![forbid(unsafe_code)]

mod client;
pub mod clock;
mod control;
mod download;
mod echo;
mod file;
mod link_test;
mod pages;
mod plan;
mod ports;
mod progress;
mod report;
mod server;
mod server_state;
#[doc(hidden)]
pub mod strangers;
mod token;
mod voice;

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::Duration;

pub use client::{ClientConfig, ProbeError, run_client};
pub use clock::LocalClock;
pub use echo::find_server;
pub use link_test::{App, LinkTest, LinkTestReport, LinkTestStep, PathReport, TestedPath};
pub use plan::Times;
pub use ports::{CONTROL_PORT, FILE_PORT, PAGES_PORT, ServerPorts, VOICE_PORT};
pub use progress::{Counts, Progress};
pub use report::{
    ClockReport, DownloadReport, EchoReport, FileReport, PagesReport, TrafficReport, VoiceReport,
};
pub use server::{AcceptFrom, ServeError, ServerConfig, ServerEvent, serve};
pub use voice::VOICE_DSCP;

/// How long a blocking call may take before a loop checks its deadline again.
const GLANCE: Duration = Duration::from_millis(100);

/// Whether a blocking call merely timed out.
pub fn is_timeout(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// The `q` quantile of sorted values; zero if there are none.
pub fn quantile(sorted: &[u64], q: f64) -> u64 {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

/// Fills the buffer from a stream that has a short read timeout.
fn fill(stream: &mut TcpStream, buffer: &mut [u8], is_over: impl Fn() -> bool) -> io::Result<()> {
    let mut got = 0;
    while got < buffer.len() {
        match stream.read(&mut buffer[got..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => got += n,
            Err(e) if is_timeout(&e) => {}
            Err(e) => return Err(e),
        }
        // Even if bytes keep trickling in.
        if got < buffer.len() && is_over() {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    Ok(())
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
