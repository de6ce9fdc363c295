//! Status reports for the control socket.

use std::cmp::Reverse;

use airlane_base::{Duration, Instant, Rate};
use airlane_link::config::RateLimit;

use super::Node;
use super::below::Below;
use super::drops::{Drops, Reason};
use super::link::PeerLink;
use crate::config::USUAL_DELAY;
use crate::status::{
    PROTOCOL, PeerFlows, PeerStatus, ServiceReport, SessionReport, Status, TunReport,
    UnderlayReport, commit,
};

/// Flows in one answer, over all peers: as many as fit the socket's buffer.
const MOST_FLOWS: usize = 150;

/// A flow that is silent for longer has probably ended, seconds.
const SILENT_S: f64 = 30.0;

impl Node {
    /// The known flows: first those that run, then by bytes.
    pub fn flows(&self, now: Instant) -> Vec<PeerFlows> {
        let classes = self.config.link.ready_made();
        let most = MOST_FLOWS / self.links.iter().count().max(1);
        let links = self.links.iter().map(|link| {
            let mut flows = link.port.flows(now);
            flows.sort_by_key(|flow| {
                let bytes = flow.sent_bytes + flow.received_bytes;
                (flow.silent_s > SILENT_S, Reverse(bytes))
            });
            let others = flows.len().saturating_sub(most) as u64;
            flows.truncate(most);
            PeerFlows {
                peer: link.config.name.clone(),
                flows,
                others,
                classes: classes.clone(),
            }
        });
        links.collect()
    }

    /// The status, without the state of the interfaces, which the driver adds.
    pub fn status(&self, now: Instant) -> Status {
        let below = &self.below;
        Status {
            schema: 2,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: commit().map(str::to_owned),
            protocol: PROTOCOL,
            name: self.name.clone(),
            uptime_ns: now.saturating_since(self.started).as_nanos(),
            tun: TunReport {
                name: self.config.tun.name.clone(),
                mtu_bytes: self.mtu,
                packets_read: self.packets_read,
                read_bytes: self.read_bytes,
                packets_written: self.packets_written,
                written_bytes: self.written_bytes,
                mss_clamped: self.mss_clamped,
            },
            underlay: UnderlayReport {
                listen: below.underlay.listen(),
                interface: None,
                left_port: self.left_port(),
                security: match below.guard {
                    Some(_) => "noise-ik".to_owned(),
                    None => "none".to_owned(),
                },
                secure: below.guard.as_ref().map(|guard| guard.report()),
                rate_bps: RateLimit::stated(self.config.link.rate).map(Rate::as_bps),
                frame_overhead_bytes: below.underlay.wire_overhead(None) + below.sealing(),
                datagrams_sent: below.datagrams_sent,
                sent_bytes: below.bytes_sent,
                datagrams_received: below.datagrams_received,
                received_bytes: below.received_bytes,
            },
            classes: self.config.link.classes.rules(&self.config.link.services),
            peers: self
                .links
                .iter()
                .map(|link| PeerStatus {
                    shares_with: self.shares_with(link.to.link),
                    ..link.status(now, below, self.config.link.rate)
                })
                .collect(),
            drops: named(&below.drops).collect(),
            callers: below.callers.report(now),
        }
    }

    /// Drops for this reason outside the services.
    pub fn dropped(&self, reason: Reason) -> u64 {
        let links = self.links.iter().map(|link| link.drops.of(reason));
        self.below.drops.of(reason) + links.sum::<u64>()
    }
}

impl PeerLink {
    /// The port's estimate of the delay; if the file gives no delay, with half the measured round trip in
    /// place of the default.
    fn delay_of(&self, said: Option<f64>) -> Option<f64> {
        let assumed = self.port.config().delay;
        if assumed != USUAL_DELAY {
            return said;
        }
        let measured = self.session.srtt()? / 2;
        Some((said? - assumed.as_secs_f64() + measured.as_secs_f64()).max(0.0))
    }

    fn status(&self, now: Instant, below: &Below, link: Rate) -> PeerStatus {
        let since = |then: Instant| now.saturating_since(then).as_nanos();
        let state = serde_json::to_value(self.session.state());
        let state = state.as_ref().ok().and_then(serde_json::Value::as_str);
        let keys = below.guard.as_ref().zip(self.to.session);
        let config = &self.config;
        let journal = self.port.has_lost_journal();
        let journal = journal.then(|| ("journal-ended".to_owned(), 1));
        PeerStatus {
            name: config.name.clone(),
            address: self.to.address,
            answered_from: self.to.from,
            host: config.host().map(ToString::to_string),
            unresolved: self
                .lookup
                .as_ref()
                .and_then(|lookup| lookup.obstacle().map(str::to_owned)),
            key: config.key.map(|key| key.to_string()),
            keys_age_ns: keys
                .and_then(|(guard, session)| guard.keys_age(now, session))
                .map(Duration::as_nanos),
            version: self
                .about
                .theirs
                .as_ref()
                .map(|about| about.version.clone()),
            tunnel_addresses: (self.about.theirs.as_ref())
                .map_or_else(Vec::new, |about| about.addresses.clone()),
            prefixes: config.prefixes.iter().map(ToString::to_string).collect(),
            weight: config.weight,
            rate_bps: RateLimit::stated(config.rate.unwrap_or(link)).map(Rate::as_bps),
            sending_rate_bps: self.port.rate().as_bps(),
            found_rate: self.port.found_rate(),
            shares_with: Vec::new(),
            path_mtu_bytes: self.path.mtu(),
            path_too_narrow: self.path.is_too_narrow(),
            path_narrowed: self.narrowed,
            datagrams_sent: self.datagrams_sent,
            sent_bytes: self.sent_bytes,
            datagrams_received: self.datagrams_received,
            received_bytes: self.received_bytes,
            session: SessionReport {
                state: state.unwrap_or_default().to_owned(),
                id: self.session.id(),
                epoch: format!("{:016x}", self.session.epoch()),
                peer_epoch: self.session.peer_epoch().map(|e| format!("{e:016x}")),
                age_ns: self.session_since.map(since),
                sessions: self.sessions,
                disconnections: self.disconnections,
                disconnected_ns: self.disconnected_since.map(since),
                unheard_ns: self.session.unheard_since().map(since),
                reached_ns: self.session.reached().map(since),
                rtt_ns: self.session.srtt().map(Duration::as_nanos),
                refused: self.refused.clone(),
                other_protocol: self.session.other_version(),
                shared_key: self.shared_key.found(now),
            },
            services: self
                .port
                .services()
                .map(|service| {
                    let mut report = ServiceReport::new(service, self.session.peer_reports());
                    report.metrics.delay_s = self.delay_of(report.metrics.delay_s);
                    report
                })
                .collect(),
            drops: named(&self.drops).chain(journal).collect(),
        }
    }
}

fn named(drops: &Drops) -> impl Iterator<Item = (String, u64)> + '_ {
    drops
        .iter()
        .map(|(reason, count)| (reason.name().to_owned(), count))
}
