//! Why a file and a path are of no use for a node.

use airlane_link::config::ConfigError;
use airlane_secure::PeersError;

use crate::config::IPV6_MIN_MTU;

/// Why there is no node, or no link with a peer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
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
}
