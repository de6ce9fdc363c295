//! What the kernel knows of the way to a peer.

/// What a path takes until more is known of it.
const ETHERNET_MTU: usize = 1500;

/// What the kernel knows of a path: lengths of IP packets, or of what Ethernet frames carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathFacts {
    /// What the interface takes: no more ever leaves whole.
    pub interface: usize,
    /// What it has heard from routers, or from whoever says that he is one.
    pub said: usize,
}

impl PathFacts {
    /// One of which nothing is known but that nearly every path begins with Ethernet, or something like it.
    pub const UNKNOWN: Self = Self {
        interface: ETHERNET_MTU,
        said: ETHERNET_MTU,
    };
}
