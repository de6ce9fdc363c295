//! The secure session between nodes that know each other's public keys, sans-IO.
//!
//! It stands between the link layer's port and the datagrams: each frame becomes one data message,
//! encrypted and authenticated, whose loss, duplication or reordering disturbs no other.
//!
//! ```text
//! frame -> Secure::seal ----------------------------------> datagram and where to send it
//! frame <- Secure::handle_datagram <----------------------- datagram and where it came from
//!          Secure::poll_transmit, poll_timeout, handle_timeout: handshakes, keepalives, rekeying
//! ```
//!
//! # What is taken from where
//! The design is WireGuard's (J. Donenfeld, *WireGuard: Next Generation Kernel Network Tunnel*, NDSS
//! 2017): the Noise IK handshake with a timestamp in the initiation (section 5.4.2), the two MACs
//! and cookies (5.3, 5.4.4, 5.4.7), data messages and their window (5.4.6), timers and rotation of
//! keys (6.1 to 6.5). The handshake is `Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s` of *The Noise Protocol
//! Framework*, revision 34, with a pre-shared key of zeros where two peers have none. The messages are not WireGuard's on the wire, and labels and prologue
//! are our own, so the two can never be taken for each other.
//!
//! Different on purpose:
//!
//! - An address moves only after a response, or after a data message newer than all before it under
//!   keys in use. An initiation, which is the one message that can be replayed after a restart, is
//!   answered where it came from but moves nothing.
//! - Two initiations that cross cannot undo each other: the end with the smaller public key gives up
//!   its own. Four retired pairs of keys stay valid for reception, so that no frame in flight is lost.
//! - The responder renews keys too if the initiator has not done so in time, for instance because
//!   its clock was set back and its timestamps are refused.
//! - The header of a data message has 8 bytes, half of WireGuard's: an index of 30 bits, and the low 32
//!   bits of the counter. It is authenticated, and so is what a message is *bound* to, which is not sent
//!   ([`Secure::bind`]): frames of a link session that has ended cannot be opened in the next.
//! - Keys are renewed where they are used, and an initiation is never sent from within
//!   [`Secure::seal`]: it asks for [`Secure::handle_timeout`] at once.
//!
//! Left out: padding, and queueing of payloads until keys are there (the port above
//! has queues).
//!
//! # The contract
//! One input, drain [`Secure::poll_transmit`], ask [`Secure::poll_timeout`], then the next input;
//! `now` never goes back. After [`Secure::handle_timeout`] at `t` the next deadline is later than
//! `t`. Nothing is allocated for a data message. What is not authenticated changes nothing but
//! [`Counters`], the estimate of the load, and what the address it came from may send under load.

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
