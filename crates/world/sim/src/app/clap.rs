//! File transfer over CLAP (Gopal 2007, chapter 3): a sender whose rate follows the interface of its node.
//!
//! The two ends communicate only through packets. A NACK has its real length and carries a number; since simulated
//! packets carry no bytes, its bitmap stays here until the packet arrives. A path probe is a packet, too: each node
//! on the way writes into it what its interface offers.

use airlane_base::{Duration, Instant};
use airlane_transport::clap::{
    ClapConfig, ClapReceiver, ClapSender, Data, Feedback, Forward, Nack, NackKind, Stamp, Status,
    Taken,
};

use super::place::FlowPlace;
use super::progress::Progress;
use crate::packet::{Marks, NO_BLOCKS, Packet, Role};
use crate::probe::{DelayProbe, rate_bps};

/// Kind of a packet, stored where other flows number their endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Data,
    Syn,
    FinAck,
    SynAck,
    Nack,
    Fin,
    Probe,
}

const KINDS: [Kind; 7] = [
    Kind::Data,
    Kind::Syn,
    Kind::FinAck,
    Kind::SynAck,
    Kind::Nack,
    Kind::Fin,
    Kind::Probe,
];

/// Payload of a SYN: the number of packets in the file.
const SYN_PAYLOAD: u32 = 4;
/// Bytes of a probe (Gopal 2007, section 3.3.3).
const PROBE_LEN: u32 = 40;
/// NACKs that can be in flight. Older ones count as lost: at ten NACKs a second, these are more than 100 seconds old.
const UNDER_WAY: u64 = 1_024;
/// Bytes of the longest bitmap in a NACK.
const LONGEST_BITMAP: usize = 1_000;

/// A NACK in flight.
#[derive(Clone, Debug)]
struct Sent {
    number: u64,
    kind: NackKind,
    seq: u32,
    count: u32,
    stamp: Stamp,
    bitmap: Vec<u8>,
}

/// What a CLAP flow needs to know besides its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    /// Bytes.
    pub(crate) size: u64,
    /// User bytes of a packet.
    pub(crate) packet: u32,
    /// Packets.
    pub(crate) count: u32,
    /// Header bytes before the user data.
    pub(crate) header: u32,
}

/// A file transfer in progress.
#[derive(Clone, Debug)]
pub(crate) struct Clap {
    place: FlowPlace,
    start: Instant,
    started: bool,
    stopped: bool,
    file: File,
    sender: ClapSender,
    receiver: ClapReceiver,
    /// Indexed by number modulo `UNDER_WAY`; grows to the number in flight.
    nacks: Vec<Sent>,
    next_nack: u64,
    bitmap: Box<[u8; LONGEST_BITMAP]>,
    probing: Option<Probing>,
    /// The last report of the sender's own interface.
    status: Option<Status>,
    delivered_bytes: u64,
    /// When the last missing packet arrived.
    last_new: Option<Instant>,
    /// From sending to arrival, for each packet that arrived.
    pub(crate) delays: DelayProbe,
    /// Present if the scenario asks for it.
    pub(crate) progress: Option<Box<Progress>>,
}

/// The probe of a flow's path.
#[derive(Clone, Debug)]
struct Probing {
    interval: Duration,
    next: Instant,
    due: bool,
    sent: u64,
    /// The newest probe that has come back.
    newest: Option<u64>,
    /// A probe that has reached the far end and is to be sent back.
    reply: Option<Packet>,
}

impl Clap {
    /// `sender` has not been opened yet. With probing enabled, the first probe leaves `probes` after the origin.
    pub(crate) fn new(
        place: FlowPlace,
        start: Instant,
        config: &ClapConfig,
        file: File,
        sender: ClapSender,
        probes: Duration,
    ) -> Self {
        let probing = config.probe.then(|| Probing {
            interval: config.interval,
            next: Instant::ORIGIN + probes,
            due: false,
            sent: 0,
            newest: None,
            reply: None,
        });
        Self {
            place,
            start,
            started: false,
            stopped: false,
            file,
            sender,
            receiver: ClapReceiver::new(config),
            nacks: vec![],
            next_nack: 0,
            bitmap: Box::new([0; LONGEST_BITMAP]),
            probing,
            status: None,
            delivered_bytes: 0,
            last_new: None,
            delays: DelayProbe::default(),
            progress: None,
        }
    }

    pub(super) fn handle_status(&mut self, status: Status) {
        self.status = Some(status);
        self.sender.set_local(status);
    }

