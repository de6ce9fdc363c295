//! Two ports, the channel between them, and a virtual clock.
//!
//! The pair also checks the contract in every test: a port must not return the same deadline again after it has been
//! handled, and frames must survive encoding and decoding.

use std::collections::BTreeMap;

use airlane_base::{Duration, Instant, Rate, SeqSpace};
use airlane_link::{Frame, FrameKind, Layout, Packet, Port, ServiceConfig, ServiceLedger};

use crate::setup;
use crate::{Adversary, Fate, FrameDeparture, Setup, Sink, TestPacket, drain};

/// A delivered packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairDelivery {
    /// When it was delivered.
    pub at: Instant,
    /// When the first frame with it arrived.
    pub arrived: Instant,
    /// The packet.
    pub packet: TestPacket,
}

/// How far frames may be reordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reordering {
    /// Without limit.
    Any,
    /// Not at all: a late frame delays those after it.
    None,
    /// A frame overtaken by more sequence numbers than this is lost instead.
    Within(u64),
}

/// A frame in flight.
#[derive(Clone, Debug)]
struct Flight {
    to: usize,
    frame: Frame<TestPacket>,
    stamp: Stamp,
}

/// Progress of a service when a frame left: original frames sent, and packets delivered in order, which an
/// acknowledgment reports.
///
/// A frame's acknowledgment is as old as its hand-over to the scheduler. If a service hands over two frames at a
/// time, one of which is being sent, that is after the last departure but one.
#[derive(Clone, Copy, Debug, Default)]
struct Stamp {
    sent: u64,
    received_at_least: u64,
    /// `received_at_most` at the previous departure.
    received_before: u64,
    received_at_most: u64,
}

impl Stamp {
    /// Makes the stamp exact with the help of the acknowledgment, if it is unambiguous.
    fn with_ack(self, frame: &Frame<TestPacket>, space: SeqSpace) -> Self {
        let lag = space.distance(self.received_at_most as u32, frame.header.ack);
        let exact = self.received_at_most.saturating_sub(u64::from(lag));
        let possible = self.received_at_most - self.received_at_least;
        if possible < space.modulus() && exact >= self.received_at_least {
            Self {
                received_at_least: exact,
                received_at_most: exact,
                ..self
            }
        } else {
            self
        }
    }
}

/// One end and its history.
#[derive(Debug)]
struct End {
    port: Port<TestPacket>,
    delivered: Vec<PairDelivery>,
    /// First arrival of each packet, by service and number.
    arrived: BTreeMap<(u8, u64), Instant>,
    departures: u64,
    /// By service.
    stamps: [Stamp; 16],
    /// Newest stamp that has arrived from the peer, by service.
    newest: [Stamp; 16],
    /// When the last original frame of each service, and the last of all frames, arrives at the peer.
    last_original: [Instant; 16],
    last_arrival: Instant,
}

/// Two ports connected by an adversarial channel.
#[derive(Debug)]
pub struct Pair<A> {
    ends: [End; 2],
    air: BTreeMap<(Instant, u64), Flight>,
    setup: Setup,
    now: Instant,
    serial: u64,
    /// Decides the fate of frames.
    pub adversary: A,
    /// How far frames may be reordered.
    pub reordering: Reordering,
    /// Original frames arrive once, and they and keepalives in the order in which they left, as on a radio link;
    /// repairs and requests need not.
    pub originals_in_order: bool,
    /// Calls `handle_timeout` before every other input, even if nothing is due.
    pub early_calls: bool,
    /// Frames sent, with their end and time, if `keeps_journal`.
    pub journal: Vec<(usize, Instant, Frame<TestPacket>)>,
    /// Whether to keep the journal.
    pub keeps_journal: bool,
    /// Frames lost because they were overtaken too far.
    pub too_late: u64,
}

#[derive(Default)]
struct Outputs {
    frames: Vec<Frame<TestPacket>>,
    packets: Vec<TestPacket>,
}

