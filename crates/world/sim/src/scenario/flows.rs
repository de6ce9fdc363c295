//! Flows: which application talks to which over what.

use airlane_base::{Duration, Rate, Size};
use airlane_link::classify::Dscp;
use airlane_transport::{ClapConfig, TcpConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::progress::ProgressConfig;
use super::{MailConfig, TelnetConfig, WebConfig};

/// One application between two nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowConfig {
    /// It has this name in results, and no other flow has it.
    #[schemars(example = &"file")]
    pub name: String,
    /// It goes from the first of these nodes to the second: file sender, page server or speaker first.
    #[schemars(extend("examples" = [["base", "mobile"]]))]
    pub ends: [String; 2],
    /// When it starts.
    #[serde(default)]
    pub start: Duration,
    /// Its packets have this differentiated services code point: `"EF"`, `"AF41"` ... or a number.
    #[serde(default = "best_effort")]
    pub dscp: Dscp,
    /// The first end has this port, which classes match. Left out: 20 for bulk transfers, 80 for pages
    /// and web, 23 for telnet, 110 for mail, 5004 for conferencing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Its ends encrypt all below TCP and UDP (RFC 4303): whatever looks into packets on their way, classes for
    /// ports and agents for TCP, sees none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub encrypted: bool,
    /// What carries it.
    pub transport: TransportConfig,
    /// A node on its way ends the connection and opens another. Bulk transfers over TCP only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<RelayConfig>,
    /// How it goes on is measured at its receiver, interval by interval. Files and conferencing only. Left out: not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{ "interval": "100 ms", "group": "stations" }]))]
    pub progress: Option<ProgressConfig>,
    /// What it does.
    pub app: AppConfig,
}

/// A relay on a flow's way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("examples" = [{ "kind": "split", "at": "base" }]))]
pub enum RelayConfig {
    /// Two connections instead of one: what has come over the first goes out over the second, and is
    /// acknowledged to the source before the receiver has it. Source: Balakrishnan et al. 1997, SPLIT.
    Split {
        /// This node has it.
        at: String,
        /// The relay takes no more from the first connection while it holds this much that the second has not
        /// carried; what has come by then waits in the first one's window.
        #[serde(default = "usual_pool")]
        pool: Size,
        /// The second connection has this transport. Left out: that of the flow.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transport: Option<TransportConfig>,
    },
}

/// What docs/spec/tcp-over-wireless.md, section 12 (Q9), proposes.
fn usual_pool() -> Size {
    Size::from_bytes(65_536)
}

fn best_effort() -> Dscp {
    Dscp::new(0).expect("0 is a code point")
}

/// A transport protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[schemars(extend("examples" = [{ "kind": "tcp" }]))]
pub enum TransportConfig {
    /// TCP, one fresh connection for each transfer.
    Tcp(TcpConfig),
    /// Datagrams.
    Udp(UdpConfig),
    /// CLAP: a file, one way, as fast as the sender's station says. Source: Gopal 2007, chapter 3.
    Clap(ClapConfig),
}

/// UDP has nothing to set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UdpConfig {}

/// An application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Written", tag = "kind", rename_all = "kebab-case")]
pub enum AppConfig {
    /// A file transfer.
    Bulk(BulkConfig),
    /// Datagrams at a constant rate, always or in turns with silence.
    Conferencing(ConferencingConfig),
    /// Requests and replies of fixed sizes.
    Pages(PagesConfig),
    /// Pages with embedded objects.
    Web(WebConfig),
    /// Keystrokes and their echoes.
    Telnet(TelnetConfig),
    /// Mail checks.
    Mail(MailConfig),
}

