//! A node's status as OpenMetrics text (the specification 1.0), for Prometheus and its like.
//!
//! Every series has the label `link`, the node's name; those of services have `service`, their name in
//! the file, and `direction`: `out` is from here to the peer, `in` from the peer to here. Units are base
//! units and stand in the names. What was not measured yet is left out.
//!
//! [`exporter`] answers those who ask for it.

pub mod exporter;
mod service;

use std::borrow::Cow;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeCounterValue, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::node::drops::Reason;
use crate::status::Status;

/// What an answer says of itself.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Every name begins with it.
const PREFIX: &str = "airlane";
/// Where a session may stand, as status says it.
const STATES: [&str; 5] = [
    "waiting",
    "accepted",
    "confirmed",
    "disconnected",
    "refused",
];

/// `status` as the text of an answer.
pub fn exposition(status: &Status) -> String {
    let labels = [(Cow::from("link"), Cow::from(status.name.clone()))];
    let mut registry = Registry::with_prefix_and_labels(PREFIX, labels.into_iter());
    registry.register_collector(Box::new(Snapshot(status.clone())));
    let mut text = String::with_capacity(32 << 10);
    // A string takes whatever is written.
    let _infallible = text::encode(&mut text, &registry);
    text
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
        session(&mut out, status)?;
        interface(&mut out, status)?;
        underlay(&mut out, status)?;
        secure(&mut out, status)?;
        service::encode(&mut out, &status.services)?;
        let drops = Reason::ALL.iter().map(|reason| {
            let count = status.drops.get(reason.name()).copied();
            ([("reason", reason.name())], count.unwrap_or(0))
        });
        out.counters(
            "dropped",
            "Dropped outside of the services: datagrams, frames, hellos, packets",
            None,
            drops,
        )
    }
}

fn session(out: &mut Families<'_>, status: &Status) -> fmt::Result {
    let session = &status.session;
    let states = STATES.map(|state| ([("state", state)], f64::from(session.state == state)));
    out.gauges(
        "session_state",
        "1 for the state that the session with the peer is in",
        None,
        states,
    )?;
    let established = "Sessions since the start; more than one: the peer was restarted";
    out.counter("sessions", established, None, session.sessions)?;
    let gone = "How often nothing was heard from the peer of a session for three keepalives";
    out.counter("disconnections", gone, None, session.disconnections)?;
    for (name, help, ns) in [
        (
            "session_age",
            "How long the session has lasted",
            session.age_ns,
        ),
        (
            "session_silence",
            "For how long nothing has been heard, while disconnected",
            session.disconnected_ns,
        ),
        (
            "session_rtt",
            "Smoothed round trip of hellos, waiting in the peer's loop included",
            session.rtt_ns,
        ),
    ] {
        out.gauge(name, help, Some(Unit::Seconds), ns.map(seconds))?;
    }
    Ok(())
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
    let rate = Unit::Other("bytes_per_second".to_owned());
    out.gauge(
        "link_rate",
        "What the port shapes to, over whole Ethernet frames",
        Some(rate),
        Some(underlay.rate_bps as f64 / 8.0),
    )?;
    for (name, help, bytes) in [
        (
            "path_mtu",
            "MTU of the path to the peer when it was last asked for",
            underlay.path_mtu_bytes,
        ),
        (
            "frame_overhead",
            "What the layers below and sealing add to each frame",
            underlay.frame_overhead_bytes,
        ),
    ] {
        out.gauge(name, help, Some(Unit::Bytes), Some(bytes as f64))?;
    }
    let ways = |out, r#in| [([("direction", "out")], out), ([("direction", "in")], r#in)];
    out.counters(
        "underlay",
        "Datagrams sent to the peer, and received from anywhere",
        Some(Unit::Other("datagrams".to_owned())),
        ways(underlay.datagrams_sent, underlay.datagrams_received),
    )?;
    out.counters(
        "underlay",
        "Bytes of these datagrams, without UDP, IP and Ethernet",
        Some(Unit::Bytes),
        ways(underlay.sent_bytes, underlay.received_bytes),
    )?;
    let narrowed = "How often the path had become narrower than a frame";
    out.counter("path_narrowed", narrowed, None, underlay.path_narrowed)
}

/// Nothing of it where the link has no keys.
fn secure(out: &mut Families<'_>, status: &Status) -> fmt::Result {
    let Some(secure) = &status.underlay.secure else {
        return Ok(());
    };
    out.gauge(
        "secure_keys_age",
        "Age of the keys in use",
        Some(Unit::Seconds),
        secure.keys_age_ns.map(seconds),
    )?;
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

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn packets() -> Unit {
    Unit::Other("packets".to_owned())
}

/// Writes one family after the other; each must come once.
struct Families<'a>(DescriptorEncoder<'a>);

impl Families<'_> {
    fn counter(&mut self, name: &str, help: &str, unit: Option<Unit>, value: u64) -> fmt::Result {
        let descriptor =
            self.0
                .encode_descriptor(name, help, unit.as_ref(), MetricType::Counter)?;
        ConstCounter::new(value).encode(descriptor)
    }

    fn counters<'l, const N: usize, V: EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        series: impl IntoIterator<Item = ([(&'static str, &'l str); N], V)>,
    ) -> fmt::Result {
        let mut family =
            self.0
                .encode_descriptor(name, help, unit.as_ref(), MetricType::Counter)?;
        for (labels, value) in series {
            ConstCounter::new(value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// A gauge without a value has no family either.
    fn gauge(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        value: Option<f64>,
    ) -> fmt::Result {
        let Some(value) = value else { return Ok(()) };
        let descriptor = self
            .0
            .encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
        ConstGauge::new(value).encode(descriptor)
    }

    fn gauges<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        series: impl IntoIterator<Item = ([(&'static str, &'l str); N], f64)>,
    ) -> fmt::Result {
        let mut family = self
            .0
            .encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
        for (labels, value) in series {
            ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
