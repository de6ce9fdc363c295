//! One end of a multi service link.

mod admin;
mod agree;
mod limiter;
mod pacer;
mod shares;
mod slot;

use std::collections::VecDeque;

use airlane_base::{Damage, Instant, Rate};

use crate::classify::Classifier;
use crate::config::{self, ConfigError, PortConfig, RateLimit, Rates, Viewpoint};
use crate::context::{Output, PortFacts};
use crate::flow::Packet;
use crate::ledger::ServiceLedger;
use crate::measure::INTERVAL;
use crate::queue::DropReason;
use crate::schedule::{Schedule, Scheduler, Turn};
use crate::wire::{Codec, Decoded, Frame, FrameError, FrameKind, Header, Layout};

pub use admin::{AdminError, ServiceStatus};
use agree::{Agreement, Peer};
use limiter::Limiter;
use pacer::Pacer;
use shares::Shares;
use slot::Slot;

/// Service numbers have 4 bits.
const SERVICES: usize = 16;

/// One end of a link: classifier, services, scheduler, demultiplexer and multiplexer.
///
/// See the crate's description for the contract. Cloning one copies its whole state, which is what
/// model checking needs.
#[derive(Clone, Debug)]
pub struct Port<P> {
    config: PortConfig,
    facts: PortFacts,
    classifier: Classifier,
    /// The IP queue, where IP is held back.
    pacer: Option<Pacer<P>>,
    /// Follows the link, where the rate is not fixed.
    limiter: Option<Box<Limiter>>,
    /// What each service was given, where rates follow it.
    shares: Option<Box<Shares>>,
    slots: [Option<Box<Slot<P>>>; SERVICES],
    /// Which of them there are, one bit each: most ports have few.
    installed: u16,
    /// Frames with when their packet came, where they are the first with it.
    scheduler: Scheduler<(Frame<P>, Option<Instant>)>,
    /// When the link has finished the frame on it.
    free_at: Instant,
    /// Services that may have a frame to hand over, one bit each.
    ready: u16,
    /// What the service that works now gives up.
    out: Output<P>,
    /// Packets for IP.
    up: VecDeque<P>,
    /// Bytes of all frames sent, and as of the last measuring interval.
    sent_bytes: u64,
    sent_bytes_before: u64,
    /// End of the measuring interval.
    interval_ends: Instant,
    /// Frames for services that do not exist here.
    unknown_service: u64,
    /// Longest payload of a frame now; not more than at the start.
    room: usize,
    /// What the other end has; none where nobody tells.
    peer: Option<Peer>,
    /// What this end has may have changed.
    offers_changed: bool,
    /// Ledgers of services that were removed.
    retired: Vec<(String, ServiceLedger)>,
    /// Whether somebody wants the packets that are dropped.
    keeps_dropped: bool,
}

/// The numbers that a set has, one bit each, in ascending order.
fn numbers(mut set: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let number = set.trailing_zeros() as usize;
        set &= set.checked_sub(1)?;
        Some(number)
    })
}

impl<P: Packet> Port<P> {
    /// A port without state.
    ///
    /// # Errors
    /// Everything that is wrong with the service table and the classes.
    pub fn new(config: PortConfig) -> Result<Self, Vec<ConfigError>> {
        Self::with_codec(Codec::new(config.header), config)
    }

