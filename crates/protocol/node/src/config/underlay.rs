//! `link.underlay`: what carries the frames.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use airlane_base::config::Problems;
use airlane_secure::{EthernetAddress, PeerAddress};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::endpoint::PeerEndpoint;
use super::names::check_interface_name;
use crate::EtherType;

/// What carries the frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum UnderlayConfig {
    /// UDP datagrams, one frame each.
    Udp {
        /// The address and port where this end listens; an unspecified address means all addresses of this
        /// machine. Port 0 chooses a free one, for an end with keys that has the addresses of all peers.
        #[schemars(example = &"0.0.0.0:7007")]
        listen: SocketAddr,
        /// The address and port where the other end listens, or its host name and port. Left out: the other
        /// end calls this address, and is identified by its key wherever it calls from.
        #[schemars(example = &"192.0.2.7:7007")]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer: Option<PeerEndpoint>,
    },
    /// Ethernet frames, straight on an interface.
    Ethernet {
        /// The interface that carries the frames.
        #[schemars(example = &"wlan0")]
        interface: String,
        /// The address of the other end's interface. Left out: both ends broadcast their calls on the
        /// segment, and identify each other by their keys.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer: Option<EthernetAddress>,
        /// The EtherType of Airlane's frames on the interface.
        #[serde(default, rename = "ether-type")]
        ether_type: EtherType,
    },
}

impl UnderlayConfig {
    /// The peer's address, if the file gives one.
    pub fn peer(&self) -> Option<PeerEndpoint> {
        match self {
            Self::Udp { peer, .. } => peer.clone(),
            Self::Ethernet { peer, .. } => {
                peer.map(|peer| PeerEndpoint::Address(PeerAddress::Ethernet(peer)))
            }
        }
    }

    /// Returns the underlay without its peer: the settings that only a restart can change.
    #[must_use]
    pub fn without_peer(&self) -> Self {
        let mut all = self.clone();
        match &mut all {
            Self::Udp { peer, .. } => *peer = None,
            Self::Ethernet { peer, .. } => *peer = None,
        }
        all
    }

    /// Checks the settings.
    pub fn check(&self, problems: &mut Problems) {
        match self {
            Self::Udp { listen, .. } => check_udp(listen, problems),
            Self::Ethernet {
                interface,
                ether_type,
                ..
            } => check_ethernet(interface, *ether_type, problems),
        }
    }

    /// Whether the port is chosen at each start.
    pub const fn takes_any_port(&self) -> bool {
        matches!(self, Self::Udp { listen, .. } if listen.port() == 0)
    }

    /// An example of a peer's address on this underlay, for messages.
    pub const fn such_as(&self) -> &'static str {
        match self {
            Self::Udp { .. } => {
                "address or host name of the other end with its port, such as \"192.0.2.7:7007\""
            }
            Self::Ethernet { .. } => "address of the other end, such as \"02:00:00:00:00:01\"",
        }
    }

    /// Checks the peer's address, which the file has at `at`.
    pub fn check_peer(&self, peer: &PeerEndpoint, at: &str, problems: &mut Problems) {
        use PeerAddress::{Ethernet, Udp};
        use PeerEndpoint::{Address, Host};
        match (self, peer) {
            (Self::Udp { listen, .. }, Address(Udp(peer))) => {
                check_peer(listen, peer, at, problems);
            }
            (Self::Udp { .. }, Host(host)) => {
                if host.port == 0 {
                    problems.add(
                        at,
                        format!("no host listens at port 0 of {}", host.host),
                        "give the port of the other end, such as 7007",
                    );
                }
            }
            (Self::Ethernet { .. }, Address(Ethernet(peer))) if peer.is_unicast() => {}
            (Self::Ethernet { .. }, Address(Ethernet(peer))) => problems.add(
                at,
                format!("{peer} is no address of one interface"),
                "give that of the other end, such as \"02:00:00:00:00:01\", or both ends keys and none",
            ),
            _ => problems.add(
                at,
                format!("frames cannot be sent to {peer} over this underlay"),
                format!("give {}", self.such_as()),
            ),
        }
    }
}

/// Checks the address where UDP datagrams are received.
fn check_udp(listen: &SocketAddr, problems: &mut Problems) {
    if listen.ip().is_multicast() || matches!(listen.ip(), IpAddr::V4(ip) if ip.is_broadcast()) {
        problems.add(
            "underlay.listen",
            format!("{listen} is no address of one machine"),
            "an address of this machine, or \"0.0.0.0:PORT\" for all of them",
        );
    }
}

/// Checks an interface for frames and their EtherType.
fn check_ethernet(interface: &str, ether_type: EtherType, problems: &mut Problems) {
    check_interface_name("underlay.interface", interface, "wlan0", problems);
    if let Some(objection) = ether_type.objection() {
        problems.add(
            "underlay.ether-type",
            objection,
            "leave it out for 0x88B5, or use 0x88B6: the two that are free for local use",
        );
    }
}

/// Checks the peer's address, which the file has at `at`.
fn check_peer(listen: &SocketAddr, peer: &SocketAddr, at: &str, problems: &mut Problems) {
    if !reaches(listen, peer) {
        problems.add(
            at,
            format!("{listen} and the peer {peer} are not of the same IP version"),
            if peer.is_ipv4() {
                "listen on \"0.0.0.0:PORT\", on \"[::]:PORT\" for both versions, or on an IPv4 address of \
                 this machine"
            } else {
                "listen on \"[::]:PORT\" or on an IPv6 address of this machine"
            },
        );
    }
    let broadcast = matches!(peer.ip(), IpAddr::V4(ip) if ip.is_broadcast());
    let nobody = peer.ip().is_unspecified() || peer.ip().is_multicast() || broadcast;
    if nobody || peer.port() == 0 {
        problems.add(
            at,
            format!("frames cannot be sent to {peer}"),
            "give address and port of the other end, such as \"192.0.2.7:7007\"",
        );
    }
    if listen.ip().is_loopback() && !peer.ip().is_loopback() {
        problems.add(
            at,
            format!(
                "this end listens on {}, which reaches this machine alone and not {peer}",
                listen.ip()
            ),
            "listen on \"0.0.0.0:PORT\" or \"[::]:PORT\", or on an address that others reach",
        );
    }
    if matches!(peer.ip(), IpAddr::V6(ip) if ip.is_unicast_link_local()) {
        problems.add(
            at,
            format!(
                "{} is a link-local address, which says nothing without an interface",
                peer.ip()
            ),
            "give an address that is valid beyond one wire, or use kind = \"ethernet\"",
        );
    }
    if listen == peer {
        problems.add(
            at,
            format!("{peer} is this end itself: frames would come back"),
            "give address and port of the other end",
        );
    }
}

/// Whether a socket bound to `listen` can send to `peer`: one bound to the unspecified IPv6 address also
/// serves IPv4 (RFC 3493, section 3.7).
pub fn reaches(listen: &SocketAddr, peer: &SocketAddr) -> bool {
    listen.is_ipv4() == peer.is_ipv4() || listen.ip() == Ipv6Addr::UNSPECIFIED
}
