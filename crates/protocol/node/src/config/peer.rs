//! One peer, an entry of `[[peers]]`.

use std::net::IpAddr;
use std::path::PathBuf;

use airlane_base::Rate;
use airlane_base::config::Problems;
use airlane_secure::{EthernetAddress, PeerAddress, PublicKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::endpoint::{HostPort, PeerEndpoint};
use super::names::is_plain;
use super::underlay::UnderlayConfig;
use crate::Cidr;

/// Why a peer without keys needs an address.
pub(super) const NOBODY: &str =
    "only a peer with keys may call from anywhere: without them nobody knows who calls";
/// One of several peers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PeerConfig {
    /// The name of the peer on this node, of letters, digits, `.`, `_` and `-`.
    #[schemars(example = &"station")]
    pub name: String,
    /// Its public key. Source: RFC 7748.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PublicKey>,
    /// The file with the pre-shared key of the peer and this end. Left out: there is none.
    #[serde(
        default,
        rename = "preshared-key",
        skip_serializing_if = "Option::is_none"
    )]
    pub preshared_key: Option<PathBuf>,
    /// The address of the peer. A host name is looked up at the start, and again while nothing is received
    /// from the peer. Left out: the peer calls this end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<PeerEndpoint>,
    /// The networks behind the peer, its own address in the tunnel among them.
    pub prefixes: Vec<Cidr>,
    /// Its share of the link while other peers have traffic as well.
    #[serde(default = "one")]
    #[schemars(extend("x-unit" = "relative"))]
    pub weight: f64,
    /// The most that is sent to it. Left out: the link's rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
}

const fn one() -> f64 {
    1.0
}

impl PeerConfig {
    /// Checks the peer against the underlay and the link's rate.
    pub fn check(
        &self,
        underlay: &UnderlayConfig,
        most: Rate,
        secured: bool,
        problems: &mut Problems,
    ) {
        if !is_plain(&self.name) {
            problems.add(
                "name",
                format!("\"{}\" cannot name a peer", self.name),
                "use letters, digits, \".\", \"_\" and \"-\", such as \"farm\"",
            );
        }
        match (secured, &self.key) {
            (true, None) => problems.add(
                "key",
                "this peer has no key, and the link is secured",
                "key = \"THE PEER'S PUBLIC KEY\", which `airlane keygen` printed there",
            ),
            (false, Some(_)) => problems.add(
                "key",
                "security = \"none\" has no use for keys",
                "leave it out, or write security = { private-key = \"FILE\" } under [link]",
            ),
            _ => {}
        }
        if !secured && self.preshared_key.is_some() {
            problems.add(
                "preshared-key",
                "security = \"none\" has no use for keys",
                "leave it out, or write security = { private-key = \"FILE\" } under [link]",
            );
        }
        match &self.address {
            Some(address) => underlay.check_peer(address, "address", problems),
            None if secured => {}
            None => problems.add(
                "address",
                NOBODY,
                format!("give {}, or all ends keys", underlay.such_as()),
            ),
        }
        if self.prefixes.is_empty() {
            problems.add(
                "prefixes",
                "without prefixes no packet goes to this peer, and none may come from it",
                "list its address in the tunnel and the networks behind it, such as [\"10.7.0.2/32\"]",
            );
        }
        for (i, prefix) in self.prefixes.iter().enumerate() {
            let at = format!("prefixes[{i}]");
            let network = prefix.network();
            if network != prefix.address {
                problems.add(
                    &at,
                    format!("{prefix} has bits set after its prefix"),
                    format!("write \"{network}/{}\"", prefix.prefix),
                );
            }
            if self.prefixes[..i].contains(prefix) {
                problems.add(&at, format!("{prefix} stands here twice"), "leave one out");
            }
        }
        if !(self.weight > 0.0 && self.weight.is_finite()) {
            problems.add(
                "weight",
                format!("a weight of {} gives the peer nothing", self.weight),
                "a share above 0, relative to the other peers', such as 1",
            );
        }
        if let Some(rate) = self.rate.filter(|rate| *rate > most) {
            problems.add(
                "rate",
                format!("{rate} is more than the link has, which is {most}"),
                "at most link.rate, or leave it out",
            );
        }
    }

    /// The address, if the file gives one.
    pub fn fixed_address(&self) -> Option<PeerAddress> {
        self.address.as_ref()?.address()
    }

    /// The host name, if the file gives one.
    pub fn host(&self) -> Option<&HostPort> {
        self.address.as_ref()?.host()
    }

    /// Whether its prefixes cover every address of both IP versions.
    pub fn has_everything(&self) -> bool {
        let all = |v4: bool| {
            let mut prefixes = self.prefixes.iter();
            prefixes.any(|p| p.prefix == 0 && p.address.is_ipv4() == v4)
        };
        all(true) && all(false)
    }
}

/// A peer's address without the other fields of a socket address (scope, flow label): a key to compare peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PeerPlace {
    /// Over UDP.
    Udp(IpAddr, u16),
    /// On an Ethernet segment.
    Ethernet([u8; 6]),
}

impl From<PeerAddress> for PeerPlace {
    fn from(address: PeerAddress) -> Self {
        match address {
            PeerAddress::Udp(address) => Self::Udp(address.ip(), address.port()),
            PeerAddress::Ethernet(EthernetAddress(octets)) => Self::Ethernet(octets),
        }
    }
}
