//! Flows: applications, their ends and their transport.

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
    /// From the first of these nodes to the second: the sender of the file, the page server or the speaker comes
    /// first.
    #[schemars(extend("examples" = [["base", "mobile"]]))]
    pub ends: [String; 2],
    /// When it starts.
    #[serde(default)]
    pub start: Duration,
    /// The DSCP of its packets: `"EF"`, `"AF41"` ... or a number.
    #[serde(default = "best_effort")]
    pub dscp: Dscp,
    /// The port of the first end, which classes match. Left out: 20 for bulk transfers, 80 for pages and web, 23 for
    /// telnet, 110 for mail, 5004 for conferencing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Its ends encrypt TCP and UDP headers and data (RFC 4303): nothing on the path can see them, neither classes
    /// that match ports nor agents for TCP.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub encrypted: bool,
    /// Its transport protocol.
    pub transport: TransportConfig,
    /// A node on its path that terminates the connection and opens another. Bulk transfers over TCP only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<RelayConfig>,
    /// Its progress is measured at the receiver, interval by interval. Files and conferencing only. Left out: no
    /// measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{ "interval": "100 ms", "group": "stations" }]))]
    pub progress: Option<ProgressConfig>,
    /// Its application.
    pub app: AppConfig,
}

/// A relay on the path of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("examples" = [{ "kind": "split", "at": "base" }]))]
pub enum RelayConfig {
    /// Two connections instead of one: the relay forwards data from the first to the second, and acknowledges it to
    /// the source before the receiver has it. Source: Balakrishnan et al. 1997, SPLIT.
    Split {
        /// The node of the relay.
        at: String,
        /// The relay reads no more from the first connection while it holds this much that the second has not
        /// carried; data that arrives meanwhile waits in the first connection's window.
        #[serde(default = "usual_pool")]
        pool: Size,
        /// The transport of the second connection. Left out: that of the flow.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transport: Option<TransportConfig>,
    },
}

/// The proposal in docs/spec/tcp-over-wireless.md, section 12 (Q9).
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
    /// CLAP: a file, one way, at the rate that the sender's station reports. Source: Gopal 2007, chapter 3.
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
    /// Datagrams at a constant rate, always or alternating with silence.
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

/// An application as it is written in a file.
#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[schemars(extend("examples" = [{ "kind": "bulk", "size": "1 MB" }]))]
enum Written {
    /// A file transfer (docs/spec/multi-service.md, 5.1): data is always ready until the size is reached.
    Bulk(BulkConfig),
    /// Datagrams at a constant rate over UDP. Runs and is reported as conferencing that always talks.
    Cbr(CbrConfig),
    /// A constant rate alternating with silence over UDP: the general name of conferencing, as which it runs and is
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
    /// Size of the file. Source: Xylomenos 1999, table 4.1. Left out: the transfer never ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// User bytes of a packet. Left out: the smallest frame on the path, or `1500 B`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<Size>,
    /// The rate at which the receiving application consumes data; it reads more only when it has consumed what it
    /// read before, so a slow one closes the window. Left out: it reads everything at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes: Option<Rate>,
    /// The sender's windows and its waits for timeouts are measured, too: `cwnd_mean_bytes`, `window_mean_bytes`,
    /// `timeout_wait_s` and `duplicate_acks` of the results.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub windows: bool,
    /// With `windows`: how often the congestion window falls below this is counted, too: `window_falls`.
    #[serde(
        default,
        rename = "window-level",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(example = &"23000 B")]
    pub window_level: Option<Size>,
}

/// Talk and silence, exponentially distributed; packets at fixed intervals while talking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConferencingConfig {
    /// It sends at this rate while it talks.
    pub rate: Rate,
    /// Length of a packet. Left out: 20 ms of the rate (RFC 3551, section 4.2), at most 1400 B and the smallest frame
    /// on the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<Size>,
    /// A talk period lasts this long on average; the first begins at the start, with a packet.
    pub talk: Duration,
    /// A silence lasts this long on average; zero makes a source that always talks.
    pub silence: Duration,
    /// How long after its start it stops sending. Left out: at the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Duration>,
}

/// Datagrams at a constant rate.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CbrConfig {
    /// It sends at this rate.
    rate: Rate,
    /// Length of a packet. Left out: 20 ms of the rate, at most 1400 B and the smallest frame on the path.
    #[serde(default)]
    packet: Option<Size>,
    /// How long after its start it stops sending. Left out: at the end of the run.
    #[serde(default)]
    lasts: Option<Duration>,
}

/// Datagrams at a constant rate, alternating with silence; both periods are exponentially distributed.
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
    /// Length of a packet. Left out: 20 ms of the rate, at most 1400 B and the smallest frame on the path.
    #[serde(default)]
    packet: Option<Size>,
    /// How long after its start it stops sending. Left out: at the end of the run.
    #[serde(default)]
    lasts: Option<Duration>,
}

fn usual_on() -> Duration {
    Duration::from_millis(1_004)
}

fn usual_off() -> Duration {
    Duration::from_millis(1_587)
}

impl From<CbrConfig> for ConferencingConfig {
    fn from(app: CbrConfig) -> Self {
        Self {
            rate: app.rate,
            packet: app.packet,
            // Without silence, talk periods follow each other without a gap.
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
    /// Length of a request; one that fits into a packet is a packet of its own length.
    pub request: Size,
    /// Length of a reply.
    pub reply: Size,
    /// Time from a complete reply to the next request.
    #[serde(default)]
    pub pause: Duration,
    /// The number of pages. Left out: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "pages"))]
    pub count: Option<u64>,
    /// User bytes of a packet. Left out: the smallest frame on the path, or `1500 B`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<Size>,
}

/// Speech in a packet (RFC 3551, section 4.2).
const PACKETIZATION: Duration = Duration::from_millis(20);
/// Room for speech in an Ethernet packet after IP, UDP and RTP headers, bytes.
const LONGEST_SPEECH: usize = 1_400;

impl ConferencingConfig {
    /// Length of a packet if frames do not limit it.
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

    /// The number of pages, transactions, keystrokes or checks, if limited.
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
    /// Header bytes that it adds before the user data.
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
