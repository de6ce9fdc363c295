//! TCP and CLAP as values: a sans-IO state machine for each end of a connection.
//!
//! An [`Endpoint`] is one end of a connection. It has no socket, no thread and no clock: its driver passes in segments,
//! writes and the current time, and takes out the segments to send. An endpoint knows nothing of the links below it, and
//! the same value runs in a simulator, in a test or in a program that carries real packets. Bytes are counted, not
//! carried, because a simulated transfer needs only their number.
//!
//! | | |
//! |---|---|
//! | [`Tcp`] | TCP with its loss recovery, congestion control and options selected by a [`TcpConfig`] |
//! | [`ClapSender`], [`ClapReceiver`] | CLAP, which sends one file in one direction |
//!
//! # The driver's contract
//!
//! 1. Give the endpoint one input: `write`, `close`, `read`, `handle_segment` or `handle_timeout`.
//! 2. Call `poll_transmit` until it returns `None`, and send what it returns.
//! 3. Ask `poll_timeout` when to call `handle_timeout`, unless a segment arrives first.
//!
//! Time never goes back. Without a delay between the ends, all of that is a loop:
//!
//! ```
//! use airlane_base::{Duration, Instant};
//! use airlane_transport::{Endpoint, Tcp, TcpConfig};
//!
//! let config = TcpConfig::default();
//! let now = Instant::ORIGIN;
//! let mut client = Tcp::new(&config, 1_448, Duration::ZERO);
//! let mut server = Tcp::new(&config, 1_448, Duration::ZERO);
//!
//! client.write(1_000);
//! loop {
//!     if let Some(segment) = client.poll_transmit(now) {
//!         server.handle_segment(now, segment);
//!     } else if let Some(segment) = server.poll_transmit(now) {
//!         client.handle_segment(now, segment);
//!     } else {
//!         break;
//!     }
//! }
//! assert_eq!(server.read(), Some(1_000));
//! ```
//!
//! # Loss, delay and timers
//!
//! On a real path time passes. A driver keeps the segments in flight with their arrival times, and jumps to the next
//! arrival or timer, whichever is earlier. Here each direction takes 20 ms, and the third segment is lost; the sender
//! repairs it without waiting for a timeout:
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use airlane_base::{Duration, Instant};
//! use airlane_transport::{Endpoint, Segment, Tcp, TcpConfig};
//!
//! let config = TcpConfig::default();
//! let mut ends = [(); 2].map(|()| Tcp::new(&config, 1_448, Duration::ZERO));
//! let mut in_flight = BTreeMap::new();
//! let (mut now, mut sent) = (Instant::ORIGIN, 0u64);
//!
//! ends[0].write(100_000);
//! while !ends[0].is_acknowledged() {
//!     for (from, end) in ends.iter_mut().enumerate() {
//!         while let Some(segment) = end.poll_transmit(now) {
//!             sent += 1;
//!             let is_lost = matches!(segment, Segment::Data(data) if data.seq == 2 && !data.retransmission);
//!             if !is_lost {
//!                 in_flight.insert((now + Duration::from_millis(20), sent), (1 - from, segment));
//!             }
//!         }
//!     }
//!     let arrival = in_flight.keys().next().map(|&(at, _)| at);
//!     let timer = ends.iter().filter_map(Endpoint::poll_timeout).min();
//!     now = arrival.into_iter().chain(timer).min().expect("TCP never waits for nothing").max(now);
//!     if arrival == Some(now) {
//!         let (_, (to, segment)) = in_flight.pop_first().unwrap();
//!         ends[to].handle_segment(now, segment);
//!         ends[to].read();
//!     } else {
//!         ends.iter_mut().for_each(|end| end.handle_timeout(now));
//!     }
//! }
//! assert_eq!(ends[1].received(), 100_000);
//! assert_eq!(ends[0].sender().stats().retransmissions, 1);
//! assert_eq!(ends[0].sender().stats().timeouts, 0);
//! ```
//!
//! `cargo run -p airlane-transport --example lossy_link` compares loss recoveries over such a path, with a bottleneck.
//!
//! # Settings
//!
//! A [`Profile`](tcp::Profile) is a complete set of values; each can be overridden, in a file or in code. The default
//! is a modern TCP; others reproduce published work, such as ns-2 of 1999.
//!
//! ```
//! use airlane_transport::TcpConfig;
//! use airlane_transport::tcp::RecoveryKind;
//!
//! let config: TcpConfig = toml::from_str(
//!     r#"
//!     profile = "ns2-1999"
//!     recovery = "sack"
//!     window = 64
//!     "#,
//! )?;
//! assert_eq!(config.recovery(), RecoveryKind::Sack);
//! assert_eq!(config.validate(), Ok(()));
//! # Ok::<(), toml::de::Error>(())
//! ```

#![forbid(unsafe_code)]

pub mod clap;
mod endpoint;
pub mod tcp;

pub use clap::{ClapConfig, ClapReceiver, ClapSender};
pub use endpoint::Endpoint;
pub use tcp::{
    Ack, Blocks, Data, Range, Receiver, ReceiverStats, Segment, Sender, SenderStats, Tcp, TcpConfig,
};
