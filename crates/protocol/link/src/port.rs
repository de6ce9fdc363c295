//! One end of a multi service link.

mod admin;
mod agree;
mod agreement;
mod bytes;
mod down;
mod events;
mod lengths;
mod moves;
mod signals;
mod slot;
mod up;

use std::cell::Cell;

use airlane_base::{Duration, Instant, Seq, Serialised};

use crate::classify::Classifier;
use crate::config::{self, ConfigError, PortConfig, RateLimit, Rates, Viewpoint};
use crate::context::{Output, PortFacts, ServiceEvent};
use crate::departure::{DepartingFrame, Outcome, Token};
use crate::flow::Packet;
use crate::ledger::ServiceLedger;
use crate::measure::INTERVAL;
use crate::queue::{Moving, Pacer};
use crate::rate::RateEstimator;
use crate::schedule::{LEAST_SHARE, Schedule, Scheduler, Shares, Turn};
use crate::wire::{Codec, Frame, FrameKind, Report, SERVICES};

pub use admin::{AdminError, ServiceStatus};
use agreement::PeerOffers;
pub use slot::Interface;
use slot::Slot;

/// One end of a link: classifier, services, scheduler, demultiplexer and multiplexer.
///
/// The crate's documentation states the contract. A clone copies the whole state, as model checking requires.
#[derive(Clone, Debug)]
pub struct Port<P> {
    config: PortConfig,
    facts: PortFacts,
    classifier: Classifier,
    /// The service chosen for the last packet from IP.
    chosen: u8,
    /// Packets of flows that are changing their service.
    moving: Moving<P>,
    /// The IP queue, where packets from IP are paced.
    pacer: Option<Pacer<P>>,
    /// The rate estimator, where the rate is not fixed.
    estimator: Option<Box<RateEstimator>>,
    /// The round trip that the queues' bounds were last set from.
    fitted: Duration,
    /// The reply to the peer's last mark, until it is sent.
    answer: Option<(Seq, Report)>,
    /// Whether this port has a frame of its own for the peer's port.
    speaks: bool,
    /// Traffic given to each service, where rates follow the traffic.
    shares: Option<Box<Shares>>,
    slots: [Option<Box<Slot<P>>>; SERVICES],
    /// Bit mask of the slots in use; most ports use few.
    installed: u16,
    /// Frames handed over to the scheduler.
    scheduler: Scheduler<DepartingFrame<P>>,
    /// When the link will have finished serialising the current frame.
    free_at: Instant,
    serialised: Serialised,
    /// Frames given out and not yet done.
    under_way: u32,
    /// Epoch counter of each service: departures reported for frames of an earlier epoch are ignored.
    epochs: [u32; SERVICES],
    /// Bit mask of the services that may have a frame to hand over.
    ready: u16,
    /// Cached earliest timer; none after a service has changed.
    next_timer: Cell<Option<Instant>>,
    /// Output of the service that is being called.
    out: Output<P>,
    /// When the payloads in `out` were produced.
    produced_at: Instant,
    /// Bytes of all frames sent, and the same at the end of the last measuring interval.
    sent_bytes: u64,
    sent_bytes_before: u64,
    /// Bytes of all frames received, counted as the peer counts those that it sends.
    received_bytes: u64,
    /// End of the measuring interval.
    interval_ends: Instant,
    /// Longest frame payload at present; at most the configured one.
    room: usize,
    /// The peer's services; none where the peer does not announce them.
    peer: Option<PeerOffers>,
    /// Whether this end's offers may have changed.
    offers_changed: bool,
    /// Ledgers of removed services.
    retired: Vec<(String, ServiceLedger)>,
    /// Whether the driver collects dropped packets.
    keeps_dropped: bool,
    /// Events of services since the last poll, where the driver collects them.
    events: Option<Vec<ServiceEvent>>,
}

impl<P: Packet> Port<P> {
    /// A port in its initial state.
    ///
    /// # Errors
    /// All problems of the service table and the classes.
    pub fn new(config: PortConfig) -> Result<Self, Vec<ConfigError>> {
        Self::with_codec(Codec::new(config.header), config)
    }

