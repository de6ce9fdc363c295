//! Live nodes at the ends of links: the settings of their live files, and those that the scenario replaces.
//!
//! | setting of a live file | in a scenario |
//! |---|---|
//! | `link` except for the following, `tun.mtu`, `peers` with `weight` and `rate` | as in the file |
//! | keys | drawn from the scenario's seed; `security = "none"` is kept |
//! | addresses of `underlay` and `peers` | those of the simulator; an end without any waits for its peer to call |
//! | `tun.addresses`, `peers.prefixes` | those of the nodes that are reached that way |
//! | `tun.name`, `tun.routes`, `metrics`, `control` | ignored |

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::live::{LinkNode, LiveFile, USUAL_PORT, parse};
use super::{LinkConfig, NodeConfig, Scenario};
use airlane_base::config::{Problems, Validate as _, key};
use airlane_base::{Duration, Instant, Streams};
use airlane_link::ServiceConfig;
use airlane_node::config::{Keys, LiveConfig, PeerConfig, PeerEndpoint, Security, UnderlayConfig};
use airlane_node::{Cidr, Node, PathFacts, Secrets, Start, Underlay};
use airlane_secure::{PeerAddress, PrivateKey};

/// The first of the underlay addresses of the ends (RFC 2544's range for tests), and the first of those that a moving
/// node has on each of its links.
const UNDERLAY: u32 = 0xc612_0001;
const UNDERLAY_ON_LINK: u32 = 0xc613_0001;

/// A node of the scenario that runs a live node.
#[derive(Clone, Debug)]
pub(crate) struct LiveSite {
    pub(crate) node: String,
    pub(crate) config: LiveConfig,
    pub(crate) listen: SocketAddr,
    pub(crate) peers: Vec<LivePeer>,
}

/// One of its peers.
#[derive(Clone, Debug)]
pub(crate) struct LivePeer {
    /// Its name in the live file.
    pub(crate) name: String,
    pub(crate) node: String,
    /// The links to it: index, whether this end sends "down" on it, and its own address there.
    pub(crate) links: Vec<(usize, bool, Ipv4Addr)>,
}

/// An error in a live file: its place, the problem and the help.
struct Wrong(String, String, String);

impl LinkConfig {
    /// Whether its ends run live nodes.
    pub(crate) const fn is_live(&self) -> bool {
        matches!(self.node, Some(LinkNode::Live))
    }

    /// When live nodes at both ends have a session: the handshake takes one round trip, the hellos after it another,
    /// and a third is the margin. `None` without them.
    pub fn session_by(&self) -> Option<Duration> {
        self.is_live()
            .then(|| (self.delay.down + self.delay.up) * 3)
    }

    /// A stated setting that is not allowed on links between live nodes.
    pub(super) fn stated_beside_live(&self) -> Option<&'static str> {
        let stated = [
            ("services", !self.services.is_empty()),
            ("classes", !self.classes.is_empty()),
            ("frame", self.frame.is_some()),
            ("header", self.header.is_some()),
            ("scheduler", self.scheduler.is_some()),
            ("rates", self.rates.is_some()),
            ("rate-limit", self.rate_limit.is_some()),
            ("paced-by", self.paced_by.is_some()),
            ("handed-over", self.handed_over.is_some()),
            ("pacing", self.pacing.is_some()),
            ("pacing-overhead", self.pacing_overhead.is_some()),
            ("mark-above", self.mark_above.is_some()),
            ("medium", self.medium.is_some()),
            ("gsm", self.gsm.is_some()),
            ("header-compression", self.header_compression.is_some()),
        ];
        let mut stated = stated.into_iter().filter(|(_, is)| *is);
        stated.next().map(|(setting, _)| setting)
    }
}

impl Scenario {
    /// Addresses of the nodes in packets: those that the scenario states, and the others in order.
    pub(crate) fn addresses(&self) -> BTreeMap<&str, Ipv4Addr> {
        let stated = self.nodes.values().filter_map(|node| node.address);
        let taken: BTreeSet<Ipv4Addr> = stated.collect();
        let mut free = (1..)
            .map(|host| Ipv4Addr::from_bits(0x0a00_0000 + host))
            .filter(|address| !taken.contains(address));
        let all = self.nodes.iter();
        all.filter_map(|(name, node)| Some((&**name, node.address.or_else(|| free.next())?)))
            .collect()
    }

