//! A node's status as OpenMetrics 1.0 text, for Prometheus and similar scrapers.
//!
//! Every series has the label `link`, the node's name. Series of a peer have `peer`, its name. Series of a
//! service have `service`, its name in the file, and `direction`: `out` is from here to the peer, `in` from the
//! peer to here. Units are base units and are part of the names. Quantities without a measurement are left out.
//!
//! [`exporter`] serves the text.

pub mod exporter;
mod families;
mod service;

use std::borrow::Cow;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::status::{PeerStatus, Status};
use airlane_node::Reason;
use families::{Families, packets, seconds};

/// Content type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Content type of the older text, which everything reads that came before OpenMetrics.
pub const OLDER_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Prefix of every name.
const PREFIX: &str = "airlane";
/// States of a session, as in the status.
const STATES: [&str; 6] = [
    "waiting",
    "accepted",
    "confirmed",
    "unheard",
    "disconnected",
    "refused",
];

/// Encodes `status` as OpenMetrics text.
pub fn exposition(status: &Status) -> String {
    let labels = [(Cow::from("link"), Cow::from(status.name.clone()))];
    let mut registry = Registry::with_prefix_and_labels(PREFIX, labels.into_iter());
    registry.register_collector(Box::new(Snapshot(status.clone())));
    let mut text = String::with_capacity(32 << 10);
    // Writing to a string cannot fail.
    let _infallible = text::encode(&mut text, &registry);
    text
}

/// Converts OpenMetrics to the older text, where a family has the name of its series (a counter's ends in `_total`),
/// and there are neither units nor an end.
pub fn older(text: &str) -> String {
    let mut older = String::with_capacity(text.len());
    let mut help = "";
    for line in text.lines() {
        let described = |what| {
            line.strip_prefix(what)
                .and_then(|line: &str| line.split_once(' '))
        };
        if line.starts_with("# HELP ") {
            help = line;
        } else if let Some((name, kind)) = described("# TYPE ") {
            let (end, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                _ => ("", kind),
            };
            if let Some((_, help)) = help.strip_prefix("# HELP ").and_then(|l| l.split_once(' ')) {
                older += &format!("# HELP {name}{end} {help}\n");
            }
            older += &format!("# TYPE {name}{end} {kind}\n");
        } else if !line.starts_with('#') {
            older += line;
            older.push('\n');
        }
    }
    older
}

#[derive(Debug)]
struct Snapshot(Status);

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (status, mut out) = (&self.0, Families(encoder));
        let version = Info::new([("version", status.version.as_str())]);
        version.encode(out.0.encode_descriptor(
            "build",
            "Version of the program",
            None,
            MetricType::Info,
        )?)?;
        out.gauge(
            "uptime",
            "How long the node has run",
            Some(Unit::Seconds),
            Some(seconds(status.uptime_ns)),
        )?;
        sessions(&mut out, status)?;
        interface(&mut out, status)?;
        underlay(&mut out, status)?;
        paths(&mut out, status)?;
        secure(&mut out, status)?;
        service::encode(&mut out, &status.peers)?;
        dropped(&mut out, status)
    }
}

/// A quantity of each peer.
type OfPeer<T> = fn(&PeerStatus) -> T;
type Gauge = (
    &'static str,
    &'static str,
    Option<Unit>,
    OfPeer<Option<f64>>,
);

