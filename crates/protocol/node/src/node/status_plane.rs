//! The node's part in the status plane ([`plane`](super::plane)): registers flows, reads counts, sends and
//! forwards probes.

use std::net::IpAddr;

use airlane_base::Instant;
use airlane_link::FlowKey;
use airlane_session::{Offer, StatusProbe};

use super::Node;
use super::below::Below;
use super::drops::Reason;
use super::link::PeerLink;
use super::plane::{INTERVAL, MOST_FLOWS, Registered, WANTED, ends};
use crate::status::{FlowOffer, RouteOffer};

impl PeerLink {
    fn send_status(&mut self, now: Instant, probe: StatusProbe, below: &mut Below) {
        if let Some(session) = self.session.id() {
            self.push_beside(now, &StatusProbe { session, ..probe }.encode(), below);
        }
    }
}

impl Node {
    /// Registers a flow from this node for a client.
    pub fn register_flow(
        &mut self,
        now: Instant,
        client: u64,
        flow: FlowKey,
    ) -> Result<(), String> {
        if self.has_address(flow.dst) {
            return Err(format!("{} is this end itself", flow.dst));
        }
        let Some(link) = self.links.prefixes.way_to(flow.dst) else {
            return Err(format!("no peer has {}", flow.dst));
        };
        let plane = &mut self.plane;
        plane.flows.retain(|asked| asked.client != client);
        if plane.flows.len() == MOST_FLOWS {
            return Err(format!("{MOST_FLOWS} flows are registered already"));
        }
        plane.numbers = plane.numbers.wrapping_add(1);
        plane.flows.push(Registered {
            client,
            number: plane.numbers,
            flow,
            link,
            service: 0,
            probes: 0,
            route: None,
        });
        self.begin_interval(now);
        Ok(())
    }

    /// The report to a client about its flow.
    pub fn pull_offer(&self, now: Instant, client: u64) -> Result<FlowOffer, String> {
        let plane = &self.plane;
        let asked = plane.flows.iter().find(|asked| asked.client == client);
        let asked = asked.ok_or("register a flow first, by this connection")?;
        let link = self.links.all.get(&asked.link).ok_or("its peer is gone")?;
        let at = (asked.link, asked.service);
        let flows = plane
            .flows
            .iter()
            .filter(|other| (other.link, other.service) == at);
        let name = link.port.service_name(asked.service);
        Ok(FlowOffer {
            peer: link.config.name.clone(),
            service: name.unwrap_or_default().to_owned(),
            flows: flows.count() as u32,
            interval_ns: INTERVAL.as_nanos(),
            local: plane.readings.get(&at).and_then(|reading| reading.offer),
            route: asked.route.map(|(probe, at)| RouteOffer {
                least: probe.least,
                least_out_node: probe.nodes[0],
                least_room_node: probe.nodes[1],
                complete: probe.complete,
                age_ns: now.saturating_since(at).as_nanos(),
            }),
        })
    }

    /// Removes the flows of clients that have disconnected.
    pub fn keep_registered(&mut self, is_there: impl Fn(u64) -> bool) {
        self.plane.keep(is_there);
    }

    /// Whether this end has the address.
    fn has_address(&self, address: IpAddr) -> bool {
        let mut own = self.config.tun.addresses.iter();
        own.any(|own| own.address == address)
    }

    /// Ends an interval if it is time: reads the services and sends probes.
    pub(crate) fn watch_status(&mut self, now: Instant) {
        if now < self.plane.next {
            return;
        }
        let (plane, links) = (&mut self.plane, &self.links);
        plane.readings.retain(|(link, service), reading| {
            let counts = links
                .all
                .get(link)
                .and_then(|link| link.port.interface(*service));
            if let Some(counts) = counts {
                reading.read(now, counts);
            }
            counts.is_some() && reading.wanted > now
        });
        plane.next = Instant::FAR_FUTURE;
        self.begin_interval(now);
    }

    fn begin_interval(&mut self, now: Instant) {
        let Self {
            plane,
            links,
            below,
            ..
        } = self;
        if plane.readings.is_empty() && plane.flows.is_empty() {
            return;
        }
        plane.next = plane.next.min(now + INTERVAL);
        for at in 0..plane.flows.len() {
            let (flow, link) = (plane.flows[at].flow, plane.flows[at].link);
            let Some(link) = links.get_mut(link) else {
                continue;
            };
            let service = link.port.service_of_flow(&flow);
            let own = plane.offer_of(now, link, service, now + INTERVAL * 2);
            let asked = &mut plane.flows[at];
            asked.service = service;
            if let Some(own) = own {
                asked.probes = asked.probes.wrapping_add(1);
                let probe =
                    StatusProbe::new(asked.number, flow.protocol, ends(&flow), asked.probes, own);
                link.send_status(now, probe, below);
            }
        }
    }

    /// Handles a probe from a peer.
    pub(crate) fn on_status_probe(
        &mut self,
        now: Instant,
        from: u8,
        probe: StatusProbe,
    ) -> Result<(), Reason> {
        let Some(link) = self.links.get_mut(from) else {
            return Ok(());
        };
        if !link.session.check(now, probe.session) {
            return Err(Reason::StaleSession);
        }
        let [source, destination] = probe.ends.map(|end| end.ip());
        // A forward probe must come from the peer that has its source, and a returning one from the peer that has its
        // destination, over the link that it was sent on. Any other peer would report on a path that it is not
        // part of.
        let speaker = if probe.back { destination } else { source };
        if self.has_address(speaker) || !self.links.prefixes.has(from, speaker) {
            if let Some(link) = self.links.get_mut(from) {
                link.drops.count_of(now, Reason::WrongSource, &speaker);
            }
            return Ok(());
        }
        if probe.back {
            if !self.plane.take(now, from, &probe)
                && let Some(way) = self.way_on(from, source)
                && let Some(probe) = probe.brought_back()
            {
                self.send_status(now, way, probe);
            }
            return Ok(());
        }
        let way = self.way_on(from, destination);
        match way.filter(|_| !self.has_address(destination)) {
            Some(way) => {
                if let Some(own) = self.offer_on(now, way, &probe)
                    && let Some(probe) = probe.passed_on(own)
                {
                    self.send_status(now, way, probe);
                }
            }
            None => {
                let turned = probe.turned(self.has_address(destination));
                self.send_status(now, from, turned);
            }
        }
        Ok(())
    }

    /// The peer on the way to an address, unless the probe came from that peer.
    fn way_on(&self, from: u8, address: IpAddr) -> Option<u8> {
        let way = self.links.prefixes.way_to(address);
        way.filter(|way| *way != from)
    }

    /// The counts of this node for a flow that it forwards.
    fn offer_on(&mut self, now: Instant, way: u8, probe: &StatusProbe) -> Option<Offer> {
        let Self { plane, links, .. } = self;
        let link = links.all.get(&way)?;
        let [from, to] = probe.ends;
        let flow = FlowKey {
            dscp: 0,
            protocol: probe.protocol,
            src: from.ip(),
            dst: to.ip(),
            src_port: from.port(),
            dst_port: to.port(),
        };
        let service = link.port.service_of_flow(&flow);
        plane.offer_of(now, link, service, now + WANTED)
    }

    fn send_status(&mut self, now: Instant, way: u8, probe: StatusProbe) {
        let Self { links, below, .. } = self;
        if let Some(link) = links.get_mut(way) {
            link.send_status(now, probe, below);
        }
    }
}
