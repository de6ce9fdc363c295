//! The state of one service in a port.

mod endings;

use std::collections::VecDeque;

use airlane_base::{Duration, Instant, Payload, Rate};

use super::agreement::Agreement;
use super::lengths::Lengths;
use crate::config::{AggregateConfig, PortConfig, SchemeConfig, ServiceConfig, TimerOrigin};
use crate::context::{Ages, Context, DeliveredPayload, Origin, Output, PortFacts, earliest};
use crate::departure::{DepartingFrame, Outcome};
use crate::flow::{Packet, endures};
use crate::ledger::{EventCount, ServiceLedger};
use crate::measure::Meter;
use crate::mechanism::dejitter::Dejitter;
use crate::mechanism::repeats::Repeats;
use crate::pack::contents::FRAGMENT_HEAD;
use crate::pack::{EpochLoss, Holds, Packer, Shortening, Unpacker};
use crate::queue::{DropReason, IngressQueue, QueueConfig};
use crate::service::{Frames, Service};
use crate::wire::{Codec, Frame, Header, Layout, Role};

/// The state that a service exports as a MAC does (Gopal 2007, section 3.3.2): counters since its installation,
/// of which the reader computes intervals, and the present room in its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Packets that it took from its queue to send. Repairs do not count.
    pub taken_packets: u64,
    /// Bytes of these packets.
    pub taken_bytes: u64,
    /// How often it could have handed over a frame but had none, and none was on its way to the link.
    pub underflows: u64,
    /// Bytes that its queue can take now and hold as a standing queue.
    pub room_bytes: u64,
    /// Whether nothing is queued, nor on its way to the link.
    pub is_idle: bool,
}

/// A service with its queue and its ledger.
#[derive(Clone, Debug)]
pub(super) struct Slot<P> {
    /// With all defaults resolved.
    pub(super) config: ServiceConfig,
    /// The kinds and layout of its frames.
    pub(super) frames: Frames,
    codec: Codec,
    /// Bytes of a frame other than its payload, where constant.
    head_len: Option<usize>,
    pub(super) service: Service<P>,
    /// The part of the budget that may pass before the link.
    waits_at_most: Option<Duration>,
    /// Age at which datagrams are dropped.
    patience: Option<Duration>,
    queue: IngressQueue<P>,
    packer: Packer<P>,
    /// The adaptive length of its frames, where enabled.
    lengths: Option<Box<Lengths>>,
    unpacker: Unpacker<P>,
    pub(super) ledger: ServiceLedger,
    /// Counts of the scheme's events.
    pub(super) events: Vec<EventCount>,
    /// Packets dropped since the last call, where the driver collects them.
    dropped: Option<Vec<(DropReason, P)>>,
    pub(super) meter: Meter,
    /// Whether it is being removed: no packets are classified to it, and it goes when it is empty and the
    /// peer is quiet.
    pub(super) draining: bool,
    /// The service that replaces it then.
    pub(super) next: Option<ServiceConfig>,
    /// Its pairing with the peer's service.
    pub(super) agreement: Agreement,
    /// When the last frame arrived or left; keepalives do not count, because they never end.
    active_at: Instant,
    /// When the last frame arrived, or the last new packet left.
    progress_at: Instant,
    /// When it was last asked for a frame, or one left.
    polled_at: Instant,
    /// Frames that a new epoch has removed from the scheduler.
    forgotten: EpochLoss,
    /// Packets and bytes that wait for it at IP, where packets from IP are paced.
    at_ip: (usize, usize),
    /// A round trip of full frames, used until one is measured.
    unmeasured: Duration,
    /// Frames of this service in the scheduler.
    handed_over: u32,
    /// How often it could have handed over a frame, and had none.
    underflows: u64,
    timer_origin: TimerOrigin,
    /// Whether it may have deadlines.
    timed: bool,
}

/// A frame can still arrive until this many later ones have left, where no window gives a bound.
const REACH: u32 = 1024;

fn ages(config: &ServiceConfig) -> Ages {
    Ages::new(config.budget, config.patience)
}

/// One-way time of a full frame through the link.
fn path(facts: &PortFacts, layout: &Layout) -> Duration {
    let overhead = facts.codec.header_len(layout) + facts.frame_overhead;
    facts.delay + facts.rate.transmission_time(facts.max_payload + overhead)
}

