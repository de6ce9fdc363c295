//! The event loop: integer nanoseconds, one deadline per component, a total order of events.
//!
//! ```text
//!            +--------- Deadlines: (time, slot) ----------+
//!            v                   v                        v
//!  slots:  link directions     ports of service links    flows, what is planned
//!            | arrival           | timer, link free        | timer, talk
//!            v                   v                         v
//!          node --route--> link direction, port, or flow at this node
//! ```
//!
//! A FIFO link knows the arrival time of a frame when the frame is handed over, so a packet costs one event per hop.
//! Ports pace themselves, or are driven by a link that decides when it takes the next frame. Everything that follows
//! from an event at the same instant (a forwarded packet, the acknowledgment it causes, the segments that this
//! releases) is handled within that event.
//!
//! Invariants: time never goes back; two events at one instant are handled in the order of their slots; once the
//! queues have grown to their working size, a packet needs no allocation. A run uses one thread; parallelism is
//! across runs.

pub(crate) mod agenda;
pub(crate) mod circuit;
mod circuits;
pub(crate) mod deadlines;
mod live;
pub(crate) mod lives;
pub(crate) mod medium;
pub(crate) mod next_hops;
pub(crate) mod observe;
mod planned;
pub(crate) mod radio;
pub(crate) mod served;
mod shrunk;
mod stations;
pub(crate) mod status;
mod transmit;
mod turns;

use std::collections::VecDeque;

use airlane_base::{Instant, Payload as _};
use airlane_channel::Count;
use airlane_link::{Frame, Outcome, Port};

use crate::app::Flow;
use crate::error::ScenarioError;
use crate::packet::Packet;
use agenda::Agenda;
use deadlines::{Deadlines, Slots};
use lives::Lives;
use medium::{Air, Direction, Medium};
use next_hops::{NextHop, NextHops};
use observe::{Departure, Nobody, Observer};
use radio::{Carried, RadioEnd};
use served::Served;
use status::Daemons;
use transmit::{loss, put_on_link, show_port, transmit};

/// One end of a link with services.
#[derive(Clone, Debug)]
pub(crate) struct PortEnd {
    pub(crate) port: Port<Packet>,
    /// The node where it is.
    pub(crate) node: u16,
    /// The direction of the link that takes its frames.
    pub(crate) out: u32,
    /// Whether that direction itself decides when it takes a frame.
    pub(crate) driven: bool,
}

/// All components that an engine runs.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) directions: Vec<Direction>,
    pub(crate) airs: Vec<Air>,
    pub(crate) ports: Vec<PortEnd>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) agenda: Agenda,
    pub(crate) radios: Vec<RadioEnd>,
    pub(crate) daemons: Daemons,
    pub(crate) lives: Lives,
    pub(crate) next_hops: NextHops,
}

/// A running world.
#[derive(Debug)]
pub(crate) struct Engine {
    now: Instant,
    events: u64,
    /// The flow that ends the run when it has finished, and whether it has.
    until: Option<usize>,
    over: bool,
    slots: Slots,
    deadlines: Deadlines,
    pub(crate) directions: Vec<Direction>,
    /// Transmitters that several directions share.
    airs: Vec<Air>,
    pub(crate) ports: Vec<PortEnd>,
    pub(crate) flows: Vec<Flow>,
    /// Which services carried the packets of each flow.
    pub(crate) served: Vec<Served>,
    agenda: Agenda,
    pub(crate) radios: Vec<RadioEnd>,
    daemons: Daemons,
    pub(crate) lives: Lives,
    /// Weights from a policy that no port can apply.
    refused: Option<ScenarioError>,
    /// Packets without a route to their destination.
    unroutable: Count,
    next_hops: NextHops,
    /// Packets that ports have delivered at a node. They are forwarded only when the port is drained, because their
    /// consequences may come back to the same port.
    delivered: VecDeque<(u16, Packet)>,
}

impl Engine {
    pub(crate) fn new(world: World) -> Self {
        let World {
            directions,
            airs,
            ports,
            flows,
            agenda,
            radios,
            daemons,
            lives,
            next_hops,
        } = world;
        // Few worlds have daemons: the others get no slot for them.
        let counts = [directions.len(), ports.len(), flows.len(), radios.len()];
        let slots = Slots::new(counts, !daemons.is_empty());
        let mut engine = Self {
            now: Instant::ORIGIN,
            events: 0,
            until: None,
            over: false,
            slots,
            deadlines: Deadlines::new(slots.lives + lives.ends.len()),
            directions,
            airs,
            ports,
            served: vec![Served::default(); flows.len()],
            flows,
            agenda,
            radios,
            daemons,
            lives,
            refused: None,
            unroutable: Count::default(),
            next_hops,
            delivered: VecDeque::new(),
        };
        for flow in 0..engine.flows.len() {
            engine.schedule_flow(flow);
        }
        engine.schedule_agenda();
        engine.schedule_daemons();
        engine.begin_lives();
        engine
    }

