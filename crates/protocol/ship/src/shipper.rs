//! The sending end.

use airlane_base::{Duration, Instant, Rate};
use airlane_transport::clap::{
    ClapConfig, ClapSender, Failure as ClapFailure, Forward, Status, wire,
};

use crate::exchange::Exchange;
use crate::failure::{Failure, printable};
use crate::manifest::Manifest;
use crate::message::{
    Digest, LONGEST_DATAGRAM, Message, OVERHEAD, PART_HEAD, ToReceiver, ToShipper, decode,
};
use crate::path_rate::PathRate;
use crate::pieces::Pieces;
use crate::ranges::Ranges;

/// A peer that is silent for this long is gone (CLAP-P17).
const GIVE_UP: Duration = Duration::from_secs(64);
/// After a silence of this long, or of three round trips, only hellos are sent: the receiver may be gone, and data would
/// reach the next holder of its address.
const QUIET: Duration = Duration::from_secs(1);
/// Interval at which an end that waits for an answer shows that it is alive.
const HELLO_EVERY: Duration = Duration::from_secs(1);
/// After this many tries without an answer, a length counts as too long.
const TRIES: u32 = 4;
/// A process that was stalled catches up at once on at most this much time.
const LATE: Duration = Duration::from_millis(4);
/// Status of interfaces expires after this time.
const OFFER_LASTS: Duration = Duration::from_millis(500);
/// Length of the IP and UDP headers of each datagram.
const BELOW: usize = 28;
/// How often the received files may differ from those sent.
const ROUNDS_OF_DAMAGE: u32 = 2;

/// The phase of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShipperPhase {
    /// It looks for the peer, and for the longest datagram.
    Seeking,
    /// It has sent the list of files, and waits for the list of missing bytes.
    Offering,
    /// It sends files.
    Sending,
    /// All bytes have arrived. The driver must supply the digests of the files.
    Digests,
    /// The peer compares them with its own.
    Comparing,
    /// The peer has the files.
    Done,
    /// The job failed.
    Failed,
}

/// The status of the interfaces on the path over their last interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered {
    /// Length of the interval.
    pub interval: Duration,
    /// Bytes of IP packets sent, of all flows.
    pub out_bytes: u32,
    /// How often the interface could send while nothing waited.
    pub underflows: u32,
    /// Free bytes in the queue, as IP packets.
    pub room_bytes: u32,
    /// Flows that receive the same status, each for an equal share.
    pub flows: u32,
}

/// The sending end of one job.
#[derive(Clone, Debug)]
pub struct Shipper {
    phase: ShipperPhase,
    failure: Option<Failure>,
    session: u16,
    started: u64,
    manifest: Manifest,
    total: u64,
    exchange: Exchange,
    heard: Instant,
    /// Whether the silence is too long to send files.
    quiet: bool,
    // Datagram lengths.
    sizes: Vec<usize>,
    size: usize,
    hello_at: Instant,
    hellos: u32,
    /// How many lengths remain to be tried now.
    to_try: usize,
    hello_left: Instant,
    reached: Option<usize>,
    /// The instance of the receiver that answers.
    instance: Option<u16>,
    // The files.
    missing: Ranges,
    pieces: Pieces,
    round: u16,
    clap: Option<ClapSender>,
    phase_of: Duration,
    damaged: u32,
    // The rate.
    rate: PathRate,
    /// The rate follows interfaces until this time.
    offered_until: Option<Instant>,
    sent: u64,
    most: Rate,
    scratch: Vec<u8>,
}