    pub(super) fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        // Arrivals after the stop change no metric.
        if self.stopped {
            return;
        }
        let Some(kind) = KINDS.get(usize::from(packet.endpoints)) else {
            return;
        };
        match kind {
            Kind::Data => self.on_data(now, packet),
            Kind::Syn => {
                let (first, count) = (packet.seq as u32, packet.connection);
                self.receiver.handle(now, Forward::Syn { first, count });
            }
            Kind::FinAck => {
                let first = packet.seq as u32;
                self.receiver.handle(now, Forward::FinAck { first });
            }
            Kind::SynAck => {
                let first = packet.seq as u32;
                self.sender.handle(now, &Feedback::SynAck { first });
            }
            Kind::Fin => {
                let first = packet.seq as u32;
                self.sender.handle(now, &Feedback::Fin { first });
            }
            Kind::Nack => self.on_nack(now, packet),
            Kind::Probe => self.on_probe(now, packet),
        }
    }

    fn on_data(&mut self, now: Instant, packet: &Packet) {
        self.delays.record(now.saturating_since(packet.created));
        let data = Data {
            seq: packet.seq as u32,
            stamp: Stamp::of(packet.created),
            echo: Stamp::from_number(packet.echoed),
            again: false,
            solicits: packet.marks.has(Marks::ECHO),
        };
        let taken = self.receiver.handle(now, Forward::Data(data));
        let bytes = match taken {
            Taken::New => u64::from(packet.len.saturating_sub(self.file.header)),
            _ => 0,
        };
        if taken == Taken::New {
            self.delivered_bytes += bytes;
            self.last_new = Some(now);
        }
        if let Some(progress) = &mut self.progress {
            progress.on_arrived(now, packet.created, bytes);
        }
    }

    fn on_nack(&mut self, now: Instant, packet: &Packet) {
        let place = (packet.seq % UNDER_WAY) as usize;
        let sent = self.nacks.get(place);
        let Some(sent) = sent.filter(|sent| sent.number == packet.seq) else {
            return;
        };
        let nack = Nack {
            kind: sent.kind,
            seq: sent.seq,
            count: sent.count,
            bitmap: &sent.bitmap,
            stamp: sent.stamp,
        };
        self.sender.handle(now, &Feedback::Nack(nack));
    }

    /// The far end returns a probe as it arrived; the sender uses the newest.
    fn on_probe(&mut self, now: Instant, packet: &Packet) {
        let Some(probing) = &mut self.probing else {
            return;
        };
        if packet.to == self.place.nodes[1] {
            probing.reply = Some(*packet);
            return;
        }
        if probing.newest.is_none_or(|newest| newest < packet.seq) {
            probing.newest = Some(packet.seq);
            let flows = self.status.map_or(1, |own| own.flows);
            let status = Status {
                flows,
                ..offered(packet)
            };
            self.sender.set_route(now, status);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.stopped {
            return;
        }
        if !self.started {
            self.started = now >= self.start;
            if self.started {
                self.sender.open(now);
            }
            return;
        }
        self.sender.handle_timeout(now);
        self.receiver.handle_timeout(now);
        if let Some(probing) = &mut self.probing
            && probing.next <= now
        {
            probing.next = now + probing.interval;
            probing.due = true;
        }
    }

    pub(super) fn stop(&mut self, now: Instant) {
        self.stopped = true;
        if let Some(progress) = &mut self.progress {
            progress.stop(now);
        }
    }

    pub(super) fn poll_transmit(&mut self, now: Instant, packet: &mut Packet) -> bool {
        packet.replace_by(self.next_packet(now))
    }

    fn next_packet(&mut self, now: Instant) -> Option<Packet> {
        if !self.started || self.stopped {
            return None;
        }
        if let Some(packet) = self.poll_feedback(now) {
            return Some(packet);
        }
        if let Some(forward) = self.sender.poll_transmit(now) {
            return Some(self.forward(now, forward));
        }
        self.poll_probe(now)
    }

    fn poll_feedback(&mut self, now: Instant) -> Option<Packet> {
        let feedback = self.receiver.poll_transmit(now, &mut self.bitmap[..])?;
        let header = self.file.header;
        let (kind, role, seq, len) = match feedback {
            Feedback::SynAck { first } => (Kind::SynAck, Role::Datagram, first.into(), header),
            Feedback::Fin { first } => (Kind::Fin, Role::Datagram, first.into(), header),
            Feedback::Nack(nack) => {
                let number = self.next_nack;
                self.next_nack += 1;
                keep(&mut self.nacks, number, &nack);
                if let Some(progress) = &mut self.progress {
                    progress.on_acknowledges(now);
                }
                let len = header + nack.bitmap.len() as u32;
                (Kind::Nack, Role::Ack, number, len)
            }
        };
        let mut packet = self.place.backward(now, role, seq, len);
        packet.endpoints = kind as u8;
        Some(packet)
    }

    fn forward(&mut self, now: Instant, forward: Forward) -> Packet {
        let header = self.file.header;
        match forward {
            Forward::Syn { first, count } => {
                let len = header + SYN_PAYLOAD;
                let mut packet = self.place.forward(now, Role::Datagram, first.into(), len);
                packet.endpoints = Kind::Syn as u8;
                packet.connection = count;
                packet
            }
            Forward::FinAck { first } => {
                let mut packet = self
                    .place
                    .forward(now, Role::Datagram, first.into(), header);
                packet.endpoints = Kind::FinAck as u8;
                packet
            }
            Forward::Data(data) => {
                if let Some(progress) = &mut self.progress {
                    progress.on_sent(now);
                }
                let from = u64::from(data.seq) * u64::from(self.file.packet);
                let rest = self.file.size.saturating_sub(from);
                let user = rest.min(self.file.packet.into()) as u32;
                let seq = data.seq.into();
                let mut packet = self.place.forward(now, Role::Data, seq, header + user);
                packet.marks = packet.marks.with(Marks::AGAIN, data.again);
                packet.marks = packet.marks.with(Marks::ECHO, data.solicits);
                packet.echoed = data.echo.map_or(0, Stamp::number);
                packet
            }
        }
    }

    /// The far end's reply, or the next probe, which starts with what the sender's own interface offers.
    fn poll_probe(&mut self, now: Instant) -> Option<Packet> {
        let probing = self.probing.as_mut()?;
        if let Some(came) = probing.reply.take() {
            let mut packet = self
                .place
                .backward(now, Role::Datagram, came.seq, PROBE_LEN);
            packet.endpoints = Kind::Probe as u8;
            packet.blocks = came.blocks;
            return Some(packet);
        }
        if !std::mem::take(&mut probing.due) || self.sender.is_finished() {
            return None;
        }
        let status = self.status?;
        let number = probing.sent;
        probing.sent += 1;
        let mut packet = self.place.forward(now, Role::Datagram, number, PROBE_LEN);
        packet.endpoints = Kind::Probe as u8;
        packet.blocks = blocks(status);
        Some(packet)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        if self.stopped {
            return None;
        }
        if !self.started {
            return Some(self.start);
        }
        let probe = self.probing.as_ref().map(|probing| probing.next);
        let probe = probe.filter(|_| !self.sender.is_finished());
        let ends = [self.sender.poll_timeout(), self.receiver.poll_timeout()];
        ends.into_iter().flatten().chain(probe).min()
    }

    /// Whether the receiver has the whole file. The sender may learn of it later, or never.
    pub(super) fn is_finished(&self) -> bool {
        self.receiver.completed().is_some()
    }

    pub(super) fn place(&self) -> &FlowPlace {
        &self.place
    }

    pub(crate) fn ends(&self) -> (&ClapSender, &ClapReceiver) {
        (&self.sender, &self.receiver)
    }

    pub(crate) fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// New bits over the time from the first packet sent to the last missing packet received (CLAP-P19), or to the
    /// stop if some are still missing.
    pub(crate) fn throughput_bps(&self, stopped: Instant) -> Option<f64> {
        let from = self.sender.first_sent().unwrap_or(self.start);
        let to = self.last_new.filter(|_| self.is_finished());
        let time = to.unwrap_or(stopped).saturating_since(from);
        rate_bps(self.delivered_bytes, time)
    }

    /// Packets that were sent, first or again, and have not arrived.
    pub(crate) fn under_way(&self) -> u64 {
        let (sent, got) = (self.sender.stats(), self.receiver.stats());
        let new = got.data_received.saturating_sub(got.duplicates);
        (sent.data_sent - sent.repairs).saturating_sub(new)
    }
}

