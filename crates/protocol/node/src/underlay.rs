//! The underlay, as far as a node needs to know it.

use std::net::SocketAddr;

use airlane_secure::{EthernetAddress, PeerAddress};

/// Header lengths, bytes.
const ETHERNET: usize = 14;
const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;

/// The underlay and this end's address on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Underlay {
    /// UDP over IP.
    Udp {
        /// Local address and port.
        listen: SocketAddr,
    },
    /// Raw Ethernet frames.
    Ethernet {
        /// Address of the local interface.
        address: EthernetAddress,
        /// Bytes of the MTU that the datagram cannot use.
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

    /// The UDP port, if there is one.
    pub(crate) const fn port(self) -> Option<u16> {
        match self {
            Self::Udp { listen } => Some(listen.port()),
            Self::Ethernet { .. } => None,
        }
    }

    /// The broadcast address to call a peer at while its own address is unknown, if there is one.
    pub(crate) const fn anyone(self) -> Option<PeerAddress> {
        match self {
            Self::Udp { .. } => None,
            Self::Ethernet { .. } => Some(PeerAddress::Ethernet(EthernetAddress::BROADCAST)),
        }
    }

    /// Whether a path may lead through routers, with a smaller MTU than its interface.
    pub(crate) const fn is_routed(self) -> bool {
        matches!(self, Self::Udp { .. })
    }

    /// Bytes of the path MTU that headers take; the largest value while the peer's address is unknown.
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

    /// Bytes that the layers below add to each datagram for a peer, Ethernet header included.
    pub const fn wire_overhead(self, peer: Option<PeerAddress>) -> usize {
        ETHERNET + self.overhead(peer)
    }
}