fn sessions(out: &mut Families<'_>, status: &Status) -> fmt::Result {
    let states = status.peers.iter().flat_map(|peer| {
        STATES.map(|state| {
            let labels = [("peer", peer.name.as_str()), ("state", state)];
            (labels, f64::from(peer.session.state == state))
        })
    });
    out.gauges(
        "session_state",
        "1 for the state that the session with the peer is in",
        None,
        states,
    )?;
    let established = "Sessions since the start; more than one: the peer was restarted";
    let gone = "How often nothing was heard from the peer of a session for three keepalives";
    let counts: [(&str, &str, OfPeer<u64>); 2] = [
        ("sessions", established, |p| p.session.sessions),
        ("disconnections", gone, |p| p.session.disconnections),
    ];
    for (name, help, count) in counts {
        let series = status.peers.iter().map(|p| (of(p), count(p)));
        out.counters(name, help, None, series)?;
    }
    let times: [(&str, &str, OfPeer<Option<u64>>); 5] = [
        ("session_age", "How long the session has lasted", |p| {
            p.session.age_ns
        }),
        (
            "session_silence",
            "For how long nothing has been heard, while disconnected",
            |p| p.session.disconnected_ns,
        ),
        (
            "session_unheard",
            "For how long the peer, which is heard, has not heard this end",
            |p| p.session.unheard_ns,
        ),
        (
            "session_rtt",
            "Smoothed round trip of hellos, waiting in the peer's loop included",
            |p| p.session.rtt_ns,
        ),
        ("secure_keys_age", "Age of the keys in use", |p| {
            p.keys_age_ns
        }),
    ];
    for (name, help, ns) in times {
        let peers = status.peers.iter();
        let series = peers.filter_map(|p| Some((of(p), seconds(ns(p)?))));
        out.gauges(name, help, Some(Unit::Seconds), series)?;
    }
    Ok(())
}

/// What is sent to each peer, and how.
fn paths(out: &mut Families<'_>, status: &Status) -> fmt::Result {
    let rate = || Unit::Other("bytes_per_second".to_owned());
    let gauges: [Gauge; 4] = [
        (
            "peer_rate",
            "The most that the peer may be sent, over whole Ethernet frames, if the file states it",
            Some(rate()),
            |p| p.rate_bps.map(|bps| bps as f64 / 8.0),
        ),
        (
            "link_sending_rate",
            "Rate of its port now: lower where the link cannot carry the configured one",
            Some(rate()),
            |p| Some(p.sending_rate_bps as f64 / 8.0),
        ),
        (
            "peer_weight",
            "Configured share of the link, relative to the other peers",
            None,
            |p| Some(p.weight),
        ),
        (
            "path_mtu",
            "MTU of the path to the peer when it was last asked for",
            Some(Unit::Bytes),
            |p| Some(p.path_mtu_bytes as f64),
        ),
    ];
    for (name, help, unit, value) in gauges {
        let series = status.peers.iter();
        let series = series.filter_map(|p| Some((of(p), value(p)?)));
        out.gauges(name, help, unit, series)?;
    }
    let datagrams = Unit::Other("datagrams".to_owned());
    let ways: [(&str, Unit, OfPeer<[u64; 2]>); 2] = [
        (
            "Datagrams with frames sent to the peer, and received from it",
            datagrams,
            |p| [p.datagrams_sent, p.datagrams_received],
        ),
        (
            "Bytes of these datagrams, without UDP, IP and Ethernet",
            Unit::Bytes,
            |p| [p.sent_bytes, p.received_bytes],
        ),
    ];
    for (help, unit, both) in ways {
        let series = status.peers.iter().flat_map(|p| {
            let counts = ["out", "in"].into_iter().zip(both(p));
            counts.map(|(way, count)| ([("peer", p.name.as_str()), ("direction", way)], count))
        });
        out.counters("peer", help, Some(unit), series)?;
    }
    let narrowed = "How often the path had become narrower than a frame";
    let series = status.peers.iter().map(|p| (of(p), p.path_narrowed));
    out.counters("path_narrowed", narrowed, None, series)
}

