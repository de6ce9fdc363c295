//! All links of a node, and the mapping of datagrams and packets to them: by the secure session, by the
//! address without keys, by the prefixes behind each peer. It also sends the datagrams of all links.

use std::collections::BTreeMap;
use std::net::IpAddr;

use airlane_base::{Duration, Instant};
use airlane_secure::{PeerAddress, PeerId};

use super::below::Below;
use super::guard::Guard;
use super::link::PeerLink;
use super::transmit::{Aside, Outlet, SendError, SendFate};
use crate::Cidr;
use crate::DatagramAddresses;
use crate::config::{PeerConfig, PeerPlace};
use crate::packet::addresses;

/// Limit of handshakes and probes that wait for a full socket.
const MOST_ASIDE: usize = 64;
/// Time after which everything sent before a session began has arrived.
const BEGINNING: Duration = Duration::from_secs(2);

/// The links by number. A link has the number of its port on the shared link.
#[derive(Debug, Default)]
pub(crate) struct Links {
    pub(crate) all: BTreeMap<u8, PeerLink>,
    by_session: BTreeMap<PeerId, u8>,
    by_place: BTreeMap<PeerPlace, u8>,
    pub(crate) prefixes: Prefixes,
}

impl Links {
    /// Rebuilds the indices. Must be called after links were added, removed or changed.
    pub(crate) fn index(&mut self) {
        let links = || self.all.iter();
        let sessions = links().filter_map(|(n, link)| Some((link.to.session?, *n)));
        let places = links().filter_map(|(n, link)| Some((link.to.address?.into(), *n)));
        let prefixes = Prefixes::new(links().map(|(n, link)| (*n, &link.config)));
        (self.by_session, self.by_place) = (sessions.collect(), places.collect());
        self.prefixes = prefixes;
    }

    /// The lowest free number. A file has fewer peers than there are numbers.
    pub(crate) fn free_number(&self) -> u8 {
        let mut numbers = 0..u8::MAX;
        let free = numbers.find(|number| !self.all.contains_key(number));
        free.unwrap_or(u8::MAX)
    }

    pub(crate) fn of_session(&self, session: PeerId) -> Option<u8> {
        self.by_session.get(&session).copied()
    }

    /// The link of a peer without keys.
    pub(crate) fn at(&self, address: PeerAddress) -> Option<u8> {
        self.by_place.get(&address.into()).copied()
    }

    /// Name of the peer that is expected at an address and has no session yet.
    pub(crate) fn expected_at(&self, address: PeerAddress) -> Option<&str> {
        let link = self.all.get(&self.at(address)?)?;
        let missing = link.session.id().is_none();
        missing.then_some(&*link.config.name)
    }

    /// Whether a session with the peer at an address began a moment ago.
    pub(crate) fn begins_at(&self, now: Instant, address: PeerAddress) -> bool {
        let link = self.at(address).and_then(|at| self.all.get(&at));
        let since = link.and_then(|link| link.session_since);
        since.is_some_and(|since| now < since + BEGINNING)
    }

