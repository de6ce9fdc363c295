//! Scenario files: nodes, links, flows, and the duration.
//!
//! A link's services and classes are the same tables as in a live node's file. Dimensioned values are strings with
//! units, bare numbers are counts or probabilities, unknown keys are errors, variants carry `kind`.
//! [`Scenario::resolved`] fills in everything that a file leaves out: `airlane explain` prints the result, and the
//! simulator runs it.

mod clap;
mod counted_headers;
mod flows;
mod gsm;
mod handoff;
mod header_compression;
mod interactive;
mod live;
mod live_sites;
mod mobility;
mod named_files;
mod path_mtu;
mod progress;
mod ranks;
mod resolve;
mod stations;
mod validate;
mod web;
mod wifi;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use airlane_base::config::{Document, RefusedFile};
use airlane_base::random::fnv1a;
use airlane_base::{BothWays, Duration, QueueLimit, Size, Streams};
use airlane_channel::{ErrorsConfig, LinkJitter, LinkRates, OutageConfig, PoliceConfig};
use airlane_link::config::{HandedOver, Pacing, RateLimit, Rates, SchedulerConfig};
use airlane_link::{ClassesConfig, HeaderProfile, ServiceConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::retrace::RetraceConfig;

pub use flows::{
    AppConfig, BulkConfig, ConferencingConfig, FlowConfig, PagesConfig, RelayConfig,
    TransportConfig, UdpConfig,
};
pub use gsm::{GsmConfig, GsmFrame};
pub use handoff::{HandoffConfig, HandoffKind};
pub use header_compression::HeaderCompression;
pub use interactive::{MailConfig, TelnetConfig};
pub(crate) use live::Loaded;
pub use live::{LinkNode, LiveFile};
pub(crate) use live_sites::{live_key, seed_of};
pub(crate) use mobility::{Epoch, Epochs};
pub use path_mtu::{MtuStep, PathMtu};
pub use progress::{ProgressConfig, WindowConfig};
pub(crate) use ranks::Ranks;
pub(crate) use stations::{Media, RadioHop, RadioRoutes};
pub(crate) use web::WebTables;
pub use web::{Completion, FilesPerPage, RequestPackets, TABLE_FILES, WebConfig, WebThroughput};
pub use wifi::{
    StationConfig, WifiConfig, WifiErrors, WifiInterference, WifiRateControl, WifiSignal,
    WifiSignalChange,
};

/// Version of the file format.
pub const SCHEMA: u32 = 1;
/// 30 simulated years: far from the end of 64-bit nanoseconds.
pub(crate) const LONGEST_RUN: Duration = Duration::from_secs(1_000_000_000);

/// A world, its traffic and its duration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The file format has this version, 1.
    #[schemars(extend("const" = 1, "examples" = [1]))]
    pub schema: u32,
    /// The scenario's name.
    #[schemars(example = &"a file over a radio")]
    pub name: String,
    /// All random streams are seeded with this; a command line may override it.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Seed of the random draws of applications, such as sizes and pauses; they are the same in every repetition, or
    /// drawn anew in each. Left out: `seed`, as the command line sets it, the same in every repetition.
    #[serde(
        default,
        rename = "traffic-seed",
        skip_serializing_if = "Option::is_none"
    )]
    pub traffic_seed: Option<TrafficSeed>,
    /// When the applications stop, at the latest.
    #[schemars(example = &"60 s")]
    pub duration: Duration,
    /// The end of the flow with this name stops the applications earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Events and captures continue for this long after the applications have stopped. Results do not depend on it.
    #[serde(default = "default_drain")]
    pub drain: Duration,
    /// These are the hosts and routers, by name.
    #[schemars(extend("examples" = [{ "base": {}, "mobile": {} }]))]
    pub nodes: BTreeMap<String, NodeConfig>,
    /// These are the duplex links, by name.
    #[serde(default)]
    pub links: BTreeMap<String, LinkConfig>,
    /// These are transmitters that several links share, and radio channels with stations of their own, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("examples" = [{ "wavelan": { "kind": "half-duplex", "overhead": "1 ms" } }]))]
    pub media: BTreeMap<String, MediumConfig>,
    /// These nodes leave one link and join another, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handoffs: Vec<HandoffConfig>,
    /// What the hosts do.
    #[serde(default)]
    pub flows: Vec<FlowConfig>,
    /// The best that link layers could make of a radio's blocks, computed and not simulated, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("examples" = [{ "car": { "model": "onoff-c", "unit": { "frame": 7 } } }]))]
    pub retraces: BTreeMap<String, RetraceConfig>,
}

/// The seed of the random draws of applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "traffic-seed is a whole number or \"each-run\"")]
pub enum TrafficSeed {
    /// This seed, in every repetition.
    Number(u64),
    /// `"each-run"`: traffic, too, differs between repetitions, so that confidence intervals cover it.
    Word(EachRun),
}