fn of(peer: &PeerStatus) -> [(&'static str, &str); 1] {
    [("peer", &peer.name)]
}

fn interface(out: &mut Families<'_>, status: &Status) -> fmt::Result {
    let tun = &status.tun;
    let mtu = tun.mtu_bytes as f64;
    out.gauge("tun_mtu", "Largest packet", Some(Unit::Bytes), Some(mtu))?;
    let ways = |out, r#in| [([("direction", "out")], out), ([("direction", "in")], r#in)];
    out.counters(
        "tun",
        "Packets from the kernel (out) and to it (in)",
        Some(packets()),
        ways(tun.packets_read, tun.packets_written),
    )?;
    out.counters(
        "tun",
        "Bytes from the kernel (out) and to it (in)",
        Some(Unit::Bytes),
        ways(tun.read_bytes, tun.written_bytes),
    )?;
    let clamped = "TCP SYNs whose maximum segment size was lowered";
    out.counter("tun_mss_clamped", clamped, Some(packets()), tun.mss_clamped)
}

fn underlay(out: &mut Families<'_>, status: &Status) -> fmt::Result {
    let underlay = &status.underlay;
    out.gauge(
        "underlay_port_left",
        "Whether the configured port was replaced by a fresh one, because nothing reached it",
        None,
        Some(f64::from(u8::from(underlay.left_port.is_some()))),
    )?;
    let rate = Unit::Other("bytes_per_second".to_owned());
    out.gauge(
        "link_rate",
        "What is sent to all peers at most, over whole Ethernet frames, if the file states it",
        Some(rate),
        underlay.rate_bps.map(|bps| bps as f64 / 8.0),
    )?;
    out.gauge(
        "frame_overhead",
        "What the layers below and sealing add to each frame",
        Some(Unit::Bytes),
        Some(underlay.frame_overhead_bytes as f64),
    )?;
    let ways = |out, r#in| [([("direction", "out")], out), ([("direction", "in")], r#in)];
    out.counters(
        "underlay",
        "Datagrams sent to anybody, handshakes among them, and received from anywhere",
        Some(Unit::Other("datagrams".to_owned())),
        ways(underlay.datagrams_sent, underlay.datagrams_received),
    )?;
    out.counters(
        "underlay",
        "Bytes of these datagrams, without UDP, IP and Ethernet",
        Some(Unit::Bytes),
        ways(underlay.sent_bytes, underlay.received_bytes),
    )?;
    let Some(interface) = &underlay.interface else {
        return Ok(());
    };
    for (name, help, is_so) in [
        (
            "interface_up",
            "Whether the interface below exists and is switched on",
            interface.up,
        ),
        (
            "interface_carrier",
            "Whether the interface below has a carrier",
            interface.carrier,
        ),
    ] {
        out.gauge(name, help, None, Some(f64::from(u8::from(is_so))))?;
    }
    let losses = "How often the interface below went down or away";
    out.counter("interface_losses", losses, None, interface.losses)?;
    let missed = "Frames that the kernel dropped, as they came faster than they were read";
    out.counter(
        "interface_missed",
        missed,
        Some(Unit::Other("frames".to_owned())),
        interface.missed_frames,
    )
}

/// Counters of the secure sessions; none without keys.
fn secure(out: &mut Families<'_>, status: &Status) -> fmt::Result {
    let Some(secure) = &status.underlay.secure else {
        return Ok(());
    };
    out.counters(
        "secure_handshakes",
        "Handshakes begun here and answered here",
        None,
        [
            ([("role", "initiator")], secure.handshakes_begun),
            ([("role", "responder")], secure.handshakes_answered),
        ],
    )?;
    let cookies = "Cookies sent to others, under load";
    out.counter("secure_cookies", cookies, None, secure.cookies_sent)?;
    let refused = "Datagrams refused; airlane_dropped_total has the reasons";
    out.counter("secure_refused", refused, None, secure.refused)
}

/// Drops by reason. Drops that belong to no known peer have no label `peer`; for each peer only reasons that
/// occurred are listed.
fn dropped(out: &mut Families<'_>, status: &Status) -> fmt::Result {
    let mut family = out.0.encode_descriptor(
        "dropped",
        "Dropped outside of the services: datagrams, frames, hellos, packets",
        None,
        MetricType::Counter,
    )?;
    for reason in Reason::ALL.iter().map(|reason| reason.name()) {
        let count = status.drops.get(reason).copied().unwrap_or(0);
        let labels = [("reason", reason)];
        ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
    }
    for peer in &status.peers {
        for (reason, count) in &peer.drops {
            let labels = [("peer", peer.name.as_str()), ("reason", reason)];
            ConstCounter::new(*count).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
