//! The file that `airlane up FILE` reads.
//!
//! ```toml
//! schema = 1
//! name = "hill-top"
//! [tun]
//! name = "air0"
//! addresses = ["10.7.0.1/24", "fd07::1/64"]
//! routes = ["192.168.40.0/24"]
//! [link]
//! rate = "20 Mbit/s"                  # of whole Ethernet frames; the port shapes to it
//! underlay = { kind = "udp", listen = "0.0.0.0:7007", peer = "192.0.2.7:7007" }
//! # or straight on a radio: { kind = "ethernet", interface = "wlan0", peer = "02:00:00:00:00:02" }
//! security = { private-key = "/etc/airlane/hill-top.key", peer-key = "mYoY…2RM=" }
//! [[link.services]]
//! number = 1
//! name = "files"
//! rate = 0.7
//! scheme = { kind = "sr-m2" }
//! [[link.classes]]
//! match = { protocol = "tcp" }
//! service = "files"
//! ```
//!
//! The shortest file has `schema`, `tun`, and under `link` the underlay and the security; it then gets one
//! service for each goal. Services, classes and schedulers have the types of the scenario files. A base
//! station lists its peers under `[[peers]]` instead, see [`peers`].

pub mod endpoint;
mod fragment;
mod link;
mod names;
mod peer;
pub mod peers;
mod security;
pub mod underlay;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use airlane_base::config::{Problems, Validate};
use airlane_base::{Rate, Size};
use airlane_link::classify::{Unreached, unreached};
use airlane_link::config::{self, ConfigError, LiveFacts, RateLimit, Rates, Viewpoint, check_live};
use airlane_link::{ClassesConfig, HeaderProfile, ServiceConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Cidr;
use crate::packet::ecn::Outer;
pub use endpoint::{HostPort, PeerEndpoint};
pub use fragment::FragmentConfig;
use fragment::LEAST_DATAGRAM;
pub use link::KEEPALIVES;
pub use link::LinkConfig;
pub use link::USUAL_DELAY;
use names::{check_interface_name, is_plain};
pub use peer::PeerConfig;
pub use peer::PeerPlace;
pub use security::{Keys, NoSecurity, Security};
pub use underlay::UnderlayConfig;

/// The error for a missing `security`: the values that it takes.
const NO_SECURITY: &str = "make a key with `airlane keygen FILE` and write security = \
    { private-key = \"FILE\", peer-key = \"THE PEER'S PUBLIC KEY\" } under [link], of several peers the \
    keys under [[peers]]; or security = \
    \"none\": frames then travel unencrypted and unauthenticated, and whoever is on the path can \
    read and forge them";

/// Assumed length of a full packet while the path is unknown: the MTU of Ethernet.
pub const USUAL_PACKET: usize = 1500;
/// Longest path in a Unix socket address (`sun_path`), without the terminating zero.
const LONGEST_SOCKET: usize = 107;
/// The least rate of a link, bit/s. Less is a slip, such as a unit without its prefix, and cuts a remote end off.
const LEAST_BPS: u64 = 1_000;
/// Default directory of control sockets.
const RUN_DIRECTORY: &str = "/run/airlane";
/// Minimum link MTU of IPv6 (RFC 8200, section 5).
pub const IPV6_MIN_MTU: usize = 1280;
/// Minimum link MTU of IPv4 (RFC 791).
pub const IPV4_MIN_MTU: usize = 68;

/// One end of a live link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LiveConfig {
    /// Version of the file format, 1.
    #[schemars(extend("const" = 1, "examples" = [1]))]
    pub schema: u32,
    /// The name of this end, of letters, digits, `.`, `_` and `-`. Left out: that of the interface.
    #[schemars(example = &"hill-top")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The TUN interface above the link.
    pub tun: TunConfig,
    /// The link below the interface.
    pub link: LinkConfig,
    /// The peers of a base station.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<PeerConfig>,
    /// The loopback address and port where the running node's metrics can be scraped. Left out: nowhere.
    #[schemars(example = &"127.0.0.1:9107")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<SocketAddr>,
    /// Control of the running node.
    #[serde(default)]
    pub control: ControlConfig,
}

/// The TUN interface above the link, `[tun]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TunConfig {
    /// The name of the interface, 1 to 15 bytes.
    #[serde(default = "default_tun")]
    pub name: String,
    /// The addresses of this end, with their prefix lengths.
    #[serde(default)]
    pub addresses: Vec<Cidr>,
    /// Networks that are reached through the other end.
    #[serde(default)]
    pub routes: Vec<Cidr>,
    /// The longest packet; with `"auto"` the underlay decides.
    #[serde(default)]
    pub mtu: Mtu,
}