    /// Simulates all events up to `end`, or until the flow `until` has finished. Returns whether it has reached its
    /// end.
    pub(crate) fn run<O: Observer>(
        &mut self,
        end: Instant,
        until: Option<usize>,
        observer: &mut O,
    ) -> bool {
        if O::WATCHES {
            for end in &mut self.ports {
                end.port.keep_dropped();
                end.port.keep_events();
            }
            for end in &mut self.radios {
                end.radio.keep_aired();
            }
        }
        self.until = until;
        self.over = until.is_some_and(|flow| self.flows[flow].is_finished());
        let slots = self.slots;
        loop {
            let (at, slot) = self.deadlines.first();
            if at > end || at == Instant::FAR_FUTURE {
                break;
            }
            debug_assert!(at >= self.now, "time went back in slot {slot}");
            self.now = at;
            self.events += 1;
            if slot < slots.ports {
                self.on_arrival(slot, observer);
            } else if slot < slots.flows {
                self.on_port_timer(slot - slots.ports, observer);
            } else if slot < slots.agenda {
                self.on_flow_timer(slot - slots.flows, observer);
            } else if slot < slots.radios {
                self.on_agenda(observer);
                if self.refused.is_some() {
                    return false;
                }
            } else if slot < slots.daemons {
                self.on_radio(slot - slots.radios, observer);
            } else if slot >= slots.lives {
                self.on_live_timer(slot - slots.lives, observer);
            } else {
                let (radios, flows) = (&self.radios, &mut self.flows);
                self.daemons.handle_timeout(self.now, radios, flows);
                self.schedule_daemons();
            }
            while let Some((node, packet)) = self.delivered.pop_front() {
                self.arrive(node, &packet, observer);
            }
            if self.over || (O::WATCHES && observer.is_over()) {
                return false;
            }
        }
        self.now = end;
        true
    }

    /// Stops the applications.
    pub(crate) fn stop(&mut self) {
        for flow in 0..self.flows.len() {
            self.flows[flow].stop(self.now);
            self.schedule_flow(flow);
        }
        self.agenda.drop_hints();
        self.schedule_agenda();
    }

    /// After the stop, and unobserved: continues until the fate of every datagram is known.
    pub(crate) fn settle(&mut self) {
        let awaited = |engine: &Self| engine.flows.iter().filter_map(Flow::awaited).max();
        while self.refused.is_none()
            && let Some(end) = awaited(self).filter(|end| *end > self.now)
        {
            self.run(end, None, &mut Nobody);
        }
    }

    /// The simulated time reached.
    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// The ports at the near and at the far end of a direction, if its link has any.
    pub(crate) fn port_ends(&self, direction: usize) -> Option<[&PortEnd; 2]> {
        // The two directions of a link have adjacent indices: the port that receives the frames of one sends over the
        // other.
        let far = |direction: usize| self.directions[direction].port;
        let ends = [far(direction ^ 1)?, far(direction)?];
        Some(ends.map(|port| &self.ports[port as usize]))
    }

    /// Packets without a route to their destination.
    pub(crate) fn unroutable(&self) -> Count {
        self.unroutable
    }

