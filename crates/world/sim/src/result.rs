//! The measurements of a run. Names contain units; docs/metrics.md defines each term.

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
    /// Results of groups of flows, in the order of their names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupResult>,
    /// In the order of their names.
    pub links: Vec<LinkResult>,
    /// Radio channels with contention, in the order of their names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub radios: Vec<RadioResult>,
    /// The status of live nodes at the stop, as `airlane status --json` prints it, in the order of the nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeResult>,
    /// The handoffs, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub handoffs: Vec<HandoffResult>,
    /// Packets for a node that was on no link: dropped where they were.
    #[serde(skip_serializing_if = "Count::is_zero")]
    pub unroutable: Count,
    /// What the paths of the flows offered at the end, according to the measurements of their services; paths without
    /// services are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathResult>,
    /// Retrace analyses, in the order of their names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retraces: Vec<RetraceResult>,
}

/// A live node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeResult {
    /// The node of the scenario.
    pub node: String,
    /// Its own status report.
    pub status: Status,
}

/// A node left one link and joined another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HandoffResult {
    /// When it left.
    pub at_s: f64,
    /// How long it was on neither link.
    pub gap_s: f64,
    /// The node.
    pub node: String,
    /// The link that it left.
    pub from: String,
    /// The link that it joined.
    pub to: String,
    /// Whether both links have the same technology.
    pub kind: HandoffKind,
}

/// What a path could carry in its main direction (docs/spec/multi-service.md, 10.4), not what it did carry.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathResult {
    /// Names of its ends.
    pub ends: [String; 2],
    /// Names of its links, in order.
    pub links: Vec<String>,
    /// Combinations of services that no other combination of their class beats. Delays include waiting in the ports,
    /// but not before links without services; services that carried nothing offer nothing.
    pub offers: Vec<PathOffer>,
}

/// The services of one link that carried a flow's packets until the stop, the one with the most packets first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowService {
    /// The link's name.
    pub link: String,
    /// For packets in the flow's main direction.
    pub there: Vec<ServiceShare>,
    /// For packets against it.
    pub back: Vec<ServiceShare>,
}

/// One service's share of a flow's packets, in one direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServiceShare {
    /// The service's name.
    pub service: String,
    /// Packets that the port assigned to it.
    pub packets: u64,
    /// Their share of the flow's packets in this direction.
    pub ratio: f64,
}