fn default_tun() -> String {
    "air0".to_owned()
}

/// The interface's MTU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mtu {
    /// Follows the path to the peer.
    #[default]
    Auto,
    /// A fixed size, bytes.
    Fixed(Size),
}

impl FromStr for Mtu {
    type Err = airlane_base::UnitError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        text.parse().map(Self::Fixed)
    }
}

impl fmt::Display for Mtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Fixed(size) => write!(f, "{} B", size.as_bytes()),
        }
    }
}

airlane_base::schema_of!(Mtu, "Mtu", {
    "type": "string",
    "pattern": r"^(auto|\s*[+]?[0-9._]+\s*(B|kB|MB|GB)\s*)$",
    "examples": ["auto", "1400 B"],
    "x-unit": "B, kB, or \"auto\"",
});

impl<'de> Deserialize<'de> for Mtu {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = Mtu;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"auto\" or a size such as \"1400 B\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Mtu, E> {
                text.parse().map_err(E::custom)
            }
        }
        d.deserialize_any(Text)
    }
}

impl Serialize for Mtu {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

/// Control of the running node, `[control]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ControlConfig {
    /// The path of the Unix socket. Left out: `/run/airlane/NAME.sock`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<PathBuf>,
    /// A group whose members may read the status through the socket, but change nothing. Without it, only
    /// root and the node's user may ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// Default path of the control socket of the node `name`.
pub fn default_socket(name: &str) -> PathBuf {
    Path::new(RUN_DIRECTORY).join(format!("{name}.sock"))
}

impl LiveConfig {
    /// Path of the control socket.
    pub fn socket(&self) -> PathBuf {
        let chosen = self.control.socket.clone();
        chosen.unwrap_or_else(|| default_socket(self.name()))
    }

    /// The name of this end.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.tun.name)
    }

    /// Resolves relative paths of key files against `folder`, the directory of the configuration file.
    #[must_use]
    pub fn in_folder(mut self, folder: &Path) -> Self {
        let in_folder = |path: &mut PathBuf| *path = folder.join(&*path);
        if let Some(Security::Keys(keys)) = &mut self.link.security {
            in_folder(&mut keys.private_key);
            keys.preshared_key.iter_mut().for_each(in_folder);
        }
        let peers = self.peers.iter_mut();
        peers
            .filter_map(|peer| peer.preshared_key.as_mut())
            .for_each(in_folder);
        self
    }

    /// The file with every default filled in.
    #[must_use]
    pub fn resolve(&self) -> Self {
        let mut all = self.clone();
        all.name = Some(self.name().to_owned());
        all.link.services = config::resolve(self.link.header(), &self.link.services);
        all.link.rates = Some(self.link.rates());
        all.link.classes = ClassesConfig::Rules(self.link.classes.rules(&self.link.services));
        all.control.socket = Some(self.socket());
        all
    }
}

impl Validate for LiveConfig {
    fn elsewhere(path: &str) -> Option<(&'static str, &'static str)> {
        let (message, help) = match path.strip_prefix("link.")? {
            "header" => (
                "a live link has live headers: study headers have no session, no length and numbers \
                 that repeat while old frames may still arrive",
                "leave it out; study headers are for scenarios",
            ),
            "handed-over" => (
                "a live link hands the scheduler one frame of each service: more would wait where \
                 nobody can drop or reorder them",
                "leave it out; scenarios may study it",
            ),
            "pacing" => (
                "nominal pacing blocks IP's send call, which a live link cannot: the kernel does not \
                 wait for it",
                "leave it out; give services queues, which pace them",
            ),
            "queue" => (
                "a live link has no queue of its own: each service has one",
                "write it at the services: queue = { kind = \"fq-codel\", limit = \"1000 packets\" }",
            ),
            "frame" => (
                "a live link's frames are as long as the path allows",
                "leave it out, or set the largest packet: tun.mtu",
            ),
            "ends" => (
                "a live file describes one end of a link",
                "name the other end in link.underlay.peer",
            ),
            "errors" | "shared-fades" | "outages" | "technology" => (
                "the errors of a live link are real",
                "leave it out; `airlane air` makes errors between two interfaces",
            ),
            _ => return None,
        };
        Some((message, help))
    }