/// An application as it stands in a file.
#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[schemars(extend("examples" = [{ "kind": "bulk", "size": "1 MB" }]))]
enum Written {
    /// A file transfer (docs/spec/multi-service.md, 5.1): data is always ready until the size is reached.
    Bulk(BulkConfig),
    /// Datagrams at a constant rate over UDP: conferencing that always talks, as which it runs and is reported.
    Cbr(CbrConfig),
    /// A constant rate in turns with silence over UDP: conferencing by its general name, as which it runs and is
    /// reported.
    OnOff(OnOffConfig),
    /// On/off speech or video over UDP (5.3).
    Conferencing(ConferencingConfig),
    /// Requests and replies of fixed sizes, one after the other.
    Pages(PagesConfig),
    /// Pages with embedded objects, of empirical sizes (5.2).
    Web(WebConfig),
    /// Keystrokes and their echoes.
    Telnet(TelnetConfig),
    /// Mail checks: short turns, then messages.
    Mail(MailConfig),
}

impl From<Written> for AppConfig {
    fn from(written: Written) -> Self {
        match written {
            Written::Bulk(app) => Self::Bulk(app),
            Written::Cbr(app) => Self::Conferencing(app.into()),
            Written::OnOff(app) => Self::Conferencing(app.into()),
            Written::Conferencing(app) => Self::Conferencing(app),
            Written::Pages(app) => Self::Pages(app),
            Written::Web(app) => Self::Web(app),
            Written::Telnet(app) => Self::Telnet(app),
            Written::Mail(app) => Self::Mail(app),
        }
    }
}

/// A file transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkConfig {
    /// The file is this long. Source: Xylomenos 1999, table 4.1. Left out: the transfer never ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// A packet has this many user bytes. Left out: the smallest frame on the path, or
    /// `1500 B`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<Size>,
    /// The receiving application does with what has arrived at this rate, and takes what has come meanwhile
    /// when it has done: a slow one closes the window. Left out: it takes all at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes: Option<Rate>,
    /// The sender's windows and what it waits for timeouts are measured, too: `cwnd_mean_bytes`,
    /// `window_mean_bytes`, `timeout_wait_s` and `duplicate_acks` of the results.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub windows: bool,
}

/// Talk and silence, exponentially distributed; packets at fixed intervals while talking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConferencingConfig {
    /// It sends at this rate while it talks.
    pub rate: Rate,
    /// A packet is this long. Left out: 20 ms of the rate (RFC 3551, section 4.2), at most 1400 B and
    /// the smallest frame on the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<Size>,
    /// A talk period lasts this long on average; the first begins at the start, with a packet.
    pub talk: Duration,
    /// A silence lasts this long on average; zero is for a source that always talks.
    pub silence: Duration,
    /// It sends nothing from this long after its start on. Left out: it goes on as long as the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Duration>,
}

/// Datagrams at a constant rate.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CbrConfig {
    /// It sends at this rate.
    rate: Rate,
    /// A packet is this long. Left out: 20 ms of the rate, at most 1400 B and the smallest frame on the path.
    #[serde(default)]
    packet: Option<Size>,
    /// It sends nothing from this long after its start on. Left out: it goes on as long as the run.
    #[serde(default)]
    lasts: Option<Duration>,
}

/// Datagrams at a constant rate, in turns with silence; both exponentially distributed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OnOffConfig {
    /// It sends at this rate while it is on.
    rate: Rate,
    /// It is on for this long on average, from its start. Source: ITU-T P.59, a talker.
    #[serde(default = "usual_on")]
    on: Duration,
    /// It is off for this long on average. Source: ITU-T P.59, a talker.
    #[serde(default = "usual_off")]
    off: Duration,
    /// A packet is this long. Left out: 20 ms of the rate, at most 1400 B and the smallest frame on the path.
    #[serde(default)]
    packet: Option<Size>,
    /// It sends nothing from this long after its start on. Left out: it goes on as long as the run.
    #[serde(default)]
    lasts: Option<Duration>,
}

/// How long a talker talks.
fn usual_on() -> Duration {
    Duration::from_millis(1_004)
}

/// How long a talker is silent.
fn usual_off() -> Duration {
    Duration::from_millis(1_587)
}

impl From<CbrConfig> for ConferencingConfig {
    fn from(app: CbrConfig) -> Self {
        Self {
            rate: app.rate,
            packet: app.packet,
            // Without silence one period goes over into the next.
            talk: Duration::from_secs(1_000),
            silence: Duration::ZERO,
            lasts: app.lasts,
        }
    }
}