impl Sink<TestPacket> for Outputs {
    fn transmit(&mut self, frame: Frame<TestPacket>) {
        self.frames.push(frame);
    }
    fn deliver(&mut self, packet: TestPacket) {
        self.packets.push(packet);
    }
}

impl<A: Adversary> Pair<A> {
    /// Two fresh ports.
    pub fn new(setup: &Setup, adversary: A) -> Self {
        let end = || End {
            port: setup.build(),
            delivered: Vec::new(),
            arrived: BTreeMap::new(),
            departures: 0,
            stamps: Default::default(),
            newest: Default::default(),
            last_original: [Instant::ORIGIN; 16],
            last_arrival: Instant::ORIGIN,
        };
        Self {
            ends: [end(), end()],
            air: BTreeMap::new(),
            setup: setup.clone(),
            now: Instant::ORIGIN,
            serial: 0,
            adversary,
            reordering: Reordering::Any,
            originals_in_order: false,
            early_calls: false,
            journal: Vec::new(),
            keeps_journal: false,
            too_late: 0,
        }
    }

    /// The virtual time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// An end's port.
    pub fn port(&self, end: usize) -> &Port<TestPacket> {
        &self.ends[end].port
    }

    /// An end's port, for changing its settings.
    pub fn port_mut(&mut self, end: usize) -> &mut Port<TestPacket> {
        &mut self.ends[end].port
    }

    /// The ledger of a service at an end.
    ///
    /// # Panics
    /// If there is no such service.
    pub fn ledger(&self, end: usize, service: u8) -> ServiceLedger {
        let ledger = self.ends[end].port.ledger(service);
        *ledger.expect("the test knows its services")
    }

    /// The packets delivered at an end.
    pub fn delivered(&self, end: usize) -> &[PairDelivery] {
        &self.ends[end].delivered
    }

    /// Numbers of a service's packets delivered at an end, in order of delivery.
    pub fn ids(&self, end: usize, service: u8) -> Vec<u64> {
        self.ends[end]
            .delivered
            .iter()
            .filter(|d| d.packet.service == service)
            .map(|d| d.packet.id)
            .collect()
    }

    /// Number of frames in flight.
    pub fn in_flight(&self) -> usize {
        self.air.len()
    }

    /// Number of frames in flight that carry a packet.
    pub fn packets_in_flight(&self) -> usize {
        let frames = self.air.values();
        frames
            .filter(|flight| flight.frame.packet().is_some())
            .count()
    }

    /// Offers a packet to an end.
    pub fn offer(&mut self, end: usize, packet: TestPacket) {
        self.input(end, |port, now| port.handle_packet(now, packet));
    }

    /// Injects a frame that the peer has not sent now: an old one, or a forged one.
    pub fn inject(&mut self, end: usize, frame: Frame<TestPacket>) {
        for packet in packets_of(&frame) {
            let key = (packet.service, packet.id);
            self.ends[end].arrived.entry(key).or_insert(self.now);
        }
        self.input(end, |port, now| port.handle_frame(now, frame));
    }

    /// Calls an administrative operation on an end's port, then polls its outputs.
    pub fn admin<R>(
        &mut self,
        end: usize,
        call: impl FnOnce(&mut Port<TestPacket>, Instant) -> R,
    ) -> R {
        self.input(end, call)
    }

    /// Gives an end another table of services, each with the class of its number.
    ///
    /// # Panics
    /// If the table is refused.
    pub fn set_services(&mut self, end: usize, services: &[ServiceConfig]) {
        let numbers = services.iter().map(|service| service.number);
        let classes: Vec<_> = numbers.filter(|n| *n != 0).map(setup::class).collect();
        self.admin(end, |port, now| port.set_services(now, services, &classes))
            .expect("the test's table is one that a port can have");
    }

    /// The link's rate.
    pub fn link_rate(&self) -> Rate {
        self.setup.config.rate
    }

    /// Changes the link's rate, and tells both ports.
    pub fn set_link_rate(&mut self, rate: Rate) {
        self.setup.config.rate = rate;
        for end in 0..2 {
            self.input(end, |port, _| port.set_link_rate(rate));
        }
    }