    fn validate(&self, problems: &mut Problems) {
        if self.schema != 1 {
            let message = format!("this version reads schema 1, not {}", self.schema);
            problems.add("schema", message, "write schema = 1");
        }
        if !is_plain(self.name()) {
            problems.add(
                "name",
                format!("\"{}\" cannot name a node", self.name()),
                "use letters, digits, \".\", \"_\" and \"-\", such as \"hill-top\"",
            );
        }
        problems.within("tun", |problems| self.tun.validate(problems));
        let (mtu, link) = (self.tun.mtu, &self.link);
        problems.within("link", |problems| link.check(mtu, problems));
        self.check_peers(problems);
        self.check_metrics(problems);
        let socket = self.socket();
        if socket.as_os_str().len() > LONGEST_SOCKET {
            let at = match self.control.socket {
                Some(_) => "control.socket",
                None => "name",
            };
            problems.add(
                at,
                format!("the socket's path \"{}\" is too long", socket.display()),
                format!("at most {LONGEST_SOCKET} bytes, such as \"/run/airlane/hill-top.sock\""),
            );
        }
    }
}

impl LiveConfig {
    /// Refuses a metrics address that other machines could reach, as metrics are served without
    /// authentication.
    fn check_metrics(&self, problems: &mut Problems) {
        let Some(address) = self.metrics else { return };
        if !address.ip().is_loopback() {
            problems.add(
                "metrics",
                format!("{address} is not on the loopback: others on the network could read it"),
                "\"127.0.0.1:9107\" or \"[::1]:9107\"; a scraper on another machine comes through a \
                 proxy that asks who it is",
            );
        }
        if address.port() == 0 {
            problems.add(
                "metrics",
                "port 0 would be another one at each start, and no scraper could know it",
                "choose a port, such as 9107",
            );
        }
    }
}

impl Validate for TunConfig {
    fn validate(&self, problems: &mut Problems) {
        check_interface_name("name", &self.name, "air0", problems);
        for (i, address) in self.addresses.iter().enumerate() {
            let ip = address.address;
            if ip.is_unspecified() || ip.is_multicast() {
                problems.add(
                    &format!("addresses[{i}]"),
                    format!("{ip} cannot be the address of an interface"),
                    "give this end an address of its own, such as \"10.7.0.1/24\"",
                );
            }
            if self.addresses[..i].contains(address) {
                problems.add(
                    &format!("addresses[{i}]"),
                    format!("{address} stands here twice"),
                    "leave one of them out",
                );
            }
        }
        for (i, route) in self.routes.iter().enumerate() {
            let network = Cidr {
                address: route.network(),
                prefix: route.prefix,
            };
            if network != *route {
                problems.add(
                    &format!("routes[{i}]"),
                    format!("{route} has bits set after its prefix"),
                    format!("write \"{network}\""),
                );
            }
        }
        if let Mtu::Fixed(size) = self.mtu {
            let v6 = self.addresses.iter().chain(&self.routes);
            let v6 = v6.into_iter().any(|cidr| cidr.address.is_ipv6());
            let (least, why) = if v6 {
                (IPV6_MIN_MTU, "IPv6 needs")
            } else {
                (IPV4_MIN_MTU, "IPv4 needs")
            };
            if !(least as u64..=65_000).contains(&size.as_bytes()) {
                problems.add(
                    "mtu",
                    format!("an MTU of {} B is impossible here", size.as_bytes()),
                    format!("{why} {least} B, and at most 65000 B are possible; or leave it out"),
                );
            }
        }
    }
}

impl LinkConfig {
    /// The text for a rate of this link: `auto` where the rate is measured instead of stated.
    pub fn said(&self, rate: Rate) -> String {
        match rate == RateLimit::UNSTATED && self.rate_limit == RateLimit::Found {
            true => "auto".to_owned(),
            false => rate.to_string(),
        }
    }

    /// The header format of its frames: with keys, the secure session identifies the session.
    pub const fn header(&self) -> HeaderProfile {
        match self.security {
            Some(Security::Keys(_)) => HeaderProfile::Sealed,
            Some(Security::Word(_)) | None => HeaderProfile::Live,
        }
    }

    /// Services that no class refers to, and rules without effect.
    pub fn unreached(&self) -> Vec<Unreached> {
        let mut found = unreached(&self.services, &self.classes, None);
        // An unused default service is not a mistake of the operator.
        if self.services == config::by_goal() {
            found.retain(|unreached| !matches!(unreached, Unreached::Services(_)));
        }
        found
    }