    /// Events so far.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    #[inline]
    fn on_arrival<O: Observer>(&mut self, index: usize, observer: &mut O) {
        let direction = &mut self.directions[index];
        // Packets that arrive at the same instant are handled one by one: FIFO, one event each, ties by slot.
        match &mut direction.medium {
            Medium::Packets(channel) => {
                let packet = channel.poll_deliver(self.now);
                let destroyed = channel.poll_destroyed(self.now);
                self.deadlines.set(index, channel.poll_timeout());
                let node = direction.to;
                if let Some(packet) = destroyed {
                    self.on_destroyed(node, &packet);
                }
                if let Some(packet) = &packet {
                    observer.on_packet_arrival(self.now, index, packet);
                    observer.on_arrival(self.now, index, packet);
                    self.arrive(node, packet, observer);
                }
            }
            Medium::Frames(channel) => {
                let arrival = channel.poll_deliver(self.now);
                let destroyed = channel.poll_destroyed(self.now);
                self.deadlines.set(index, channel.poll_timeout());
                let node = direction.to;
                self.on_destroyed_frame(node, destroyed);
                self.on_frame(index, arrival, observer);
            }
            Medium::Driving(link) => {
                if let Some((token, start, _)) =
                    link.leaving.take_if(|(.., left)| *left <= self.now)
                {
                    let near = link.near as usize;
                    let port = &mut self.ports[near].port;
                    port.frame_done(token, self.now, Outcome::Sent(start));
                    self.pass_turn(index, observer);
                    self.drain_port(near, observer);
                } else if link.leaving.is_none() && link.next.is_some_and(|next| next <= self.now) {
                    let near = link.near as usize;
                    self.drain_port(near, observer);
                } else {
                    let arrival = link.channel.poll_deliver(self.now);
                    let destroyed = link.channel.poll_destroyed(self.now);
                    self.deadlines.set(index, link.poll_timeout());
                    let node = direction.to;
                    self.on_destroyed_frame(node, destroyed);
                    self.on_frame(index, arrival, observer);
                }
            }
            Medium::Queued(link) => {
                let left = link.leaving.take_if(|left| *left <= self.now);
                let (packet, destroyed) = match left {
                    Some(_) => (None, None),
                    None => (
                        link.channel.poll_deliver(self.now),
                        link.channel.poll_destroyed(self.now),
                    ),
                };
                self.deadlines.set(index, link.poll_timeout());
                let node = direction.to;
                if left.is_some() {
                    self.pass_turn(index, observer);
                    self.send_queued(index, observer);
                }
                if let Some(packet) = destroyed {
                    self.on_destroyed(node, &packet);
                }
                if let Some(packet) = &packet {
                    observer.on_packet_arrival(self.now, index, packet);
                    observer.on_arrival(self.now, index, packet);
                    self.arrive(node, packet, observer);
                }
            }
            Medium::Circuit(_) => self.on_circuit(index, observer),
            Medium::Shrunk(_) => self.on_shrunk(index, observer),
            // The radio has a deadline of its own.
            Medium::Station(_) => {}
            Medium::Datagrams(_) => self.on_datagram(index, observer),
        }
    }

    #[inline]
    fn on_frame<O: Observer>(
        &mut self,
        index: usize,
        frame: Option<Frame<Packet>>,
        observer: &mut O,
    ) {
        let Some(port) = self.directions[index].port else {
            return;
        };
        let Some(frame) = frame else {
            return;
        };
        let PortEnd {
            port: end, driven, ..
        } = &mut self.ports[port as usize];
        observer.on_frame_arrival(self.now, index, end, &frame);
        let news = end.handle_frame(self.now, frame);
        if O::WATCHES {
            // The two directions of a link have adjacent indices.
            show_port(end, self.now, index ^ 1, observer);
        }
        // Most frames deliver one packet, which need not wait with others until the port is drained.
        let first = end.poll_deliver();
        if let Some(packet) = &first {
            observer.on_arrival(self.now, index, packet);
        }
        let gives = news && (*driven || end.gives_frame(self.now));
        if gives || end.deliveries() > 0 {
            self.drain_port(port as usize, observer);
        }
        if let Some(packet) = &first {
            let node = self.ports[port as usize].node;
            self.arrive(node, packet, observer);
        }
        // If the packet's consequences left by this port, its deadline has been read since.
        if news && self.ports[port as usize].port.has_new_deadline() {
            self.schedule_port(port as usize);
        }
    }

    /// A packet has arrived at a node corrupted: the end that it was for may be told.
    fn on_destroyed(&mut self, node: u16, packet: &Packet) {
        if packet.to == node {
            self.flows[packet.flow as usize].handle_destroyed(packet);
        }
    }

    #[inline]
    fn on_destroyed_frame(&mut self, node: u16, frame: Option<Frame<Packet>>) {
        if let Some(frame) = frame
            && frame.header.kind.is_packet()
            && let Some(packet) = frame.packet()
        {
            self.on_destroyed(node, packet);
        }
    }

    fn on_port_timer<O: Observer>(&mut self, index: usize, observer: &mut O) {
        self.ports[index].port.handle_timeout(self.now);
        self.drain_port(index, observer);
    }

