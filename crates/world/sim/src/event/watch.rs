//! Translates what the engine shows to its observer into typed events.

use airlane_base::{Duration, Instant};
use airlane_link::{DropReason, Frame, Layout, Port, ServiceEvent};

use super::{
    Dropped, Event, FrameInfo, HeaderInfo, LinkDirection, Lost, PacketInfo, SenderInfo, TcpState,
    Watcher,
};
use crate::app::Flow;
use crate::app::end::End;
use crate::engine::observe::{Departure, Loss, Observer};
use crate::packet::{Marks, Packet};

/// Shows events to a watcher.
pub(crate) struct Typed<'a, W> {
    watcher: &'a mut W,
    /// The last state shown of each flow.
    flows: Vec<Seen>,
}

/// The last state shown of a flow.
#[derive(Clone, Debug, Default)]
struct Seen {
    senders: Vec<SeenSender>,
    responses: u64,
    responses_ns: i128,
    finished: bool,
}

/// The last state shown of a connection's sender.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SeenSender {
    number: u32,
    timeouts: u64,
    fast_retransmits: u64,
    state: TcpState,
}

impl<'a, W: Watcher> Typed<'a, W> {
    pub(crate) fn new(watcher: &'a mut W, flows: usize) -> Self {
        Self {
            watcher,
            flows: vec![Seen::default(); flows],
        }
    }
}

/// Even directions are "down".
const fn way(direction: usize) -> LinkDirection {
    LinkDirection {
        link: (direction / 2) as u16,
        down: direction.is_multiple_of(2),
    }
}

impl From<&Packet> for PacketInfo {
    fn from(packet: &Packet) -> Self {
        Self {
            flow: packet.flow.into(),
            connection: packet.connection,
            role: packet.into(),
            seq: packet.seq,
            len_bytes: packet.len,
            retransmission: packet.role().is_data() && packet.marks.has(Marks::AGAIN),
            created: packet.created,
        }
    }
}

fn frame_info(port: &Port<Packet>, frame: &Frame<Packet>) -> FrameInfo {
    let header = &frame.header;
    let layout = port.layout_of(header.service).unwrap_or(&Layout::BARE);
    let numbered = layout.is_numbered();
    // The payload of a parity frame is not a packet, even if it looks like one.
    let packet = frame.packet().filter(|_| header.kind.is_packet());
    FrameInfo {
        header: Some(HeaderInfo {
            service: header.service,
            kind: header.kind,
            seq: if numbered { header.seq } else { 0 },
            ack: layout.acknowledges(header.kind).then_some(header.ack),
        }),
        len_bytes: port.frame_len(frame) as u32,
        packet: packet.map(PacketInfo::from),
    }
}

impl<W: Watcher> Typed<'_, W> {
    fn departure(&mut self, now: Instant, way: LinkDirection, frame: FrameInfo, what: Departure) {
        let Departure::Sent { departs, lost, .. } = what else {
            return;
        };
        let sent = Event::FrameSent {
            way,
            frame,
            departs,
        };
        self.watcher.on_event(now, &sent);
        let reason = match lost {
            None => return,
            Some(Loss::Errors) => Lost::Errors,
            Some(Loss::Outage) => Lost::Outage,
            Some(Loss::Handoff) => Lost::Handoff,
            Some(Loss::Policed) => Lost::Policed,
        };
        let lost = Event::FrameLost {
            way,
            frame,
            departs,
            reason,
        };
        self.watcher.on_event(now, &lost);
    }
}

/// A packet on a link without services.
fn bare(packet: &Packet) -> FrameInfo {
    FrameInfo {
        header: None,
        len_bytes: packet.len,
        packet: Some(packet.into()),
    }
}

