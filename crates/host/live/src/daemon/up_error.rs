//! What can be in the way of a node that starts, and of what it is told later.

use std::net::IpAddr;

use airlane_node::NodeError;

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
    /// The file and the paths are of no use.
    #[error(transparent)]
    Node(#[from] NodeError),
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