impl<P: Packet> Slot<P> {
    /// `port` is the configuration of the port, `room` the present longest payload of a frame.
    pub(super) fn new(
        config: ServiceConfig,
        facts: &PortFacts,
        port: &PortConfig,
        room: usize,
        agreement: Agreement,
    ) -> Self {
        let service = Service::new(&config.scheme, ages(&config), facts);
        let frames = service.scheme().frames();
        let layout = frames.layout;
        let queue = config.queue.unwrap_or(QueueConfig::None {});
        // Whether two flows share a queue differs between services.
        let salt = airlane_base::random::fnv1a(config.name.as_bytes()) ^ port.flow_salt;
        // An aggregate stays short enough to be copied like its packets.
        let copied = config.scheme.copies().and_then(|copies| copies.longest);
        let unmeasured = facts.on_its_way(layout) * 2;
        let holds = match config.scheme.dejitter() {
            Some(room) => Holds::Jitter(Dejitter::new(room, unmeasured)),
            None if config.scheme.holds_repeats() => Holds::Repeats(Repeats::new(unmeasured)),
            None => Holds::Nothing,
        };
        let reach = config.scheme.window().unwrap_or(REACH);
        let shortening = match config.compact_headers {
            true => Shortening::of(config.scheme.is_reliable(), reach),
            false => Shortening::None,
        };
        let packer = Packer::new(
            room,
            config.aggregate.as_ref().and_then(AggregateConfig::options),
            shortening,
            copied.map(|longest| longest.as_bytes() as usize),
            port.alike,
            layout.keeps_lanes().then_some(salt),
        );
        Self {
            frames,
            codec: facts.codec,
            head_len: (layout.is_fixed()).then(|| facts.codec.header_len(layout)),
            service,
            waits_at_most: config.budget.map(|all| all.saturating_sub(facts.delay)),
            patience: config.patience,
            queue: IngressQueue::new(&queue, port.max_payload, salt),
            timed: !packer.is_plain() || !matches!(config.scheme, SchemeConfig::Default(_)),
            packer,
            lengths: port.adaptive_frames.then(|| {
                let below = facts.codec.header_len(layout) + port.frame_overhead;
                let window = config.scheme.window().unwrap_or(u32::MAX);
                // The room may grow to this again.
                let most = port.frame_payload();
                Box::new(Lengths::new(
                    below + FRAGMENT_HEAD,
                    most,
                    window,
                    facts.rate,
                ))
            }),
            unpacker: Unpacker::new(holds, config.scheme.is_reliable()),
            ledger: ServiceLedger::default(),
            events: Vec::new(),
            dropped: None,
            meter: Meter::new(path(facts, layout), facts.is_live() || layout.is_numbered()),
            draining: false,
            next: None,
            agreement,
            active_at: Instant::ORIGIN,
            progress_at: Instant::ORIGIN,
            polled_at: Instant::ORIGIN,
            forgotten: EpochLoss::default(),
            at_ip: (0, 0),
            unmeasured,
            handed_over: 0,
            underflows: 0,
            timer_origin: config.scheme.timer_origin(),
            config,
        }
    }

    /// The link has another rate.
    pub(super) fn retime(&mut self, facts: &PortFacts) {
        let fresh = Service::new(&self.config.scheme, ages(&self.config), facts);
        self.service.retime(fresh);
        self.unmeasured = facts.on_its_way(self.frames.layout) * 2;
        self.unpacker.expect(self.unmeasured);
        self.meter.set_path(path(facts, self.frames.layout));
        if let Some(lengths) = &mut self.lengths {
            lengths.retime(facts.rate);
        }
    }

    /// Adapts the queue to the estimated rate and round trip.
    pub(super) fn fit_queue(&mut self, rate: Rate, round_trip: Duration) {
        self.queue.fit(rate, round_trip);
    }

    pub(super) fn handed_over(&self) -> u32 {
        self.handed_over
    }

    pub(super) fn offer(&mut self, packet: &P) {
        self.ledger.packets_offered += 1;
        self.ledger.offered_bytes += packet.len() as u64;
    }

    /// A packet of `len` bytes waits for it at IP.
    pub(super) fn waits_at_ip(&mut self, len: usize) {
        self.at_ip = (self.at_ip.0 + 1, self.at_ip.1 + len);
    }

    /// A packet of `len` bytes has left IP for this service, or never will.
    pub(super) fn leaves_ip(&mut self, now: Instant, len: usize) {
        self.at_ip = (self.at_ip.0 - 1, self.at_ip.1 - len);
        self.progress_at = self.progress_at.max(now);
    }

