//! The kernel's knowledge of the path to a peer.

/// Assumed MTU until the path is known.
const ETHERNET_MTU: usize = 1500;

/// The kernel's knowledge of a path, in lengths of IP packets or of Ethernet payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathFacts {
    /// MTU of the interface, the upper limit of what leaves unfragmented.
    pub interface: usize,
    /// Path MTU that ICMP messages report, which are not authenticated.
    pub said: usize,
}

impl PathFacts {
    /// The assumption for an unknown path: nearly every path begins with Ethernet or a similar link.
    pub const UNKNOWN: Self = Self {
        interface: ETHERNET_MTU,
        said: ETHERNET_MTU,
    };
}