/// The results of one flow. A metric is absent if its application does not have it, or if it could not be measured
/// because nothing arrived or finished.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowResult {
    /// The flow's name.
    pub name: String,
    /// Kind of its application.
    pub app: &'static str,
    /// The services that carried its packets, link by link. Links without services, and links that none of its
    /// packets reached, are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<FlowService>,
    /// All but conferencing: whether it has finished its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished: Option<bool>,
    /// Bulk: acknowledged user bits over the time from the first segment sent to the last new acknowledgment
    /// (docs/spec/multi-service.md, 5.1). Pages and web: bits of replies over the time from the first request to the
    /// end of the last reply (5.2). Conferencing: bits delivered before the end of the application over its duration.
    /// An unfinished application is measured up to the stop; the value is 0 if nothing arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput_bps: Option<f64>,
    /// Bulk: user bytes over all bytes that entered the wireless links in the data direction, averaged over these
    /// links (5.1, XYL-A-6). Only if no other flow uses them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput_ratio: Option<f64>,
    /// User bytes delivered to the receiving application; over TCP in order and without duplicates.
    pub delivered_bytes: u64,
    /// Packets, or segments, handed to the network, retransmissions included.
    pub packets_sent: u64,
    /// Packets, or segments, that arrived by the stop.
    pub packets_received: u64,
    /// Packets sent before the stop that arrived after it. For TCP and CLAP, which retransmit: packets sent, first or
    /// again, that had not arrived by the stop.
    pub packets_under_way: u64,
    /// Conferencing: share of the packets sent that never arrived, even after the stop, whatever the cause (5.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_ratio: Option<f64>,
    /// Conferencing and bulk: mean one-way delay of the packets that arrived. For TCP, each transmission counts
    /// separately, so a retransmitted segment counts from its retransmission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_mean_s: Option<f64>,
    /// Its standard deviation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_sd_s: Option<f64>,
    /// Mean + 2 standard deviations: a playout point that suits most packets (5.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_mean_plus_2sd_s: Option<f64>,
    /// Median; overestimated by at most 1/32.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_median_s: Option<f64>,
    /// 95th percentile; overestimated by at most 1/32.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_p95_s: Option<f64>,
    /// 99th percentile; overestimated by at most 1/32. Not for bulk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_p99_s: Option<f64>,
    /// Conferencing: mean of the interarrival jitter (RFC 3550) after each packet that arrived, from the second on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_mean_s: Option<f64>,
    /// Pages: number completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<u64>,
    /// Pages: mean time from sending a request to having the whole reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_time_mean_s: Option<f64>,
    /// Its standard deviation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_time_sd_s: Option<f64>,
    /// Median; overestimated by at most 1/32.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_time_median_s: Option<f64>,
    /// The time that 95 % do not exceed; overestimated by at most 1/32.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_time_p95_s: Option<f64>,
    /// The longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_time_max_s: Option<f64>,
    /// Telnet: keystrokes whose echo has arrived. Mail: completed checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responses: Option<u64>,
    /// Telnet: mean time from a keystroke to its echo. Mail: mean time of a check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_time_mean_s: Option<f64>,
    /// Its standard deviation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_time_sd_s: Option<f64>,
    /// Median; overestimated by at most 1/32.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_time_median_s: Option<f64>,
    /// 95th percentile; overestimated by at most 1/32.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_time_p95_s: Option<f64>,
    /// The longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_time_max_s: Option<f64>,
    /// TCP: retransmitted segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmissions: Option<u64>,
    /// TCP: expirations of the retransmission timer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<u64>,
    /// Bulk: reductions of the congestion window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_cuts: Option<u64>,
    /// Bulk: duplicate segments received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicates: Option<u64>,
    /// CLAP: those of the duplicates that arrived before the receiver had first gone through the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicates_before_sweep: Option<u64>,
    /// CLAP: NACKs that the receiver sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nacks: Option<u64>,
    /// Bulk: the longest time in which the receiving application got no new data, after its first bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_max_s: Option<f64>,
    /// Bulk with `windows`: mean congestion window of the sender, over the time from its first segment
    /// to its last new acknowledgment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwnd_mean_bytes: Option<f64>,
    /// Bulk with `windows`: likewise, the mean of its part that the receiver's window allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_mean_bytes: Option<f64>,
    /// Bulk with `windows`: time that the sender waited for timeouts, each from its last segment sent or
    /// acknowledgment received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_wait_s: Option<f64>,
    /// Bulk with `windows`: duplicate acknowledgments that the sender received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_acks: Option<u64>,
    /// Bulk with `window-level`: how often the sender's congestion window fell below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_falls: Option<u64>,
    /// With a relay: segments that it retransmitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay_retransmissions: Option<u64>,
    /// With a relay: expirations of its retransmission timer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay_timeouts: Option<u64>,
    /// With a relay: the most bytes that were acknowledged to the source before the receiver had them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay_early_bytes: Option<u64>,
    /// With a relay: the most bytes that it held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay_held_bytes: Option<u64>,
    /// With `progress`: its progress at the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressResult>,
    /// If requested: its throughput in each interval of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_time: Option<OverTimeResult>,
}

/// A flow's throughput, interval by interval from the start of the run to the stop.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OverTimeResult {
    /// Length of an interval; the stop may cut the last one short.
    pub interval_s: f64,
    /// Bits of `delivered_bytes` that arrived in each interval, over its length.
    pub throughput_bps: Vec<f64>,
}

/// Results of a radio channel with contention, the drain included.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RadioResult {
    /// The medium's name.
    pub name: String,
    /// Periods from the first frame on an idle channel to the last response that belongs to it.
    pub busy_periods: u64,
    /// Of these, periods in which a frame collided at its receiver.
    pub collisions: u64,
    /// In the order of their names.
    pub stations: Vec<StationResult>,
}

/// Results of a station of a radio channel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StationResult {
    /// Its node.
    pub node: String,
    /// Share of the time until the applications stopped in which it was sending; counts frames that had ended by
    /// then.
    pub airtime_ratio: f64,
    /// Its counters.
    #[serde(flatten)]
    pub counts: StationStats,
}