    /// Checks live links and the files of their ends.
    pub(super) fn check_live(&self, problems: &mut Problems) {
        for (name, link) in &self.links {
            let stated = link.stated_beside_live().filter(|_| link.is_live());
            if let Some(setting) = stated {
                problems.add(
                    &format!("links.{}.{setting}", key(name)),
                    "the ends of this link run live nodes, whose files say this",
                    "write it under nodes.NODE.live, or leave out node = \"live\"",
                );
            }
            let Some(mtu) = &link.mtu else { continue };
            let problem = match link.is_live() {
                true => mtu.problem(),
                false => Some([
                    "only the ends of live links look for what a path takes",
                    "`frame`, or node = \"live\"",
                ]),
            };
            if let Some([problem, help]) = problem {
                problems.add(&format!("links.{}.mtu", key(name)), problem, help);
            }
        }
        for (name, node) in &self.nodes {
            let at = format!("nodes.{}.live", key(name));
            let is_end = self
                .links
                .values()
                .any(|l| l.is_live() && l.ends.contains(name));
            if !is_end {
                if node.live.is_some() {
                    let help = "node = \"live\" at its links, or no file";
                    problems.add(&at, "no link of this node runs live nodes", help);
                }
                continue;
            }
            match self.live_site(name, &placeholder) {
                Ok(site) => {
                    let mut own = Problems::new();
                    site.config.validate(&mut own);
                    match own.is_empty() {
                        false => problems.within(&at, |problems| site.config.validate(problems)),
                        // Some errors only show when the node is started.
                        true => {
                            let started = site.start(Instant::ORIGIN, placeholder(name), [0; 32]);
                            if let Err(error) = started {
                                problems.add(&at, error, "another live file");
                            }
                        }
                    }
                }
                Err(Wrong(inside, problem, help)) => {
                    problems.add(&format!("{at}{inside}"), problem, help);
                }
            }
        }
        // One of the two ends has to call.
        for (name, link) in self.links.iter().filter(|(_, link)| link.is_live()) {
            let sites = link
                .ends
                .each_ref()
                .map(|end| self.live_site(end, &placeholder));
            let [Ok(a), Ok(b)] = sites else { continue };
            if !a.calls(&b.node) && !b.calls(&a.node) {
                problems.add(
                    &format!("links.{}.node", key(name)),
                    "both ends wait until they are called",
                    "link.underlay.peer, or peers.address, in the live file of one end",
                );
            }
        }
    }

    /// What each end of a live link runs, by its name: its live file with the simulator's addresses, and with keys that
    /// no file holds. The scenario must be valid.
    pub fn live_files(&self) -> BTreeMap<String, LiveConfig> {
        let sites = self.live_sites(Streams::new(self.seed, 0)).into_iter();
        sites.map(|site| (site.node, site.config)).collect()
    }

    /// The nodes that run live software, in order. The scenario must be valid.
    pub(crate) fn live_sites(&self, streams: Streams) -> Vec<LiveSite> {
        let key_of = |node: &str| live_key(streams, node);
        let is_live = |name: &&String| {
            let mut links = self.links.values();
            links.any(|link| link.is_live() && link.ends.contains(name))
        };
        let names = self.nodes.keys().filter(is_live);
        let sites = names.map(|name| self.live_site(name, &key_of));
        sites.filter_map(Result::ok).collect()
    }

    fn live_config(&self, node: &NodeConfig) -> Result<LiveConfig, Wrong> {
        let wrong = |reason| Wrong(String::new(), reason, String::new());
        match (&node.live, &node.loaded) {
            (None, _) => parse(toml::Table::new()).map_err(wrong),
            (Some(LiveFile::Here(file)), _) => parse(file.clone()).map_err(wrong),
            (Some(LiveFile::Named(_)), Some(loaded)) => Ok((*loaded.config).clone()),
            // It is checked again once it has been read.
            (Some(LiveFile::Named(_)), None) => parse(toml::Table::new()).map_err(wrong),
        }
    }