impl<W: Watcher> Observer for Typed<'_, W> {
    fn is_over(&self) -> bool {
        self.watcher.is_over()
    }

    fn on_entry(&mut self, now: Instant, direction: usize, packet: &Packet) {
        let entered = Event::PacketEntered {
            way: way(direction),
            service: None,
            packet: packet.into(),
        };
        self.watcher.on_event(now, &entered);
    }

    fn on_packet(&mut self, now: Instant, direction: usize, packet: &Packet, what: Departure) {
        let way = way(direction);
        if what == Departure::Dropped {
            let dropped = Event::PacketDropped {
                way: Some(way),
                service: None,
                reason: Dropped::Queue(DropReason::QueueFull),
                packet: packet.into(),
            };
            self.watcher.on_event(now, &dropped);
        }
        self.departure(now, way, bare(packet), what);
    }

    fn on_port(&mut self, now: Instant, direction: usize, service: u8, packet: &Packet) {
        let entered = Event::PacketEntered {
            way: way(direction),
            service: Some(service),
            packet: packet.into(),
        };
        self.watcher.on_event(now, &entered);
    }

    fn on_drop(
        &mut self,
        now: Instant,
        direction: usize,
        service: u8,
        reason: DropReason,
        packet: &Packet,
    ) {
        let dropped = Event::PacketDropped {
            way: Some(way(direction)),
            service: Some(service),
            reason: Dropped::Queue(reason),
            packet: packet.into(),
        };
        self.watcher.on_event(now, &dropped);
    }

    fn on_told(&mut self, now: Instant, direction: usize, event: ServiceEvent) {
        let way = way(direction);
        self.watcher
            .on_event(now, &Event::ServiceReported { way, event });
    }

    fn on_unroutable(&mut self, now: Instant, packet: &Packet) {
        let dropped = Event::PacketDropped {
            way: None,
            service: None,
            reason: Dropped::NoRoute,
            packet: packet.into(),
        };
        self.watcher.on_event(now, &dropped);
    }

    fn on_frame(
        &mut self,
        now: Instant,
        direction: usize,
        port: &Port<Packet>,
        frame: &Frame<Packet>,
        what: Departure,
    ) {
        self.departure(now, way(direction), frame_info(port, frame), what);
    }

    fn on_frame_arrival(
        &mut self,
        now: Instant,
        direction: usize,
        port: &Port<Packet>,
        frame: &Frame<Packet>,
    ) {
        let received = Event::FrameReceived {
            way: way(direction),
            frame: frame_info(port, frame),
        };
        self.watcher.on_event(now, &received);
    }

    fn on_packet_arrival(&mut self, now: Instant, direction: usize, packet: &Packet) {
        let received = Event::FrameReceived {
            way: way(direction),
            frame: bare(packet),
        };
        self.watcher.on_event(now, &received);
    }

    fn on_out_of_step(&mut self, now: Instant, direction: usize, packet: &Packet) {
        let dropped = Event::PacketDropped {
            way: Some(way(direction)),
            service: None,
            reason: Dropped::OutOfStep,
            packet: packet.into(),
        };
        self.watcher.on_event(now, &dropped);
    }

    fn on_arrival(&mut self, now: Instant, direction: usize, packet: &Packet) {
        let left = Event::PacketLeft {
            way: way(direction),
            packet: packet.into(),
        };
        self.watcher.on_event(now, &left);
    }

    fn on_transmit(&mut self, now: Instant, packet: &Packet) {
        self.watcher
            .on_event(now, &Event::PacketSent(packet.into()));
    }

    fn on_receive(&mut self, now: Instant, packet: &Packet) {
        self.watcher
            .on_event(now, &Event::PacketReceived(packet.into()));
    }

    fn on_flow(&mut self, now: Instant, index: usize, flow: &Flow) {
        let Self { watcher, flows } = self;
        let seen = &mut flows[index];
        let mut place = 0;
        flow.each_sender(|end| {
            on_sender(*watcher, now, index as u32, seen, place, end);
            place += 1;
        });
        if let Some(times) = flow.times()
            && times.count() > seen.responses
        {
            let new = i128::from(times.count() - seen.responses);
            let ns = (times.total_ns() - seen.responses_ns) / new;
            seen.responses = times.count();
            seen.responses_ns = times.total_ns();
            let done = Event::ResponseDone {
                flow: index as u32,
                number: times.count(),
                duration: Duration::from_nanos(ns as u64),
            };
            watcher.on_event(now, &done);
        }
        if flow.is_finished() && !seen.finished {
            seen.finished = true;
            watcher.on_event(now, &Event::FlowFinished { flow: index as u32 });
        }
    }
}

/// Shows what has changed for the sender at `place` of a flow.
fn on_sender(
    watcher: &mut impl Watcher,
    now: Instant,
    flow: u32,
    seen: &mut Seen,
    place: usize,
    end: &End,
) {
    let sender = end.endpoint().sender();
    let stats = sender.stats();
    let new = SeenSender {
        number: end.sends(),
        timeouts: stats.timeouts,
        fast_retransmits: stats.fast_retransmits,
        state: TcpState {
            cwnd_segments: sender.cwnd(),
            ssthresh_segments: sender.ssthresh(),
            window_segments: sender.window(),
            srtt: sender.srtt(),
            rto: sender.rto(),
        },
    };
    let old = seen.senders.get(place).copied();
    if old == Some(new) {
        return;
    }
    let info = SenderInfo {
        flow,
        connection: end.sends(),
        role: end.data_role().into(),
    };
    if new.timeouts > old.map_or(0, |old| old.timeouts) {
        watcher.on_event(now, &Event::Timeout(info));
    }
    if new.fast_retransmits > old.map_or(0, |old| old.fast_retransmits) {
        watcher.on_event(now, &Event::FastRetransmit(info));
    }
    if old.is_none_or(|old| (old.number, old.state) != (new.number, new.state)) {
        watcher.on_event(now, &Event::TcpState(info, new.state));
    }
    match seen.senders.get_mut(place) {
        Some(old) => *old = new,
        None => seen.senders.push(new),
    }
}
