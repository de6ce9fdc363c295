//! Errors of a node's start and of later changes.

use std::net::IpAddr;

use airlane_node::NodeError;

use crate::device::DeviceError;
use crate::security::KeyFileError;

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpError {
    /// The operating system refused an operation.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The private key cannot be read.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The file does not suit the paths, or is invalid.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// Datagrams would be routed into the tunnel that they carry.
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
