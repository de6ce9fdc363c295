//! The peers: one peer, from `link.underlay.peer` and `peer-key`, or those listed under `[[peers]]`.
//!
//! ```toml
//! [[peers]]
//! name = "farm"
//! key = "mYoY…2RM="                                # with security alone
//! address = "192.0.2.7:7007"                       # left out: it calls
//! prefixes = ["10.7.0.2/32", "192.168.40.0/24"]    # networks behind it
//! weight = 2                                       # share of link.rate, relative to the others'
//! rate = "5 Mbit/s"                                # its own limit; left out: link.rate
//! ```
//!
//! Prefixes are what WireGuard calls allowed IPs: a packet goes to the peer with the longest matching prefix,
//! and a packet from a peer must have its source in one of the peer's prefixes. The only peer of a file
//! without a list has every address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use airlane_base::config::Problems;
use airlane_link::SharedLink;

use super::LiveConfig;
use super::peer::{NOBODY, PeerConfig};
use crate::Cidr;
use crate::config::Security;

/// Name of the peer in a file without a list.
const ONLY: &str = "peer";
/// Maximum number of peers.
pub const MOST_PEERS: usize = SharedLink::PORTS;

/// Why no packet reaches a peer through the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoWay {
    /// Both ends have this address.
    SameAddress(IpAddr),
    /// Neither an address nor a route of this end leads to the peer's addresses.
    OtherNetwork,
}

impl LiveConfig {
    /// All peers, in the order of the file.
    pub fn peers(&self) -> Vec<PeerConfig> {
        if !self.peers.is_empty() {
            return self.peers.clone();
        }
        let (key, preshared_key) = match &self.link.security {
            Some(Security::Keys(keys)) => (keys.peer_key, keys.preshared_key.clone()),
            _ => (None, None),
        };
        let everything = |address| Cidr { address, prefix: 0 };
        vec![PeerConfig {
            name: ONLY.to_owned(),
            key,
            preshared_key,
            address: self.link.underlay.peer(),
            prefixes: vec![
                everything(Ipv4Addr::UNSPECIFIED.into()),
                everything(Ipv6Addr::UNSPECIFIED.into()),
            ],
            weight: 1.0,
            rate: None,
        }]
    }

    /// Routes of the interface: `tun.routes`, and the prefixes of listed peers that neither these routes nor
    /// its addresses cover. A default prefix is not made a route, because the outer path to the peer itself
    /// would then lead into the tunnel.
    pub fn routes(&self) -> Vec<Cidr> {
        let mut routes = self.tun.routes.clone();
        for prefix in self.peers.iter().flat_map(|peer| &peer.prefixes) {
            let mut ways = self.tun.addresses.iter().chain(&routes);
            let there = ways.any(|way| way.prefix <= prefix.prefix && way.covers(prefix.address));
            if !there && prefix.prefix > 0 {
                routes.push(*prefix);
            }
        }
        routes
    }

    /// Why no packet reaches a peer whose interface has these addresses, if none does.
    pub fn no_way(&self, theirs: &[Cidr]) -> Option<NoWay> {
        let ours = &self.tun.addresses;
        let is_ours = |at: &&Cidr| ours.iter().any(|own| own.address == at.address);
        if let Some(same) = theirs.iter().find(is_ours) {
            return Some(NoWay::SameAddress(same.address));
        }
        let routes = self.routes();
        let mut ways = ours.iter().chain(&routes);
        let leads = ways.any(|way| theirs.iter().any(|at| way.covers(at.address)));
        (!leads && !theirs.is_empty() && !ours.is_empty()).then_some(NoWay::OtherNetwork)
    }

    /// Whether the peers find this end again after its address has changed: it calls all of them, and they
    /// identify it by its key.
    pub fn calls(&self) -> bool {
        let keys = matches!(self.link.security, Some(Security::Keys(_)));
        keys && self.peers().iter().all(|peer| peer.address.is_some())
    }

    /// Checks the list of peers.
    pub fn check_peers(&self, problems: &mut Problems) {
        let underlay = &self.link.underlay;
        if underlay.takes_any_port() && !self.calls() {
            problems.add(
                "link.underlay.listen",
                "port 0 is another one at each start, and nobody could call it",
                "choose a port, such as 7007; 0 is for an end with keys that has the address of every peer",
            );
        }
        let keys = match &self.link.security {
            Some(Security::Keys(keys)) => Some(keys),
            _ => None,
        };
        if self.peers.is_empty() {
            if keys.is_some_and(|keys| keys.peer_key.is_none()) {
                problems.add(
                    "link.security",
                    "no peer's public key is given",
                    "add peer-key = \"THE PEER'S PUBLIC KEY\", or list several under [[peers]]",
                );
            }
            match underlay.peer() {
                Some(peer) => underlay.check_peer(&peer, "link.underlay.peer", problems),
                None if keys.is_some() => {}
                None => problems.add(
                    "link.underlay.peer",
                    NOBODY,
                    format!("give {}, or both ends keys", underlay.such_as()),
                ),
            }
            return;
        }
        let listed = "this file lists its peers under [[peers]]";
        if underlay.peer().is_some() {
            problems.add("link.underlay.peer", listed, "write it as a peer's address");
        }
        if keys.is_some_and(|keys| keys.peer_key.is_some()) {
            problems.add("link.security.peer-key", listed, "write it as a peer's key");
        }
        if keys.is_some_and(|keys| keys.preshared_key.is_some()) {
            let help = "write it as a peer's preshared-key: each has one of its own";
            problems.add("link.security.preshared-key", listed, help);
        }
        if self.peers.len() > MOST_PEERS {
            problems.add(
                &format!("peers[{MOST_PEERS}]"),
                format!("{} peers are too many for one link", self.peers.len()),
                format!("at most {MOST_PEERS}; start another daemon for the rest"),
            );
        }
        for (i, peer) in self.peers.iter().enumerate() {
            problems.within(&format!("peers[{i}]"), |problems| {
                let secured = keys.is_some();
                peer.check(underlay, self.link.rate, secured, problems);
                self.check_unique(i, peer, problems);
                self.check_own(peer, problems);
            });
        }
    }

