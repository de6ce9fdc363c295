//! Status reports of a live node: over the control socket while it runs, and once when it ends.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::OnceLock;

use airlane_link::classify::FlowStatus;
use airlane_link::{
    ClassConfig, FoundRate, ServiceLedger, ServiceMetrics, ServiceStatus, effective_goodput,
};
use airlane_secure::PeerAddress;
use airlane_session::LossReport;
pub use airlane_session::Offer;
use serde::{Deserialize, Serialize};

/// Version of the protocol between two nodes.
pub const PROTOCOL: u8 = airlane_session::VERSION;

static COMMIT: OnceLock<&str> = OnceLock::new();

/// Sets the commit that the program was built from, which its status and its peers report. The first call
/// wins.
pub fn set_commit(commit: &'static str) {
    let _first = COMMIT.set(commit);
}

/// The commit, if the program has set it.
pub fn commit() -> Option<&'static str> {
    COMMIT.get().copied()
}

/// A program version with its commit.
pub fn build(version: &str, commit: Option<&str>) -> String {
    format!("{version}, commit {}", commit.unwrap_or("unknown"))
}

/// The status of one node. Raw numbers carry their unit in the name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Version of this format: 2.
    pub schema: u32,
    /// Version of the program.
    pub version: String,
    /// Commit that the program was built from, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Version of the protocol between two nodes; only nodes with equal versions have a session
    /// ([`PROTOCOL`]).
    #[serde(default)]
    pub protocol: u8,
    /// Name of the node.
    pub name: String,
    /// Time since the node was started.
    pub uptime_ns: u64,
    /// The TUN interface.
    pub tun: TunReport,
    /// The datagrams on the underlay.
    pub underlay: UnderlayReport,
    /// Rules that assign packets to services; the first match decides, and packets without one go to service
    /// 0.
    #[serde(default)]
    pub classes: Vec<ClassConfig>,
    /// The peers.
    pub peers: Vec<PeerStatus>,
    /// Drops of datagrams and packets that belong to no known peer, by reason. Reasons with a count of zero
    /// are left out.
    pub drops: BTreeMap<String, u64>,
    /// Recent callers that were refused for their key or address, the last first.
    #[serde(default)]
    pub callers: Vec<CallerReport>,
}

/// The flows between this node and a peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerFlows {
    /// The peer's name.
    pub peer: String,
    /// Flows: first those that run, then those with the most bytes.
    pub flows: Vec<FlowStatus>,
    /// Number of other flows.
    pub others: u64,
    /// Name of the ready-made classes, such as `behaviour`, if the link uses exactly that set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<String>,
}

/// The report to a registered flow about the interfaces on its path (Gopal 2007, section 3.3), each over the
/// last interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowOffer {
    /// The peer that the flow's destination is behind.
    pub peer: String,
    /// The flow's service.
    pub service: String,
    /// Registered flows of this service, each of which gets an equal part.
    pub flows: u32,
    /// Length of an interval.
    pub interval_ns: u64,
    /// Counts of this node. `None` within the first interval.
    pub local: Option<Offer>,
    /// Minimum over the nodes of the path, this one included. `None` until a probe has come back.
    pub route: Option<RouteOffer>,
}

/// The result of a probe along a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteOffer {
    /// The minima: `out_bytes`, with the underflows, of one node, and `room_bytes` of possibly another.
    pub least: Offer,
    /// Node that took the fewest bytes, by its position on the path; 0 is this node.
    pub least_out_node: u8,
    /// Node that has the least room.
    pub least_room_node: u8,
    /// Whether the probe reached the destination's node. Otherwise the last node that it reached had no
    /// route.
    pub complete: bool,
    /// Time since the probe came back.
    pub age_ns: u64,
}

/// A refused caller. None of it is authenticated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallerReport {
    /// Source address.
    pub address: PeerAddress,
    /// Why it was refused.
    pub why: CallFault,
    /// First characters of its key, if the key is unknown.
    pub key: Option<String>,
    /// Number of calls.
    pub calls: u64,
    /// Time since the last call.
    pub ago_ns: u64,
}

/// Why a caller was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallFault {
    /// Its key belongs to no peer.
    UnknownKey,
    /// It called a key other than this end's.
    OtherKey,
    /// It is this end itself, whose own call came back.
    Ourselves,
    /// Its key is right, but the pre-shared keys of the two ends differ, or only one end has one.
    OtherPreshared,
    /// There are no keys, and its address belongs to no peer.
    OtherAddress,
    /// It has no keys, but this end has.
    WithoutKeys,
    /// It has keys, but this end has none.
    WithKeys,
}

