//! The families of services: one table for the ledger's counters, one for gauges.

use std::fmt;

use airlane_link::ServiceLedger;
use prometheus_client::registry::Unit;

use super::families::{Families, packets, seconds};
use crate::status::{PeerStatus, ServiceReport};

const OUT: &str = "out";
const IN: &str = "in";

/// Unit of a counter.
#[derive(Clone, Copy)]
enum Of {
    Packets,
    Frames,
    Bytes,
    Events,
}

impl Of {
    fn unit(self) -> Option<Unit> {
        match self {
            Self::Packets => Some(Unit::Other("packets".to_owned())),
            Self::Frames => Some(Unit::Other("frames".to_owned())),
            Self::Bytes => Some(Unit::Bytes),
            Self::Events => None,
        }
    }
}

type Count = fn(&ServiceLedger) -> u64;
type Family = (
    &'static str,
    Of,
    &'static str,
    &'static [(&'static str, Count)],
);

/// Counters of the ledger, by direction. Each field of the ledger appears once.
const COUNTERS: &[Family] = &[
    (
        "service_offered",
        Of::Packets,
        "Packets that the classifier gave to the service",
        &[(OUT, |l| l.packets_offered)],
    ),
    (
        "service_offered",
        Of::Bytes,
        "Bytes of the packets offered",
        &[(OUT, |l| l.offered_bytes)],
    ),
    (
        "service_sent",
        Of::Packets,
        "Packets put into a frame for the first time",
        &[(OUT, |l| l.packets_sent)],
    ),
    (
        "service_sent",
        Of::Bytes,
        "Bytes of the packets sent",
        &[(OUT, |l| l.sent_bytes)],
    ),
    (
        "service_spared",
        Of::Bytes,
        "Bytes of the packets sent that did not travel, as the peer can restore their headers",
        &[(OUT, |l| l.spared_bytes)],
    ),
    (
        "service_joined",
        Of::Packets,
        "Packets that shared a frame with one before them, sent and delivered",
        &[(OUT, |l| l.packets_joined), (IN, |l| l.joined_delivered)],
    ),
    (
        "service_cut",
        Of::Packets,
        "Packets that took several frames, sent and delivered",
        &[(OUT, |l| l.packets_cut), (IN, |l| l.packets_reassembled)],
    ),
    (
        "service_fragment",
        Of::Frames,
        "Frames with a part of a packet, put together and delivered",
        &[(OUT, |l| l.fragments_sent), (IN, |l| l.fragments_received)],
    ),
    (
        "service_dropped",
        Of::Bytes,
        "Bytes of the packets dropped before they were sent, whatever the reason",
        &[(OUT, |l| l.dropped_bytes)],
    ),
    (
        "service_epoch_lost",
        Of::Packets,
        "Packets sent and not acknowledged when a new session began or the service went",
        &[(OUT, |l| l.epoch_lost)],
    ),
    (
        "service_epoch_lost",
        Of::Bytes,
        "Bytes of these packets",
        &[(OUT, |l| l.epoch_lost_bytes)],
    ),
    (
        "service",
        Of::Frames,
        "Frames of all kinds, sent and received",
        &[(OUT, |l| l.frames_sent), (IN, |l| l.frames_received)],
    ),
    (
        "service_frame",
        Of::Bytes,
        "Bytes of these frames with their headers",
        &[
            (OUT, |l| l.frame_sent_bytes),
            (IN, |l| l.frame_received_bytes),
        ],
    ),
    (
        "service_repair",
        Of::Frames,
        "Frames among those sent that repeat a packet or carry redundancy",
        &[(OUT, |l| l.repair_frames_sent)],
    ),
    (
        "service_repair",
        Of::Bytes,
        "Bytes of the repair frames with their headers",
        &[(OUT, |l| l.repair_frame_bytes)],
    ),
    (
        "service_control",
        Of::Frames,
        "Frames among those sent without a packet: acknowledgments, NAKs, keepalives",
        &[(OUT, |l| l.control_frames_sent)],
    ),
    (
        "service_control",
        Of::Bytes,
        "Bytes of the control frames with their headers",
        &[(OUT, |l| l.control_frame_bytes)],
    ),
    (
        "service_timeouts",
        Of::Events,
        "Retransmissions because a timer ran out",
        &[(OUT, |l| l.timeouts)],
    ),
    (
        "service_stale_naks",
        Of::Events,
        "NAKs for frames that were no longer kept",
        &[(OUT, |l| l.stale_naks)],
    ),
    (
        "service_suppressed_acks",
        Of::Events,
        "Duplicate acknowledgments that Snoop kept from the TCP sender",
        &[(IN, |l| l.suppressed_acks)],
    ),
    (
        "service_suppressed",
        Of::Bytes,
        "Bytes of the acknowledgments suppressed",
        &[(IN, |l| l.suppressed_bytes)],
    ),
    (
        "service_delivered",
        Of::Packets,
        "Packets given to the layer above",
        &[(IN, |l| l.packets_delivered)],
    ),
    (
        "service_delivered",
        Of::Bytes,
        "Bytes of the packets delivered",
        &[(IN, |l| l.delivered_bytes)],
    ),
    (
        "service_recovered",
        Of::Packets,
        "Packets delivered that a repair brought",
        &[(IN, |l| l.packets_recovered)],
    ),
    (
        "service_recovered",
        Of::Bytes,
        "Bytes of the packets recovered",
        &[(IN, |l| l.recovered_bytes)],
    ),
    (
        "service_late",
        Of::Frames,
        "Repairs that came too late or twice, and were discarded",
        &[(IN, |l| l.late)],
    ),
    (
        "service_late",
        Of::Bytes,
        "Bytes of the late repairs",
        &[(IN, |l| l.late_bytes)],
    ),
    (
        "service_duplicate",
        Of::Frames,
        "Original frames that came twice, and were discarded",
        &[(IN, |l| l.duplicates)],
    ),
    (
        "service_overtaken",
        Of::Frames,
        "Original frames that came after one that was sent later, and before a repair",
        &[(IN, |l| l.overtaken)],
    ),
    (
        "service_out_of_window",
        Of::Frames,
        "Frames that fit no place in the window, and were discarded",
        &[(IN, |l| l.out_of_window)],
    ),
    (
        "service_undecodable_blocks",
        Of::Events,
        "Blocks whose redundancy gave bytes that are no packet",
        &[(IN, |l| l.undecodable)],
    ),
    (
        "service_given_up",
        Of::Packets,
        "Holes abandoned after the last attempt or for lack of room",
        &[(IN, |l| l.given_up)],
    ),
    (
        "service_given_up",
        Of::Bytes,
        "Estimated bytes of the packets given up",
        &[(IN, |l| l.given_up_bytes_estimated)],
    ),
    (
        "service_residual_lost",
        Of::Packets,
        "Packets known to be lost for good: given up, or jumped over",
        &[(IN, |l| l.residual_lost)],
    ),
    (
        "service_residual_lost",
        Of::Bytes,
        "Estimated bytes of the packets lost for good",
        &[(IN, |l| l.residual_lost_bytes_estimated)],
    ),
    (
        "service_incomplete",
        Of::Packets,
        "Packets given up because a fragment never came",
        &[(IN, |l| l.packets_incomplete)],
    ),
    (
        "service_unknown_headers",
        Of::Packets,
        "Packets dropped because the reference of their short headers is not known",
        &[(IN, |l| l.headers_unknown)],
    ),
    (
        "service_malformed",
        Of::Frames,
        "Frames received of no kind that the scheme has, or with neither packets nor a part of one",
        &[(IN, |l| l.malformed)],
    ),
    (
        "service_resyncs",
        Of::Events,
        "Losses of step after which the receiver had to resynchronise",
        &[(IN, |l| l.resyncs)],
    ),
    (
        "service_resets",
        Of::Events,
        "Times that the service began anew because its scheme demanded it",
        &[(OUT, |l| l.resets)],
    ),
];