/// The value for traffic that differs between repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EachRun {
    /// `each-run`.
    EachRun,
}

impl std::str::FromStr for TrafficSeed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "each-run" {
            return Ok(Self::Word(EachRun::EachRun));
        }
        let number = text.parse().map(Self::Number);
        number.map_err(|_| "write a whole number or each-run".to_owned())
    }
}

impl std::fmt::Display for TrafficSeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(seed) => seed.fmt(f),
            Self::Word(EachRun::EachRun) => f.write_str("each-run"),
        }
    }
}

/// A host or a router; every node is both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    /// Its address, which classes match. Left out: 10.0.0.1 and so on, in the order of names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Ipv4Addr>,
    /// What it runs at its ends of links with `node = "live"`: the name of a live file, or its tables. Settings that
    /// the scenario implies may be left out: addresses, keys and prefixes. Left out: the shortest file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveFile>,
    /// The file, after it has been read.
    #[serde(skip)]
    pub(crate) loaded: Option<Arc<Loaded>>,
}

/// A duplex link: two independent directions, "down" from the first end to the second.
///
/// Without services, the link carries packets unchanged. With services there is a port at each end, both with the
/// same table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkConfig {
    /// It joins these two nodes.
    #[schemars(extend("examples" = [["base", "mobile"]]))]
    pub ends: [String; 2],
    /// `"live"`: both ends run the software of `airlane up`, as `nodes.NODE.live` says, and the link carries their
    /// datagrams: sessions with keys, aggregated packets, compact headers. Left out: packets go onto the link, or
    /// onto `services`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<LinkNode>,
    /// Between live nodes: the longest IP packet that the link carries, headers of IP and UDP included, constant or
    /// from given times on; longer ones are lost silently. Left out: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<PathMtu>,
    /// It shares the transmitter of this name in `media` with all links that name it, or uses that radio channel.
    /// Left out: each direction has a transmitter of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medium: Option<String>,
    /// Frames are serialised at this rate, in both directions or in each; or at rates that follow each other, or the
    /// link sends at these times.
    ///
    /// Ports before steps and opportunities use their mean rate; frames that come faster than the link sends wait in
    /// `queue` below the ports, unless `rate-limit = "estimated"` slows the ports down, or `paced-by = "link"`. With
    /// `rate-limit = "found"`, ports get no rate, and `queue` is below them, too.
    pub rate: LinkRates,
    /// One-way propagation delay of a frame.
    pub delay: BothWays<Duration>,
    /// How the delays of frames vary, in each direction or in one; late frames may be overtaken. Left out: all delays
    /// are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<LinkJitter>,
    /// The limit of the IP queue before the transmitter. With services and `study` headers: the limit before each
    /// service that states no queue of its own; with other headers, services have their own queues (`fq-codel`). Left
    /// out: 50 packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<BothWays<QueueLimit>>,
    /// A longer backlog marks the packets of flows with `ecn`; only without services. Source: RFC 3168. Left out: no
    /// marks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark_above: Option<QueueLimit>,
    /// Which frames are lost on the air.
    #[serde(default)]
    pub errors: ErrorsConfig,
    /// Whether both directions of a `two-state` link are bad at the same time, instead of
    /// independently.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared_fades: bool,
    /// When the link is down, in both directions: what leaves then is lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<OutageConfig>,
    /// Frames that exceed this token bucket are lost after they have left, in each direction or in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub police: Option<PoliceConfig>,
    /// The kind of link, in one word: handoffs between links of the same technology are horizontal, others vertical.
    /// Left out: links of the same rate and delay are of one technology.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub technology: Option<String>,
    /// The link is a circuit of GSM's data service, which repairs blocks erased by the radio. Its blocks of 30 bytes
    /// take as long as the rate says: 20 ms at 12 kbit/s. Source: Ludwig et al. 1999.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{ "frame": { "blocks": 7 } }]))]
    pub gsm: Option<GsmConfig>,
    /// Both ends compress the headers of TCP/IP, of flows whose `header-size` counts them; only without services. Left
    /// out: headers are whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_compression: Option<HeaderCompression>,
    /// The longest payload of a frame, link headers excluded. Source: Xylomenos 1999, tables 3.1 to 3.3. Sets the
    /// packet size of applications that cross the link. Left out: `1500 B` with services; without, no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<Size>,
    /// The headers of the services have this profile. Source: Xylomenos 1999, figure 6.2, for `study`. Left out:
    /// `live`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<HeaderProfile>,
    /// Which service's frame leaves next. Source: Xylomenos 1999, section 6.2.3. Left out: `{ kind =
    /// "scfq" }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<SchedulerConfig>,
    /// Where the services' shares come from: their `rate` (`fixed`), or their share of the traffic in the last second
    /// (`measured`), which suits services that always send. Source: Xylomenos 1999, section 6.2.1. Left out: `fixed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<Rates>,
    /// Whether the ports slow down when round trips show that a queue grows below them. Left out: `fixed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// What decides when a port's next frame leaves: the port, at the link's rate (`port`), or the link, when it can
    /// take one (`link`), so that nothing queues below the port. Left out: `port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paced_by: Option<PacedBy>,
    /// Frames of each service that are handed to the scheduler in advance; the rest waits in the service, where
    /// repairs go first. Left out: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "frames"))]
    pub handed_over: Option<HandedOver>,
    /// Where packets wait for a busy link: each service has a queue (`off`), or there is one queue in front of all
    /// services (`nominal`, or `framed` with the byte that every frame has). Source: Xylomenos 1999, section 6.2.1. Left out: `off`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Pacing>,
    /// Bytes that pacing adds to each packet. Left out: as `pacing` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_overhead: Option<Size>,
    /// The link has these services, the same at both ends. Source: Xylomenos 1999, chapter 6.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceConfig>,
    /// Which packets use which service: rules of which the first match decides, or the name of a predefined set.
    /// Source: Xylomenos 1999, sections 8.2 and 8.3.
    #[serde(default, skip_serializing_if = "ClassesConfig::is_empty")]
    pub classes: ClassesConfig,
}

