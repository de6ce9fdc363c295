//! GSM's circuit-switched data service above its radio: the radio link protocol (RLP) and the byte stream that it carries.
//!
//! ```text
//! packets ─► PPP ─► byte stream ─► L2R ─► RLP ─► frames of 1..=47 blocks of 30 bytes, one block each 20 ms
//!            ppp                   l2r    station
//! ```
//!
//! Sources: GSM 04.22 v5.0.0 (RLP), GSM 07.02 (L2R), RFC 1662 (PPP), and Ludwig et al. 1999 for frames of more than
//! one block. A station is sans-IO: it takes the time and received frames, returns frames to send, and has no clock
//! and no radio. The caller chooses the type of the information, so a simulator may carry positions in a stream where
//! a link carries bytes.

#![forbid(unsafe_code)]

#[cfg(test)]
mod coding;
pub mod fcs;
mod frame;
pub mod l2r;
mod negotiation;
mod parameters;
pub mod ppp;
mod receiver;
mod sender;
mod station;
#[cfg(test)]
mod tests;

pub use frame::{BLOCK, Body, Frame, Header, Supervisory, Unnumbered, information_len};
pub use negotiation::Negotiation;
pub use parameters::{Parameters, Persistence, Repair};
pub use station::{Counts, Lengths, Station};

/// Sequence numbers are 0 to 61: 62 and 63 mark frames without one.
const NUMBERS: u8 = 62;
