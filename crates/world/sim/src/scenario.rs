//! Scenario files: nodes, links, flows, and how long to watch them.
//!
//! A link's services and classes are the very tables of a live node's file. Dimensioned values are
//! strings with units, bare numbers are counts or probabilities, unknown keys are errors, variants
//! carry `kind`. What a file leaves out is filled in by [`Scenario::resolved`], which is what
//! `airlane explain` prints and what runs.

mod clap;
mod flows;
mod gsm;
mod handoff;
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
use airlane_base::{BothWays, Duration, QueueLimit, Size};
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
/// 30 simulated years: far below where nanoseconds end.
pub(crate) const LONGEST_RUN: Duration = Duration::from_secs(1_000_000_000);

/// A world and what happens in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The file format has this version, 1.
    #[schemars(extend("const" = 1, "examples" = [1]))]
    pub schema: u32,
    /// What a person calls the scenario.
    #[schemars(example = &"a file over a radio")]
    pub name: String,
    /// All random streams are seeded with this; a command line may override it.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// What applications draw, such as sizes and pauses, is seeded with this, the same in every repetition; or with each
    /// repetition anew. Left out: `seed`, as the command line has it, the same in every repetition.
    #[serde(
        default,
        rename = "traffic-seed",
        skip_serializing_if = "Option::is_none"
    )]
    pub traffic_seed: Option<TrafficSeed>,
    /// When the applications stop, at the latest.
    #[schemars(example = &"60 s")]
    pub duration: Duration,
    /// The end of the flow of this name stops the applications earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Events and captures go on for this long after the applications have stopped. No number of a result depends on it.
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
    /// What link layers would make of a radio's blocks at best, computed and not simulated, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("examples" = [{ "car": { "model": "onoff-c", "unit": { "frame": 7 } } }]))]
    pub retraces: BTreeMap<String, RetraceConfig>,
}

/// Where the draws of applications come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "traffic-seed is a whole number or \"each-run\"")]
pub enum TrafficSeed {
    /// This seed, in every repetition.
    Number(u64),
    /// `"each-run"`: repetitions differ in their traffic, too, so that intervals cover it.
    Word(EachRun),
}

/// The word for traffic that differs between repetitions.
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
    /// It has this address, which classes match. Left out: 10.0.0.1 and so on, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Ipv4Addr>,
    /// What it runs at its ends of links with `node = "live"`: a live file by its name, or its tables. What the
    /// scenario says itself may be left out: addresses, keys and prefixes. Left out: the shortest file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveFile>,
    /// The file, once it was read.
    #[serde(skip)]
    pub(crate) loaded: Option<Arc<Loaded>>,
}

