//! What a port keeps for each service.

use std::collections::VecDeque;

use airlane_base::{Damage, Duration, Instant, Payload};

use super::Agreement;
use crate::config::{ServiceConfig, TimerOrigin};
use crate::flow::Packet;
use crate::ledger::ServiceLedger;
use crate::measure::Meter;
use crate::mechanism::symbols::Shape;
use crate::queue::{DropReason, IngressQueue, QueueConfig};
use crate::service::{Context, PortFacts, Service};
use crate::wire::{Frame, FrameKind, Header, Layout};

/// A removed service stays at least this long: its number is not needed at once, and the peer's
/// timers may be longer than ours, which run shorter with each service that goes.
const LINGER_AT_LEAST: Duration = Duration::from_secs(5);

/// A service with its waiting room and its books.
#[derive(Clone, Debug)]
pub(super) struct Slot<P> {
    /// Resolved.
    pub(super) config: ServiceConfig,
    pub(super) layout: Layout,
    /// How frames are cut, if they are.
    shape: Option<Shape>,
    pub(super) service: Service<P>,
    /// What a budget leaves for the time before the link.
    waits_at_most: Option<Duration>,
    pub(super) queue: IngressQueue<P>,
    pub(super) ledger: ServiceLedger,
    pub(super) meter: Meter,
    /// No longer classified to; goes when everything in it has gone and the peer is quiet.
    pub(super) draining: bool,
    /// What takes its place then.
    pub(super) next: Option<ServiceConfig>,
    /// How it stands with the peer's.
    pub(super) agreement: Agreement,
    /// When the last frame came or left; keepalives do not count, they have no end.
    active_at: Instant,
    /// When the last frame came, or the last new packet left.
    progress_at: Instant,
    /// When it was last asked for a frame, or one has left.
    polled_at: Instant,
    /// Frames of this service in the scheduler.
    handed_over: u32,
    timer_origin: TimerOrigin,
}

impl<P: Packet> Slot<P> {
    pub(super) fn new(config: ServiceConfig, facts: &PortFacts, agreement: Agreement) -> Self {
        let layout = Service::<P>::layout(&config.scheme);
        let queue = config.queue.unwrap_or(QueueConfig::None {});
        // Flows are spread over queues by a salted hash; a constant salt for each service keeps
        // runs repeatable.
        let salt = airlane_base::random::fnv1a(config.name.as_bytes());
        let shape = config.scheme.shape();
        let inside = shape.map_or(0, |shape| shape.overhead(facts.max_payload));
        let overhead = facts.codec.header_len(layout) + facts.frame_overhead + inside;
        let full_frame = facts.max_payload + overhead;
        Self {
            layout,
            shape,
            service: Service::new(&config.scheme, config.budget, facts),
            waits_at_most: config.budget.map(|all| all.saturating_sub(facts.delay)),
            queue: IngressQueue::new(&queue, facts.max_payload, salt),
            ledger: ServiceLedger::default(),
            meter: Meter::new(facts.delay + facts.rate.transmission_time(full_frame)),
            draining: false,
            next: None,
            agreement,
            active_at: Instant::ORIGIN,
            progress_at: Instant::ORIGIN,
            polled_at: Instant::ORIGIN,
            handed_over: 0,
            timer_origin: config.scheme.timer_origin(),
            config,
        }
    }

    pub(super) fn handed_over(&self) -> u32 {
        self.handed_over
    }

    pub(super) fn offer(&mut self, packet: &P) {
        self.ledger.packets_offered += 1;
        self.ledger.offered_bytes += packet.len() as u64;
    }

    pub(super) fn drop_too_big(&mut self, packet: &P) {
        self.ledger.dropped_too_big += 1;
        self.ledger.dropped_bytes += packet.len() as u64;
    }

    pub(super) fn drop_queue_full(&mut self, packet: &P) {
        count_drop(&mut self.ledger, DropReason::QueueFull, packet);
    }

    /// Bytes on the air of what follows the header of a frame.
    pub(super) fn body_len(&self, frame: &Frame<P>) -> usize {
        let len = frame.payload_len();
        self.shape
            .map_or(len, |shape| shape.body_len(&frame.header, len))
    }