    /// A port with another width of sequence numbers than the profile's.
    ///
    /// # Errors
    /// As [`Port::new`].
    pub fn with_codec(codec: Codec, config: PortConfig) -> Result<Self, Vec<ConfigError>> {
        let mut problems = config::check(config.header, &config.services, &config.classes);
        problems.extend(config::check_ends(Viewpoint::End, &config.services));
        problems.extend(config.rate_limit.check(config.header, &config.services));
        if !problems.is_empty() {
            return Err(problems);
        }
        let facts = PortFacts {
            codec,
            rate: config.rate,
            delay: config.delay,
            max_payload: config.frame_payload(),
            frame_overhead: config.frame_overhead,
        };
        let mut port = Self {
            facts,
            classifier: Classifier::new(&[], |_| None, 0),
            pacer: config.pacing.map(|limit| Pacer::new(config.rate, limit)),
            limiter: (config.rate_limit == RateLimit::Estimated).then(|| {
                let frame = config.frame_payload() + config.frame_overhead;
                Box::new(Limiter::new(config.rate, frame))
            }),
            shares: (config.rates == Rates::Measured).then(|| Box::new(Shares::new())),
            slots: Default::default(),
            installed: 0,
            scheduler: Scheduler::new(&config.scheduler),
            free_at: Instant::ORIGIN,
            ready: 0,
            out: Output::default(),
            up: VecDeque::new(),
            sent_bytes: 0,
            sent_bytes_before: 0,
            interval_ends: Instant::ORIGIN + INTERVAL,
            unknown_service: 0,
            room: config.frame_payload(),
            peer: None,
            offers_changed: false,
            retired: Vec::new(),
            keeps_dropped: false,
            config,
        };
        for service in config::resolve(port.config.header, &port.config.services) {
            port.install(service);
        }
        port.rebuild_classifier();
        port.update_timer_factors();
        Ok(port)
    }

    // ---- inputs

    /// Takes a packet from IP: classifies it, and queues or drops it. Drops are in the ledger.
    pub fn handle_packet(&mut self, now: Instant, packet: P) {
        let service = self.classifier.classify(&packet.flow());
        let max_payload = self.config.max_payload;
        let number = usize::from(service) % SERVICES;
        let Some(slot) = &mut self.slots[number] else {
            // The default service always exists.
            self.unknown_service += 1;
            return;
        };
        slot.offer(&packet);
        if packet.len() > max_payload {
            slot.discard(DropReason::TooBig, packet);
            return;
        }
        if let Some(pacer) = &mut self.pacer {
            if !pacer.is_open(now) {
                let len = packet.len();
                match pacer.push(now, number, packet) {
                    Ok(()) => slot.waits_at_ip(len),
                    Err(packet) => slot.discard(DropReason::QueueFull, packet),
                }
                return;
            }
            pacer.pass(now, packet.len());
        }
        self.hand_over(now, number, Some(packet));
    }

    /// Takes a batch of packets from IP.
    pub fn handle_packets(&mut self, now: Instant, packets: impl IntoIterator<Item = P>) {
        for packet in packets {
            self.handle_packet(now, packet);
        }
    }

    /// Takes a frame from the link, decoded.
    pub fn handle_frame(&mut self, now: Instant, frame: Frame<P>) {
        let number = usize::from(frame.header.service) % SERVICES;
        let Some(slot) = &mut self.slots[number] else {
            self.unknown_service += 1;
            return;
        };
        let len = slot.frame_len(self.facts.codec, &frame);
        let outputs = (&mut self.out, &mut self.up);
        let round_trip = slot.handle_frame(now, outputs, frame, len);
        if let (Some(limiter), Some(round_trip)) = (&mut self.limiter, round_trip) {
            limiter.sample(now, round_trip);
        }
        self.hand_over(now, number, None);
        // An end that only receives may never send, nor have a timer.
        self.measure(now);
    }

    /// Takes a frame that the link has damaged, from links that hand such frames up and say that
    /// their own check has failed: `frame` as it was sent, and what happened to its bytes. Services
    /// see no more of it than the bytes that arrived; what none can use is counted and dropped.
    pub fn handle_damaged_frame(&mut self, now: Instant, frame: &Frame<P>, damage: &Damage) {
        debug_assert!(!damage.is_empty(), "a whole frame is no damaged one");
        let number = usize::from(frame.header.service) % SERVICES;
        let len = self.frame_len(frame);
        let header = self.read_damaged(frame, damage);
        let Some(slot) = &mut self.slots[number] else {
            self.unknown_service += 1;
            return;
        };
        let outputs = (&mut self.out, &mut self.up);
        slot.handle_damaged(now, outputs, header.as_ref(), frame, len, damage);
        self.hand_over(now, number, None);
        self.measure(now);
    }