impl CallerReport {
    /// Describes the caller in one sentence. `expected`: a peer without a session has this address.
    pub fn says(&self, expected: bool) -> String {
        let Self { address, key, .. } = self;
        let key = key.as_deref().unwrap_or("?");
        match self.why {
            CallFault::UnknownKey if expected => format!(
                "the peer key here is not that of the host at {address}, whose key begins with {key}"
            ),
            CallFault::UnknownKey => {
                format!("a host with an unknown key ({key}...) calls from {address}")
            }
            CallFault::OtherKey => format!("{address} expects a different public key from ours"),
            CallFault::Ourselves => format!(
                "{address} leads back to this end: it is an address of this host, or of a translator before it"
            ),
            CallFault::OtherPreshared => format!(
                "the pre-shared key of the host at {address} is not that of this end, or one of the two has none"
            ),
            CallFault::OtherAddress => {
                format!("datagrams come from {address}, which is no peer's address")
            }
            CallFault::WithoutKeys => {
                format!("the host at {address} has no keys, while this end has some")
            }
            CallFault::WithKeys => {
                format!("the host at {address} has keys, while this end has none")
            }
        }
    }
}

impl Status {
    /// All drops outside the services, of known peers and unknown senders together, by reason.
    pub fn all_drops(&self) -> BTreeMap<String, u64> {
        let mut all = self.drops.clone();
        for (reason, count) in self.peers.iter().flat_map(|peer| &peer.drops) {
            *all.entry(reason.clone()).or_default() += count;
        }
        all
    }
}

/// The link with one peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerStatus {
    /// Its name; `peer` in a file without a list.
    pub name: String,
    /// Its address, if known.
    pub address: Option<PeerAddress>,
    /// The local address that it called, which answers leave from; `None` lets the kernel choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_from: Option<IpAddr>,
    /// Its host name and port, if the file gives a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Why the last lookup of the host name failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unresolved: Option<String>,
    /// Its public key, where the link is secured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Age of the keys in use; `None` without keys.
    pub keys_age_ns: Option<u64>,
    /// Version and commit of its program, once received in the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Addresses of its TUN interface, once received in the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tunnel_addresses: Vec<String>,
    /// Networks behind it.
    pub prefixes: Vec<String>,
    /// Its share of the link, relative to the other peers'.
    pub weight: f64,
    /// Rate limit for the peer, over whole Ethernet frames; `None` where the file states none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Rate at which its port sends now; lower than the limit where `rate-limit = "estimated"` and the link
    /// carries less.
    pub sending_rate_bps: u64,
    /// Measured rate of the link and what limits it; `None` where the rate is stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_rate: Option<FoundRate>,
    /// Peers with the same bottleneck, as far as detected: they share it by their weights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares_with: Vec<String>,
    /// Path MTU to the peer when last determined.
    pub path_mtu_bytes: usize,
    /// Whether the path takes less than 256 B, so that nothing is sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub path_too_narrow: bool,
    /// Times that the path MTU fell below the length of a frame already built.
    pub path_narrowed: u64,
    /// Datagrams with frames sent to the peer.
    pub datagrams_sent: u64,
    /// Bytes of those datagrams, without UDP, IP and Ethernet headers.
    pub sent_bytes: u64,
    /// Datagrams received from the peer; only authentic ones where the link is secured.
    pub datagrams_received: u64,
    /// Bytes of those datagrams.
    pub received_bytes: u64,
    /// The session with it.
    pub session: SessionReport,
    /// Each service, both directions.
    pub services: Vec<ServiceReport>,
    /// Drops outside the services, by reason.
    pub drops: BTreeMap<String, u64>,
}

/// The session with the peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionReport {
    /// `waiting`, `accepted`, `confirmed`, `unheard` (confirmed, but the peer does not receive from this
    /// end), `disconnected` or `refused`.
    pub state: String,
    /// Session identifier in frames, if there is a session.
    pub id: Option<u32>,
    /// Our epoch, hexadecimal.
    pub epoch: String,
    /// The peer's epoch, hexadecimal, if there is a session.
    pub peer_epoch: Option<String>,
    /// How long the session has lasted, if there is one.
    pub age_ns: Option<u64>,
    /// Sessions since the start; more than one means that the peer was restarted.
    pub sessions: u64,
    /// Times that a session's peer was silent for three keepalives or more.
    pub disconnections: u64,
    /// Duration of the current silence, while disconnected.
    pub disconnected_ns: Option<u64>,
    /// Time for which the peer has not received this end, by its hellos, although its own datagrams arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unheard_ns: Option<u64>,
    /// Age of the newest hello that the peer is known to have received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached_ns: Option<u64>,
    /// Smoothed round trip of hellos, including the wait in the receiver's loop.
    pub rtt_ns: Option<u64>,
    /// Service tables of both ends, if they are incompatible.
    pub refused: Option<RefusedTables>,
    /// The peer's protocol version, if it differs from ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_protocol: Option<u8>,
    /// The private key that two hosts use, if the last minutes show one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_key: Option<SharedKey>,
}