    /// A frame of `len` bytes has come damaged, and `header` is what could be read of it.
    pub(super) fn handle_damaged(
        &mut self,
        now: Instant,
        up: &mut VecDeque<P>,
        header: Option<&Header>,
        frame: &Frame<P>,
        len: usize,
        damage: &Damage,
    ) {
        let mut cx = Context::new(now, up, &mut self.ledger);
        let used = header
            .is_some_and(|header| self.service.handle_damaged(&mut cx, header, frame, damage));
        if used {
            self.active_at = self.active_at.max(now);
            self.progress_at = self.progress_at.max(now);
            self.ledger.frames_received += 1;
            self.ledger.frame_received_bytes += len as u64;
        } else {
            self.drop_corrupted(len);
        }
    }

    fn drop_corrupted(&mut self, len: usize) {
        self.ledger.corrupted += 1;
        self.ledger.corrupted_bytes += len as u64;
    }

    /// Queues a packet, or drops what does not fit.
    pub(super) fn wait(&mut self, now: Instant, packet: P) {
        let ledger = &mut self.ledger;
        self.queue.push(now, packet, &mut |reason, lost| {
            count_drop(ledger, reason, &lost)
        });
    }

    /// The next frame to hand over, from what waits and then `arriving`; of a packet that leaves for
    /// the first time, also when it came.
    pub(super) fn poll_frame(
        &mut self,
        now: Instant,
        up: &mut VecDeque<P>,
        arriving: &mut Option<P>,
        congested: bool,
    ) -> Option<(Frame<P>, Option<Instant>)> {
        let (queue, budget) = (&mut self.queue, self.waits_at_most);
        // The ledger is lent to the service meanwhile; what leaves a queue this way, CoDel dropped.
        let (mut codel, mut too_old, mut dropped_bytes) = (0, 0, 0);
        let mut came = now;
        let mut source = || {
            loop {
                let waited = queue.pop_since(now, &mut |reason, lost| {
                    debug_assert_eq!(reason, DropReason::CoDel);
                    codel += 1;
                    dropped_bytes += lost.len() as u64;
                });
                let Some((packet, since)) = waited else {
                    return arriving.take();
                };
                if budget.is_some_and(|budget| now.saturating_since(since) > budget) {
                    too_old += 1;
                    dropped_bytes += packet.len() as u64;
                    continue;
                }
                came = since;
                return Some(packet);
            }
        };
        let mut cx = Context::new(now, up, &mut self.ledger);
        cx.congested = congested;
        let frame = self.service.poll_frame(&mut cx, &mut source);
        self.polled_at = self.polled_at.max(now);
        self.ledger.dropped_codel += codel;
        self.ledger.dropped_too_old += too_old;
        self.ledger.dropped_bytes += dropped_bytes;
        let frame = frame?;
        self.handed_over += 1;
        let is_new = frame.header.kind == FrameKind::Data;
        if is_new {
            self.ledger.packets_sent += 1;
            self.ledger.sent_bytes += frame.payload_len() as u64;
            if budget.is_some() {
                self.service.note_age(&frame.header, came);
            }
        }
        if self.timer_origin == TimerOrigin::HandOver {
            self.service.start_timers(&frame.header, now);
        }
        Some((frame, is_new.then_some(came)))
    }

    /// A frame of `len` bytes is on its way out until `left`.
    pub(super) fn handle_departure(&mut self, frame: &Frame<P>, len: usize, left: Instant) {
        let len = len as u64;
        if frame.header.kind != FrameKind::Keepalive {
            self.active_at = left;
        }
        if frame.header.kind == FrameKind::Data {
            self.progress_at = left;
        }
        self.polled_at = self.polled_at.max(left);
        self.handed_over -= 1;
        let ledger = &mut self.ledger;
        ledger.frames_sent += 1;
        ledger.frame_sent_bytes += len;
        match frame.header.kind {
            FrameKind::Data => {}
            kind if kind.repairs() => {
                ledger.repair_frames_sent += 1;
                ledger.repair_frame_bytes += len;
                ledger.copy_frames_sent += u64::from(kind == FrameKind::Copy);
            }
            _ => {
                ledger.control_frames_sent += 1;
                ledger.control_frame_bytes += len;
            }
        }
        if self.timer_origin == TimerOrigin::Departure {
            self.service.start_timers(&frame.header, left);
        }
    }

