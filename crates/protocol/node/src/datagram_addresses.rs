//! The two addresses of a received datagram.

use std::net::IpAddr;

use airlane_secure::PeerAddress;

/// The source of a received datagram, and its destination address where the underlay has several.
#[derive(Clone, Copy, Debug)]
pub struct DatagramAddresses {
    /// Source address.
    pub from: PeerAddress,
    /// Destination address on this machine, if known.
    pub to: Option<IpAddr>,
}