    fn on_flow_timer<O: Observer>(&mut self, flow: usize, observer: &mut O) {
        self.flows[flow].handle_timeout(self.now);
        observer.on_flow(self.now, flow, &self.flows[flow]);
        self.drain_flow(flow, observer);
    }

    /// A packet is at a node: it is delivered there, or forwarded.
    #[inline(always)]
    fn arrive<O: Observer>(&mut self, node: u16, packet: &Packet, observer: &mut O) {
        match self.next_hops.at(node, packet.to) {
            NextHop::Direction(index) => self.send(index as usize, packet, observer),
            NextHop::Here => self.receive(packet, observer),
            NextHop::Port(index) => self.enter_port(index as usize, packet, observer),
            NextHop::Station(hop) => self.enter_station(node, hop, packet),
            NextHop::Live(index) => self.enter_live(index as usize, packet, observer),
            NextHop::Nowhere => {
                observer.on_unroutable(self.now, packet);
                self.unroutable.add(packet.len());
            }
        }
    }

    /// A flow gets a packet at its node, and sends what follows from that.
    fn receive<O: Observer>(&mut self, packet: &Packet, observer: &mut O) {
        let flow = packet.flow as usize;
        observer.on_receive(self.now, packet);
        self.flows[flow].handle_packet(self.now, packet);
        observer.on_flow(self.now, flow, &self.flows[flow]);
        self.drain_flow(flow, observer);
    }

    fn enter_port<O: Observer>(&mut self, index: usize, packet: &Packet, observer: &mut O) {
        let end = &mut self.ports[index];
        let out = end.out as usize;
        let served = &mut self.served[packet.flow as usize];
        if let Medium::Frames(channel) = &mut self.directions[out].medium
            && let Some(frame) = end.port.pass(self.now, packet)
        {
            served.add(out, end.port.chosen());
            observer.on_port(self.now, out, end.port.chosen(), packet);
            put_on_link(channel, self.now, (out, &end.port), frame, observer);
            self.deadlines.set(out, channel.poll_timeout());
            if O::WATCHES {
                show_port(&mut end.port, self.now, out, observer);
            }
            if end.port.has_new_deadline() {
                self.schedule_port(index);
            }
            return;
        }
        let news = end.port.handle_packet(self.now, *packet);
        served.add(out, end.port.chosen());
        observer.on_port(self.now, out, end.port.chosen(), packet);
        // A link that takes frames itself may be ready before its port knows.
        if news || end.driven {
            self.drain_port(index, observer);
        } else if O::WATCHES {
            show_port(&mut end.port, self.now, out, observer);
        }
    }

    /// Hands a packet to a station of a radio, for another station.
    fn enter_station(&mut self, node: u16, [index, from, to]: [u16; 3], packet: &Packet) {
        let mut packet = *packet;
        self.write_status([index, from], &mut packet);
        let index = usize::from(index);
        let origin = self.flows[packet.flow as usize].origin(&packet);
        let end = &mut self.radios[index];
        let flow = packet.flow as usize;
        if !end.send(self.now, from, to, origin, packet) && node == origin {
            self.flows[flow].handle_refused();
        }
        self.schedule_radio(index);
    }

    /// Polls everything that a flow sends, then its deadline.
    #[inline]
    fn drain_flow<O: Observer>(&mut self, flow: usize, observer: &mut O) {
        let mut packet = Packet::BLANK;
        while self.flows[flow].poll_transmit(self.now, &mut packet) {
            observer.on_transmit(self.now, &packet);
            let origin = self.flows[flow].origin(&packet);
            self.arrive(origin, &packet, observer);
        }
        self.schedule_flow(flow);
    }

    #[inline]
    fn schedule_flow(&mut self, flow: usize) {
        let changed = &self.flows[flow];
        self.deadlines
            .set(self.slots.flows + flow, changed.poll_timeout());
        if self.until == Some(flow) {
            self.over = changed.is_finished();
        }
    }