    /// The header of a damaged frame, if it has a check and that holds.
    fn read_damaged(&self, frame: &Frame<P>, damage: &Damage) -> Option<Header> {
        let service = frame.header.service;
        let layout = self.layout_of(service)?;
        if layout != Layout::Symbols {
            return None;
        }
        let mut bytes = vec![0; self.frame_len(frame)];
        let len = self.encode_header(frame, 0, &mut bytes)?;
        damage.apply(0, &mut bytes[..len]);
        let header = self.decode(&bytes).ok()?.header;
        // Hellos have no check.
        let whole = header.service == service && header.kind != FrameKind::Hello;
        whole.then_some(header)
    }

    /// Acts on whatever has become due. An early call does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        // Before the services: their timers may run shorter by it.
        self.follow_traffic(now);
        loop {
            for number in numbers(self.installed) {
                let Some(slot) = &mut self.slots[number] else {
                    continue;
                };
                if slot.handle_timeout(now, (&mut self.out, &mut self.up)) {
                    self.ready |= 1 << number;
                }
            }
            // With a service gone the timers of the others run shorter: some may be due by that.
            if !self.retire_drained(now) {
                break;
            }
        }
        while let Some((number, packet, since)) = self.pacer.as_mut().and_then(|p| p.pop(now)) {
            if let Some(slot) = &mut self.slots[number] {
                slot.leaves_ip(now, packet.len());
                slot.meter.waited_at_ip(now.saturating_since(since));
            }
            self.hand_over(now, number, Some(packet));
        }
        self.hand_over_ready(now);
        self.measure(now);
    }

    // ---- outputs

    /// The next frame for the link; none while the link is busy or nothing waits.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Frame<P>> {
        if now < self.free_at {
            return None;
        }
        self.hand_over_ready(now);
        let Turn { service, len, item } = self.scheduler.dequeue()?;
        let (frame, came) = item;
        let start = self.free_at.max(now - self.config.burst);
        self.free_at = start + self.rate().transmission_time(len);
        self.sent_bytes += len as u64;

        let number = service % SERVICES;
        if let Some(slot) = &mut self.slots[number] {
            if let Some(came) = came {
                slot.meter.waited(start.saturating_since(came));
            }
            let left = self.free_at.max(now);
            let len = len - self.config.frame_overhead;
            slot.handle_departure(&frame.header, len, left);
        }
        self.hand_over(now, number, None);
        self.measure(now);
        Some(frame)
    }

    /// How long the frame is, with all that is below it, that [`Port::poll_transmit`] would give now; none:
    /// it would give none. Of several ports on one link a [`Medium`](crate::Medium) says whose frame goes.
    pub fn next_frame_len(&self, now: Instant) -> Option<usize> {
        debug_assert!(self.ready == 0, "every input hands over what it can");
        let free = now >= self.free_at;
        self.scheduler.peek().filter(|_| free).map(|(_, len)| len)
    }

    /// How many packets [`Port::poll_deliver`] has.
    pub fn deliveries(&self) -> usize {
        self.up.len()
    }

    /// The next packet for IP.
    pub fn poll_deliver(&mut self) -> Option<P> {
        self.up.pop_front()
    }

    /// Bytes of the packets that wait in the queues of all services.
    pub fn waiting_bytes(&self) -> usize {
        let slots = self.slots.iter().flatten();
        slots.map(|slot| slot.waiting_bytes()).sum()
    }

    /// When to call [`Port::handle_timeout`] or [`Port::poll_transmit`] next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let link = (!self.scheduler.is_empty()).then_some(self.free_at);
        self.next_timer().into_iter().chain(link).min()
    }

    /// When to call [`Port::handle_timeout`] next, whatever waits for the link.
    pub fn next_timer(&self) -> Option<Instant> {
        numbers(self.installed)
            .filter_map(|number| self.slots[number].as_ref()?.poll_timeout())
            .chain(self.pacer.as_ref().and_then(Pacer::poll_timeout))
            .min()
    }

    /// The rate that the port sends at now: the configured one, unless the link is slower and the
    /// port follows it.
    pub fn rate(&self) -> Rate {
        let limited = self.limiter.as_ref().and_then(|limiter| limiter.rate());
        limited.unwrap_or(self.config.rate)
    }

    /// Longer packets are cut from now on. No more than [`PortConfig::frame_payload`], by which services
    /// have made their room.
    pub fn set_frame_room(&mut self, room: usize) {
        self.room = room.min(self.config.frame_payload());
        for slot in self.slots.iter_mut().flatten() {
            slot.set_room(self.room);
        }
    }

    // ---- frames and bytes

    /// Bytes of a frame with its header, without what lies below.
    pub fn frame_len(&self, frame: &Frame<P>) -> usize {
        let slot = self.slots.get(usize::from(frame.header.service));
        match slot.and_then(Option::as_ref) {
            Some(slot) => slot.frame_len(self.facts.codec, frame),
            None => self.facts.codec.header_len(Layout::Bare) + frame.payload_len(),
        }
    }

    /// Bytes of what follows a frame's header: its packet, or the symbols that it is cut into.
    pub fn body_len(&self, frame: &Frame<P>) -> usize {
        let slot = self.slots.get(usize::from(frame.header.service));
        let slot = slot.and_then(Option::as_ref);
        slot.map_or(frame.payload_len(), |slot| slot.body_len(frame))
    }

    /// The header layout of a service; none if there is no such service.
    pub fn layout_of(&self, service: u8) -> Option<Layout> {
        let slot = self.slots.get(usize::from(service))?.as_ref()?;
        Some(slot.layout)
    }

    /// Writes a frame's header to `buf`, see [`Codec::encode`].
    pub fn encode_header(&self, frame: &Frame<P>, session: u32, buf: &mut [u8]) -> Option<usize> {
        let layout = self.layout_of(frame.header.service)?;
        self.facts.codec.encode(&frame.header, layout, session, buf)
    }

    /// Reads a frame's header, see [`Codec::decode`].
    ///
    /// # Errors
    /// A [`FrameError`] for bytes that are no frame of this port.
    pub fn decode(&self, bytes: &[u8]) -> Result<Decoded, FrameError> {
        self.facts
            .codec
            .decode(bytes, |service| self.layout_of(service))
    }

    /// The codec.
    pub fn codec(&self) -> Codec {
        self.facts.codec
    }

    // ---- inside

    /// Lets one service hand over frames while it may, beginning with what waits in its queue,
    /// then `arriving`. What it cannot take is queued, or dropped and counted.
    fn hand_over(&mut self, now: Instant, number: usize, arriving: Option<P>) {
        self.ready &= !(1 << number);
        if let (Some(shares), Some(packet)) = (&mut self.shares, &arriving) {
            shares.pass(number, packet.len());
        }
        let Some(slot) = &mut self.slots[number] else {
            return;
        };
        if arriving.is_none() && !slot.has_frames() {
            slot.note_polled(now);
            return;
        }
        let limit = self.config.handed_over.limit();
        let congested = self.limiter.as_ref().is_some_and(|l| l.rate().is_some());
        let mut arriving = arriving;
        while slot.handed_over() < limit {
            let Some((mut frame, came)) =
                slot.poll_frame(now, &mut self.out, &mut arriving, congested)
            else {
                break;
            };
            frame.header.service = number as u8;
            let len = slot.frame_len(self.facts.codec, &frame) + self.config.frame_overhead;
            if self.scheduler.is_empty() && now >= self.free_at {
                self.scheduler.link_idle();
            }
            self.scheduler.enqueue(number as u8, len, (frame, came));
        }
        if let Some(packet) = arriving {
            slot.wait(now, packet);
        }
    }

    fn hand_over_ready(&mut self, now: Instant) {
        while self.ready != 0 {
            self.hand_over(now, self.ready.trailing_zeros() as usize, None);
        }
    }

    fn measure(&mut self, now: Instant) {
        if now >= self.interval_ends {
            self.interval_ends = now + INTERVAL;
            let in_interval = self.sent_bytes - self.sent_bytes_before;
            self.sent_bytes_before = self.sent_bytes;
            if let Some(limiter) = &mut self.limiter {
                limiter.handle_timeout(now);
            }
            for slot in self.slots.iter_mut().flatten() {
                slot.meter.roll(&slot.ledger, in_interval);
            }
        }
    }
}
