//! Files from one host to another over CLAP-final (Gopal 2007, section 3.2), sans-IO: `airlane send` and `airlane recv`
//! without their sockets, keys and disks.
//!
//! ```text
//! Shipper                                            Taker
//!   hello, as long as the path may carry  ────────►
//!                                         ◄────────  reached: so long a one came
//!   manifest: names, lengths              ────────►
//!                                         ◄────────  missing: ranges of bytes (all, or what an earlier try left)
//!   their bytes, as one CLAP connection   ────────►
//!                                         ◄────────  missing: none
//!   digests of the files                  ────────►
//!                                         ◄────────  done (or missing: files whose digest is another)
//! ```
//! The files of a job are one row of bytes, in the order of the manifest, so that nobody need care where one ends.
//!
//! CLAP takes its rate from what interfaces say (section 3.3 of the source), and so does this where they are asked. It has
//! no rule for a path on which nobody says anything: there the sender marks what it sends, the receiver says how much came
//! by then, and the rate follows what the path was seen to carry. Loss that does not grow with the rate changes nothing.
//!
//! # The contract
//! One input, then drain `poll_transmit`, then ask `poll_timeout`. Memory is bounded: 3 bits for a packet, the manifest and
//! 64 parts of a message; a peer that says more is refused.

#![forbid(unsafe_code)]

mod exchange;
mod failure;
mod manifest;
mod message;
mod path_rate;
mod pieces;
mod ranges;
mod shipper;
mod taker;
#[cfg(test)]
mod tests;

pub use failure::{Failure, printable};
pub use manifest::{Entry, Kind, Manifest};
pub use message::{Digest, LONGEST_DATAGRAM, OVERHEAD};
pub use ranges::Ranges;
pub use shipper::{Offered, Shipper, ShipperPhase};
pub use taker::{Taker, TakerPhase};