    /// Drops and counts a packet.
    pub(super) fn discard(&mut self, reason: DropReason, packet: P) {
        count_drop(&mut self.ledger, &mut self.dropped, reason, packet);
    }

    /// Keeps packets dropped from now on, for [`take_dropped`](Self::take_dropped).
    pub(super) fn keep_dropped(&mut self) {
        self.dropped.get_or_insert_default();
    }

    pub(super) fn take_dropped(&mut self) -> impl Iterator<Item = (DropReason, P)> + '_ {
        self.dropped
            .iter_mut()
            .flat_map(|dropped| dropped.drain(..))
    }

    /// Counts an underflow, if it has nothing to hand over.
    #[inline]
    pub(super) fn note_dry(&mut self) {
        self.underflows += u64::from(self.is_dry());
    }

    /// Whether no packet is queued, and no frame waits for the link; unacknowledged frames do not matter.
    #[inline]
    fn is_dry(&self) -> bool {
        self.handed_over == 0 && self.queue.is_empty() && self.packer.is_empty()
    }

    /// It was asked for a frame, or one has left.
    pub(super) fn note_polled(&mut self, now: Instant) {
        self.polled_at = self.polled_at.max(now);
    }

    /// Length of a frame with its header, without lower layers, bytes.
    #[inline]
    pub(super) fn frame_len(&self, frame: &Frame<P>) -> usize {
        match self.head_len {
            Some(head) => head + frame.payload_len(),
            None => self.codec.len_without_packet(frame, self.frames.layout) + frame.payload_len(),
        }
    }

    /// Queues a packet, or drops what does not fit.
    pub(super) fn wait(&mut self, now: Instant, packet: P) {
        let (ledger, dropped) = (&mut self.ledger, &mut self.dropped);
        self.queue.push(now, packet, &mut |reason, lost| {
            count_drop(ledger, dropped, reason, lost)
        });
    }

    /// Whether it ever has a deadline: a raw service of whole packets has none.
    #[inline]
    pub(super) fn is_timed(&self) -> bool {
        self.timed || self.draining
    }

    /// Whether a packet that arrives now would be its next frame.
    #[inline]
    pub(super) fn is_clear(&self) -> bool {
        let idle = self.handed_over == 0 && !self.draining && !self.has_frames();
        idle && self.packer.is_plain() && self.service.has_room()
    }

    /// The frame of a packet with nothing ahead of it, see [`Slot::is_clear`].
    // Inlined, since a frame that has just been written is slow to move.
    #[inline(always)]
    pub(super) fn send(&mut self, now: Instant, out: &mut Output<P>, packet: P) -> Frame<P> {
        self.note_polled(now);
        let from = self.packer.pass(&packet, now, &mut self.ledger);
        let mut cx = Context::new(now, out, &mut self.ledger);
        let frame = self.service.send(&mut cx, packet, from);
        self.note_handed_over(&frame.header, now);
        frame
    }

    #[inline]
    fn note_handed_over(&mut self, header: &Header, now: Instant) {
        self.handed_over += 1;
        if self.timed && self.timer_origin == TimerOrigin::HandOver {
            self.service.start_timers(header, now);
        }
    }

    /// Whether it may have a frame to hand over without a new packet.
    #[inline]
    pub(super) fn has_frames(&self) -> bool {
        !self.packer.is_idle() || !self.queue.is_empty() || self.service.has_frames()
    }

    /// Hands over the next frame, from queued packets and then `arriving`: passes it and its length to `to`.
    /// Copies are handed over only if there is capacity to `spare`. Returns whether there was a frame.
    #[inline]
    pub(super) fn hand_over(
        &mut self,
        now: Instant,
        spare: bool,
        out: &mut Output<P>,
        arriving: &mut Option<P>,
        to: &mut impl FnMut(DepartingFrame<P>, usize),
    ) -> bool {
        let arriving_len = arriving.as_ref().map(Payload::len);
        let waits = self.packer.waits(now, self.queue.bytes(), arriving_len);
        self.note_polled(now);
        let asks = self.service.has_frames();
        let mut cx = Context::new(now, out, &mut self.ledger);
        if asks && let Some(frame) = self.service.poll_frame(&mut cx) {
            self.give(now, frame, None, to);
        } else if !waits
            && self.service.has_room()
            && let Some((payload, from)) = self.pack(now, arriving)
        {
            let mut cx = Context::new(now, out, &mut self.ledger);
            let frame = self.service.send(&mut cx, payload, from);
            self.give(now, frame, from.came, to);
        } else if asks
            && spare
            && let mut cx = Context::new(now, out, &mut self.ledger)
            && let Some(frame) = self.service.scheme_mut().poll_spare(&mut cx)
        {
            self.give(now, frame, None, to);
        } else {
            return false;
        }
        true
    }

    fn give(
        &mut self,
        now: Instant,
        frame: Frame<P>,
        came: Option<Instant>,
        to: &mut impl FnMut(DepartingFrame<P>, usize),
    ) {
        self.note_handed_over(&frame.header, now);
        let len = self.frame_len(&frame);
        to(DepartingFrame { frame, came }, len);
    }

    /// The next payload, from queued packets and then `arriving`, and its origin.
    #[inline]
    fn pack(&mut self, now: Instant, arriving: &mut Option<P>) -> Option<(P, Origin)> {
        let too_old = |packet: &P, since| {
            let waited = now.saturating_since(since);
            let is_longer = |most| waited > most;
            self.waits_at_most.is_some_and(is_longer)
                || (self.patience.is_some_and(is_longer) && !endures(packet))
        };
        let dropped = &mut self.dropped;
        let mut drop = |ledger: &mut _, reason, packet| count_drop(ledger, dropped, reason, packet);
        if let Some(packet) = self.packer.take_held_if(too_old) {
            drop(&mut self.ledger, DropReason::TooOld, packet);
        }
        self.packer.fill(&mut self.ledger, |ledger| {
            loop {
                let next = self
                    .queue
                    .pop(now, &mut |reason, packet| drop(ledger, reason, packet));
                match next {
                    Some((packet, since)) if too_old(&packet, since) => {
                        drop(ledger, DropReason::TooOld, packet)
                    }
                    Some(_) => return next,
                    None => return arriving.take().map(|packet| (packet, now)),
                }
            }
        })
    }

    /// The last bit of a frame of `len` bytes leaves at `left`, or the medium gave the frame up at that time.
    #[inline]
    pub(super) fn handle_departure(
        &mut self,
        header: &Header,
        len: usize,
        left: Instant,
        outcome: Outcome,
    ) {
        let len = len as u64;
        self.note_polled(left);
        self.handed_over -= 1;
        let ledger = &mut self.ledger;
        ledger.frames_sent += 1;
        ledger.frame_sent_bytes += len;
        let role = header.kind.role();
        match role {
            Role::Original => self.progress_at = left,
            Role::Copy | Role::Repair | Role::Redundancy => {
                ledger.repair_frames_sent += 1;
                ledger.repair_frame_bytes += len;
                ledger.copy_frames_sent += u64::from(role == Role::Copy);
            }
            Role::Control | Role::Idle | Role::Port | Role::Session => {
                ledger.control_frames_sent += 1;
                ledger.control_frame_bytes += len;
            }
        }
        if role != Role::Idle {
            self.active_at = left;
        }
        if self.timed && self.timer_origin == TimerOrigin::Departure {
            self.service.start_timers(header, left);
        }
        if outcome == Outcome::Failed {
            self.service.scheme_mut().handle_failure(header);
        }
        if self.lengths.is_some() {
            self.follow_frames(header, len as usize, left);
        }
    }

    /// Adapts the frame length to the departing frames.
    #[cold]
    fn follow_frames(&mut self, header: &Header, len: usize, left: Instant) {
        let Some(lengths) = &mut self.lengths else {
            return;
        };
        let number = self.service.scheme().packet_number(header);
        match header.kind.role() {
            Role::Original => lengths.original(number, len, left),
            Role::Repair => lengths.repair(number),
            Role::Copy | Role::Redundancy | Role::Control | Role::Idle => return,
            Role::Port | Role::Session => return,
        }
        let round_trip = self.service.scheme().srtt().unwrap_or(self.unmeasured);
        self.packer.set_aim(lengths.settle(left, round_trip));
    }

    /// Its exported interface at this link rate, where packets have up to `longest` bytes.
    pub(super) fn interface(&self, rate: Rate, longest: usize) -> Interface {
        let waiting = self.waiting_bytes() as u64;
        let places = self.queue.stands(rate, longest as u64);
        Interface {
            taken_packets: self.ledger.packets_sent,
            taken_bytes: self.ledger.sent_bytes,
            underflows: self.underflows,
            room_bytes: places.saturating_sub(waiting),
            is_idle: self.is_dry(),
        }
    }

    /// Takes a frame of `len` bytes from the peer; with `plain`, its packets are delivered unchanged.
    #[inline]
    pub(super) fn handle_frame(
        &mut self,
        now: Instant,
        out: &mut Output<P>,
        (frame, len): (Frame<P>, usize),
        plain: bool,
    ) {
        self.ledger.frames_received += 1;
        self.ledger.frame_received_bytes += len as u64;
        if !self.frames.admit(&frame) {
            self.ledger.malformed += 1;
            return;
        }
        if frame.header.kind.role() != Role::Idle {
            self.active_at = self.active_at.max(now);
            self.progress_at = self.progress_at.max(now);
        }
        let mut cx = Context::new(now, out, &mut self.ledger).plain(plain);
        self.service.handle_frame(&mut cx, frame);
    }

    /// Returns whether the service, or its packer, had something to do.
    pub(super) fn handle_timeout(&mut self, now: Instant, out: &mut Output<P>) -> bool {
        let up = &mut out.up;
        self.unpacker.handle_timeout(now, up, &mut self.ledger);
        let enough = self.packer.handle_timeout(now);
        if self.service.poll_timeout().is_none_or(|due| due > now) {
            return enough;
        }
        let mut cx = Context::new(now, out, &mut self.ledger);
        self.service.scheme_mut().handle_timeout(&mut cx);
        true
    }

    /// Whether [`Slot::open`] may create deadlines. Otherwise the service's packets are delivered unchanged,
    /// at once.
    #[inline]
    pub(super) fn opens_timed(&self) -> bool {
        self.unpacker.is_timed()
    }

    /// Opens a payload that its service has delivered: see [`Unpacker::open`].
    #[inline]
    pub(super) fn open(
        &mut self,
        now: Instant,
        delivered: DeliveredPayload<P>,
        up: &mut VecDeque<P>,
    ) -> Option<P> {
        let before = up.len();
        let packet = self
            .unpacker
            .open(now, delivered, true, up, &mut self.ledger);
        if self.packer.watches_up() {
            let all = up.range(before..).chain(&packet);
            all.for_each(|packet| self.packer.handle_up(packet));
        }
        packet
    }

    #[inline]
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let opened = earliest(self.unpacker.poll_timeout(), self.packer.poll_timeout());
        let mut due = earliest(self.service.poll_timeout(), opened);
        if self.draining {
            due = earliest(due, self.retires_at());
        }
        due
    }

    /// Whether packets of this packet's flow may still be queued here.
    pub(super) fn may_hold_flow_of(&self, packet: &P) -> bool {
        self.at_ip.0 > 0 || !self.packer.is_empty() || self.queue.may_hold_flow_of(packet)
    }

    /// Whether it has nothing in flight, and nothing to send.
    pub(super) fn is_quiet(&self) -> bool {
        let empty = self.queue.is_empty() && self.packer.is_empty() && self.at_ip.0 == 0;
        empty && self.handed_over == 0 && self.service.scheme().is_idle()
    }

    /// Number of queued packets.
    pub(super) fn waiting_packets(&self) -> usize {
        self.at_ip.0 + self.queue.len() + usize::from(self.packer.held().is_some())
    }

    /// Bytes of the queued packets.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.at_ip.1 + self.queue.bytes() + self.packer.held().map_or(0, Payload::len)
    }

    /// Sets the longest payload of later frames.
    pub(super) fn set_room(&mut self, room: usize) {
        self.packer.set_longest(room);
    }
}

#[cold]
fn count_drop<P: Payload>(
    ledger: &mut ServiceLedger,
    dropped: &mut Option<Vec<(DropReason, P)>>,
    reason: DropReason,
    packet: P,
) {
    ledger.dropped_bytes += packet.len() as u64;
    match reason {
        DropReason::QueueFull => ledger.dropped_queue_full += 1,
        DropReason::CoDel => ledger.dropped_codel += 1,
        DropReason::WindowFull => ledger.dropped_window_full += 1,
        DropReason::Disconnected => ledger.dropped_disconnected += 1,
        DropReason::TooOld => ledger.dropped_too_old += 1,
        DropReason::TooBig => ledger.dropped_too_big += 1,
    }
    // The driver may want the packet itself.
    if let Some(dropped) = dropped {
        dropped.push((reason, packet));
    }
}

#[cfg(test)]
mod tests;
