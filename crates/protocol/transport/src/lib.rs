//! Transport endpoints as values: time goes in as an argument, segments come out of `poll_*`.
//!
//! An [`Endpoint`] is one end of a connection, at one node. It never learns which links or services
//! carry its segments, and it never reads a clock; its peer and itself only meet through segments.
//! So a proxy between two hosts is two endpoints. [`Tcp`] is the endpoint that there is, in parts.
//! [`clap`] has the two ends of a protocol that sends one file one way.
//!
//! The driver's loop is the same for every endpoint: one input (`write`, `handle_segment`,
//! `handle_timeout`), then `poll_transmit` until it is empty, then `poll_timeout`.

#![forbid(unsafe_code)]

pub mod clap;
mod endpoint;
pub mod tcp;

pub use clap::{ClapConfig, ClapReceiver, ClapSender};
pub use endpoint::Endpoint;
pub use tcp::{
    Ack, Blocks, Data, Range, Receiver, ReceiverStats, Segment, Sender, SenderStats, Tcp, TcpConfig,
};
