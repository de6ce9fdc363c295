//! What a live node tells about itself: while it runs over the control socket, and at its end.

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

/// Version of the protocol between two ends.
pub const PROTOCOL: u8 = airlane_session::VERSION;

static COMMIT: OnceLock<&str> = OnceLock::new();

/// The commit that this program was built of; its status and its peers are told. The first word stands.
pub fn set_commit(commit: &'static str) {
    let _first = COMMIT.set(commit);
}

/// The commit, if the program has said it.
pub fn commit() -> Option<&'static str> {
    COMMIT.get().copied()
}

/// A version of the program with its commit.
pub fn build(version: &str, commit: Option<&str>) -> String {
    format!("{version}, commit {}", commit.unwrap_or("unknown"))
}

/// Everything about one node. Raw numbers carry their unit in the name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Version of this format: 2.
    pub schema: u32,
    /// Version of the program.
    pub version: String,
    /// Of which commit that was built, if its builder knew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Version of the protocol between two ends; only equal ones have a session ([`PROTOCOL`]).
    #[serde(default)]
    pub protocol: u8,
    /// Name of the node.
    pub name: String,
    /// Since when it runs.
    pub uptime_ns: u64,
    /// The interface above.
    pub tun: TunReport,
    /// The datagrams below.
    pub underlay: UnderlayReport,
    /// Which packets go to which service; the first that matches decides, and without one it is service 0.
    #[serde(default)]
    pub classes: Vec<ClassConfig>,
    /// Everybody at the other ends.
    pub peers: Vec<PeerStatus>,
    /// What was dropped before it was known which peer it was of, by reason. Reasons that never occurred
    /// are left out.
    pub drops: BTreeMap<String, u64>,
    /// Who called last and was refused for its key or its address.
    #[serde(default)]
    pub callers: Vec<CallerReport>,
}

/// The flows between this node and a peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerFlows {
    /// The peer's name.
    pub peer: String,
    /// Those of the most bytes, these first.
    pub flows: Vec<FlowStatus>,
    /// How many more are known.
    pub others: u64,
    /// The ready-made classes of the link, such as `behaviour`, if it has these and no others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<String>,
}

/// What a flow that was registered is told of the interfaces on its way (Gopal 2007, section 3.3), each of the last
/// interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowOffer {
    /// The peer that its destination is behind.
    pub peer: String,
    /// The service that it gets.
    pub service: String,
    /// Flows that are told of this service, each for its equal part.
    pub flows: u32,
    /// How long an interval is.
    pub interval_ns: u64,
    /// What this node did. None within the first interval.
    pub local: Option<Offer>,
    /// The least that nodes on its way did, this one among them. None before a probe has come back.
    pub route: Option<RouteOffer>,
}

/// What a probe along a path has brought back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteOffer {
    /// The least: `out_bytes` with its underflows of one node, `room_bytes` of one.
    pub least: Offer,
    /// Which node took the fewest bytes, by its place on the path; 0 is this one.
    pub least_out_node: u8,
    /// Which node has the least room.
    pub least_room_node: u8,
    /// Whether the probe has been to the node that has the destination. Otherwise nobody knew the way further.
    pub complete: bool,
    /// How long ago it came back.
    pub age_ns: u64,
}

/// Somebody who was refused. Nobody has authenticated any of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallerReport {
    /// Where it called from.
    pub address: PeerAddress,
    /// What was wrong.
    pub why: CallFault,
    /// What its key begins with, if that is unknown.
    pub key: Option<String>,
    /// How often it called.
    pub calls: u64,
    /// When it did so last.
    pub ago_ns: u64,
}

/// Why a caller was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallFault {
    /// Its key is no peer's.
    UnknownKey,
    /// It called another key than this end's.
    OtherKey,
    /// It is this end, whose own call came back.
    Ourselves,
    /// It has the right key, and no pre-shared key, or another than this end, or this end has none.
    OtherPreshared,
    /// Its address is no peer's, and there are no keys.
    OtherAddress,
    /// It has no keys, and this end has some.
    WithoutKeys,
    /// It has keys, and this end has none.
    WithKeys,
}