/// A duplex link: two independent directions, "down" from the first end to the second.
///
/// Without services, packets go onto the link as they are. With services there is a port at each
/// end, both with the same table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkConfig {
    /// It joins these two nodes.
    #[schemars(extend("examples" = [["base", "mobile"]]))]
    pub ends: [String; 2],
    /// `"live"`: both ends run what `airlane up` runs, as `nodes.NODE.live` says, and the link carries their datagrams:
    /// sessions with keys, packed packets, short headers. Left out: packets go onto the link, or onto `services`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<LinkNode>,
    /// Between live nodes: IP packets below are at most this long, headers of IP and UDP included, all the time or from
    /// times on; longer ones are lost, as where nobody says a word. Left out: all pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<PathMtu>,
    /// It shares the transmitter of this name in `media` with all links that name it, or goes through that radio channel.
    /// Left out: each direction has a transmitter of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medium: Option<String>,
    /// Frames are serialised at this rate, in both directions or in each; or at rates that follow each other, or the
    /// link sends at these times.
    ///
    /// Ports in front of steps and opportunities are told their mean rate, and what comes faster than
    /// the link sends waits in `queue` below them, unless `rate-limit = "estimated"` slows them down,
    /// or `paced-by = "link"`. With `rate-limit = "found"` ports are told no rate, and `queue` stands below them, too.
    pub rate: LinkRates,
    /// A frame travels for this long, one way.
    pub delay: BothWays<Duration>,
    /// The delays of frames differ so, each way or one way, and what is late is overtaken. Left out: all frames
    /// take the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<LinkJitter>,
    /// How much may wait in front of the transmitter: the IP queue. With services of `study` headers: how much may
    /// wait in front of each that states no queue of its own; those of other headers have their own (`fq-codel`). Left
    /// out: 50 packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<BothWays<QueueLimit>>,
    /// Packets of flows with `ecn` are marked that find more than this waiting, without services. Source: RFC
    /// 3168. Left out: the link marks nothing.
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
    /// What exceeds this token bucket after it has left is lost, each way or one way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub police: Option<PoliceConfig>,
    /// What kind of link it is, in one word: handoffs between links of one technology are
    /// horizontal, others vertical. Left out: links of one rate and delay are alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub technology: Option<String>,
    /// The link is a circuit of GSM's data service, which repairs what its radio erases. Its blocks of 30 bytes take as
    /// long as the rate says: 20 ms at 12 kbit/s. Source: Ludwig et al. 1999.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{ "frame": { "blocks": 7 } }]))]
    pub gsm: Option<GsmConfig>,
    /// A frame's payload is at most this long, link headers excluded. Source: Xylomenos 1999, tables
    /// 3.1 to 3.3. Sets the packet size of applications that cross the link. Left out: `1500 B` with services; without,
    /// the link takes any packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<Size>,
    /// The headers of the services have this profile. Source: Xylomenos 1999, figure 6.2, for `study`.
    /// Left out: `live`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<HeaderProfile>,
    /// Which service's frame leaves next. Source: Xylomenos 1999, section 6.2.3. Left out: `{ kind =
    /// "scfq" }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<SchedulerConfig>,
    /// Where the services' shares come from: their `rate` (`fixed`), or their part of the traffic in
    /// the last second (`measured`), which suits services that always send. Source: Xylomenos 1999,
    /// section 6.2.1. Left out: `fixed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<Rates>,
    /// Whether the ports slow down when round trips show that a queue grows below them. Left out:
    /// `fixed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// Who says when a port's next frame leaves: the port, at the link's rate (`port`), or the link, at the
    /// moment when it can take one (`link`), so that nothing waits below the port. Left out: `port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paced_by: Option<PacedBy>,
    /// The scheduler takes so many frames of each service in advance; the rest waits in the service, where repairs go
    /// first. Left out: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "frames"))]
    pub handed_over: Option<HandedOver>,
    /// Where packets wait for a busy link: each service has a queue (`off`), or there is one queue in front of all
    /// services (`nominal`, or `framed` with the byte that every frame has). Source: Xylomenos 1999, section 6.2.1. Left out: `off`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Pacing>,
    /// Pacing counts this much beside each packet. Left out: what `pacing` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_overhead: Option<Size>,
    /// The link has these services, the same at both ends. Source: Xylomenos 1999, chapter 6.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceConfig>,
    /// Which packets get which service: rules of which the first match decides, or the name of
    /// ready-made ones. Source: Xylomenos 1999, sections 8.2 and 8.3.
    #[serde(default, skip_serializing_if = "ClassesConfig::is_empty")]
    pub classes: ClassesConfig,
}

/// Who says when a port's next frame leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PacedBy {
    /// The port, at the rate that it was told.
    #[default]
    Port,
    /// The link, when it can take one.
    Link,
}

/// What links send over, where that is not a transmitter for each way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum MediumConfig {
    /// One frame at a time, either way, as on a radio channel. Who has something to send takes turns, frame
    /// by frame.
    HalfDuplex {
        /// Each frame takes this long beside its bits: what contention and preambles cost. Source:
        /// Balakrishnan et al. 1997, section 4.
        #[serde(default)]
        overhead: Duration,
    },
    /// A transmitter for each way of each link, as on a cable: nobody waits for anybody.
    FullDuplex {
        /// As of `half-duplex`.
        #[serde(default)]
        overhead: Duration,
    },
    /// A radio channel of 802.11 whose stations contend for it: they are joined by it, and need no links. A link that
    /// names it brings services to the frames between two of its stations, which tell the ports when a frame has left, and
    /// whether it was acknowledged; its `rate` and `delay` are what timers and shares count with.
    Wifi(Box<WifiConfig>),
}

fn default_seed() -> u64 {
    1
}

fn default_drain() -> Duration {
    Duration::from_secs(10)
}

impl Scenario {
    /// What each frame of a link takes beside its bits.
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

    /// Reads a scenario and sets single values on top of it, such as
    /// `links.radio.errors.rate=0.05`, before anything is checked.
    ///
    /// # Errors
    /// As [`from_toml`](Self::from_toml), and if an assignment leads nowhere.
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

    /// A stable hash of the resolved scenario, seed left out: results with equal hashes come from
    /// the same world. 16 hexadecimal digits.
    pub fn hash(&self) -> String {
        self.resolved().own_hash()
    }

    /// The same of a resolved scenario.
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
