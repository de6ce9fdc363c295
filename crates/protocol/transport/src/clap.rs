//! CLAP, the cross-layer aware transport protocol (Gopal 2007, chapter 3): one file, one way, whose rate follows what
//! the sender's own network interface says, and never what the receiver says.
//!
//! ```text
//!  status of the interface ─► Pacer    how fast (out, underflow, free places: every 100 ms)
//!                               │
//!  Sender ── DATA ──────────────┴─────► Receiver   what is missing
//!    ▲  repairs before new packets        │ Spontaneous, Periodic (CLAP-beta) or Pivots (CLAP-final): when to say so
//!    └──────────────────────── NACK ◄─────┘
//! ```
//!
//! Both ends are values without a clock and without a file: times go in, and headers come out. A packet's bytes stay
//! with the driver, which reads the file again for a repair, so that each end holds one bit for a packet. [`wire`] is how packets stand in bytes. The driver's contract is that of the crate: one input, then
//! `poll_transmit` until it is empty, then `poll_timeout`.
//!
//! The ends are no [`Endpoint`](crate::Endpoint): that one carries bytes both ways and confirms them from the front,
//! and CLAP does neither.
//!
//! Left out, as the work has none: a window, acknowledgments, a timer that sends data again, a checksum, encryption.

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
