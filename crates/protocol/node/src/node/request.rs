//! What a node wants from its driver.

use airlane_secure::PeerAddress;

use crate::config::HostPort;

/// Something that only the driver can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// To know what the system knows of the path to a peer: see [`handle_path`](super::Node::handle_path).
    Path {
        /// Number of its link.
        link: u8,
        /// Where it is, if that is known.
        to: Option<PeerAddress>,
    },
    /// To have a name looked up: see [`handle_name`](super::Node::handle_name).
    LookUp(HostPort),
    /// To give the interface this MTU: see [`handle_mtu`](super::Node::handle_mtu).
    Mtu(usize),
    /// To listen at another UDP port, any that is free for 0: see [`handle_port`](super::Node::handle_port).
    Port(u16),
}