    /// Begins a new epoch at both ends, with nothing in flight.
    pub fn reset(&mut self) {
        self.air.clear();
        for end in &mut self.ends {
            (end.stamps, end.newest) = Default::default();
        }
        for end in 0..2 {
            self.input(end, |port, now| port.reset(now));
        }
    }

    /// Runs for a while.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    /// Runs until a given time.
    pub fn run_until(&mut self, end: Instant) {
        while self.next_event().is_some_and(|t| t <= end) {
            self.step();
        }
        self.now = self.now.max(end);
    }

    /// Runs until nothing is in flight and no port has a deadline, at most until `end`. Returns whether it got there.
    pub fn run_until_quiet(&mut self, end: Instant) -> bool {
        while let Some(t) = self.next_event() {
            if t > end {
                return false;
            }
            self.step();
        }
        true
    }

    /// The time of the next event.
    pub fn next_event(&self) -> Option<Instant> {
        let arrival = self.air.keys().next().map(|key| key.0);
        let deadlines = self.ends.iter().filter_map(|end| end.port.poll_timeout());
        deadlines.chain(arrival).min().map(|t| t.max(self.now))
    }

    /// Handles the next event: an arrival before a deadline at the same time.
    ///
    /// # Panics
    /// If a port breaks its contract.
    pub fn step(&mut self) {
        let Some(t) = self.next_event() else {
            return;
        };
        self.now = t;
        if let Some((key, _)) = self.air.first_key_value()
            && key.0 <= t
            && let Some((_, flight)) = self.air.pop_first()
        {
            self.arrive(flight);
            return;
        }
        for end in 0..2 {
            let due = self.ends[end].port.poll_timeout();
            if due.is_some_and(|due| due <= t) {
                self.input(end, |port, now| port.handle_timeout(now));
                let next = self.ends[end].port.poll_timeout();
                assert!(
                    next.is_none_or(|next| next > t),
                    "end {end}: the deadline {due:?} was served at {t:?}, and the next is {next:?}"
                );
                return;
            }
        }
    }

    /// One input, then all outputs.
    fn input<R>(
        &mut self,
        end: usize,
        input: impl FnOnce(&mut Port<TestPacket>, Instant) -> R,
    ) -> R {
        let now = self.now;
        if self.early_calls && self.ends[end].port.poll_timeout().is_none_or(|t| t > now) {
            self.ends[end].port.handle_timeout(now);
            self.drain(end);
        }
        let result = input(&mut self.ends[end].port, now);
        self.drain(end);
        result
    }

    fn drain(&mut self, end: usize) {
        let mut outputs = Outputs::default();
        drain(&mut self.ends[end].port, self.now, &mut outputs);
        for packet in outputs.packets {
            let state = &mut self.ends[end];
            state.stamps[usize::from(packet.service)].received_at_most += 1;
            let arrived = state.arrived.get(&(packet.service, packet.id));
            state.delivered.push(PairDelivery {
                at: self.now,
                // A packet recovered from others arrives when it can be computed.
                arrived: arrived.copied().unwrap_or(self.now),
                packet,
            });
        }
        for frame in outputs.frames {
            self.depart(end, frame);
        }
    }