/// Keeps the content of a NACK while it is in flight.
fn keep(nacks: &mut Vec<Sent>, number: u64, nack: &Nack<'_>) {
    let place = (number % UNDER_WAY) as usize;
    if place == nacks.len() {
        nacks.push(Sent {
            number,
            kind: nack.kind,
            seq: nack.seq,
            count: nack.count,
            stamp: nack.stamp,
            bitmap: nack.bitmap.to_vec(),
        });
        return;
    }
    if let Some(sent) = nacks.get_mut(place) {
        sent.number = number;
        sent.kind = nack.kind;
        sent.seq = nack.seq;
        sent.count = nack.count;
        sent.stamp = nack.stamp;
        sent.bitmap.clear();
        sent.bitmap.extend_from_slice(nack.bitmap);
    }
}

/// Encodes a status in the fields of a probe.
fn blocks(status: Status) -> [[u16; 2]; NO_BLOCKS.len()] {
    let short = |n: u32| u16::try_from(n).unwrap_or(u16::MAX);
    let mut blocks = NO_BLOCKS;
    blocks[0] = [short(status.out), short(status.underflows)];
    blocks[1] = [short(status.room), 0];
    blocks
}

/// Decodes the status in a probe.
fn offered(packet: &Packet) -> Status {
    let [[out, underflows], [room, _], ..] = packet.blocks;
    Status {
        out: out.into(),
        underflows: underflows.into(),
        room: room.into(),
        flows: 1,
    }
}

/// A node lowers the offer in a probe to that of its own interface. The underflow count goes with the output rate;
/// room is minimized separately; if two nodes offer the same, the earlier one stays (CLAP-Z16).
pub(crate) fn write_probe(packet: &mut Packet, own: Status) {
    let mut least = offered(packet);
    if own.out < least.out {
        least.out = own.out;
        least.underflows = own.underflows;
    }
    least.room = least.room.min(own.room);
    packet.blocks = blocks(least);
}

impl Packet {
    /// Whether this is a probe that has not yet reached the far end of its flow.
    pub(crate) fn is_open_probe(&self, place: &FlowPlace) -> bool {
        let probe = self.endpoints == Kind::Probe as u8 && self.role() == Role::Datagram;
        probe && self.header.protocol == crate::packet::CLAP && self.to == place.nodes[1]
    }
}