    pub(crate) fn get_mut(&mut self, number: u8) -> Option<&mut PeerLink> {
        self.all.get_mut(&number)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &PeerLink> {
        self.all.values()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut PeerLink> {
        self.all.values_mut()
    }

    pub(crate) fn named(&self, name: &str) -> Option<&PeerLink> {
        self.iter().find(|link| link.config.name == name)
    }

    pub(crate) fn names(&self) -> String {
        let names: Vec<_> = self.iter().map(|link| link.config.name.as_str()).collect();
        names.join(", ")
    }

    /// Sends the messages of the secure sessions, in answer to a datagram with this `addressing` if there is one. They
    /// bypass the batch, whose frames need their keys.
    pub(crate) fn send_session(
        &self,
        now: Instant,
        below: &mut Below,
        addressing: Option<DatagramAddresses>,
    ) {
        while let Some(message) = below.guard.as_mut().and_then(Guard::poll_transmit) {
            // An empty message has a sequence number like one with a frame.
            let tapped = below.tap.as_ref().and_then(|(link, _)| self.all.get(link));
            if let Some(link) = tapped.filter(|link| link.to.address == Some(message.to))
                && let Some(tap) = below.tapped(link.to.link)
            {
                let waiting = link.port.waiting_bytes();
                tap.borrow_mut().sent(now, message.bytes(), waiting);
            }
            // An answer leaves from the address that was called, whoever the caller is.
            let from = match addressing.filter(|addressing| addressing.from == message.to) {
                Some(addressing) => addressing.to,
                None => {
                    let mut links = self.iter();
                    let link = links.find(|link| link.to.address == Some(message.to));
                    link.and_then(|link| link.to.from)
                }
            };
            below.aside.push_back(Aside {
                probes: None,
                to: message.to,
                from,
                bytes: message.bytes().to_vec(),
            });
        }
    }

    /// Sends the waiting datagrams, and reports the results to their links.
    pub(crate) fn flush(&mut self, now: Instant, below: &mut Below, outlet: &mut impl Outlet) {
        while let Some(aside) = below.aside.front() {
            let sent = aside.send(outlet);
            if sent == Err(SendError::Full) && below.aside.len() <= MOST_ASIDE {
                return below.transmit.block();
            }
            let Some(Aside { probes, bytes, .. }) = below.aside.pop_front() else {
                return;
            };
            let bytes = bytes.len() as u64;
            match (sent, probes) {
                (Ok(()), link) => {
                    below.datagrams_sent += 1;
                    below.bytes_sent += bytes;
                    if let Some(link) = link.and_then(|link| self.get_mut(link)) {
                        let datagrams = 1;
                        link.on_fate(now, SendFate::Sent { datagrams, bytes });
                    }
                }
                // A probe longer than the interface's MTU counts as lost on the path.
                (Err(_), Some(_)) => {}
                (Err(error), None) => below.drops.count(now, error.reason()),
            }
        }
        let Below {
            transmit,
            datagrams_sent,
            bytes_sent,
            ..
        } = below;
        transmit.flush(outlet, &mut |link, fate| {
            if let SendFate::Sent { datagrams, bytes } = fate {
                *datagrams_sent += datagrams;
                *bytes_sent += bytes;
            }
            // The peer may have been removed in the meantime.
            if let Some(link) = self.get_mut(link) {
                link.on_fate(now, fate);
            }
        });
    }
}

/// Finds the peer for an address: the one with the longest matching prefix.
#[derive(Debug, Default)]
pub(crate) struct Prefixes {
    /// The only peer, if it has every address.
    only: Option<u8>,
    networks: BTreeMap<(IpAddr, u8), u8>,
    /// Prefix lengths in use, of IPv4 and of IPv6, in descending order.
    lengths: [Vec<u8>; 2],
}

/// Why no peer was found for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nowhere {
    /// The bytes are not an IP packet.
    NotIp,
    /// No peer has the address.
    NoPeer(IpAddr),
}

impl Prefixes {
    fn new<'a>(peers: impl Iterator<Item = (u8, &'a PeerConfig)>) -> Self {
        let peers: Vec<_> = peers.collect();
        let mut prefixes = Self {
            only: match peers[..] {
                [(number, peer)] if peer.has_everything() => Some(number),
                _ => None,
            },
            ..Self::default()
        };
        for (number, peer) in &peers {
            for prefix in &peer.prefixes {
                let at = (prefix.network(), prefix.prefix);
                prefixes.networks.insert(at, *number);
                prefixes.lengths[version(prefix.address)].push(prefix.prefix);
            }
        }
        for lengths in &mut prefixes.lengths {
            lengths.sort_unstable_by(|a, b| b.cmp(a));
            lengths.dedup();
        }
        prefixes
    }

    fn find(&self, address: IpAddr) -> Option<u8> {
        let lengths = &self.lengths[version(address)];
        lengths.iter().find_map(|&prefix| {
            let network = Cidr { address, prefix }.network();
            self.networks.get(&(network, prefix)).copied()
        })
    }

    /// The peer that has an address.
    pub(crate) fn way_to(&self, address: IpAddr) -> Option<u8> {
        self.only.or_else(|| self.find(address))
    }

    /// The peer that a packet from the kernel goes to.
    pub(crate) fn toward(&self, packet: &[u8]) -> Result<u8, Nowhere> {
        if let Some(only) = self.only {
            return Ok(only);
        }
        let (_, destination) = addresses(packet).ok_or(Nowhere::NotIp)?;
        self.find(destination).ok_or(Nowhere::NoPeer(destination))
    }

    /// Whether a packet of this peer may have its source address.
    pub(crate) fn admits(&self, number: u8, packet: &[u8]) -> bool {
        self.only == Some(number)
            || addresses(packet).is_some_and(|(source, _)| self.find(source) == Some(number))
    }

    /// Whether this peer may speak for an address.
    pub(crate) fn has(&self, number: u8, address: IpAddr) -> bool {
        self.way_to(address) == Some(number)
    }
}