/// Reasons for drops before sending.
const DROPS: [(&str, Count); 6] = [
    ("queue-full", |l| l.dropped_queue_full),
    ("codel", |l| l.dropped_codel),
    ("window-full", |l| l.dropped_window_full),
    ("disconnected", |l| l.dropped_disconnected),
    ("too-old", |l| l.dropped_too_old),
    ("too-big", |l| l.dropped_too_big),
];

type Measure = fn(&ServiceReport) -> Option<f64>;
type Gauge = (
    &'static str,
    Option<fn() -> Unit>,
    &'static str,
    &'static str,
    Measure,
);

/// Measured or configured quantities: name, unit, direction, help, value.
const GAUGES: &[Gauge] = &[
    (
        "service_queue",
        Some(packets),
        OUT,
        "Packets that wait",
        |s| Some(s.queue_packets as f64),
    ),
    (
        "service_queue",
        Some(|| Unit::Bytes),
        OUT,
        "Bytes that wait",
        |s| Some(s.queue_bytes as f64),
    ),
    (
        "service_rtt",
        Some(|| Unit::Seconds),
        OUT,
        "Smoothed round trip of the link, where the service measures it",
        |s| s.srtt_ns.map(seconds),
    ),
    (
        "service_weight",
        None,
        OUT,
        "Configured share of the link, relative to the other services",
        |s| Some(s.rate),
    ),
    (
        "service_draining",
        None,
        OUT,
        "1 while the service is being removed",
        |s| Some(f64::from(s.draining)),
    ),
    (
        "service_waiting",
        None,
        OUT,
        "1 while the service is not used: the peer has no such one",
        |s| Some(f64::from(s.waiting)),
    ),
    (
        "service_share",
        Some(|| Unit::Other("ratio".to_owned())),
        OUT,
        "Share of the link's bytes that went to this service",
        |s| s.metrics.share,
    ),
    (
        "service_goodput",
        Some(|| Unit::Other("ratio".to_owned())),
        OUT,
        "g: bytes sent for the first time / bytes put on the link",
        |s| s.metrics.goodput,
    ),
    (
        "service_effective_goodput",
        Some(|| Unit::Other("ratio".to_owned())),
        OUT,
        "e = g (1 - l), with the loss that the peer sees",
        |s| s.effective_goodput,
    ),
    (
        "service_queueing",
        Some(|| Unit::Seconds),
        OUT,
        "q: from a packet's arrival until its first frame begins to leave",
        |s| s.metrics.queueing_s,
    ),
    (
        "service_peer_loss",
        Some(|| Unit::Other("ratio".to_owned())),
        OUT,
        "l of the packets sent here, as the peer sees it",
        |s| s.peer?.loss,
    ),
    (
        "service_loss",
        Some(|| Unit::Other("ratio".to_owned())),
        IN,
        "l: packets lost for good / packets lost or received",
        |s| s.metrics.loss,
    ),
    (
        "service_loss_before_repair",
        Some(|| Unit::Other("ratio".to_owned())),
        IN,
        "Packets recovered or lost for good / packets lost or received, since the start",
        |s| s.loss_before_repair,
    ),
    (
        "service_delay",
        Some(|| Unit::Seconds),
        IN,
        "d: one-way time on the link, repairs included",
        |s| s.metrics.delay_s,
    ),
];