impl RadioResult {
    /// The metrics of the channel that are averaged over repetitions.
    pub fn scalars(&self) -> [Scalar; 2] {
        [
            ("busy_periods", self.busy_periods as f64),
            ("collisions", self.collisions as f64),
        ]
    }
}

impl StationResult {
    /// The metrics that are averaged over repetitions.
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

/// Results of a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkResult {
    /// The link's name.
    pub name: String,
    /// From its first end to its second.
    pub down: DirectionResult,
    /// From its second end to its first.
    pub up: DirectionResult,
}

/// Results of one direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectionResult {
    /// Frames and bytes offered, dropped, lost on the air, delivered.
    pub channel: ChannelStats,
    /// Offered, and neither dropped, lost nor delivered, when the applications stopped.
    pub under_way: Count,
    /// Bits that had left when the applications stopped, over those that the link could have sent by then: at its
    /// rate, or at the opportunities that had passed; on a radio channel, at the highest rate of the station.
    pub utilisation_ratio: f64,
    /// A live node's datagrams longer than `mtu`; they were not offered.
    #[serde(skip_serializing_if = "Count::is_zero")]
    pub too_long: Count,
    /// Counters of the station at the near end, if the link is a GSM circuit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub circuit: Option<CircuitResult>,
    /// Counters of both its ends, if the link compresses headers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<HeadersResult>,
    /// The services of this direction; empty on a link without services.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceResult>,
}

/// Counters of one direction of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CircuitResult {
    /// Frames that carried octets, retransmissions included.
    pub frames: u64,
    /// Of these, retransmissions.
    pub repeated: u64,
    /// Requests for the status of the other station.
    pub polls: u64,
    /// How often the near station gave up and both stations reset.
    pub resets: u64,
    /// Frames with octets that were in flight then.
    pub abandoned: u64,
    /// Packets that lost octets because of that.
    pub spoiled: Count,
    /// Packets of the stream without repair that lost octets.
    pub missed: Count,
}

/// Counters of one direction of a link that compresses the headers of TCP/IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HeadersResult {
    /// Packets that left with whole headers, which the far end kept.
    pub whole: u64,
    /// Packets that left with compressed headers.
    pub compressed: u64,
    /// Bytes of the headers of both.
    pub bytes: u64,
    /// Packets that the far end dropped, because a packet before them was lost.
    pub out_of_step: Count,
}

impl HeadersResult {
    /// Mean length of a TCP/IP header on the link, bytes; NaN without any.
    pub fn mean_bytes(&self) -> f64 {
        self.bytes as f64 / (self.whole + self.compressed) as f64
    }
}

/// Results of one service in one direction of a link: its sender at the near end, its receiver at the far end. The
/// metrics are those of Xylomenos 1999, table 8.1, at the end of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServiceResult {
    /// Service number.
    pub number: u8,
    /// Its name in the file.
    pub name: String,
    /// The scheme's name, as in configuration files: `sr-m2`.
    pub scheme: &'static str,
    /// g: higher-layer bytes sent for the first time / link bytes sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput_ratio: Option<f64>,
    /// l: packets abandoned / packets abandoned or received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_ratio: Option<f64>,
    /// d: one-way delivery delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<f64>,
    /// q: the time spent waiting in the near end's port, not included in d.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queueing_s: Option<f64>,
    /// e = g (1 - l).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective_goodput_ratio: Option<f64>,
    /// Packets that had been neither sent nor dropped when the applications stopped.
    pub waiting_packets: u64,
    /// The near end's ledger; its columns "towards the link" belong to this direction.
    pub sender: ServiceLedger,
    /// The far end's ledger; its columns "from the link" belong to this direction.
    pub receiver: ServiceLedger,
    /// Counters of a Snoop agent at the near end, by application.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub snoop: Vec<SnoopCounts>,
}

impl LinkResult {
    /// Both directions with their names.
    pub fn directions(&self) -> [(&'static str, &DirectionResult); 2] {
        [("down", &self.down), ("up", &self.up)]
    }
}

impl DirectionResult {
    /// The metrics that are averaged over repetitions.
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