impl From<OnOffConfig> for ConferencingConfig {
    fn from(app: OnOffConfig) -> Self {
        Self {
            rate: app.rate,
            packet: app.packet,
            talk: app.on,
            silence: app.off,
            lasts: app.lasts,
        }
    }
}

/// A client at the second end fetches pages from a server at the first, one at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PagesConfig {
    /// A request is this long; one that fits into a packet is a packet of its own length.
    pub request: Size,
    /// A reply is this long.
    pub reply: Size,
    /// This long after a complete reply comes the next request.
    #[serde(default)]
    pub pause: Duration,
    /// How many pages are fetched. Left out: there is always another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "pages"))]
    pub count: Option<u64>,
    /// A packet has this many user bytes. Left out: the smallest frame on the path, or
    /// `1500 B`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<Size>,
}

/// How much speech stands in a packet (RFC 3551, section 4.2).
const PACKETIZATION: Duration = Duration::from_millis(20);
/// What an Ethernet packet holds of it behind IP, UDP and RTP headers.
const LONGEST_SPEECH: usize = 1_400;

impl ConferencingConfig {
    /// Length of a packet where frames take any.
    pub(super) fn usual_packet(&self) -> Size {
        let spoken = self.rate.bytes_within(PACKETIZATION);
        Size::from_bytes(spoken.clamp(1, LONGEST_SPEECH) as u64)
    }
}

impl AppConfig {
    /// Its `kind` in a file.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Bulk(_) => "bulk",
            Self::Conferencing(_) => "conferencing",
            Self::Pages(_) => "pages",
            Self::Web(_) => "web",
            Self::Telnet(_) => "telnet",
            Self::Mail(_) => "mail",
        }
    }

    /// Packet size, if stated.
    pub fn packet(&self) -> Option<Size> {
        match self {
            Self::Bulk(app) => app.packet,
            Self::Conferencing(app) => app.packet,
            Self::Pages(app) => app.packet,
            Self::Web(app) => app.packet,
            Self::Telnet(app) => app.packet,
            Self::Mail(app) => app.packet,
        }
    }

    pub(super) fn packet_mut(&mut self) -> &mut Option<Size> {
        match self {
            Self::Bulk(app) => &mut app.packet,
            Self::Conferencing(app) => &mut app.packet,
            Self::Pages(app) => &mut app.packet,
            Self::Web(app) => &mut app.packet,
            Self::Telnet(app) => &mut app.packet,
            Self::Mail(app) => &mut app.packet,
        }
    }

    /// How many pages, transactions, keystrokes or checks there will be, if that is limited.
    pub(super) fn count(&self) -> Option<u64> {
        match self {
            Self::Bulk(_) | Self::Conferencing(_) => None,
            Self::Pages(app) => app.count,
            Self::Web(app) => app.count,
            Self::Telnet(app) => app.count,
            Self::Mail(app) => app.count,
        }
    }

    /// Whether it ends by itself.
    pub fn ends(&self) -> bool {
        match self {
            Self::Bulk(app) => app.size.is_some(),
            _ => self.count().is_some(),
        }
    }

    /// The well-known port of its kind.
    pub(super) fn default_port(&self) -> u16 {
        match self {
            Self::Bulk(_) => 20,
            Self::Conferencing(_) => 5004,
            Self::Pages(_) | Self::Web(_) => 80,
            Self::Telnet(_) => 23,
            Self::Mail(_) => 110,
        }
    }
}

impl TransportConfig {
    /// Bytes that it puts in front of user data.
    pub(super) fn header_len(&self) -> u32 {
        match self {
            Self::Tcp(tcp) => tcp.header_len(),
            Self::Udp(_) => 0,
            Self::Clap(clap) => clap.header_size.as_bytes() as u32,
        }
    }

    /// Its `kind` in a file.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Tcp(_) => "tcp",
            Self::Udp(_) => "udp",
            Self::Clap(_) => "clap",
        }
    }
}