impl CallerReport {
    /// A sentence about it. `expected`: a peer should be at its address.
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
    /// What was dropped outside of the services, of every peer and of nobody known, by reason.
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
    /// Its name; `peer` where the file has no list.
    pub name: String,
    /// Where it is, as far as is known.
    pub address: Option<PeerAddress>,
    /// Which address of this end it called, and is answered from; none: as the kernel chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_from: Option<IpAddr>,
    /// The name of its host with the port, where the file has that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Why that could not be looked up the last time, if it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unresolved: Option<String>,
    /// Its public key, where the link is secured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Age of the keys in use; none: there are none yet.
    pub keys_age_ns: Option<u64>,
    /// Version and commit of its program, once it has said so in the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Addresses of its interface, once it has said so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tunnel_addresses: Vec<String>,
    /// Networks behind it.
    pub prefixes: Vec<String>,
    /// Its share of the link, relative to the other peers'.
    pub weight: f64,
    /// The most that it may be sent, over whole Ethernet frames.
    pub rate_bps: u64,
    /// The most that its port sends now: less where `rate-limit = "estimated"` and the link cannot do more.
    pub sending_rate_bps: u64,
    /// What the link is found to carry, and why not more; none where its rate is stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_rate: Option<FoundRate>,
    /// Peers that are behind the same bottleneck, as far as found: they share it by their weights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares_with: Vec<String>,
    /// Path MTU to it when it was last asked for.
    pub path_mtu_bytes: usize,
    /// Whether it takes less than 256 B, so that nothing is sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub path_too_narrow: bool,
    /// How often the path had become narrower than a frame.
    pub path_narrowed: u64,
    /// Datagrams with frames sent to it.
    pub datagrams_sent: u64,
    /// Bytes of them, without UDP, IP and Ethernet.
    pub sent_bytes: u64,
    /// Datagrams received from it: authentic ones, where the link is secured.
    pub datagrams_received: u64,
    /// Bytes of them.
    pub received_bytes: u64,
    /// The session with it.
    pub session: SessionReport,
    /// Each service, both directions.
    pub services: Vec<ServiceReport>,
    /// What was dropped outside of the services, by reason.
    pub drops: BTreeMap<String, u64>,
}

/// The session with the peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionReport {
    /// `waiting`, `accepted`, `confirmed`, `unheard` (confirmed with a peer that does not hear this end), `disconnected` or
    /// `refused`.
    pub state: String,
    /// Number that frames carry, if there is a session.
    pub id: Option<u32>,
    /// Our epoch, hexadecimal.
    pub epoch: String,
    /// The peer's epoch, hexadecimal, if there is a session.
    pub peer_epoch: Option<String>,
    /// How long the session has lasted, if there is one.
    pub age_ns: Option<u64>,
    /// Sessions since the start; more than one means that the peer was restarted.
    pub sessions: u64,
    /// How often the peer of a session was not heard for three keepalives and more.
    pub disconnections: u64,
    /// For how long nothing has been heard, while it is disconnected.
    pub disconnected_ns: Option<u64>,
    /// For how long the peer, which is heard, has not heard this end, as its hellos tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unheard_ns: Option<u64>,
    /// How long ago the newest hello left that the peer is known to have heard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached_ns: Option<u64>,
    /// Smoothed round trip of hellos, waiting in the receiver's loop included.
    pub rtt_ns: Option<u64>,
    /// Our table of services and the peer's, where they differ.
    pub refused: Option<RefusedTables>,
    /// The version of the protocol that the peer speaks, if it is another than ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_protocol: Option<u8>,
    /// Whose private key two hosts have, as far as the last minutes tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_key: Option<SharedKey>,
}

/// A private key that two hosts have: each takes the session from the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SharedKey {
    /// The peer's: it calls from these two places by turns.
    Peer([PeerAddress; 2]),
    /// That of this end: the peer leaves its sessions for another's, again and again.
    Own,
}

impl SharedKey {
    /// What to do.
    pub const HELP: &str = "make a key for one of them with `airlane keygen`, and write it where the other end lists its peers";

    /// A sentence about it.
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

/// Two tables of services that do not fit each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedTables {
    /// Ours, one line for each service.
    pub ours: String,
    /// The peer's.
    pub theirs: String,
}

/// The interface above.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TunReport {
    /// Its name.
    pub name: String,
    /// Largest packet.
    pub mtu_bytes: usize,
    /// Packets from the kernel.
    pub packets_read: u64,
    /// Bytes of them.
    pub read_bytes: u64,
    /// Packets given to the kernel.
    pub packets_written: u64,
    /// Bytes of them.
    pub written_bytes: u64,
    /// TCP SYNs, from either side, whose maximum segment size was lowered.
    pub mss_clamped: u64,
}

