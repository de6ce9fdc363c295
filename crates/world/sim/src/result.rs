//! What a run measured. Units stand in the names; docs/metrics.md defines each word once.

mod measures;
mod progress;

use airlane_channel::{ChannelStats, Count};
use airlane_link::path::PathOffer;
use airlane_link::{ServiceLedger, SnoopCounts};
use airlane_node::status::Status;
use airlane_wifi::station::StationStats;
use serde::Serialize;

use crate::retrace::RetraceResult;
use crate::scenario::HandoffKind;

pub use progress::{GroupResult, Measured, ProgressResult, WindowResult};

/// A metric as a number: name with unit, value.
pub type Scalar = (&'static str, f64);

/// One repetition of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    /// The scenario's name.
    pub scenario: String,
    /// [`Scenario::hash`](crate::Scenario::hash): equal for equal worlds.
    pub scenario_hash: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// Repetition.
    pub run: u64,
    /// Version of this crate.
    pub version: &'static str,
    /// When the applications stopped, simulated seconds.
    pub stopped_s: f64,
    /// Whether the flow named by `until` had finished by then; true without `until`.
    pub finished: bool,
    /// Simulated events.
    pub events: u64,
    /// In the order of the file.
    pub flows: Vec<FlowResult>,
    /// What flows did together, in the order of the words that they are grouped by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupResult>,
    /// In the order of their names.
    pub links: Vec<LinkResult>,
    /// Radio channels with contention, in the order of their names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub radios: Vec<RadioResult>,
    /// What live nodes say of themselves at the stop, as `airlane status --json` does, in the order of the nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeResult>,
    /// The handoffs, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub handoffs: Vec<HandoffResult>,
    /// Packets for a node that was on no link: dropped where they stood.
    #[serde(skip_serializing_if = "Count::is_zero")]
    pub unroutable: Count,
    /// What the paths of the flows offered at the end, by what their services had measured; paths
    /// without services are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathResult>,
    /// What was computed beside the simulation, in the order of the names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retraces: Vec<RetraceResult>,
}

/// A live node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeResult {
    /// The node of the scenario.
    pub node: String,
    /// What it says of itself.
    pub status: Status,
}

/// A node left one link and joined another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HandoffResult {
    /// When it left.
    pub at_s: f64,
    /// How long it had neither.
    pub gap_s: f64,
    /// The node.
    pub node: String,
    /// The link that it left.
    pub from: String,
    /// The link that it joined.
    pub to: String,
    /// Between links of one technology, or of two.
    pub kind: HandoffKind,
}

/// What a path could carry in its main direction (docs/spec/multi-service.md, 10.4), not what it did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathResult {
    /// Names of its ends.
    pub ends: [String; 2],
    /// Names of its links, in order.
    pub links: Vec<String>,
    /// Combinations of services that no other of their class beats. Delays hold what waits in the
    /// ports, and not what waits in front of links without services; services that carried nothing
    /// offer nothing.
    pub offers: Vec<PathOffer>,
}

/// The services of one link that a flow's packets got until the stop, the one with the most packets first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowService {
    /// The link's name.
    pub link: String,
    /// Of packets in the flow's main direction.
    pub there: Vec<ServiceShare>,
    /// Of packets against it.
    pub back: Vec<ServiceShare>,
}

/// What one service got of a flow's packets, in one direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServiceShare {
    /// The service's name.
    pub service: String,
    /// Packets that the port put on it.
    pub packets: u64,
    /// Their share of the flow's packets in this direction.
    pub ratio: f64,
}

