//! The secure session between nodes that know each other's public keys. Sans-IO.
//!
//! It sits between the link layer's port and the datagrams. Each frame becomes one data message, encrypted and
//! authenticated; its loss, duplication or reordering does not affect any other message.
//!
//! ```text
//! frame -> Secure::seal ----------------------------------> datagram and its destination
//! frame <- Secure::handle_datagram <----------------------- datagram and its source
//!          Secure::poll_transmit, poll_timeout, handle_timeout: handshakes, keepalives, rekeying
//! ```
//!
//! # Sources
//! The design is WireGuard's (J. Donenfeld, *WireGuard: Next Generation Kernel Network Tunnel*, NDSS 2017): the Noise IK
//! handshake with a timestamp in the initiation (section 5.4.2), the two MACs and cookies (5.3, 5.4.4, 5.4.7), data
//! messages and their window (5.4.6), timers and key rotation (6.1 to 6.5). The handshake is
//! `Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s` of *The Noise Protocol Framework*, revision 34, with a pre-shared key of
//! zeros if two peers have none. The wire format, labels and prologue are our own, so the two protocols can never be
//! confused.
//!
//! Deliberate differences:
//!
//! - An address changes only after a response, or after a data message newer than all before it under keys in use. An
//!   initiation, the one message that can be replayed after a restart, is answered to its source but changes no address.
//! - Two initiations that cross cannot undo each other: the end with the smaller public key gives up its own. Four
//!   retired pairs of keys stay valid for reception, so that no frame in flight is lost.
//! - The responder renews keys, too, if the initiator has not done so in time, for instance because its clock was set
//!   back and its timestamps are refused.
//! - The header of a data message has 8 bytes, half of WireGuard's: an index of 30 bits, and the low 32 bits of the
//!   counter. It is authenticated, and so is the *binding* of a message, which is not sent ([`Secure::bind`]): frames of
//!   a link session that has ended cannot be opened in the next.
//! - Keys are renewed when they are used, but [`Secure::seal`] never sends an initiation itself: it makes
//!   [`Secure::handle_timeout`] due at once.
//!
//! Left out: padding, and queueing of payloads until there are keys (the port above has queues).
//!
//! # The contract
//! Give one input, drain [`Secure::poll_transmit`], ask [`Secure::poll_timeout`], then give the next input; `now` never
//! goes back. After [`Secure::handle_timeout`] at `t` the next deadline is later than `t`. A data message allocates
//! nothing. Unauthenticated input changes nothing but [`Counters`], the load estimate, and how much its source address
//! may still send under load.

#![forbid(unsafe_code)]

mod addresses;
mod cipher;
mod entropy;
pub mod key;
mod keypair;
mod limits;
mod mac;
mod message;
mod noise;
mod peer;
mod peer_address;
mod peer_id;
mod receive;
mod refused;
mod replay;
mod secure;
#[cfg(test)]
mod tests;

pub use key::{KeyError, PresharedKey, PrivateKey, PublicKey};
pub use limits::{Limits, Wall};
pub use message::{
    COOKIE_REPLY_LEN, DATA_HEADER_LEN, INITIATION_LEN, OVERHEAD, RESPONSE_LEN, TAG_LEN,
    data_number, is_handshake,
};
pub use peer::{SecurePeer, SecurePeerStatus};
pub use peer_address::{EthernetAddress, PeerAddress};
pub use peer_id::PeerId;
pub use receive::AcceptedDatagram;
pub use refused::{Counters, Refusals, Refused};
pub use replay::WINDOW;
pub use secure::{PeersError, SealError, Sealed, Secure, Transmit};
