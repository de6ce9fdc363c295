//! The state of each packet, link and flow, as events show it.

use std::collections::BTreeMap;

use airlane_base::{Duration, Instant};
use airlane_sim::event::{Event, LinkDirection, PacketInfo, Role, Watcher};

use crate::world::World;

/// The identity of a packet: flow, connection, role, number, and when it was sent.
pub(crate) type Id = (u32, u32, u8, u64, Instant);

/// A packet that arrives later than this after the previous one counts as lost.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Where a packet can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Node(usize),
    /// A link by its index, and whether downwards: in flight, lost there, or given up.
    Link(usize, bool),
}

/// The events of one direction of a link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OfLink {
    pub(crate) entered: u64,
    pub(crate) entered_bytes: u64,
    pub(crate) left: u64,
    pub(crate) left_bytes: u64,
    pub(crate) dropped: u64,
    pub(crate) frames_sent: u64,
    pub(crate) frames_lost: u64,
    pub(crate) frames_received: u64,
}

/// The events of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OfFlow {
    pub(crate) sent: u64,
    pub(crate) again: u64,
    pub(crate) received: u64,
    /// Packets that arrived after the stop, none much later than the one before it, and when the last of them
    /// arrived.
    pub(crate) later: u64,
    pub(crate) last: Option<Instant>,
    pub(crate) timeouts: u64,
    pub(crate) finished: u64,
}

/// Everything seen of a run by its stop, and later arrivals.
pub(crate) struct Seen<'a> {
    world: &'a World,
    pub(crate) packets: BTreeMap<Id, BTreeMap<Place, i64>>,
    links: BTreeMap<(usize, bool), OfLink>,
    flows: Vec<OfFlow>,
    /// When a host last sent, and for which flow.
    sent: Option<(Instant, u32)>,
    /// Whether two flows ever sent at the same instant, so that their order matters.
    pub(crate) tied: bool,
}

impl<'a> Seen<'a> {
    pub(crate) fn new(world: &'a World) -> Self {
        Self {
            world,
            packets: BTreeMap::new(),
            links: BTreeMap::new(),
            flows: vec![OfFlow::default(); world.flows.len()],
            sent: None,
            tied: false,
        }
    }

    pub(crate) fn link(&self, index: usize, down: bool) -> OfLink {
        self.links.get(&(index, down)).copied().unwrap_or_default()
    }

    pub(crate) fn flow(&self, index: usize) -> OfFlow {
        self.flows[index]
    }

    /// The nodes of a direction of a link. Links are in the order of their names, a station's link last.
    fn hop(&self, way: LinkDirection) -> [usize; 2] {
        let link = usize::from(way.link);
        let parent = match self.world.links.get(link) {
            Some(_) => self.world.parent(link),
            None => 0,
        };
        match way.down {
            true => [parent, link + 1],
            false => [link + 1, parent],
        }
    }

    fn add(&mut self, packet: &PacketInfo, place: Place, more: i64) {
        let PacketInfo {
            flow,
            connection,
            role,
            seq,
            created,
            ..
        } = *packet;
        let id = (flow, connection, role as u8, seq, created);
        *self
            .packets
            .entry(id)
            .or_default()
            .entry(place)
            .or_default() += more;
    }

    /// The nodes of the sending and of the receiving host of a packet; none if a relay is between them.
    fn hosts(&self, packet: &PacketInfo) -> Option<[usize; 2]> {
        let flow = &self.world.flows[packet.flow as usize];
        let [a, b] = self.world.ends(flow);
        let split = self.world.relay(flow).is_some();
        let forward = matches!(
            packet.role,
            Role::Datagram | Role::Data | Role::Syn | Role::Probe | Role::RequestAck
        );
        (!split).then_some(if forward { [a, b] } else { [b, a] })
    }
}

impl Watcher for Seen<'_> {
    fn on_event(&mut self, now: Instant, event: &Event) {
        let place = |way: LinkDirection| Place::Link(way.link.into(), way.down);
        let stopped = Instant::ORIGIN + Duration::from_secs(self.world.seconds.into());
        if now > stopped {
            if let Event::PacketReceived(packet) = event {
                let flow = &mut self.flows[packet.flow as usize];
                let in_time = now <= flow.last.unwrap_or(stopped) + PATIENCE;
                if in_time && packet.role.carries_data() {
                    flow.later += 1;
                    flow.last = Some(now);
                }
            }
            return;
        }
        if let Some(way) = event.way() {
            let link = self.links.entry((way.link.into(), way.down)).or_default();
            match event {
                Event::PacketEntered { packet, .. } => {
                    link.entered += 1;
                    link.entered_bytes += u64::from(packet.len_bytes);
                }
                Event::PacketLeft { packet, .. } => {
                    link.left += 1;
                    link.left_bytes += u64::from(packet.len_bytes);
                }
                Event::PacketDropped { .. } => link.dropped += 1,
                Event::FrameSent { .. } => link.frames_sent += 1,
                Event::FrameLost { .. } => link.frames_lost += 1,
                Event::FrameReceived { .. } => link.frames_received += 1,
                _ => {}
            }
        }
        match *event {
            Event::PacketEntered { way, packet, .. } => {
                let [from, _] = self.hop(way);
                self.add(&packet, Place::Node(from), -1);
                self.add(&packet, place(way), 1);
            }
            Event::PacketLeft { way, packet } => {
                let [_, to] = self.hop(way);
                self.add(&packet, place(way), -1);
                self.add(&packet, Place::Node(to), 1);
            }
            Event::PacketDropped { way, packet, .. } => {
                let way = way.expect("every node has a way to every other");
                self.add(&packet, place(way), -1);
            }
            // On a link without services, a frame is a packet.
            Event::FrameLost { way, frame, .. } if frame.header.is_none() => {
                let packet = frame.packet.expect("a packet as it is");
                self.add(&packet, place(way), -1);
            }
            Event::PacketSent(packet) => {
                let sent = self.sent.replace((now, packet.flow));
                self.tied |= sent.is_some_and(|(at, flow)| at == now && flow != packet.flow);
                let flow = &mut self.flows[packet.flow as usize];
                let data = packet.role.carries_data();
                flow.sent += u64::from(data);
                flow.again += u64::from(data && packet.retransmission);
                if let Some([from, _]) = self.hosts(&packet) {
                    self.add(&packet, Place::Node(from), 1);
                }
            }
            Event::PacketReceived(packet) => {
                let flow = &mut self.flows[packet.flow as usize];
                flow.received += u64::from(packet.role.carries_data());
                if let Some([_, to]) = self.hosts(&packet) {
                    self.add(&packet, Place::Node(to), -1);
                }
            }
            Event::Timeout(sender) => self.flows[sender.flow as usize].timeouts += 1,
            Event::FlowFinished { flow } => self.flows[flow as usize].finished += 1,
            _ => {}
        }
    }
}
