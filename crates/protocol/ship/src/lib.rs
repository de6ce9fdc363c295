//! File transfer from one host to another over CLAP-final (Gopal 2007, section 3.2). Sans-IO: `airlane send` and
//! `airlane recv` without their sockets, keys and disks.
//!
//! ```text
//! Shipper                                            ShipReceiver
//!   hello, as long as the path may carry  ────────►
//!                                         ◄────────  reached: the length of a hello received
//!   manifest: names, lengths              ────────►
//!                                         ◄────────  missing: ranges of bytes (all, or the rest of an earlier try)
//!   their bytes, as one CLAP connection   ────────►
//!                                         ◄────────  missing: none
//!   digests of the files                  ────────►
//!                                         ◄────────  done (or missing: files with another digest)
//! ```
//! The files of a job form one sequence of bytes in the order of the manifest, so that transfer need not consider where
//! a file ends.
//!
//! CLAP takes its rate from the status of the interfaces on the path (section 3.3 of the source), and so does this crate
//! if they are queried. CLAP has no rule for a path without such status. There the sender inserts marks, the receiver
//! reports how much arrived by each mark, and the rate follows the measured capacity of the path. Loss that does not
//! grow with the rate does not reduce it.
//!
//! # The contract
//! Give one input, drain `poll_transmit`, then ask `poll_timeout`. Memory is bounded: 3 bits per packet, the manifest
//! and 64 parts of a message; a peer that sends more is refused.

#![forbid(unsafe_code)]

mod exchange;
mod failure;
mod manifest;
mod message;
mod path_rate;
mod pieces;
mod ranges;
mod receiver;
mod shipper;
#[cfg(test)]
mod tests;

pub use failure::{Failure, printable};
pub use manifest::{Entry, Kind, Manifest};
pub use message::{Digest, LONGEST_DATAGRAM, OVERHEAD};
pub use ranges::Ranges;
pub use receiver::{ShipReceiver, ShipReceiverPhase};
pub use shipper::{Offered, Shipper, ShipperPhase};