    /// A node with its live file, as it runs in the simulator.
    fn live_site(
        &self,
        name: &str,
        key_of: &dyn Fn(&str) -> PrivateKey,
    ) -> Result<LiveSite, Wrong> {
        let wrong = |at: &str, problem: String, help: &str| {
            Err(Wrong(at.to_owned(), problem, help.to_owned()))
        };
        let Some(node) = self.nodes.get(name) else {
            return wrong("", format!("there is no node \"{name}\""), "");
        };
        let mut config = self.live_config(node)?;
        let UnderlayConfig::Udp { listen, peer } = &mut config.link.underlay else {
            return wrong(
                ".link.underlay",
                "simulated datagrams travel in UDP".to_owned(),
                "kind = \"udp\", or leave the underlay out",
            );
        };
        let own = self.underlay_of(name, listen.port());
        *listen = own;
        let mut far: BTreeMap<&str, Vec<(usize, bool, Ipv4Addr)>> = BTreeMap::new();
        let moves = self.moves(name);
        for (index, link) in self.links.values().enumerate() {
            let Some(end) = link.ends.iter().position(|end| end == name) else {
                continue;
            };
            if link.is_live() {
                let address = match (moves, own.ip()) {
                    (false, IpAddr::V4(own)) => own,
                    _ => Ipv4Addr::from_bits(UNDERLAY_ON_LINK + 2 * index as u32 + end as u32),
                };
                let links = far.entry(&link.ends[1 - end]).or_default();
                links.push((index, end == 0, address));
            }
        }
        let addresses = self.addresses();
        let here = addresses.get(name).copied();
        let one = |ip: Ipv4Addr| Cidr {
            address: ip.into(),
            prefix: 32,
        };
        config.tun.addresses = here.map(one).into_iter().collect();
        config.tun.routes.clear();
        config.metrics = None;
        config.name.get_or_insert_with(|| "end".to_owned());
        let keyed = matches!(config.link.security, Some(Security::Keys(_)));
        let at_peer = |node: &str| {
            PeerEndpoint::Address(PeerAddress::Udp(self.underlay_of(node, USUAL_PORT)))
        };
        let listed = !config.peers.is_empty();
        if !listed && far.len() == 1 {
            // With the shortest file, both ends call.
            let (node, _) = far.first_key_value().expect("there is one");
            let stated = peer.is_some();
            let waits = self.nodes[name].live.is_some() && self.says_underlay(name) && !stated;
            *peer = (!waits).then(|| at_peer(node));
            if let Some(Security::Keys(keys)) = &mut config.link.security {
                *keys = Keys {
                    private_key: PathBuf::from("drawn"),
                    peer_key: Some(key_of(node).public()),
                    preshared_key: None,
                };
            }
        } else {
            *peer = None;
            if let Some(Security::Keys(keys)) = &mut config.link.security {
                keys.peer_key = None;
                keys.preshared_key = None;
            }
            if !listed {
                // A base station: its stations call it.
                let all = far.keys();
                config.peers = all
                    .map(|node| usual_peer(node, (!keyed).then(|| at_peer(node))))
                    .collect();
            }
            let mut reached = BTreeSet::new();
            for (i, peer) in config.peers.iter_mut().enumerate() {
                let Some((node, _)) = far.get_key_value(&*peer.name) else {
                    let names: Vec<&str> = far.keys().copied().collect();
                    return wrong(
                        &format!(".peers[{i}].name"),
                        format!("no live link leads to a node \"{}\"", peer.name),
                        &format!("peers are called as the nodes: {}", names.join(", ")),
                    );
                };
                peer.key = keyed.then(|| key_of(node).public());
                peer.preshared_key = None;
                peer.address = peer.address.is_some().then(|| at_peer(node));
                let beyond = self.beyond(node, name);
                let own = beyond.into_iter().filter(|node| reached.insert(*node));
                peer.prefixes = own
                    .filter_map(|node| Some(one(*addresses.get(node)?)))
                    .collect();
            }
            let missing = far
                .keys()
                .find(|node| !config.peers.iter().any(|peer| peer.name == **node));
            if let Some(node) = missing {
                return wrong(
                    ".peers",
                    format!("\"{node}\", to which a live link leads, is no peer"),
                    &format!("[[nodes.{}.live.peers]] with name = \"{node}\"", key(name)),
                );
            }
        }
        let only = config.peers().first().map(|peer| peer.name.clone());
        let peers = far.into_iter().map(|(node, links)| LivePeer {
            name: match config.peers.is_empty() {
                true => only.clone().unwrap_or_default(),
                false => node.to_owned(),
            },
            node: node.to_owned(),
            links,
        });
        Ok(LiveSite {
            node: name.to_owned(),
            peers: peers.collect(),
            listen: own,
            config,
        })
    }

