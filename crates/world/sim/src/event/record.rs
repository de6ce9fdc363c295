//! Events as flat records with names and units: a line of JSON, or a row of a table.

use airlane_base::{Duration, Instant};
use airlane_link::config::resolve;
use serde::Serialize;

use super::{Dropped, Event, Lost, PacketInfo};
use crate::scenario::Scenario;

/// Names of a scenario's links, flows and services, which events refer to by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    links: Vec<String>,
    /// The nodes at each link's first and second end.
    ends: Vec<[String; 2]>,
    flows: Vec<String>,
    /// By link, then by number; empty if there is no such service.
    services: Vec<Vec<String>>,
}

impl Names {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let services = scenario.links.values().map(|link| {
            let mut names = vec![String::new(); 16];
            let services = scenario.services_of(link);
            if !services.is_empty() {
                for service in resolve(link.header.unwrap_or_default(), &services) {
                    names[usize::from(service.number) % 16] = service.name;
                }
            }
            names
        });
        Self {
            services: services.collect(),
            links: scenario.links.keys().cloned().collect(),
            ends: scenario
                .links
                .values()
                .map(|link| link.ends.clone())
                .collect(),
            flows: scenario.flows.iter().map(|f| f.name.clone()).collect(),
        }
    }

    /// Names of the links, by index.
    pub fn links(&self) -> &[String] {
        &self.links
    }

    /// The name of the node at a link's first end (0) or second (1).
    fn end(&self, link: u16, end: usize) -> Option<&str> {
        Some(self.ends.get(usize::from(link))?[end].as_str())
    }

    /// Names of the flows, by index.
    pub fn flows(&self) -> &[String] {
        &self.flows
    }

    /// The name of a service of a link; none if there is no such service.
    pub fn service(&self, link: u16, number: u8) -> Option<&str> {
        let name = self
            .services
            .get(usize::from(link))?
            .get(usize::from(number))?;
        Some(name.as_str()).filter(|name| !name.is_empty())
    }
}

/// An event as a flat record. Fields that the event does not have are none, and left out of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EventRecord<'a> {
    /// Time since the run's origin.
    pub time_ns: u64,
    /// Name of its kind.
    pub event: &'static str,
    /// Name of the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<&'a str>,
    /// `down` from the link's first end to its second, or `up`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<&'static str>,
    /// Name of the node from which the direction leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_node: Option<&'a str>,
    /// Name of the node to which the direction leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_node: Option<&'a str>,
    /// Name of the service; none on links without services.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<&'a str>,
    /// The kind of the frame; none on links without services.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<&'static str>,
    /// Its sequence number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_seq: Option<u32>,
    /// The next number that its sender expects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_ack: Option<u32>,
    /// Length of the frame with its header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_len_bytes: Option<u32>,
    /// When the frame's last bit will have left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub departs_ns: Option<u64>,
    /// Why it was dropped or lost; for a service, the event reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// Name of the flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<&'a str>,
    /// Which connection of the flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<u32>,
    /// The packet's role in its flow; for a sender, the role of its segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet: Option<&'static str>,
    /// Number of the segment or datagram; in an acknowledgment, the next segment expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Length of the packet without link headers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub len_bytes: Option<u32>,
    /// Whether TCP has sent these bytes before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmission: Option<bool>,
    /// When the packet's host sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_ns: Option<u64>,
    /// Congestion window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwnd_segments: Option<f64>,
    /// Slow start threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssthresh_segments: Option<u64>,
    /// The receiver's advertised window: the part of the congestion window that can be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_segments: Option<u64>,
    /// Smoothed round-trip time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub srtt_ns: Option<u64>,
    /// Retransmission timeout, backoff included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rto_ns: Option<u64>,
    /// How many responses the application has completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Duration of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
}

impl<'a> EventRecord<'a> {
    /// The record of an event at `now`.
    pub fn new(names: &'a Names, now: Instant, event: &Event) -> Self {
        let way = event.way();
        let frame = event.frame();
        let header = frame.and_then(|frame| frame.header);
        let flow = event.flow().and_then(|flow| names.flows.get(flow as usize));
        let service = match *event {
            Event::PacketEntered { service, .. } | Event::PacketDropped { service, .. } => service,
            Event::ServiceReported { event, .. } => Some(event.service),
            _ => header.map(|header| header.service),
        };
        let mut record = Self {
            time_ns: now.as_nanos(),
            event: event.kind().name(),
            link: way.and_then(|way| Some(names.links.get(usize::from(way.link))?.as_str())),
            direction: way.map(|way| if way.down { "down" } else { "up" }),
            from_node: way.and_then(|way| names.end(way.link, usize::from(!way.down))),
            to_node: way.and_then(|way| names.end(way.link, usize::from(way.down))),
            service: way
                .zip(service)
                .and_then(|(way, number)| names.service(way.link, number)),
            frame: header.map(|header| header.kind.name()),
            frame_seq: header.map(|header| header.seq),
            frame_ack: header.and_then(|header| header.ack),
            frame_len_bytes: frame.map(|frame| frame.len_bytes),
            departs_ns: None,
            reason: None,
            flow: flow.map(String::as_str),
            connection: None,
            packet: None,
            seq: None,
            len_bytes: None,
            retransmission: None,
            created_ns: None,
            cwnd_segments: None,
            ssthresh_segments: None,
            window_segments: None,
            srtt_ns: None,
            rto_ns: None,
            number: None,
            duration_ns: None,
        };
        if let Some(packet) = event.packet() {
            record.set_packet(&packet);
        }
        match *event {
            Event::PacketDropped { reason, .. } => {
                record.reason = Some(match reason {
                    Dropped::Queue(reason) => reason.name(),
                    Dropped::NoRoute => "no-route",
                    Dropped::OutOfStep => "out-of-step",
                });
            }
            Event::ServiceReported { event, .. } => record.reason = Some(event.name),
            Event::FrameSent { departs, .. } => record.departs_ns = Some(departs.as_nanos()),
            Event::FrameLost {
                departs, reason, ..
            } => {
                record.departs_ns = Some(departs.as_nanos());
                record.reason = Some(match reason {
                    Lost::Errors => "errors",
                    Lost::Outage => "outage",
                    Lost::Handoff => "handoff",
                    Lost::Policed => "policed",
                });
            }
            Event::TcpState(sender, _) | Event::Timeout(sender) | Event::FastRetransmit(sender) => {
                record.connection = Some(sender.connection);
                record.packet = Some(sender.role.name());
            }
            Event::ResponseDone {
                number, duration, ..
            } => {
                record.number = Some(number);
                record.duration_ns = Some(duration.as_nanos());
            }
            _ => {}
        }
        if let Event::TcpState(_, state) = event {
            record.cwnd_segments = Some(state.cwnd_segments);
            record.ssthresh_segments = Some(state.ssthresh_segments);
            record.window_segments = Some(state.window_segments);
            record.srtt_ns = state.srtt.map(Duration::as_nanos);
            record.rto_ns = Some(state.rto.as_nanos());
        }
        record
    }

    fn set_packet(&mut self, packet: &PacketInfo) {
        self.connection = Some(packet.connection);
        self.packet = Some(packet.role.name());
        self.seq = Some(packet.seq);
        self.len_bytes = Some(packet.len_bytes);
        self.retransmission = Some(packet.retransmission);
        self.created_ns = Some(packet.created.as_nanos());
    }
}
