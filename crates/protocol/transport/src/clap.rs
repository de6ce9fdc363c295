//! CLAP, the cross-layer aware transport protocol (Gopal 2007, chapter 3). It carries one file in one direction; the
//! sending rate follows the status of the sender's own network interface, never feedback from the receiver; the
//! carousel's is fixed.
//!
//! ```text
//!  status of the interface ─► Pacer    how fast (out, underflow, free places: every 100 ms)
//!                               │
//!  Sender ── DATA ──────────────┴─────► Receiver   what is missing
//!    ▲  repairs before new packets        │ when to say so: Quiet (carousel), Solicited, Spontaneous, Periodic (beta)
//!    │                                    │ or Pivots (final)
//!    └──────────────────────── NACK ◄─────┘
//! ```
//!
//! Both ends are sans-IO: times go in, and headers come out. The driver keeps the file and reads it again for each
//! repair, so an end holds one bit per packet. [`wire`] encodes and decodes packets. The driver's contract is that of
//! the crate: one input, then `poll_transmit` until it returns none, then `poll_timeout`.
//!
//! The ends do not implement [`Endpoint`](crate::Endpoint): that trait carries bytes in both directions and
//! acknowledges them cumulatively, and CLAP does neither.
//!
//! Left out, because the work has none: a window, acknowledgments, a retransmission timer, a checksum, encryption.
//!
//! A transfer over a path without delay, where the sender's interface reports 60 packets per interval of 100 ms:
//!
//! ```
//! use airlane_base::{Duration, Instant};
//! use airlane_transport::clap::{Status, Taken};
//! use airlane_transport::{ClapConfig, ClapReceiver, ClapSender};
//!
//! let config = ClapConfig::default();
//! let mut sender = ClapSender::new(&config, 1_000, Duration::ZERO)?;
//! let mut receiver = ClapReceiver::new(&config);
//! let mut now = Instant::ORIGIN;
//! let mut new = 0;
//! sender.open(now);
//! while !sender.is_finished() {
//!     sender.set_local(Status { out: 60, underflows: 0, room: 0, flows: 1 });
//!     while let Some(packet) = sender.poll_transmit(now) {
//!         new += u32::from(receiver.handle(now, packet) == Taken::New);
//!     }
//!     let mut bitmap = [0; 1_000];
//!     while let Some(report) = receiver.poll_transmit(now, &mut bitmap) {
//!         sender.handle(now, &report);
//!     }
//!     now = now + Duration::from_millis(1);
//!     sender.handle_timeout(now);
//!     receiver.handle_timeout(now);
//! }
//! assert_eq!(new, 1_000);
//! assert_eq!(sender.stats().repairs, 0);
//! # Ok::<(), airlane_transport::clap::Failure>(())
//! ```

mod config;
mod numbers;
mod pacer;
mod packet;
mod periodic;
mod pivots;
mod progress;
mod quiet;
mod receiver;
mod reporter;
mod rounds;
mod sender;
mod solicited;
mod spontaneous;
pub mod wire;

pub use config::{ClapConfig, ClapVersion, FlowRule, MOST_PACKETS};
pub use pacer::Status;
pub use packet::{Data, Failure, Feedback, Forward, Nack, NackKind, Stamp};
pub use receiver::{ClapReceiver, ClapReceiverStats, Taken};
pub use sender::{ClapSender, ClapSenderStats};