fn version(address: IpAddr) -> usize {
    usize::from(address.is_ipv6())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn peer(prefixes: &[&str]) -> PeerConfig {
        PeerConfig {
            name: "farm".to_owned(),
            key: None,
            preshared_key: None,
            address: None,
            prefixes: prefixes.iter().map(|p| p.parse().unwrap()).collect(),
            weight: 1.0,
            rate: None,
        }
    }

    fn prefixes(peers: &[PeerConfig]) -> Prefixes {
        Prefixes::new(peers.iter().enumerate().map(|(n, peer)| (n as u8, peer)))
    }

    fn packet(source: &str, destination: &str) -> Vec<u8> {
        let octets = |text: &str| text.parse::<std::net::Ipv4Addr>().unwrap().octets();
        let mut packet = Vec::new();
        etherparse::PacketBuilder::ipv4(octets(source), octets(destination), 64)
            .udp(1, 2)
            .write(&mut packet, &[7; 20])
            .unwrap();
        packet
    }

    #[test]
    fn the_longest_prefix_decides() {
        let farm = peer(&["10.0.0.0/8", "fd07::/16", "10.7.0.2/32"]);
        let mill = peer(&["10.7.0.0/16", "fd07:1::/32", "0.0.0.0/0"]);
        let prefixes = prefixes(&[farm, mill]);
        for (address, peer) in [
            ("10.9.1.1", Some(0)),
            ("10.7.0.2", Some(0)),
            ("10.7.0.3", Some(1)),
            ("192.0.2.1", Some(1)),
            ("fd07:2::1", Some(0)),
            ("fd07:1::1", Some(1)),
            ("2001:db8::1", None),
        ] {
            assert_eq!(prefixes.find(address.parse().unwrap()), peer, "{address}");
        }
        assert!(prefixes.admits(0, &packet("10.7.0.2", "10.7.0.3")));
        assert!(!prefixes.admits(1, &packet("10.7.0.2", "10.7.0.3")));
        assert!(!prefixes.admits(1, &[]));
        assert_eq!(prefixes.toward(&packet("10.7.0.2", "10.7.0.3")), Ok(1));
        assert_eq!(prefixes.toward(&[0x45; 7]), Err(Nowhere::NotIp));
    }

    #[test]
    fn a_single_peer_for_all_prefixes_needs_no_lookup() {
        let all = peer(&["0.0.0.0/0", "::/0"]);
        let one = prefixes(std::slice::from_ref(&all));
        assert_eq!(one.toward(&[]), Ok(0));
        assert!(one.admits(0, &[]) && !one.admits(1, &[]));
        let two = prefixes(&[all, peer(&["10.7.0.2/32"])]);
        assert_eq!(two.toward(&packet("10.7.0.1", "10.7.0.2")), Ok(1));
        assert_eq!(two.toward(&packet("10.7.0.1", "10.7.0.3")), Ok(0));
        assert!(!two.admits(0, &packet("10.7.0.2", "10.7.0.3")));
    }

    proptest! {
        /// The table gives the same result as a linear search of all prefixes.
        #[test]
        fn a_table_lookup_equals_a_linear_search(
            all in prop::collection::vec((0..=32u8, any::<[u8; 4]>(), 0..4usize), 1..20),
            near in 0..20usize,
            flip in 0..32u32,
        ) {
            let mut peers = vec![peer(&[]); 4];
            let mut taken = Vec::new();
            for (prefix, address, number) in &all {
                let address = Cidr { address: (*address).into(), prefix: *prefix }.network();
                if !taken.contains(&(address, *prefix)) {
                    taken.push((address, *prefix));
                    peers[*number].prefixes.push(Cidr { address, prefix: *prefix });
                }
            }
            let bits = u32::from_be_bytes(all[near % all.len()].1) ^ 1 << flip;
            let address = IpAddr::from(bits.to_be_bytes());
            let expected = peers.iter().enumerate().flat_map(|(number, peer)| {
                let covering = peer.prefixes.iter().filter(move |p| p.covers(address));
                covering.map(move |p| (p.prefix, number as u8))
            });
            let expected = expected.max_by_key(|(prefix, _)| *prefix).map(|(_, number)| number);
            prop_assert_eq!(prefixes(&peers).find(address), expected);
        }
    }
}