impl Shipper {
    /// An end that looks for the peer at once. `sizes` are the datagram lengths to try, the longest first, as payloads
    /// before sealing; `sealed` is what sealing adds. `started` must be larger than that of any earlier job of this end
    /// (nanoseconds since 1970, for example), and `most` is the highest rate allowed.
    ///
    /// # Errors
    /// If the list of files is too long to send.
    pub fn new(
        now: Instant,
        manifest: Manifest,
        sizes: &[usize],
        started: u64,
        most: Rate,
    ) -> Result<Self, Failure> {
        let mut sizes: Vec<_> = sizes
            .iter()
            .map(|size| (*size).min(LONGEST_DATAGRAM))
            .collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        sizes.dedup();
        let text = to_json(&offer(0, &manifest));
        if text.len() > crate::exchange::LONGEST {
            return Err(Failure::LongList(text.len()));
        }
        Ok(Self {
            phase: ShipperPhase::Seeking,
            failure: None,
            session: (started ^ started >> 16 ^ started >> 32) as u16,
            started: started.max(1),
            total: manifest.total(),
            manifest,
            exchange: Exchange::default(),
            heard: now,
            quiet: false,
            size: sizes.last().copied().unwrap_or(OVERHEAD + 1),
            to_try: 0,
            sizes,
            hello_at: now,
            hellos: 0,
            hello_left: now,
            reached: None,
            instance: None,
            missing: Ranges::none(),
            pieces: Pieces::default(),
            round: 0,
            clap: None,
            phase_of: Duration::from_nanos(started),
            damaged: 0,
            rate: PathRate::new(most),
            offered_until: None,
            sent: 0,
            most,
            scratch: vec![0; 1 << 16],
        })
    }

    /// Total length of all files, bytes.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The phase of the job.
    pub const fn phase(&self) -> ShipperPhase {
        self.phase
    }

    /// When the peer was last heard.
    pub const fn heard(&self) -> Instant {
        self.heard
    }

    /// Why the job failed.
    pub const fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Bytes that the peer already had, once it has reported them.
    pub fn had(&self) -> Option<u64> {
        (self.round > 0 || self.phase >= ShipperPhase::Digests)
            .then(|| self.total - self.missing.bytes())
    }

    /// Estimated capacity of the path.
    pub fn rate(&self) -> Rate {
        Rate::from_bps(self.rate.carries() as u64).unwrap_or(self.most)
    }

    /// The measured round trip time, if any.
    pub const fn round_trip(&self) -> Option<Duration> {
        self.exchange.round_trip()
    }

    /// Bytes of this round sent, without repairs, and their total.
    pub fn progress(&self) -> (u64, u64) {
        let all = self.pieces.ranges().bytes();
        let Some(clap) = &self.clap else {
            return (0, all);
        };
        let stats = clap.stats();
        let block = self.size.saturating_sub(OVERHEAD) as u64;
        (((stats.data_sent - stats.repairs) * block).min(all), all)
    }

    /// Packets sent in this round, and how many of them were repairs.
    pub fn packets(&self) -> (u64, u64) {
        let stats = self
            .clap
            .as_ref()
            .map(|clap| *clap.stats())
            .unwrap_or_default();
        (stats.data_sent, stats.repairs)
    }

    fn fail(&mut self, failure: Failure) {
        if self.phase < ShipperPhase::Done {
            (self.phase, self.failure) = (ShipperPhase::Failed, Some(failure));
            self.clap = None;
        }
    }

    fn say(&mut self, message: &ToReceiver) {
        if let Err(failure) = self.exchange.send(to_json(message), self.size - PART_HEAD) {
            self.fail(failure);
        }
    }

    /// Supplies the digests of all files, when they are requested.
    pub fn give_digests(&mut self, digests: Vec<Digest>) {
        if self.phase == ShipperPhase::Digests {
            self.phase = ShipperPhase::Comparing;
            self.say(&ToReceiver::Digests(digests));
        }
    }