/// What one flow achieved. A metric that its application does not have is left out; one that
/// could not be measured (nothing arrived, nothing finished) is left out too.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowResult {
    /// The flow's name.
    pub name: String,
    /// Kind of its application.
    pub app: &'static str,
    /// The services that its packets got, link by link; links without services, and those that none of its packets
    /// came to, are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<FlowService>,
    /// All but conferencing: whether it did all it was to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished: Option<bool>,
    /// Bulk: acknowledged user bits over the time from the first segment sent to the last new
    /// acknowledgment (docs/spec/multi-service.md, 5.1). Pages and web: bits of replies over the time from
    /// the first request to the end of the last reply (5.2). Conferencing: bits delivered while it was on
    /// over that time. What has not done all it was to do is measured to the stop; nothing arrived is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput_bps: Option<f64>,
    /// Bulk: user bytes over all bytes that entered the wireless links in the data direction,
    /// averaged over these links (5.1, XYL-A-6). Only where no other flow uses them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput_ratio: Option<f64>,
    /// User bytes that the receiving application got, in order and once where TCP carries them.
    pub delivered_bytes: u64,
    /// Packets, or segments, given to the network; retransmissions included.
    pub packets_sent: u64,
    /// Packets, or segments, that arrived by the stop.
    pub packets_received: u64,
    /// Packets that were sent by the stop and not lost, and came after it. Of TCP and CLAP, which send again what is lost:
    /// those that had been sent, first or again, and had not come.
    pub packets_under_way: u64,
    /// Conferencing: share of the packets sent that never arrived, not after the stop either, whatever the cause (5.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_ratio: Option<f64>,
    /// Conferencing and bulk: mean one-way delay of the packets that arrived; of TCP each from its own
    /// sending, so that a segment that is sent again counts from then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_mean_s: Option<f64>,
    /// Its standard deviation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_sd_s: Option<f64>,
    /// Mean + 2 standard deviations: a playback point that suits most packets (5.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_mean_plus_2sd_s: Option<f64>,
    /// Median, at most 1/32 too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_median_s: Option<f64>,
    /// The delay that 95 % do not exceed, at most 1/32 too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_p95_s: Option<f64>,
    /// The delay that 99 % do not exceed, at most 1/32 too large. Not of bulk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_p99_s: Option<f64>,
    /// Conferencing: mean of the interarrival jitter of RFC 3550 after each packet that arrived, from the second on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_mean_s: Option<f64>,
    /// Pages: complete ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<u64>,
    /// Pages: mean time from sending a request to having the whole reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_time_mean_s: Option<f64>,
    /// Its standard deviation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_time_sd_s: Option<f64>,
    /// Median, at most 1/32 too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_time_median_s: Option<f64>,
    /// The longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_time_max_s: Option<f64>,
    /// Telnet: keystrokes whose echo is there. Mail: complete checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responses: Option<u64>,
    /// Telnet: mean time from a keystroke to its echo. Mail: mean time of a check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_time_mean_s: Option<f64>,
    /// Its standard deviation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_time_sd_s: Option<f64>,
    /// Median, at most 1/32 too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_time_median_s: Option<f64>,
    /// The time that 95 % do not exceed, at most 1/32 too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_time_p95_s: Option<f64>,
    /// The longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_time_max_s: Option<f64>,
    /// TCP: segments sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmissions: Option<u64>,
    /// TCP: expirations of the retransmission timer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<u64>,
    /// Bulk: times that the congestion window was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_cuts: Option<u64>,
    /// Bulk: segments that arrived although they were there already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicates: Option<u64>,
    /// CLAP: those of them that came before the receiver had swept over the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicates_before_sweep: Option<u64>,
    /// CLAP: reports of what is missing that the receiver sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nacks: Option<u64>,
    /// Bulk: the longest time in which the receiving application got nothing new, from its first bytes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_max_s: Option<f64>,
    /// Bulk with `windows`: mean congestion window of the sender, over the time from its first segment
    /// to its last new acknowledgment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwnd_mean_bytes: Option<f64>,
    /// Bulk with `windows`: the same of what the receiver's window lets use of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_mean_bytes: Option<f64>,
    /// Bulk with `windows`: what the sender waited for timeouts, each since it last sent a segment or got
    /// an acknowledgment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_wait_s: Option<f64>,
    /// Bulk with `windows`: duplicate acknowledgments that the sender got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_acks: Option<u64>,
    /// Behind a relay: segments that it sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay_retransmissions: Option<u64>,
    /// Behind a relay: expirations of its retransmission timer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay_timeouts: Option<u64>,
    /// With a relay: the most bytes that were acknowledged to the source before the receiver had them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay_early_bytes: Option<u64>,
    /// With a relay: the most bytes that it held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay_held_bytes: Option<u64>,
    /// With `progress`: how it went on at its receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressResult>,
    /// Where it was asked for: what it got in each interval of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_time: Option<OverTimeResult>,
}

/// What a flow got, interval by interval from the start of the run to the stop.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OverTimeResult {
    /// How long an interval is; the last one may be cut off by the stop.
    pub interval_s: f64,
    /// `delivered_bytes` that came in each, in bits, over its length.
    pub throughput_bps: Vec<f64>,
}

/// What happened on a radio channel with contention, the drain included.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RadioResult {
    /// The medium's name.
    pub name: String,
    /// Times from the first frame on a silent channel to the last answer that belongs to it.
    pub busy_periods: u64,
    /// Periods among them in which a frame was overlapped where it should have arrived.
    pub collisions: u64,
    /// In the order of their names.
    pub stations: Vec<StationResult>,
}

/// What a station of a radio channel did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StationResult {
    /// Its node.
    pub node: String,
    /// Share of the time until the applications stopped in which it sent; frames that had ended by then.
    pub airtime_ratio: f64,
    /// What it counts.
    #[serde(flatten)]
    pub counts: StationStats,
}

impl RadioResult {
    /// The metrics of the channel that are worth a mean over repetitions.
    pub fn scalars(&self) -> [Scalar; 2] {
        [
            ("busy_periods", self.busy_periods as f64),
            ("collisions", self.collisions as f64),
        ]
    }
}