    /// Whether a live file states its underlay address.
    fn says_underlay(&self, name: &str) -> bool {
        match &self.nodes[name].live {
            Some(LiveFile::Here(file)) => {
                let link = file.get("link").and_then(toml::Value::as_table);
                link.is_some_and(|link| link.contains_key("underlay"))
            }
            Some(LiveFile::Named(_)) => true,
            None => false,
        }
    }

    /// The underlay address of a node.
    fn underlay_of(&self, node: &str, port: u16) -> SocketAddr {
        let place = self.nodes.keys().position(|name| name == node);
        let ip = Ipv4Addr::from_bits(UNDERLAY + place.unwrap_or_default() as u32);
        let port = if port == 0 { USUAL_PORT } else { port };
        SocketAddr::new(ip.into(), port)
    }

    fn moves(&self, node: &str) -> bool {
        self.handoffs.iter().any(|handoff| handoff.node == node)
    }

    /// A node and those that are reached through it, without going through `without`.
    fn beyond<'a>(&'a self, from: &'a str, without: &str) -> Vec<&'a str> {
        let mut all = vec![from];
        let mut next = 0;
        while let Some(&node) = all.get(next) {
            next += 1;
            for link in self.links.values() {
                let Some(end) = link.ends.iter().position(|end| end == node) else {
                    continue;
                };
                let to = &*link.ends[1 - end];
                if to != without && !all.contains(&to) {
                    all.push(to);
                }
            }
        }
        all
    }

    /// The services of a link; for a live link, those of its first end.
    pub(crate) fn services_of(&self, link: &LinkConfig) -> Vec<ServiceConfig> {
        let live = link
            .is_live()
            .then(|| self.live_site(&link.ends[0], &placeholder));
        match live {
            Some(Ok(site)) => site.config.link.services,
            _ => link.services.clone(),
        }
    }

    /// The longest packets that live nodes accept.
    pub(super) fn live_mtus(&self) -> BTreeMap<&str, usize> {
        let live = self.links.values().filter(|link| link.is_live());
        let ends: BTreeSet<&String> = live.flat_map(|link| &link.ends).collect();
        let mtus = ends.into_iter().filter_map(|end| {
            let site = self.live_site(end, &placeholder).ok()?;
            let node = site.start(Instant::ORIGIN, placeholder(end), [0; 32]);
            Some((&**end, node.ok()?.mtu()))
        });
        mtus.collect()
    }
}

impl LiveSite {
    /// Whether it knows the address of a node, and calls it.
    fn calls(&self, node: &str) -> bool {
        let Some(peer) = self.peers.iter().find(|peer| peer.node == node) else {
            return false;
        };
        let mut peers = self.config.peers().into_iter();
        peers.any(|config| config.name == peer.name && config.address.is_some())
    }

    pub(crate) fn start(
        &self,
        now: Instant,
        private: PrivateKey,
        seed: [u8; 32],
    ) -> Result<Node, String> {
        let secrets = Secrets {
            private,
            preshared: BTreeMap::new(),
            fast_aes: true,
        };
        let keyed = matches!(self.config.link.security, Some(Security::Keys(_)));
        let paths = vec![PathFacts::UNKNOWN; self.config.peers().len()];
        let start = Start {
            config: &self.config,
            underlay: Underlay::Udp {
                listen: self.listen,
            },
            paths: &paths,
            secrets: keyed.then_some(&secrets),
            seed,
        };
        Node::new(now, start).map_err(|error| error.to_string())
    }
}

fn usual_peer(name: &str, address: Option<PeerEndpoint>) -> PeerConfig {
    PeerConfig {
        name: name.to_owned(),
        key: None,
        preshared_key: None,
        address,
        prefixes: Vec::new(),
        weight: 1.0,
        rate: None,
    }
}

/// The private key of a node.
pub(crate) fn live_key(streams: Streams, node: &str) -> PrivateKey {
    PrivateKey::generate(seed_of(streams, &format!("node.{node}.key")))
}

/// 32 bytes of a stream.
pub(crate) fn seed_of(streams: Streams, name: &str) -> [u8; 32] {
    let mut stream = streams.stream(name);
    let mut seed = [0; 32];
    for eight in seed.chunks_exact_mut(8) {
        eight.copy_from_slice(&stream.next_u64().to_le_bytes());
    }
    seed
}

/// A valid key, for checking files.
fn placeholder(node: &str) -> PrivateKey {
    live_key(Streams::new(0, 0), node)
}