    /// A port whose sequence numbers have another width than the profile's.
    ///
    /// # Errors
    /// As [`Port::new`].
    pub fn with_codec(codec: Codec, config: PortConfig) -> Result<Self, Vec<ConfigError>> {
        let mut problems = config::check(config.header, &config.services, &config.classes);
        problems.extend(config::check_ends(Viewpoint::End, &config.services));
        problems.extend(config.rate_limit.check(config.header));
        if !problems.is_empty() {
            return Err(problems);
        }
        let estimator = match config.rate_limit {
            RateLimit::Fixed => None,
            RateLimit::Estimated => Some(Box::new(RateEstimator::new(config.rate, true))),
            RateLimit::Found => Some(Box::new(RateEstimator::new(config.rate, false))),
        };
        let facts = PortFacts {
            codec,
            rate: estimator
                .as_ref()
                .map_or(config.rate, |estimator| estimator.carries()),
            delay: config.delay,
            max_payload: config.frame_payload(),
            frame_overhead: config.frame_overhead,
        };
        let mut port = Self {
            facts,
            classifier: Classifier::new(&[], |_| None, 0),
            chosen: 0,
            moving: Moving::new(),
            pacer: config
                .pacing
                .map(|limit| Pacer::new(config.rate, limit, config.pacing_overhead)),
            estimator,
            fitted: Duration::ZERO,
            answer: None,
            speaks: false,
            shares: (config.rates == Rates::Measured).then(|| Box::new(Shares::new())),
            slots: Default::default(),
            installed: 0,
            scheduler: Scheduler::new(&config.scheduler),
            free_at: Instant::ORIGIN,
            serialised: Serialised::new(config.rate),
            under_way: 0,
            epochs: [0; SERVICES],
            ready: 0,
            next_timer: Cell::new(None),
            out: Output::default(),
            produced_at: Instant::ORIGIN,
            sent_bytes: 0,
            received_bytes: 0,
            sent_bytes_before: 0,
            interval_ends: Instant::ORIGIN + INTERVAL,
            room: config.frame_payload(),
            peer: None,
            offers_changed: false,
            retired: Vec::new(),
            keeps_dropped: false,
            events: None,
            config,
        };
        for service in config::resolve(port.config.header, &port.config.services) {
            port.install(service);
        }
        port.rebuild_classifier();
        port.update_timer_factors();
        Ok(port)
    }

    // ---- time

    /// Processes everything that is due. An early call does nothing.
    #[inline]
    pub fn handle_timeout(&mut self, now: Instant) {
        // This comes before the services, as it may shorten their timers.
        self.follow_traffic(now);
        // Most calls come because the link is free again.
        if self.next_timer().is_some_and(|due| due <= now) {
            self.handle_timers(now);
        }
        self.hand_over_ready(now);
        self.measure(now);
    }

    fn handle_timers(&mut self, now: Instant) {
        self.next_timer.set(None);
        loop {
            for number in numbers(self.installed) {
                let Some(slot) = &mut self.slots[number] else {
                    continue;
                };
                self.out.service = number as u8;
                let before = self.out.up.len();
                if slot.handle_timeout(now, &mut self.out) {
                    self.ready |= 1 << number;
                }
                if self.classifier.learns() {
                    self.note_received(now, number as u8, before, None);
                }
                self.process_events(now, number);
            }
            // Removing a service shortens the timers of the others: some may be due now.
            if !self.retire_drained(now) {
                break;
            }
        }
        self.open_some(now);
        if self.moving.is_due(now) {
            self.release(now);
        }
        while let Some((number, packet, since)) = self.pacer.as_mut().and_then(|p| p.pop(now)) {
            if let Some(slot) = &mut self.slots[number] {
                slot.leaves_ip(now, packet.len());
                slot.meter.waited_at_ip(now.saturating_since(since));
            }
            self.take(now, number, packet);
        }
    }

    // ---- transmit

