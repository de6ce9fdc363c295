//! Both ends of a datagram that came.

use std::net::IpAddr;

use airlane_secure::PeerAddress;

/// Where a datagram came from, and to which address of this machine, where the underlay has several.
#[derive(Clone, Copy, Debug)]
pub struct Came {
    /// Where it came from.
    pub from: PeerAddress,
    /// The address of ours that it came to, where that is known.
    pub to: Option<IpAddr>,
}
