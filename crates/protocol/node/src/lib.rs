//! One end of one or many live links, sans-IO: what `airlane up` runs, without the operating system.
//!
//! ```text
//! down   handle_packet   ─► route ─► port: classify, queue
//!        transmit        ◄─ batch ◄─ seal ◄─ port.poll_transmit ◄─ a turn of the shared link
//! up     handle_datagram ─► open ─► which peer? ─► port.handle_frame   poll_deliver ◄─ source check ◄─ port
//! time   handle_timeout(now) when poll_timeout says so;  poll_request: what the node asks of its driver
//! ```
//!
//! [`Node`] reads no clock, draws its random numbers from a seed, and opens no socket or file. Its driver
//! passes in the time and the bytes, sends what the node emits and answers its requests. `airlane-live` is
//! the driver on Linux; `examples/over_udp.rs` is one of a hundred lines, over UDP sockets.

mod cidr;
pub mod config;
mod datagram_addresses;
mod ether_type;
pub mod journal;
mod node;
pub mod packet;
mod path_facts;
mod rounded;
pub mod status;
mod underlay;

pub use cidr::Cidr;
pub use datagram_addresses::DatagramAddresses;
pub use ether_type::EtherType;
pub use node::*;
pub use path_facts::PathFacts;
pub use rounded::{rounded, three_digits};
pub use underlay::Underlay;