    /// The name of the ready-made classes, if the link uses exactly one such set.
    pub fn ready_made(&self) -> Option<String> {
        let rules = self.classes.rules(&self.services);
        let names = ["behaviour", "heuristic", "dscp"];
        let same = |name: &&str| {
            let profile: Result<ClassesConfig, _> = serde_json::from_value((*name).into());
            profile.is_ok_and(|profile| profile.rules(&self.services) == rules)
        };
        names.into_iter().find(same).map(str::to_owned)
    }

    /// Source of the services' shares.
    pub fn rates(&self) -> Rates {
        self.rates.unwrap_or_default()
    }

    /// Problems of the services and classes.
    pub fn table_problems(&self, mtu: Mtu) -> Vec<ConfigError> {
        let facts = LiveFacts {
            rate: self.rate,
            delay: self.delay,
            packet: match mtu {
                Mtu::Fixed(size) => size.as_bytes() as usize,
                Mtu::Auto => USUAL_PACKET,
            },
        };
        let classes = self.classes.rules(&self.services);
        let mut found = config::check(self.header(), &self.services, &classes);
        found.extend(self.classes.check(&self.services));
        found.extend(config::check_ends(Viewpoint::End, &self.services));
        found.extend(self.rate_limit.check(self.header()));
        found.extend(check_live(&facts, &self.services, &classes));
        if self.rate.as_bps() < LEAST_BPS {
            found.push(ConfigError {
                path: "rate".to_owned(),
                problem: format!("{} is less than any link has", self.rate),
                help: "at least 1 kbit/s, where a hello takes seconds".to_owned(),
            });
        }
        found
    }

    fn check(&self, mtu: Mtu, problems: &mut Problems) {
        if self.security.is_none() {
            problems.add("security", "this link is not secured", NO_SECURITY);
        }
        self.underlay.check(problems);
        if self.rate_limit == RateLimit::Fixed && self.rate == RateLimit::UNSTATED {
            problems.add(
                "rate-limit",
                format!(
                    "a fixed rate has to be stated, and be less than {}",
                    self.rate
                ),
                "write the link's rate; without rate-limit, a rate that is not stated is found",
            );
        }
        let [least, most] = KEEPALIVES;
        if !(least..=most).contains(&self.keepalive) {
            let (message, help) = match self.keepalive < least {
                true => (
                    "a busy link sends hellos at the least interval, an idle one never more often",
                    "\"1 s\" or more, such as \"25 s\"",
                ),
                false => (
                    "keys would expire between two hellos",
                    "\"2 min\" or less, such as \"25 s\"",
                ),
            };
            problems.add("keepalive", format!("{}: {message}", self.keepalive), help);
        }
        let ethernet = matches!(self.underlay, UnderlayConfig::Ethernet { .. });
        if ethernet && self.outer != Outer::default() {
            problems.add(
                "outer",
                "there is no outer IP header to mark on raw Ethernet",
                "leave it out, or use a UDP underlay",
            );
        }
        if let Some(fragment) = self.fragment {
            self.check_fragment(fragment, problems);
        }
        for problem in self.table_problems(mtu) {
            problems.add(&problem.path, problem.problem, problem.help);
        }
    }

    /// Whether packets may be fragmented: no scheme needs to look into whole packets.
    pub fn cuts(&self) -> bool {
        !self.services.iter().any(|s| s.scheme.looks_into_packets())
    }

    fn check_fragment(&self, fragment: FragmentConfig, problems: &mut Problems) {
        if let FragmentConfig::Datagram(size) = fragment
            && !(LEAST_DATAGRAM..=65_535).contains(&size.as_bytes())
        {
            problems.add(
                "fragment",
                format!("datagrams of {} B are impossible here", size.as_bytes()),
                format!("from {LEAST_DATAGRAM} to 65535 B, such as \"256 B\", or \"auto\""),
            );
        }
        let looks = |service: &&ServiceConfig| service.scheme.looks_into_packets();
        if let Some(service) = self.services.iter().find(looks) {
            problems.add(
                "fragment",
                format!(
                    "\"{}\" is {}, which watches whole packets: of parts it would see none",
                    service.name,
                    service.scheme.kind()
                ),
                "leave it out, so that no packet is longer than a frame, or use another scheme",
            );
        }
    }
}

#[cfg(test)]
mod tests;