    /// Processes the payload of a datagram from the peer. Anything that does not belong to this job is ignored.
    pub fn handle(&mut self, now: Instant, bytes: &[u8]) {
        let mine = decode(bytes).filter(|(session, _)| *session == self.session);
        let Some((_, message)) = mine else { return };
        (self.heard, self.quiet) = (now, false);
        match message {
            Message::Reached(size, instance) => self.on_reached(now, size.into(), instance),
            Message::Got(got) => self.exchange.handle_got(now, got),
            Message::Part(part) => {
                if let Some(text) = self.exchange.handle_part(part) {
                    self.on_text(now, &text);
                }
            }
            Message::Report(number, report) => {
                self.rate.handle_report(now, number, report);
                self.follow(now);
            }
            Message::Clap(round, wire::Packet::Feedback(feedback)) if round == self.round => {
                if let Some(clap) = &mut self.clap {
                    clap.handle(now, &feedback);
                }
            }
            Message::Later(started) if started > self.started => self.fail(Failure::Later),
            // Late, or sent only by senders.
            Message::Clap(..) | Message::Mark(_) | Message::Hello(..) | Message::Later(_) => {}
        }
    }

    fn on_reached(&mut self, now: Instant, size: usize, instance: u16) {
        if self
            .instance
            .replace(instance)
            .is_some_and(|before| before != instance)
        {
            self.begin_again(now);
            return;
        }
        if !self.sizes.contains(&size) {
            return;
        }
        if self.hellos == 1 {
            self.exchange
                .measured(now.saturating_since(self.hello_left));
        }
        self.reached = self.reached.max(Some(size));
        if self.reached == self.sizes.first().copied() {
            self.settle();
        }
    }

    /// The receiver was restarted, and must report again what it has.
    fn begin_again(&mut self, now: Instant) {
        self.started += 1;
        self.session = self.session.wrapping_add(1);
        self.exchange = Exchange::default();
        (self.phase, self.clap, self.round) = (ShipperPhase::Seeking, None, 0);
        (self.hello_at, self.hellos, self.reached) = (now, 0, None);
        self.rate.forget_flight();
    }

    /// Settles the datagram length.
    fn settle(&mut self) {
        if let (ShipperPhase::Seeking, Some(size)) = (self.phase, self.reached) {
            self.size = size;
            self.phase = ShipperPhase::Offering;
            self.say(&offer(size, &self.manifest));
        }
    }

    fn on_text(&mut self, now: Instant, text: &[u8]) {
        let said = serde_json::from_slice(text);
        match said {
            Err(error) => self.fail(Failure::NotUnderstood(error.to_string())),
            Ok(ToShipper::Refused(why)) => self.fail(Failure::Refused(printable(&why))),
            Ok(ToShipper::Missing(missing)) => self.on_missing(now, missing),
            Ok(ToShipper::Done) => {
                self.phase = ShipperPhase::Done;
                self.clap = None;
            }
        }
    }

    fn on_missing(&mut self, now: Instant, missing: Ranges) {
        if let Err(why) = missing.check(self.total) {
            self.fail(Failure::NotUnderstood(why));
            return;
        }
        if self.phase == ShipperPhase::Comparing {
            self.damaged += 1;
            if self.damaged == ROUNDS_OF_DAMAGE {
                self.fail(Failure::Damaged(
                    self.name_at(missing.iter().next().map_or(0, |(from, _)| from)),
                ));
                return;
            }
        }
        if self.round == 0 {
            self.missing = missing.clone();
        }
        self.pieces = Pieces::of(&missing, self.size - OVERHEAD);
        if self.pieces.count() == 0 {
            (self.phase, self.clap) = (ShipperPhase::Digests, None);
            return;
        }
        self.round = self.round.wrapping_add(1);
        self.phase = ShipperPhase::Sending;
        self.open(now);
    }

    fn open(&mut self, now: Instant) {
        match ClapSender::new(&clap_config(), self.pieces.count(), self.phase_of) {
            Ok(mut clap) => {
                clap.open(now);
                self.clap = Some(clap);
                self.follow(now);
            }
            Err(failure) => self.fail(Failure::NotUnderstood(failure.to_string())),
        }
    }