/// A private key in use on two hosts: each takes the session from the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SharedKey {
    /// The peer's key: calls alternate between these two addresses.
    Peer([PeerAddress; 2]),
    /// This end's key: the peer repeatedly leaves our session for another host's.
    Own,
}

impl SharedKey {
    /// What the operator should do.
    pub const HELP: &str = "make a key for one of them with `airlane keygen`, and write it where the other end lists its peers";

    /// Describes the finding in one sentence.
    pub fn says(&self, peer: &str) -> String {
        match self {
            Self::Peer([a, b]) => {
                format!("two hosts have the private key of {peer}: at {a} and at {b}")
            }
            Self::Own => format!(
                "another host has the private key of this end: {peer} leaves our sessions for its"
            ),
        }
    }
}

/// Two incompatible service tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedTables {
    /// Ours, one service per line.
    pub ours: String,
    /// The peer's.
    pub theirs: String,
}

impl RefusedTables {
    /// The services that this end, and that the peer has alone.
    pub fn unlike(&self) -> [String; 2] {
        let [ours, theirs] = [&self.ours, &self.theirs].map(|table| Vec::from_iter(table.lines()));
        let alone = |one: &[&str], other: &[&str]| {
            let alone = one.iter().filter(|line| !other.contains(line));
            match Vec::from_iter(alone.copied()).join(", ") {
                nothing if nothing.is_empty() => "nothing else".to_owned(),
                lines => lines,
            }
        };
        [alone(&ours, &theirs), alone(&theirs, &ours)]
    }

    /// The remedy.
    pub fn remedy(&self) -> &'static str {
        match self.ours.contains("base-station") || self.theirs.contains("base-station") {
            true => {
                "make them equal in both files; only base-station is \"here\" at one end and \"peer\" at the other"
            }
            false => "make them equal in both files",
        }
    }
}

/// The TUN interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TunReport {
    /// Its name.
    pub name: String,
    /// Largest packet.
    pub mtu_bytes: usize,
    /// Packets read from the kernel.
    pub packets_read: u64,
    /// Bytes of those packets.
    pub read_bytes: u64,
    /// Packets written to the kernel.
    pub packets_written: u64,
    /// Bytes of those packets.
    pub written_bytes: u64,
    /// TCP SYNs, in either direction, whose maximum segment size was lowered.
    pub mss_clamped: u64,
}

/// The datagrams on the underlay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnderlayReport {
    /// Local address.
    pub listen: PeerAddress,
    /// The interface, if frames travel straight on Ethernet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<InterfaceReport>,
    /// The port in the file, if this end has left it because no answers arrived there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_port: Option<u16>,
    /// Protection of frames: `none` or `noise-ik`.
    pub security: String,
    /// Counters of the sessions of `noise-ik`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secure: Option<SecureReport>,
    /// The rate that all peers share, over whole Ethernet frames; `None` where the file states none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Bytes that UDP, IP and Ethernet add to each frame.
    pub frame_overhead_bytes: usize,
    /// Datagrams sent, handshakes included.
    pub datagrams_sent: u64,
    /// Bytes of those datagrams, without UDP, IP and Ethernet headers.
    pub sent_bytes: u64,
    /// Datagrams received from any source.
    pub datagrams_received: u64,
    /// Bytes of those datagrams.
    pub received_bytes: u64,
}

/// The interface of a raw Ethernet underlay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceReport {
    /// Its name.
    pub name: String,
    /// EtherType of our frames: `0x88b5`.
    pub ether_type: String,
    /// Whether the interface exists and is up.
    pub up: bool,
    /// Whether the driver reports a carrier.
    pub carrier: bool,
    /// Times that the interface went down or disappeared.
    pub losses: u64,
    /// Our frames that the kernel dropped because they arrived faster than they were read.
    pub missed_frames: u64,
}

/// Counters of the secure sessions with all peers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecureReport {
    /// Public key of this end.
    pub key: String,
    /// Handshakes initiated by this end.
    pub handshakes_begun: u64,
    /// Handshakes answered by this end.
    pub handshakes_answered: u64,
    /// Cookies sent under load.
    pub cookies_sent: u64,
    /// Refused datagrams; the drops give the reasons.
    pub refused: u64,
}

