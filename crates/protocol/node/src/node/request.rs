//! Requests of a node to its driver.

use airlane_secure::PeerAddress;

use crate::config::HostPort;

/// An action that only the driver can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Query the system about the path to a peer: see [`handle_path`](super::Node::handle_path).
    Path {
        /// Number of its link.
        link: u8,
        /// The peer's address, if known.
        to: Option<PeerAddress>,
    },
    /// Look up a host name: see [`handle_name`](super::Node::handle_name).
    LookUp(HostPort),
    /// Set the interface's MTU: see [`handle_mtu`](super::Node::handle_mtu).
    Mtu(usize),
    /// Listen on another UDP port, or any free one for 0: see [`handle_port`](super::Node::handle_port).
    Port(u16),
}