    pub(super) fn handle_frame(
        &mut self,
        now: Instant,
        up: &mut VecDeque<P>,
        frame: Frame<P>,
        len: usize,
    ) -> Option<Duration> {
        if frame.header.kind != FrameKind::Keepalive {
            self.active_at = self.active_at.max(now);
            self.progress_at = self.progress_at.max(now);
        }
        self.ledger.frames_received += 1;
        self.ledger.frame_received_bytes += len as u64;
        let mut cx = Context::new(now, up, &mut self.ledger);
        self.service.handle_frame(&mut cx, frame);
        cx.round_trip
    }

    /// Whether anything was due.
    pub(super) fn handle_timeout(&mut self, now: Instant, up: &mut VecDeque<P>) -> bool {
        if self.service.poll_timeout().is_none_or(|due| due > now) {
            return false;
        }
        let mut cx = Context::new(now, up, &mut self.ledger);
        self.service.handle_timeout(&mut cx);
        true
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let service = self.service.poll_timeout();
        match (service, self.retires_at()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// A new epoch: what was on its way is lost, what waits stays.
    pub(super) fn reset(&mut self, now: Instant, up: &mut VecDeque<P>) {
        let mut cx = Context::new(now, up, &mut self.ledger);
        let (packets, bytes) = self.service.reset(&mut cx);
        self.ledger.epoch_lost += packets;
        self.ledger.epoch_lost_bytes += bytes;
        self.handed_over = 0;
    }

    /// The link is taken away: what waits goes as well.
    pub(super) fn drop_waiting(&mut self) {
        let ledger = &mut self.ledger;
        self.queue
            .drain(&mut |packet| count_drop(ledger, DropReason::Disconnected, &packet));
    }

    pub(super) fn drop_disconnected(&mut self, packet: &P) {
        count_drop(&mut self.ledger, DropReason::Disconnected, packet);
    }

    /// A frame was thrown out of the scheduler by a new epoch.
    pub(super) fn forget(&mut self, frame: &Frame<P>) {
        // A reliable scheme still holds its packets, and has counted them.
        if frame.header.kind == FrameKind::Data && !self.config.scheme.is_reliable() {
            self.ledger.epoch_lost += 1;
            self.ledger.epoch_lost_bytes += frame.payload_len() as u64;
        }
    }

    /// Begins to remove the service. What the peer has sent is still on its way.
    pub(super) fn drain(&mut self, now: Instant) {
        self.draining = true;
        self.active_at = self.active_at.max(now);
        self.progress_at = self.progress_at.max(now);
    }

    /// When a service that is being removed may go: everything in it has gone, and the peer has
    /// had time to ask for what it missed; or the peer has been silent for so long that it has no
    /// such service any more, and what is left here cannot go.
    pub(super) fn retires_at(&self) -> Option<Instant> {
        if !self.draining || self.handed_over != 0 {
            return None;
        }
        let linger = self.service.linger().max(LINGER_AT_LEAST);
        let done = self.queue.is_empty() && self.service.is_idle();
        let at = if done {
            self.active_at + linger
        } else {
            self.progress_at + linger * 4
        };
        // What is polled may be the last thing that kept it. A time that has passed already would be
        // a deadline that nobody can meet.
        Some(at.max(self.polled_at + Duration::from_nanos(1)))
    }

    /// Ends the service. What it could not send is counted as dropped or lost.
    pub(super) fn retire(mut self, now: Instant, up: &mut VecDeque<P>) -> (String, ServiceLedger) {
        self.reset(now, up);
        let ledger = &mut self.ledger;
        self.queue
            .drain(&mut |packet| count_drop(ledger, DropReason::WindowFull, &packet));
        (self.config.name, self.ledger)
    }
}

fn count_drop(ledger: &mut ServiceLedger, reason: DropReason, packet: &impl Payload) {
    ledger.dropped_bytes += packet.len() as u64;
    match reason {
        DropReason::QueueFull => ledger.dropped_queue_full += 1,
        DropReason::CoDel => ledger.dropped_codel += 1,
        DropReason::WindowFull => ledger.dropped_window_full += 1,
        DropReason::Disconnected => ledger.dropped_disconnected += 1,
    }
}
