//! The status plane of a node (Gopal 2007, section 3.3): the per-service counts that a MAC would export, for
//! clients of the control socket, and the minimum over the nodes of a path, from probes along it.
//!
//! ```text
//!  register, pull ──► plane ── every interval: read the counts of the flow's service
//!                       └───── and a probe with them ──► relay: the minimum of both ──► the destination's node
//!                     route  ◄───────────────────────────────────────────────────────────┘ unchanged
//! ```
//!
//! Without a client there are no readings, no probes and no deadlines. A relay takes readings while probes
//! arrive. Probes are sent like hellos, outside the services: they report on the queues, and would be stale
//! after waiting in them (docs/lab/choices.md). A lost probe is not repeated.
//!
//! Bounds: [`MOST_FLOWS`] and [`MOST_READINGS`]; a probe from a peer causes at most one datagram.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use airlane_base::{Duration, Instant};
use airlane_link::{FlowKey, Interface};
use airlane_session::{Offer, StatusProbe};

use super::link::PeerLink;

pub(crate) const INTERVAL: Duration = Duration::from_nanos(Offer::INTERVAL_NS);
/// Limit of registered flows on this node.
pub(crate) const MOST_FLOWS: usize = 32;
/// Limit of services with readings.
const MOST_READINGS: usize = 64;
/// How long a relay takes readings after a probe.
pub(crate) const WANTED: Duration = Duration::from_secs(1);

/// State of the interfaces that clients and probes ask about.
#[derive(Debug)]
pub(crate) struct StatusPlane {
    /// Start of the next interval.
    pub(crate) next: Instant,
    pub(crate) flows: Vec<Registered>,
    /// By link and service.
    pub(crate) readings: BTreeMap<(u8, u8), Reading>,
    pub(crate) numbers: u16,
}

/// A flow of this node that a client has registered.
#[derive(Debug)]
pub(crate) struct Registered {
    /// The client, by its number on the control socket.
    pub(crate) client: u64,
    pub(crate) number: u16,
    pub(crate) flow: FlowKey,
    pub(crate) link: u8,
    /// Its service in the last interval.
    pub(crate) service: u8,
    pub(crate) probes: u32,
    /// The newest probe that has come back, and when.
    pub(crate) route: Option<(StatusProbe, Instant)>,
}

/// Counts of a service at the start of the present interval, and the result of the previous one.
#[derive(Debug)]
pub(crate) struct Reading {
    at: Instant,
    counts: Interface,
    pub(crate) offer: Option<Offer>,
    pub(crate) wanted: Instant,
}

impl Reading {
    fn begin(now: Instant, counts: Interface) -> Self {
        Self {
            at: now,
            counts,
            offer: None,
            wanted: now,
        }
    }

    /// Ends an interval. One that lasted longer, because the machine was busy, is scaled to the nominal length.
    pub(crate) fn read(&mut self, now: Instant, counts: Interface) {
        let lasted = now.saturating_since(self.at).as_nanos().max(1);
        let since = |now: u64, before: u64| {
            let scaled = u128::from(now.saturating_sub(before)) * u128::from(INTERVAL.as_nanos());
            u32::try_from(scaled / u128::from(lasted)).unwrap_or(u32::MAX)
        };
        let before = self.counts;
        let out_packets = since(counts.taken_packets, before.taken_packets);
        // A service underflows when it runs out of packets. One that was idle throughout did not run out, but
        // counts as one underflow all the same (CLAP-Z10).
        let idle = counts.taken_packets == before.taken_packets && counts.is_idle;
        let underflows = counts.underflows.saturating_sub(before.underflows);
        self.offer = Some(Offer {
            out_packets,
            out_bytes: since(counts.taken_bytes, before.taken_bytes),
            underflows: u32::try_from(underflows)
                .unwrap_or(u32::MAX)
                .max(idle.into()),
            room_bytes: u32::try_from(counts.room_bytes).unwrap_or(u32::MAX),
        });
        (self.at, self.counts) = (now, counts);
    }
}

impl StatusPlane {
    pub(crate) fn new() -> Self {
        Self {
            next: Instant::FAR_FUTURE,
            flows: Vec::new(),
            readings: BTreeMap::new(),
            numbers: 0,
        }
    }

    pub(crate) const fn poll_timeout(&self) -> Instant {
        self.next
    }

    /// Result of a service's last interval, once there is one.
    pub(crate) fn offer_of(
        &mut self,
        now: Instant,
        link: &PeerLink,
        service: u8,
        until: Instant,
    ) -> Option<Offer> {
        let key = (link.to.link, service);
        if !self.readings.contains_key(&key) {
            if self.readings.len() == MOST_READINGS {
                return None;
            }
            let reading = Reading::begin(now, link.port.interface(service)?);
            self.readings.insert(key, reading);
        }
        if self.next == Instant::FAR_FUTURE {
            self.next = now + INTERVAL;
        }
        let reading = self.readings.get_mut(&key)?;
        reading.wanted = reading.wanted.max(until);
        reading.offer
    }

    /// Takes a probe that has come back over a link. Returns whether this node sent it there.
    pub(crate) fn take(&mut self, now: Instant, link: u8, probe: &StatusProbe) -> bool {
        let asked = |asked: &&mut Registered| {
            (asked.number, asked.link, ends(&asked.flow)) == (probe.flow, link, probe.ends)
        };
        let Some(asked) = self.flows.iter_mut().find(asked) else {
            return false;
        };
        let newest = asked.route.map(|(newest, _)| newest.number);
        let sent = probe.number.wrapping_sub(1) < asked.probes;
        if sent && newest.is_none_or(|newest| newest < probe.number) {
            asked.route = Some((*probe, now));
        }
        true
    }

    /// Removes the flows of clients that have disconnected.
    pub(crate) fn keep(&mut self, is_there: impl Fn(u64) -> bool) {
        self.flows.retain(|asked| is_there(asked.client));
    }
}

pub(crate) const fn ends(flow: &FlowKey) -> [SocketAddr; 2] {
    [
        SocketAddr::new(flow.src, flow.src_port),
        SocketAddr::new(flow.dst, flow.dst_port),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_the_difference_since_the_last_report() {
        let at = |ms: u64| Instant::ORIGIN + Duration::from_millis(ms);
        let counts = |packets: u64, dry: u64, is_idle: bool| Interface {
            taken_packets: packets,
            taken_bytes: packets * 1_000,
            underflows: dry,
            room_bytes: 5_000,
            is_idle,
        };
        let mut reading = Reading::begin(at(0), counts(7, 3, true));
        reading.read(at(100), counts(27, 3, false));
        let expected = |out_packets, underflows| {
            Some(Offer {
                out_packets,
                out_bytes: out_packets * 1_000,
                underflows,
                room_bytes: 5_000,
            })
        };
        assert_eq!(reading.offer, expected(20, 0));
        reading.read(at(300), counts(67, 5, false));
        assert_eq!(reading.offer, expected(20, 2), "of twice the time");
        reading.read(at(400), counts(67, 5, true));
        assert_eq!(reading.offer, expected(0, 1), "who idles has too little");
        reading.read(at(500), counts(67, 5, false));
        assert_eq!(
            reading.offer,
            expected(0, 0),
            "and who may not send has not"
        );
    }
}