    fn depart(&mut self, from: usize, frame: Frame<TestPacket>) {
        let end = &mut self.ends[from];
        let service = usize::from(frame.header.service);
        let original = matches!(frame.header.kind, FrameKind::Data | FrameKind::Parity);
        if original {
            end.stamps[service].sent += 1;
        }
        let fate = self.adversary.fate(FrameDeparture {
            from,
            now: self.now,
            ordinal: end.departures,
            frame: &frame,
        });
        end.departures += 1;
        let mut stamp = end.stamps[service];
        if acknowledges(&end.port, &frame) {
            let layout = end.port.layout_of(frame.header.service);
            let space = end.port.codec().space(layout.unwrap_or(&Layout::BARE));
            stamp = stamp.with_ack(&frame, space);
        }
        let len = end.port.frame_len(&frame) + self.setup.config.frame_overhead;
        let takes = self.setup.config.rate.transmission_time(len) + self.setup.config.delay;
        let frame = through_codec(&end.port, frame);
        if self.keeps_journal {
            self.journal.push((from, self.now, frame.clone()));
        }
        let mut late = match fate {
            Fate::Lose => vec![],
            Fate::Deliver(late) => vec![late],
            Fate::Twice(first, second) => vec![first, second],
        };
        if original && self.originals_in_order {
            late.truncate(1);
        }
        for late in late {
            let mut at = self.now + takes + late;
            let names_highest = original || frame.header.kind == FrameKind::Keepalive;
            if names_highest && self.originals_in_order {
                at = at.max(end.last_original[service]);
                end.last_original[service] = at;
            }
            if self.reordering == Reordering::None {
                at = at.max(end.last_arrival);
                end.last_arrival = at;
            }
            let flight = Flight {
                to: 1 - from,
                frame: frame.clone(),
                stamp,
            };
            self.air.insert((at, self.serial), flight);
            self.serial += 1;
        }
        let stamp = &mut self.ends[from].stamps[service];
        stamp.received_at_least = stamp.received_before;
        stamp.received_before = stamp.received_at_most;
    }

    fn arrive(&mut self, flight: Flight) {
        let Flight { to, frame, stamp } = flight;
        let end = &mut self.ends[to];
        let newest = &mut end.newest[usize::from(frame.header.service)];
        if let Reordering::Within(bound) = self.reordering {
            let overtaken = newest.sent.saturating_sub(stamp.sent);
            let outdated = if acknowledges(&end.port, &frame) {
                let newest = newest.received_at_most;
                newest.saturating_sub(stamp.received_at_least)
            } else {
                0
            };
            if overtaken.max(outdated) > bound {
                self.too_late += 1;
                return;
            }
        }
        newest.sent = newest.sent.max(stamp.sent);
        newest.received_at_most = newest.received_at_most.max(stamp.received_at_most);
        for packet in packets_of(&frame) {
            let key = (packet.service, packet.id);
            end.arrived.entry(key).or_insert(self.now);
        }
        self.input(to, |port, now| port.handle_frame(now, frame));
    }
}

/// Whether a frame carries an acknowledgment.
fn acknowledges<P: Packet>(port: &Port<P>, frame: &Frame<P>) -> bool {
    let layout = port.layout_of(frame.header.service);
    layout.is_some_and(|layout| layout.acknowledges(frame.header.kind))
}

/// The packets in a frame, unless it is parity.
fn packets_of(frame: &Frame<TestPacket>) -> Vec<TestPacket> {
    let whole = frame.header.kind != FrameKind::Parity;
    let payload = frame.packet().filter(|_| whole);
    payload.map_or(vec![], TestPacket::all)
}

/// The frame as the peer decodes it.
fn through_codec(port: &Port<TestPacket>, frame: Frame<TestPacket>) -> Frame<TestPacket> {
    let mut bytes = vec![0; port.frame_len(&frame)];
    let written = port.encode_header(&frame, 7, &mut bytes);
    let decoded = port.decode(&bytes).expect("a port reads what it writes");
    assert_eq!(written, Some(decoded.payload_at));
    assert_eq!(decoded.payload_at + frame.payload_len(), bytes.len());
    let (sent, read) = (&frame.header, &decoded.header);
    assert_eq!(
        (sent.service, sent.kind, sent.seq, sent.ack, sent.index),
        (read.service, read.kind, read.seq, read.ack, read.index)
    );
    let live = port.codec().profile().is_live();
    assert!(!live || sent.coded_len == read.coded_len);
    // Study frames carry this value outside of their bytes.
    let coded_len = sent.coded_len;
    let mut read = decoded.frame(frame.packet().cloned());
    assert_eq!(frame.body, read.body);
    read.header.coded_len = coded_len;
    read
}