/// A peer's name and one of its services.
type OfPeer<'a> = (&'a str, &'a ServiceReport);

pub(super) fn encode(out: &mut Families<'_>, peers: &[PeerStatus]) -> fmt::Result {
    let services: Vec<OfPeer<'_>> = peers
        .iter()
        .flat_map(|peer| peer.services.iter().map(|s| (peer.name.as_str(), s)))
        .collect();
    let services = services.as_slice();
    let numbers: Vec<_> = services.iter().map(|(_, s)| s.number.to_string()).collect();
    let about = services
        .iter()
        .zip(&numbers)
        .map(|((peer, service), number)| {
            let labels = [
                ("peer", *peer),
                ("service", service.name.as_str()),
                ("number", number),
                ("scheme", &service.scheme),
            ];
            (labels, 1.0)
        });
    // A gauge of 1, because a family of type info has all labels in one set.
    out.gauges(
        "service_scheme",
        "Number and scheme of the service",
        None,
        about,
    )?;
    for (name, of, help, ways) in COUNTERS {
        let series = services.iter().flat_map(|service| {
            ways.iter()
                .map(|(way, count)| (labels(*service, way), count(&service.1.ledger)))
        });
        out.counters(name, help, of.unit(), series)?;
    }
    let drops = services.iter().flat_map(|(peer, service)| {
        DROPS.iter().map(|(reason, count)| {
            let labels = [
                ("peer", *peer),
                ("service", service.name.as_str()),
                ("direction", OUT),
                ("reason", *reason),
            ];
            (labels, count(&service.ledger))
        })
    });
    out.counters(
        "service_dropped",
        "Packets dropped before they were sent",
        Of::Packets.unit(),
        drops,
    )?;
    let told = services.iter().flat_map(|(peer, service)| {
        service.events.iter().map(|(event, count)| {
            let labels = [
                ("peer", *peer),
                ("service", service.name.as_str()),
                ("event", event.as_str()),
            ];
            (labels, *count)
        })
    });
    out.counters(
        "service_events",
        "Events of the service's scheme, by name",
        None,
        told,
    )?;
    let hold = services
        .iter()
        .map(|service| (labels(*service, IN), seconds(service.1.ledger.hold_ns)));
    out.counters(
        "service_hold",
        "Time that packets delivered spent here after their frame, or the one that revealed their \
         loss, had come",
        Some(Unit::Seconds),
        hold,
    )?;
    for (name, unit, way, help, measure) in GAUGES {
        let measured = services
            .iter()
            .filter_map(|service| Some((labels(*service, way), measure(service.1)?)));
        out.gauges(name, help, unit.map(|unit| unit()), measured)?;
    }
    for (name, help, count) in PEER {
        let series = services
            .iter()
            .filter_map(|service| Some((labels(*service, OUT), count(service.1)?)));
        out.counters(name, help, Of::Packets.unit(), series)?;
    }
    Ok(())
}

type PeerCount = fn(&ServiceReport) -> Option<u64>;

/// Counts that the peer reports about the packets sent here.
const PEER: [(&str, &str, PeerCount); 2] = [
    (
        "service_peer_received",
        "Packets sent here that the peer's service delivered",
        |s| Some(s.peer?.received_packets),
    ),
    (
        "service_peer_lost",
        "Packets sent here that the peer's service lost for good",
        |s| Some(s.peer?.lost_packets),
    ),
];

fn labels<'a>((peer, service): OfPeer<'a>, way: &'static str) -> [(&'static str, &'a str); 3] {
    [
        ("peer", peer),
        ("service", service.name.as_str()),
        ("direction", way),
    ]
}