    /// The next frame for a link that the port paces itself; none while the link is busy or nothing waits.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Frame<P>> {
        if now < self.free_at || (self.scheduler.is_empty() && self.ready == 0 && !self.speaks) {
            return None;
        }
        let turn = self.next_turn(now)?;
        let token = self.give_out(&turn);
        self.leave(now, &token);
        Some(turn.item.frame)
    }

    /// Records that a frame begins to leave at the port's own pace.
    #[inline]
    fn leave(&mut self, now: Instant, token: &Token) {
        let takes = self.serialised.time(self.rate(), token.len);
        // On a shared link, the frame may have waited for those of other ports. If the port made up for none of that, it
        // would use less than its rate, and a rate that is not used does not grow.
        let late = match self.config.late {
            Duration::ZERO => Duration::ZERO,
            late => late.max(takes),
        };
        let start = self.free_at.max(now - late);
        let free_at = start + takes;
        self.free_at = free_at;
        self.done(now, token, free_at.max(now), Outcome::Sent(start));
        // Frames that this departure released have waited for it, even if a late driver finds the link free.
        self.free_at = free_at;
    }

    /// Records that the link has been idle until now: the idle time earns no credit beyond the burst.
    #[inline]
    fn link_idle(&mut self, now: Instant) {
        self.free_at = self.free_at.max(now - self.config.burst);
        self.scheduler.link_idle();
    }

    /// The next frame for a medium that decides itself when frames leave, regardless of frames already under
    /// way. The medium reports the outcome of each frame with [`Port::frame_done`].
    #[inline]
    pub fn poll_frame(&mut self, now: Instant) -> Option<(Frame<P>, Token)> {
        let turn = self.next_turn(now)?;
        let token = self.give_out(&turn);
        Some((turn.item.frame, token))
    }

    /// Takes the next frame in the scheduler's order.
    #[inline]
    fn next_turn(&mut self, now: Instant) -> Option<Turn<DepartingFrame<P>>> {
        self.hand_over_ready(now);
        if self.speaks {
            return Some(self.speak(now));
        }
        self.scheduler.dequeue()
    }

    /// Counts a frame as under way.
    #[inline]
    fn give_out(&mut self, turn: &Turn<DepartingFrame<P>>) -> Token {
        self.under_way += 1;
        Token {
            header: turn.item.frame.header,
            len: turn.len,
            came: turn.item.came,
            epoch: self.epochs[turn.service % SERVICES],
        }
    }

    /// Reports the outcome of a frame of [`Port::poll_frame`], whose last bit left at `at`, or which the
    /// medium gave up at that time. Timers start from there, and the service may hand over its next frame.
    pub fn frame_done(&mut self, token: Token, at: Instant, outcome: Outcome) {
        self.free_at = self.free_at.max(at);
        self.done(at, &token, at, outcome);
    }

    fn done(&mut self, now: Instant, token: &Token, at: Instant, outcome: Outcome) {
        let header = &token.header;
        self.under_way -= 1;
        self.sent_bytes += token.len as u64;
        if let Some(estimator) = &mut self.estimator {
            estimator.departed(now, self.sent_bytes);
            self.speaks |= estimator.is_due();
        }
        let number = usize::from(header.service) % SERVICES;
        if let Some(slot) = &mut self.slots[number]
            && token.epoch == self.epochs[number]
            && !header.kind.is_of_ports()
        {
            if let (Some(came), Outcome::Sent(start)) = (token.came, outcome) {
                slot.meter.waited(start.saturating_since(came));
            }
            if slot.is_timed() {
                self.next_timer.set(None);
            }
            let len = token.len - self.config.frame_overhead;
            slot.handle_departure(header, len, at, outcome);
            self.hand_over(now, number);
        }
        self.measure(now);
    }

    /// Length of the frame that [`Port::poll_transmit`] would give now, with all overhead below it; none if
    /// it would give none. A [`SharedLink`](crate::SharedLink) uses it to schedule several ports on one link.
    pub fn next_frame_len(&self, now: Instant) -> Option<usize> {
        debug_assert!(self.ready == 0, "every input hands over what it can");
        let free = now >= self.free_at;
        if self.speaks {
            let kind = match self.answer {
                Some(_) => FrameKind::Report,
                None => FrameKind::Mark,
            };
            return free.then(|| self.own_len(&Frame::control(kind, 0)));
        }
        self.scheduler.peek().filter(|_| free).map(|(_, len)| len)
    }

    /// Whether [`Port::poll_frame`] has a frame to give.
    #[inline]
    pub fn has_frame(&self) -> bool {
        !self.scheduler.is_empty() || self.speaks
    }

    /// Whether [`Port::poll_transmit`] has a frame to give now.
    #[inline]
    pub fn gives_frame(&self, now: Instant) -> bool {
        now >= self.free_at && self.has_frame()
    }

    // ---- for drivers

    /// Bytes of the packets in the queues of all services.
    pub fn waiting_bytes(&self) -> usize {
        let slots = self.slots.iter().flatten();
        slots.map(|slot| slot.waiting_bytes()).sum::<usize>() + self.moving.bytes()
    }

    /// When to call [`Port::handle_timeout`] or [`Port::poll_transmit`] next.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let timer = self.known_timer();
        let due = match self.has_frame() {
            false => timer,
            true => timer.min(self.free_at),
        };
        (due < Instant::FAR_FUTURE).then_some(due)
    }

    /// When to call [`Port::handle_timeout`] next, apart from frames that wait for the link.
    #[inline]
    pub fn next_timer(&self) -> Option<Instant> {
        let timer = self.known_timer();
        (timer < Instant::FAR_FUTURE).then_some(timer)
    }

    /// Whether [`Port::handle_frame`] or [`Port::pass`] may have changed the answer of [`Port::poll_timeout`]
    /// since the last call.
    #[inline]
    pub fn has_new_deadline(&self) -> bool {
        self.next_timer.get().is_none()
    }

    #[inline]
    fn known_timer(&self) -> Instant {
        match self.next_timer.get() {
            Some(known) => known,
            None => self.find_timer(),
        }
    }

    fn find_timer(&self) -> Instant {
        let mut due = Instant::FAR_FUTURE;
        for number in numbers(self.installed) {
            if let Some(slot) = &self.slots[number]
                && slot.is_timed()
                && let Some(timer) = slot.poll_timeout()
            {
                due = due.min(timer);
            }
        }
        if let Some(paced) = self.pacer.as_ref().and_then(Pacer::poll_timeout) {
            due = due.min(paced);
        }
        if let Some(held) = self.moving.poll_timeout() {
            due = due.min(held);
        }
        self.next_timer.set(Some(due));
        due
    }

    /// Sets the frame payload above which packets are fragmented from now on. It is capped at
    /// [`PortConfig::frame_payload`], which the services have sized their buffers for.
    pub fn set_frame_room(&mut self, room: usize) {
        self.room = room.min(self.config.frame_payload());
        for slot in self.slots.iter_mut().flatten() {
            slot.set_room(self.room);
        }
        self.next_timer.set(None);
    }

    // ---- internal

    /// At the end of an interval, sets the rates from the traffic measured in it.
    fn follow_traffic(&mut self, now: Instant) {
        let Some(passed) = self.shares.as_mut().and_then(|shares| shares.roll(now)) else {
            return;
        };
        let all: u64 = passed.iter().sum();
        for (number, slot) in self.slots.iter_mut().enumerate() {
            if let Some(slot) = slot {
                let rate = (passed[number] as f64 / all as f64).max(LEAST_SHARE);
                slot.config.rate = rate;
                self.scheduler.set_rate(number as u8, rate);
            }
        }
        self.update_timer_factors();
    }

    #[inline]
    fn measure(&mut self, now: Instant) {
        if now >= self.interval_ends {
            self.interval_ends = now + INTERVAL;
            let in_interval = self.sent_bytes - self.sent_bytes_before;
            self.sent_bytes_before = self.sent_bytes;
            for slot in self.slots.iter_mut().flatten() {
                slot.meter.roll(&slot.ledger, in_interval);
            }
        }
    }
}

/// The members of a bit set in ascending order.
fn numbers(mut set: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let rest = set & set.checked_sub(1)?;
        let number = std::mem::replace(&mut set, rest).trailing_zeros();
        Some(number as usize % SERVICES)
    })
}
