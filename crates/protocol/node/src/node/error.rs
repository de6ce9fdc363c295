//! Errors of a node's configuration and paths.

use airlane_link::config::ConfigError;
use airlane_secure::PeersError;

use crate::config::IPV6_MIN_MTU;

/// Why a node, or a link with a peer, could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// A peer's key is invalid.
    #[error(transparent)]
    Peer(#[from] PeersError),
    /// The service table is invalid.
    #[error("{}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Config {
        /// Its problems.
        problems: Vec<ConfigError>,
    },
    /// The path leaves too little for a packet.
    #[error(
        "the path to {peer} takes datagrams of {path_mtu} B, which leaves {left} B for a packet; \
         {need} B are needed{}", if *.need == IPV6_MIN_MTU { " by IPv6 (without IPv6 addresses and routes under [tun], less would do)" } else { "" }
    )]
    PathTooNarrow {
        /// The peer.
        peer: String,
        /// Path MTU, bytes.
        path_mtu: usize,
        /// What is left for a packet, bytes.
        left: usize,
        /// What is needed, bytes.
        need: usize,
    },
}