impl StationResult {
    /// The metrics that are worth a mean over repetitions.
    pub fn scalars(&self) -> [Scalar; 20] {
        let counts = &self.counts;
        let count = |name, count: u64| (name, count as f64);
        [
            ("airtime_ratio", self.airtime_ratio),
            count("frames", counts.frames()),
            count("collided_frames", counts.collided()),
            count("retries", counts.retries),
            count("retry_drops", counts.retry_drops),
            count("queue_drops", counts.queue_drops),
            count("data_frames", counts.data_frames),
            count("data_collided", counts.data_collided),
            count("data_noise", counts.data_noise),
            count("ack_frames", counts.ack_frames),
            count("ack_collided", counts.ack_collided),
            count("rts_frames", counts.rts_frames),
            count("rts_collided", counts.rts_collided),
            count("cts_frames", counts.cts_frames),
            count("cts_collided", counts.cts_collided),
            count("accepted", counts.accepted),
            count("delivered", counts.delivered),
            count("repeated", counts.repeated),
            count("draws_at_cw_max", counts.draws_at_cw_max),
            count("underflows", counts.underflows),
        ]
    }
}

/// What happened on a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkResult {
    /// The link's name.
    pub name: String,
    /// From its first end to its second.
    pub down: DirectionResult,
    /// From its second end to its first.
    pub up: DirectionResult,
}

/// What happened in one direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectionResult {
    /// Frames and bytes offered, dropped, lost on the air, delivered.
    pub channel: ChannelStats,
    /// Offered, and neither dropped, lost nor delivered when the applications stopped.
    pub under_way: Count,
    /// Bits that had left when the applications stopped over those that the link could have sent by then: at its rate, or
    /// at the opportunities that had passed; through a radio channel, at the fastest rate of the station.
    pub utilisation_ratio: f64,
    /// Datagrams of a live node that were longer than `mtu`; they were not offered.
    #[serde(skip_serializing_if = "Count::is_zero")]
    pub too_long: Count,
    /// What the station at the near end did, where the link is a GSM circuit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub circuit: Option<CircuitResult>,
    /// The services of this direction; empty on a link without services.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceResult>,
}

/// What a circuit did in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CircuitResult {
    /// Frames that carried octets, each time that they were sent.
    pub frames: u64,
    /// Of these, frames that had been sent before.
    pub repeated: u64,
    /// Questions how the other station stands.
    pub polls: u64,
    /// How often the near station gave up and both began anew.
    pub resets: u64,
    /// Frames of octets that were under way when they did.
    pub abandoned: u64,
    /// Packets that lost octets there.
    pub spoiled: Count,
    /// Packets that were sent once and lost octets.
    pub missed: Count,
}

/// What one service did for one direction of a link: its sender at the near end, its receiver at
/// the far end. The metrics are those of Xylomenos 1999, table 8.1, as they stood at the end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServiceResult {
    /// Service number.
    pub number: u8,
    /// Its name in the file.
    pub name: String,
    /// The scheme's name, as in configuration files: `sr-m2`.
    pub scheme: &'static str,
    /// g: higher layer bytes sent for the first time / link bytes sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput_ratio: Option<f64>,
    /// l: packets lost for good / packets lost or received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_ratio: Option<f64>,
    /// d: one-way delivery delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<f64>,
    /// q: the wait in the near end's port, not part of d.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queueing_s: Option<f64>,
    /// e = g (1 - l).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective_goodput_ratio: Option<f64>,
    /// Packets that it was offered, and had neither sent nor dropped when the applications stopped.
    pub waiting_packets: u64,
    /// The near end's ledger; its columns "towards the link" are this direction's.
    pub sender: ServiceLedger,
    /// The far end's ledger; its columns "from the link" are this direction's.
    pub receiver: ServiceLedger,
    /// What a Snoop agent at the near end did, by application.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub snoop: Vec<SnoopCounts>,
}

impl LinkResult {
    /// Both directions by their names.
    pub fn directions(&self) -> [(&'static str, &DirectionResult); 2] {
        [("down", &self.down), ("up", &self.up)]
    }
}

impl DirectionResult {
    /// The metrics that are worth a mean over repetitions.
    pub fn scalars(&self) -> Vec<Scalar> {
        let channel = &self.channel;
        let overtaken = channel.overtaken.map(|count| count.frames as f64);
        let all = [
            ("utilisation_ratio", self.utilisation_ratio),
            ("frames", channel.offered.frames as f64),
            ("dropped_frames", channel.dropped_queue.frames as f64),
            ("lost_frames", channel.lost_air.frames as f64),
            ("delivered_frames", channel.delivered.frames as f64),
            ("under_way_frames", self.under_way.frames as f64),
        ];
        let overtaken = overtaken.map(|frames| ("overtaken_frames", frames));
        all.into_iter().chain(overtaken).collect()
    }
}
