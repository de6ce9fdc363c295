//! What datagrams travel in, as far as a node has to know.

use std::net::SocketAddr;

use airlane_secure::{EthernetAddress, PeerAddress};

/// Bytes of headers.
const ETHERNET: usize = 14;
const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;

/// What datagrams travel in, and this end's address there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Underlay {
    /// UDP over IP.
    Udp {
        /// This end listens there.
        listen: SocketAddr,
    },
    /// Frames of a segment.
    Ethernet {
        /// This end's interface has this address.
        address: EthernetAddress,
        /// Bytes of the MTU that are not the datagram's.
        overhead: usize,
    },
}

impl Underlay {
    /// This end's own address.
    pub const fn listen(self) -> PeerAddress {
        match self {
            Self::Udp { listen } => PeerAddress::Udp(listen),
            Self::Ethernet { address, .. } => PeerAddress::Ethernet(address),
        }
    }

    /// The UDP port, where there is one.
    pub(crate) const fn port(self) -> Option<u16> {
        match self {
            Self::Udp { listen } => Some(listen.port()),
            Self::Ethernet { .. } => None,
        }
    }

    /// Where a peer can be called while nobody knows where it is.
    pub(crate) const fn anyone(self) -> Option<PeerAddress> {
        match self {
            Self::Udp { .. } => None,
            Self::Ethernet { .. } => Some(PeerAddress::Ethernet(EthernetAddress::BROADCAST)),
        }
    }

    /// Whether there is more to a path than its interface.
    pub(crate) const fn is_routed(self) -> bool {
        matches!(self, Self::Udp { .. })
    }

    /// Bytes of the path MTU to a peer that are not the datagram's; at most, while nobody knows where the peer is.
    pub const fn overhead(self, peer: Option<PeerAddress>) -> usize {
        match (self, peer) {
            (Self::Ethernet { overhead, .. }, _) => overhead,
            (Self::Udp { .. }, Some(PeerAddress::Udp(SocketAddr::V4(_)))) => IPV4 + UDP,
            (Self::Udp { .. }, Some(PeerAddress::Udp(SocketAddr::V6(_)))) => IPV6 + UDP,
            (
                Self::Udp {
                    listen: SocketAddr::V4(_),
                },
                _,
            ) => IPV4 + UDP,
            (
                Self::Udp {
                    listen: SocketAddr::V6(_),
                },
                _,
            ) => IPV6 + UDP,
        }
    }

    /// Bytes that the layers below add to each datagram for a peer, the Ethernet header included.
    pub const fn wire_overhead(self, peer: Option<PeerAddress>) -> usize {
        ETHERNET + self.overhead(peer)
    }
}
