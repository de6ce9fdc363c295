//! CLAP, the cross-layer aware transport protocol (Gopal 2007, chapter 3). It carries one file in one direction; the
//! sending rate follows the status of the sender's own network interface, never feedback from the receiver.
//!
//! ```text
//!  status of the interface ─► Pacer    how fast (out, underflow, free places: every 100 ms)
//!                               │
//!  Sender ── DATA ──────────────┴─────► Receiver   what is missing
//!    ▲  repairs before new packets        │ Spontaneous, Periodic (CLAP-beta) or Pivots (CLAP-final): when to say so
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

mod config;
mod numbers;
mod pacer;
mod packet;
mod periodic;
mod pivots;
mod progress;
mod receiver;
mod reporter;
mod sender;
mod spontaneous;
pub mod wire;

pub use config::{ClapConfig, ClapVersion, FlowRule, MOST_PACKETS};
pub use pacer::Status;
pub use packet::{Data, Failure, Feedback, Forward, Nack, NackKind, Stamp};
pub use receiver::{ClapReceiver, ClapReceiverStats, Taken};
pub use sender::{ClapSender, ClapSenderStats};