    fn name_at(&self, at: u64) -> String {
        let starts = self.manifest.starts();
        let place = starts
            .partition_point(|start| *start <= at)
            .saturating_sub(1);
        self.manifest
            .entries()
            .get(place)
            .map_or_else(String::new, |entry| printable(&entry.path))
    }

    /// Sets the status of the interfaces on the path; an IP packet has `headers` bytes in addition to its payload. Until
    /// it expires, it takes precedence over the measured rate.
    ///
    /// While the interfaces are full, part of the bytes sent may belong to other flows, so this one stays within its
    /// measured rate.
    pub fn set_offered(&mut self, now: Instant, offered: &Offered, headers: usize) {
        let packet = (self.size + headers) as u64;
        let mut out = f64::from(offered.out_bytes);
        if let Some(gets) = self.rate.measured().filter(|_| offered.underflows == 0) {
            let share = packet as f64 / (self.size + BELOW) as f64;
            out = out.min(gets / 8.0 * share * offered.interval.as_secs_f64());
        }
        let most = self.most.as_bps() as f64 / 8.0 * offered.interval.as_secs_f64();
        let out = out.min(most);
        // CLAP adds half of the room.
        let room = f64::from(offered.room_bytes).min(2.0 * (most - out));
        let status = Status {
            out: (out / packet as f64).ceil() as u32,
            underflows: offered.underflows,
            room: (room / packet as f64).ceil() as u32,
            flows: offered.flows,
        };
        self.offered_until = Some(now + OFFER_LASTS);
        if let Some(clap) = &mut self.clap {
            clap.set_local(status);
            clap.forget_found(now);
        }
    }

    /// Sets CLAP's rate to the measured capacity of the path, unless the status of interfaces is known.
    fn follow(&mut self, now: Instant) {
        if self.offered_until.is_some_and(|until| now < until) {
            return;
        }
        let bits = (self.size + BELOW) as f64 * 8.0;
        let rate = self.rate.rate() / bits;
        if let Some(clap) = &mut self.clap {
            clap.set_found(now, rate);
        }
    }