/// The datagrams below.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnderlayReport {
    /// Where this end listens.
    pub listen: PeerAddress,
    /// The interface, where frames travel straight on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<InterfaceReport>,
    /// The port of the file, which this end has left as nothing came to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_port: Option<u16>,
    /// How frames are protected: `none` or `noise-ik`.
    pub security: String,
    /// The sessions of `noise-ik`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secure: Option<SecureReport>,
    /// The rate that all peers share, over whole Ethernet frames.
    pub rate_bps: u64,
    /// Bytes that UDP, IP and Ethernet add to each frame.
    pub frame_overhead_bytes: usize,
    /// Datagrams sent to anybody, handshakes among them.
    pub datagrams_sent: u64,
    /// Bytes of them, without UDP, IP and Ethernet.
    pub sent_bytes: u64,
    /// Datagrams received from anywhere.
    pub datagrams_received: u64,
    /// Bytes of them.
    pub received_bytes: u64,
}

/// The interface below a raw Ethernet underlay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceReport {
    /// Its name.
    pub name: String,
    /// Which of its frames are ours: `0x88b5`.
    pub ether_type: String,
    /// Whether it exists and is switched on.
    pub up: bool,
    /// Whether it has somebody to send to, as far as the driver knows.
    pub carrier: bool,
    /// How often it went down or away.
    pub losses: u64,
    /// Frames of ours that the kernel dropped, as they came faster than they were read.
    pub missed_frames: u64,
}

/// The secure sessions of all peers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecureReport {
    /// Public key of this end.
    pub key: String,
    /// Handshakes that this end began.
    pub handshakes_begun: u64,
    /// Handshakes that this end answered.
    pub handshakes_answered: u64,
    /// Cookies for others, under load.
    pub cookies_sent: u64,
    /// Datagrams refused; the reasons are among the drops.
    pub refused: u64,
}

/// One service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceReport {
    /// Number.
    pub number: u8,
    /// Name from the file.
    pub name: String,
    /// The scheme's name, as in configuration files: `sr-m2`.
    pub scheme: String,
    /// Configured share of the link.
    pub rate: f64,
    /// Being removed.
    pub draining: bool,
    /// Not used: the peer has no such service, or another one of its number.
    #[serde(default)]
    pub waiting: bool,
    /// Packets that wait.
    pub queue_packets: usize,
    /// Bytes of them.
    pub queue_bytes: usize,
    /// Smoothed round trip of the link, where the service measures it.
    pub srtt_ns: Option<u64>,
    /// What it did, in both directions.
    pub ledger: ServiceLedger,
    /// What its scheme told of, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub events: BTreeMap<String, u64>,
    /// What it offers: goodput of the packets sent here, loss and delay of those received here.
    pub metrics: ServiceMetrics,
    /// What the peer received of the packets sent here, if it said so.
    pub peer: Option<PeerReport>,
    /// e = g (1 - l) of the packets sent here, with the loss that the peer sees.
    pub effective_goodput: Option<f64>,
    /// Of the packets from the peer since the start, the part that the link lost: those that a repair brought, and those
    /// lost for good. None where the service cannot see its losses.
    #[serde(default)]
    pub loss_before_repair: Option<f64>,
}

/// What the peer received.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerReport {
    /// Packets that its service delivered.
    pub received_packets: u64,
    /// Packets that it lost for good.
    pub lost_packets: u64,
    /// l, smoothed, 0 to 1.
    pub loss: Option<f64>,
}

impl ServiceReport {
    /// What status says of a service, with the peer's reports.
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

/// What part of the packets that came was lost before repair and after it, by the services that can see their losses.
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
    let [delivered, recovered, lost] = sums.map(|sum| sum as f64);
    let all = delivered + lost;
    [recovered + lost, lost].map(|part| (all > 0.0).then(|| part / all))
}

impl PeerStatus {
    /// What part of the packets from this peer was lost before repair, and after it, since the start.
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
    fn losses_are_those_of_services_that_see_them() {
        let of = |all: &[(ServiceMetrics, ServiceLedger)]| losses(all.iter().map(|(m, l)| (m, l)));
        let blind = service(None, [1_000, 0, 0]);
        assert_eq!(of(&[blind]), [None, None]);
        assert_eq!(of(&[service(Some(0.0), [0; 3])]), [None, None]);
        let seeing = service(Some(0.01), [90, 5, 10]);
        assert_eq!(of(&[blind, seeing]), [Some(0.15), Some(0.1)]);
    }
}