/// What decides when a port's next frame leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PacedBy {
    /// The port, at the rate that it was given.
    #[default]
    Port,
    /// The link, when it can take one.
    Link,
}

/// What links send over, if not a transmitter for each direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum MediumConfig {
    /// One frame at a time in either direction, as on a radio channel. Directions with something to send take turns,
    /// frame by frame.
    HalfDuplex {
        /// Time that each frame takes in addition to its bits, for contention and preambles. Source: Balakrishnan et
        /// al. 1997, section 4.
        #[serde(default)]
        overhead: Duration,
    },
    /// A transmitter for each direction of each link, as on a cable: nothing waits for another link.
    FullDuplex {
        /// As for `half-duplex`.
        #[serde(default)]
        overhead: Duration,
    },
    /// A radio channel of 802.11 whose stations contend for it: it connects them without links. A link that names it
    /// adds services to the frames between two of its stations, which report to the ports when a frame has left, and
    /// whether it was acknowledged; timers and shares use its `rate` and `delay`.
    Wifi(Box<WifiConfig>),
}

fn default_seed() -> u64 {
    1
}

fn default_drain() -> Duration {
    Duration::from_secs(10)
}

impl Scenario {
    /// The streams of traffic: the same in all repetitions, unless the scenario says otherwise.
    pub(crate) fn traffic_streams(&self, seed: u64, run: u64) -> Streams {
        match self.traffic_seed {
            None => Streams::new(seed, 0),
            Some(TrafficSeed::Number(seed)) => Streams::new(seed, 0),
            Some(TrafficSeed::Word(EachRun::EachRun)) => Streams::new(seed, run),
        }
    }

    /// Time that each frame of a link takes in addition to its bits.
    pub(crate) fn overhead(&self, link: &LinkConfig) -> Duration {
        let medium = link.medium.as_ref().and_then(|name| self.media.get(name));
        match medium {
            Some(MediumConfig::HalfDuplex { overhead } | MediumConfig::FullDuplex { overhead }) => {
                *overhead
            }
            Some(MediumConfig::Wifi(_)) | None => Duration::ZERO,
        }
    }

    /// Reads a scenario. `file` is the name that error messages show.
    ///
    /// # Errors
    /// Everything that is wrong with it, with file, line and what would be right.
    pub fn from_toml(text: &str, file: &str) -> Result<Self, RefusedFile> {
        Self::from_toml_with::<&str>(text, file, &[])
    }

    /// Reads a scenario and sets single values in it, such as `links.radio.errors.rate=0.05`, before any check.
    ///
    /// # Errors
    /// As [`from_toml`](Self::from_toml), and if an assignment names no place.
    pub fn from_toml_with<S: AsRef<str>>(
        text: &str,
        file: &str,
        assignments: &[S],
    ) -> Result<Self, RefusedFile> {
        let mut document = Document::parse(text, file)?;
        for assignment in assignments {
            document.set(assignment.as_ref())?;
        }
        document.read()
    }

    /// The scenario as TOML text.
    ///
    /// # Panics
    /// If the scenario did not come from a file and [`check`](Self::check) refuses it.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("checked: every value of a scenario has a TOML form")
    }

    /// A stable hash of the resolved scenario without its seed: results with equal hashes come from the same world.
    /// 16 hexadecimal digits.
    pub fn hash(&self) -> String {
        self.resolved().own_hash()
    }

    /// [`hash`](Self::hash) of a scenario that is already resolved.
    pub(crate) fn own_hash(&self) -> String {
        let world = Self {
            seed: 0,
            ..self.clone()
        };
        let text = world.to_toml() + &self.table_digests();
        format!("{:016x}", fnv1a(text.as_bytes()))
    }
}

#[cfg(test)]
mod tests;