    /// Does what is due; an early call does nothing. Call it again for as long as something is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if matches!(self.phase, ShipperPhase::Done | ShipperPhase::Failed) {
            return;
        }
        if now >= self.heard + GIVE_UP {
            self.fail(Failure::Silence);
            return;
        }
        if now >= self.hello_at {
            self.on_hello(now);
        }
        self.quiet = now >= self.quiet_from();
        let Some(clap) = self.clap.as_mut().filter(|_| !self.quiet) else {
            return;
        };
        if let Some(due) = clap.poll_timeout().filter(|due| *due <= now) {
            clap.handle_timeout(due.max(Instant::from_nanos(
                now.as_nanos().saturating_sub(LATE.as_nanos()),
            )));
        }
        match clap.failure() {
            // The peer is there, since it answers hellos; only CLAP's few retransmissions were all lost.
            Some(ClapFailure::NoAnswer) => self.open(now),
            Some(ClapFailure::Silence) => self.fail(Failure::Silence),
            Some(failure) => self.fail(Failure::NotUnderstood(failure.to_string())),
            None => {}
        }
    }

    /// When the end becomes quiet if nothing is heard.
    fn quiet_from(&self) -> Instant {
        let round_trip = self.exchange.round_trip().unwrap_or_default();
        self.heard + QUIET.max(round_trip * 3)
    }

    fn on_hello(&mut self, now: Instant) {
        let seeks = self.phase == ShipperPhase::Seeking;
        if seeks && self.hellos >= TRIES {
            self.settle();
        }
        let patience = self
            .exchange
            .round_trip()
            .map_or(HELLO_EVERY / 4, |time| time * 2);
        self.hello_at = now
            + if seeks {
                patience.min(HELLO_EVERY).max(HELLO_EVERY / 20)
            } else {
                HELLO_EVERY
            };
        if seeks {
            self.to_try = self.sizes.len();
            // The peer may not be there yet: only answered hellos count as tries.
            self.hellos += u32::from(self.reached.is_some() || self.hellos == 0);
            self.hello_left = now;
        } else {
            self.to_try = 1;
        }
    }

    /// Writes the payload of the next datagram into `out`, which must have room for the longest datagram, and returns
    /// its length. `fill` reads bytes of the files from a position.
    ///
    /// # Errors
    /// Those of `fill`.
    pub fn poll_transmit<E>(
        &mut self,
        now: Instant,
        out: &mut [u8],
        fill: &mut impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<Option<usize>, E> {
        if self.to_try > 0 {
            self.to_try -= 1;
            let size = match self.phase {
                ShipperPhase::Seeking => self.sizes[self.to_try],
                _ => 0,
            };
            let hello = Message::Hello(self.started, size);
            return Ok(Some(hello.encode(self.session, now, out)));
        }
        if let Some(got) = self.exchange.poll_got() {
            return Ok(Some(Message::Got(got).encode(self.session, now, out)));
        }
        if matches!(self.phase, ShipperPhase::Done | ShipperPhase::Failed) {
            return Ok(None);
        }
        if self.rate.is_due() {
            let number = self.rate.mark(now);
            let len = Message::Mark(number).encode(self.session, now, out);
            return Ok(Some(len));
        }
        if let Some(part) = self.exchange.poll_part(now) {
            return Ok(Some(Message::Part(part).encode(self.session, now, out)));
        }
        self.poll_clap(now, out, fill)
    }

    fn poll_clap<E>(
        &mut self,
        now: Instant,
        out: &mut [u8],
        fill: &mut impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<Option<usize>, E> {
        let clap = self.clap.as_mut().filter(|_| !self.quiet);
        let packet = clap.and_then(|clap| clap.poll_transmit(now));
        let Some(packet) = packet else {
            return Ok(None);
        };
        let piece = match packet {
            Forward::Data(data) => self.pieces.get(data.seq),
            Forward::Syn { .. } | Forward::FinAck { .. } => None,
        };
        let (from, len) = piece.unwrap_or((0, 0));
        let bytes = &mut self.scratch[..len];
        if len > 0 {
            fill(from, bytes)?;
        }
        let message = Message::Clap(self.round, wire::Packet::Forward(packet, bytes));
        let len = message.encode(self.session, now, out);
        self.sent += (len + BELOW) as u64;
        let before = self.rate.rate();
        self.rate.departed(now, self.sent);
        if self.rate.rate() != before {
            self.follow(now);
        }
        Ok(Some(len))
    }

    /// When to call `handle_timeout` or `poll_transmit` next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if matches!(self.phase, ShipperPhase::Done | ShipperPhase::Failed) {
            return None;
        }
        let clap = self.clap.as_ref().filter(|_| !self.quiet);
        let quiet = clap.map(|_| self.quiet_from());
        let clap = clap.and_then(ClapSender::poll_timeout);
        let mine = [self.hello_at, self.heard + GIVE_UP];
        mine.into_iter()
            .chain(clap)
            .chain(quiet)
            .chain(self.exchange.poll_timeout())
            .min()
    }
}

fn offer(size: usize, list: &Manifest) -> ToReceiver {
    ToReceiver::Manifest {
        size: size as u16,
        list: list.clone(),
    }
}

/// The settings of both ends. A loss is reported only once as long as data follows it: files are long, and with a loss
/// of a tenth, repeated reports would cause many duplicates.
pub(crate) fn clap_config() -> ClapConfig {
    let config = ClapConfig::default();
    ClapConfig {
        sweep_last: Some(config.nack_threshold()),
        ..config
    }
}

pub(crate) fn to_json(message: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("text, numbers and lists are always JSON")
}