    /// A station that is said to have this end's own address would get nothing.
    fn check_own(&self, peer: &PeerConfig, problems: &mut Problems) {
        for (j, prefix) in peer.prefixes.iter().enumerate() {
            let bits = if prefix.address.is_ipv4() { 32 } else { 128 };
            let mut own = self.tun.addresses.iter();
            if prefix.prefix == bits && own.any(|own| own.address == prefix.address) {
                let message = format!("{prefix} is the address of this end under [tun]");
                let help = "write the address that the peer has there";
                problems.add(&format!("prefixes[{j}]"), message, help);
            }
        }
    }

    /// Checks what two peers must not have in common.
    fn check_unique(&self, i: usize, peer: &PeerConfig, problems: &mut Problems) {
        let before = &self.peers[..i];
        let mut twice = |at: &str, what: String, other: Option<&PeerConfig>, help: &str| {
            if let Some(other) = other {
                let message = format!("{what} is that of the peer \"{}\", too", other.name);
                problems.add(at, message, help);
            }
        };
        let named = before.iter().find(|other| other.name == peer.name);
        let name = format!("the name \"{}\"", peer.name);
        twice("name", name, named, "give each peer a name of its own");
        let keyed = before.iter().find(|other| other.key == peer.key);
        let keyed = keyed.filter(|_| peer.key.is_some());
        twice("key", "this key".to_owned(), keyed, "one peer, one key");
        let there = before.iter().find(|other| other.address == peer.address);
        if let Some(address) = &peer.address {
            let what = format!("the address {address}");
            twice("address", what, there, "each peer is at another address");
        }
        for (j, prefix) in peer.prefixes.iter().enumerate() {
            let other = before.iter().find(|other| other.prefixes.contains(prefix));
            let help =
                "a packet can only go to one of them; the longest prefix that matches decides";
            twice(&format!("prefixes[{j}]"), format!("{prefix}"), other, help);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = r#"schema = 1
name = "base"
[tun]
addresses = ["10.7.0.1/24"]
[link]
rate = "20 Mbit/s"
underlay = { kind = "udp", listen = "0.0.0.0:7007" }
security = "none"
[[peers]]
name = "farm"
address = "192.0.2.2:7007"
prefixes = ["10.7.0.2/32", "192.168.40.0/24"]
weight = 2
[[peers]]
name = "mill"
address = "192.0.2.3:7007"
prefixes = ["10.7.0.3/32"]
rate = "5 Mbit/s"
"#;
    const KEYS: [&str; 2] = [
        "TjgqYkZ2rXp0wKc5nB1hLmQ8sVdE3uJfGyA7iWoR9CM=",
        "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=",
    ];

    fn load(text: &str) -> Result<LiveConfig, String> {
        airlane_base::config::load(text, "base.toml").map_err(|error| error.to_string())
    }

    fn secured(text: &str) -> String {
        let text = text.replace("\"none\"", "{ private-key = \"base.key\" }");
        let text = text.replace(
            "name = \"farm\"",
            &format!("name = \"farm\"\nkey = \"{}\"", KEYS[0]),
        );
        text.replace(
            "name = \"mill\"",
            &format!("name = \"mill\"\nkey = \"{}\"", KEYS[1]),
        )
    }

    #[test]
    fn a_list_of_peers_is_read_and_written_alike() {
        for text in [BASE.to_owned(), secured(BASE)] {
            let config = load(&text).unwrap();
            let peers = config.peers();
            assert_eq!((peers[0].weight, peers[1].weight), (2.0, 1.0));
            assert_eq!(peers[1].rate, "5 Mbit/s".parse().ok());
            let all = config.resolve();
            let text = toml::to_string(&all).unwrap();
            assert_eq!(load(&text).unwrap(), all, "{text}");
            // The address of the interface already covers 10.7.0.0/24.
            assert_eq!(all.routes(), ["192.168.40.0/24".parse().unwrap()]);
        }
    }

    #[test]
    fn addresses_that_no_packet_reaches_are_found() {
        let file = load(BASE).unwrap();
        let to = |addresses: &[&str]| {
            let theirs: Vec<Cidr> = addresses.iter().map(|at| at.parse().unwrap()).collect();
            file.no_way(&theirs)
        };
        let same = NoWay::SameAddress("10.7.0.1".parse().unwrap());
        assert_eq!(to(&["fd07::2/64", "10.7.0.1/24"]), Some(same));
        assert_eq!(to(&["10.8.0.2/24"]), Some(NoWay::OtherNetwork));
        // One of its addresses, a network behind it, and nothing.
        for good in [
            &["10.8.0.2/24", "10.7.0.2/24"][..],
            &["192.168.40.1/24"],
            &[],
        ] {
            assert_eq!(to(good), None, "{good:?}");
        }
    }

    #[test]
    fn a_file_without_a_peer_list_has_one_peer_for_all_prefixes() {
        let at = BASE.find("[[peers]]").unwrap();
        let only = BASE[..at].replace("7007\" }", "7007\", peer = \"192.0.2.2:7007\" }");
        let config = load(&only).unwrap();
        let peers = config.peers();
        assert_eq!((peers.len(), peers[0].name.as_str()), (1, "peer"));
        assert!(peers[0].has_everything());
        assert_eq!(peers[0].address, "192.0.2.2:7007".parse().ok());
        assert!(
            config.routes().is_empty(),
            "a default route is for the file to say"
        );
    }

    #[test]
    fn what_is_wrong_with_a_peer_is_refused_with_its_place() {
        for (good, bad, place, expected) in [
            (
                "\"farm\"",
                "\"mill\"",
                "15:8",
                "is that of the peer \"mill\", too",
            ),
            ("\"farm\"", "\"the farm\"", "10:8", "cannot name a peer"),
            (
                "192.0.2.3",
                "192.0.2.2",
                "16:11",
                "that of the peer \"farm\"",
            ),
            ("10.7.0.3/32", "10.7.0.2/32", "17:13", "can only go to one"),
            (
                "10.7.0.3/32",
                "10.7.0.1/32",
                "17:13",
                "is the address of this end",
            ),
            (
                "10.7.0.3/32",
                "10.7.0.3/24",
                "17:13",
                "write \"10.7.0.0/24\"",
            ),
            (
                "[\"10.7.0.3/32\"]",
                "[]",
                "17:12",
                "no packet goes to this peer",
            ),
            (
                "weight = 2",
                "weight = 0",
                "13:10",
                "gives the peer nothing",
            ),
            ("5 Mbit/s", "50 Mbit/s", "18:8", "more than the link has"),
            (
                "address = \"192.0.2.3:7007\"\n",
                "",
                "1",
                "only a peer with keys may call",
            ),
            (
                "\"192.0.2.3:7007\"",
                "\"[2001:db8::1]:7007\"",
                "16:11",
                "same IP version",
            ),
            (
                "name = \"farm\"",
                "name = \"farm\"\nkey = \"TjgqYkZ2rXp0wKc5nB1hLmQ8sVdE3uJfGyA7iWoR9CM=\"",
                "11:7",
                "no use for keys",
            ),
            (
                "listen = \"0.0.0.0:7007\"",
                "listen = \"0.0.0.0:7007\", peer = \"192.0.2.9:7007\"",
                "7:",
                "under [[peers]]",
            ),
            ("weight = 2", "wieght = 2", "13:", "weight"),
        ] {
            assert!(BASE.contains(good), "{good}");
            let error = load(&BASE.replacen(good, bad, 1)).unwrap_err();
            assert!(error.contains(expected), "{bad}: {error}");
            assert!(
                error.starts_with(&format!("base.toml:{place}")),
                "{bad}: {error}"
            );
        }
        let text = secured(BASE);
        for (good, bad, expected) in [
            (KEYS[1], KEYS[0], "one peer, one key"),
            (
                "name = \"mill\"\nkey = \"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\"",
                "name = \"mill\"",
                "this peer has no key",
            ),
            (
                "private-key = \"base.key\"",
                "private-key = \"base.key\", peer-key = \"TjgqYkZ2rXp0wKc5nB1hLmQ8sVdE3uJfGyA7iWoR9CM=\"",
                "write it as a peer's key",
            ),
        ] {
            assert!(text.contains(good), "{good}");
            let error = load(&text.replacen(good, bad, 1)).unwrap_err();
            assert!(error.contains(expected), "{bad}: {error}");
        }
        let at = text.find("[[peers]]").unwrap();
        let error = load(&text[..at]).unwrap_err();
        assert!(
            error.contains("no peer's public key") && error.contains("[[peers]]"),
            "{error}"
        );
    }

    #[test]
    fn too_many_peers_are_refused() {
        let mut text = BASE[..BASE.find("[[peers]]").unwrap()].to_owned();
        for i in 0..=MOST_PEERS {
            text += &format!(
                "[[peers]]\nname = \"p{i}\"\naddress = \"192.0.2.1:{}\"\nprefixes = [\"10.7.{i}.2/32\"]\n",
                8000 + i
            );
        }
        let error = load(&text).unwrap_err();
        assert!(
            error.contains("65 peers are too many") && error.contains("at most 64"),
            "{error}"
        );
    }
}