    /// Polls everything that a port sends and delivers, then its deadline.
    fn drain_port<O: Observer>(&mut self, index: usize, observer: &mut O) {
        let PortEnd {
            port, node, out, ..
        } = &mut self.ports[index];
        let out = *out as usize;
        let Direction { medium, air, .. } = &mut self.directions[out];
        match medium {
            Medium::Packets(_)
            | Medium::Shrunk(_)
            | Medium::Queued(_)
            | Medium::Circuit(_)
            | Medium::Datagrams(_) => {}
            Medium::Station(link) => {
                let radio = usize::from(link.radio);
                let end = &mut self.radios[radio];
                if end.takes(link)
                    && let Some((frame, token)) = port.poll_frame(self.now)
                {
                    let what = (port.frame_len(&frame), token);
                    end.send_frame(self.now, link, what, Carried::Frame(out as u32, frame));
                    self.deadlines
                        .set(self.slots.radios + radio, end.radio.poll_timeout());
                }
            }
            Medium::Frames(channel) => {
                let mut sent = false;
                while let Some(frame) = port.poll_transmit(self.now) {
                    put_on_link(channel, self.now, (out, port), frame, observer);
                    sent = true;
                }
                if sent {
                    self.deadlines.set(out, channel.poll_timeout());
                }
            }
            Medium::Driving(link) => {
                let mut air = air.map(|air| &mut self.airs[air as usize]);
                let taken = air.as_ref().is_some_and(|air| air.busy);
                while !taken && link.leaving.is_none() && port.has_frame() {
                    let start = *link
                        .next
                        .get_or_insert_with(|| link.channel.next_start(self.now));
                    if start > self.now {
                        break;
                    }
                    link.next = None;
                    let Some((frame, token)) = port.poll_frame(self.now) else {
                        break;
                    };
                    let len = port.frame_len(&frame);
                    let watched = O::WATCHES.then(|| (frame.clone(), *link.channel.stats()));
                    let departs = link.channel.send_at(start, len, frame);
                    if let Some((frame, before)) = watched {
                        let lost = loss(&before, link.channel.stats());
                        let sent = Departure::Sent {
                            start,
                            departs,
                            lost,
                        };
                        observer.on_frame(self.now, out, port, &frame, sent);
                    }
                    link.leaving = Some((token, start, departs));
                    if let Some(air) = &mut air {
                        air.busy = true;
                    }
                }
                if link.leaving.is_some() || !port.has_frame() {
                    link.next = None;
                }
                self.deadlines.set(out, link.poll_timeout());
            }
        }
        if O::WATCHES {
            show_port(port, self.now, out, observer);
        }
        while let Some(packet) = port.poll_deliver() {
            // The two directions of a link have adjacent indices.
            observer.on_arrival(self.now, out ^ 1, &packet);
            self.delivered.push_back((*node, packet));
        }
        self.schedule_port(index);
    }

    #[inline]
    fn schedule_port(&mut self, index: usize) {
        let PortEnd { port, driven, .. } = &self.ports[index];
        let due = match driven {
            true => port.next_timer(),
            false => port.poll_timeout(),
        };
        // An input may make something due at once, or overdue, such as a timer whose measured period has just shrunk.
        let due = due.map(|at| at.max(self.now));
        self.deadlines.set(self.slots.ports + index, due);
    }

    /// Hands a packet to a link; a full queue drops and counts it.
    #[inline(always)]
    fn send<O: Observer>(&mut self, index: usize, packet: &Packet, observer: &mut O) {
        let direction = &mut self.directions[index];
        let marked;
        let packet = match direction.marks(self.now, packet) {
            true => {
                marked = packet.marked();
                &marked
            }
            false => packet,
        };
        observer.on_entry(self.now, index, packet);
        if let Medium::Packets(channel) = &mut direction.medium {
            // The channel counts what it drops.
            let sent = transmit::<O, _>(channel, self.now, packet.len(), *packet);
            observer.on_packet(self.now, index, packet, sent);
            // Only an empty pipe gets an earlier arrival; otherwise `set` changes nothing.
            self.deadlines.set(index, channel.poll_timeout());
        } else {
            self.queue(index, packet, observer);
        }
    }

    /// Hands a packet to a link with a shared transmitter, where it waits for its turn.
    fn queue<O: Observer>(&mut self, index: usize, packet: &Packet, observer: &mut O) {
        match &mut self.directions[index].medium {
            Medium::Queued(link) => {
                if link.push(*packet) {
                    self.send_queued(index, observer);
                } else {
                    observer.on_packet(self.now, index, packet, Departure::Dropped);
                }
            }
            Medium::Circuit(circuit) => {
                if !circuit.push(self.now, *packet) {
                    observer.on_packet(self.now, index, packet, Departure::Dropped);
                }
                self.deadlines.set(index, circuit.poll_timeout());
            }
            Medium::Shrunk(_) => self.send_shrunk(index, packet, observer),
            Medium::Packets(_)
            | Medium::Frames(_)
            | Medium::Driving(_)
            | Medium::Station(_)
            | Medium::Datagrams(_) => {}
        }
    }
}
