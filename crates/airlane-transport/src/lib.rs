//! Transport endpoints as values: time goes in as an argument, segments come out of `poll_*`.
//!
//! Only what the simulator's worlds need stands here: a one-way TCP [`Sender`] and its
//! [`Receiver`], numbered in segments. An endpoint knows segments and acknowledgments; it never
//! learns which links or services carry them, and it never reads a clock.
//!
//! The driver's loop is the same for every endpoint: one input (`handle_ack`, `handle_segment`,
//! `handle_timeout`), then `poll_transmit` until it is empty, then `poll_timeout`.

#![forbid(unsafe_code)]

pub mod config;
mod messages;
pub mod receiver;
pub mod rto;
pub mod sender;

pub use config::{Profile, TcpConfig, Transfer, Variant};
pub use receiver::{Receiver, ReceiverStats};
pub use rto::RtoEstimator;
pub use sender::{Sender, SenderStats};

/// One data segment. Numbers count segments from 0, as in the agents of ns-2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Segment number.
    pub seq: u64,
    /// User bytes carried; headers are not counted.
    pub len: u32,
    /// Whether these bytes were sent before.
    pub retransmission: bool,
}

/// A cumulative acknowledgment: every segment below `ack` has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The next segment expected (`rcv_nxt`).
    pub ack: u64,
}
