//! What can be in the way of a node that starts, and of what it is told later.

use std::net::IpAddr;

use airlane_link::config::ConfigError;
use airlane_secure::PeersError;

use crate::config::IPV6_MIN_MTU;
use crate::device::DeviceError;
use crate::security::KeyFileError;

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpError {
    /// The operating system refused something.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// There is no private key to start with.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// A peer's key cannot be a peer's.
    #[error(transparent)]
    Peer(#[from] PeersError),
    /// The service table does not work.
    #[error("{}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Config {
        /// What is wrong with it.
        problems: Vec<ConfigError>,
    },
    /// Too little is left of the path for a packet.
    #[error(
        "the path to {peer} takes datagrams of {path_mtu} B, which leaves {left} B for a packet; \
         {need} B are needed{}", if *.need == IPV6_MIN_MTU { " by IPv6 (without IPv6 addresses and routes under [tun], less would do)" } else { "" }
    )]
    PathTooNarrow {
        /// The peer.
        peer: String,
        /// What the path takes.
        path_mtu: usize,
        /// What is left.
        left: usize,
        /// What is needed.
        need: usize,
    },
    /// Frames would be sent into the tunnel that they carry.
    #[error(
        "packets to the peer {peer} would go into {tun} itself: an address or route under [tun] \
         covers the peer; give the peer a more specific route outside, or leave that one out"
    )]
    Loop {
        /// The peer.
        peer: IpAddr,
        /// The interface.
        tun: String,
    },
}
