//! Both ends of a datagram that came.

use std::net::IpAddr;

use airlane_secure::PeerAddress;

/// Where a datagram came from, and to which address of this machine, where the underlay has several.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Came {
    pub(crate) from: PeerAddress,
    pub(crate) to: Option<IpAddr>,
}