/// One service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceReport {
    /// Service number.
    pub number: u8,
    /// Name from the file.
    pub name: String,
    /// The scheme's name, as in configuration files: `sr-m2`.
    pub scheme: String,
    /// Configured share of the link.
    pub rate: f64,
    /// Being removed.
    pub draining: bool,
    /// Unused: the peer has no such service, or a different one of this number.
    #[serde(default)]
    pub waiting: bool,
    /// Packets in the queue.
    pub queue_packets: usize,
    /// Bytes in the queue.
    pub queue_bytes: usize,
    /// Smoothed round trip of the link, where the service measures it.
    pub srtt_ns: Option<u64>,
    /// Packet counts in both directions.
    pub ledger: ServiceLedger,
    /// Events of its scheme, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub events: BTreeMap<String, u64>,
    /// Measurements: goodput of the packets sent here, loss and delay of those received here.
    pub metrics: ServiceMetrics,
    /// The peer's counts of the packets sent here, once reported.
    pub peer: Option<PeerReport>,
    /// e = g (1 - l) of the packets sent here, with the loss that the peer reports.
    pub effective_goodput: Option<f64>,
    /// Share of the peer's packets that the link lost since the start, whether a repair recovered them or
    /// they were lost for good. `None` where the service cannot detect losses.
    #[serde(default)]
    pub loss_before_repair: Option<f64>,
}

/// Packets received by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerReport {
    /// Packets that the peer's service delivered.
    pub received_packets: u64,
    /// Packets that it lost for good.
    pub lost_packets: u64,
    /// l, smoothed, 0 to 1.
    pub loss: Option<f64>,
}

impl ServiceReport {
    /// Combines the status of a service with the peer's reports.
    pub fn new(status: ServiceStatus, reports: &[LossReport]) -> Self {
        let report = reports
            .iter()
            .find(|report| report.service == status.number);
        let peer = report.map(|report| PeerReport {
            received_packets: report.received_packets,
            lost_packets: report.lost_packets,
            loss: report.loss_ppm.map(|ppm| f64::from(ppm) / 1e6),
        });
        let effective = peer.and_then(|peer| {
            let receiver = ServiceMetrics {
                loss: peer.loss,
                ..ServiceMetrics::default()
            };
            effective_goodput(&status.metrics, &receiver)
        });
        Self {
            number: status.number,
            name: status.name,
            scheme: status.scheme.to_owned(),
            rate: status.rate,
            draining: status.draining,
            waiting: status.waiting,
            queue_packets: status.queue_packets,
            queue_bytes: status.queue_bytes,
            srtt_ns: status.srtt_s.map(|s| (s * 1e9) as u64),
            ledger: status.ledger,
            events: (status.events.iter())
                .map(|event| (event.name.to_owned(), event.count))
                .collect(),
            metrics: status.metrics,
            peer,
            effective_goodput: effective,
            loss_before_repair: losses([(&status.metrics, &status.ledger)])[0],
        }
    }
}

/// Shares of arriving packets lost before and after repair, over the services that can detect losses.
fn losses<'a>(
    services: impl IntoIterator<Item = (&'a ServiceMetrics, &'a ServiceLedger)>,
) -> [Option<f64>; 2] {
    let mut sums = [0; 3];
    let seeing = services
        .into_iter()
        .filter(|(measured, _)| measured.loss.is_some());
    for (_, ledger) in seeing {
        let counts = [
            ledger.packets_delivered,
            ledger.packets_recovered,
            ledger.residual_lost,
        ];
        sums = [0, 1, 2].map(|at| sums[at] + counts[at]);
    }
    losses_of(sums)
}

/// What part of the packets delivered, recovered among them, and lost for good was lost before repair, and after it.
pub fn losses_of(packets: [u64; 3]) -> [Option<f64>; 2] {
    let [delivered, recovered, lost] = packets.map(|sum| sum as f64);
    let all = delivered + lost;
    [recovered + lost, lost].map(|part| (all > 0.0).then(|| part / all))
}

impl PeerStatus {
    /// Shares of the packets from this peer lost before and after repair, since the start.
    pub fn losses(&self) -> [Option<f64>; 2] {
        losses(self.services.iter().map(|s| (&s.metrics, &s.ledger)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(
        loss: Option<f64>,
        [delivered, recovered, lost]: [u64; 3],
    ) -> (ServiceMetrics, ServiceLedger) {
        let metrics = ServiceMetrics {
            loss,
            ..ServiceMetrics::default()
        };
        let ledger = ServiceLedger {
            packets_delivered: delivered,
            packets_recovered: recovered,
            residual_lost: lost,
            ..ServiceLedger::default()
        };
        (metrics, ledger)
    }

    #[test]
    fn losses_count_only_services_that_see_them() {
        let of = |all: &[(ServiceMetrics, ServiceLedger)]| losses(all.iter().map(|(m, l)| (m, l)));
        let blind = service(None, [1_000, 0, 0]);
        assert_eq!(of(&[blind]), [None, None]);
        assert_eq!(of(&[service(Some(0.0), [0; 3])]), [None, None]);
        let seeing = service(Some(0.01), [90, 5, 10]);
        assert_eq!(of(&[blind, seeing]), [Some(0.15), Some(0.1)]);
    }
}
