//! The end that has the files.

use airlane_base::{Duration, Instant, Rate};
use airlane_transport::clap::{
    ClapConfig, ClapSender, Failure as ClapFailure, Forward, Status, wire,
};

use crate::exchange::Exchange;
use crate::failure::{Failure, printable};
use crate::manifest::Manifest;
use crate::message::{
    Digest, LONGEST_DATAGRAM, Message, OVERHEAD, PART_HEAD, ToShipper, ToTaker, decode,
};
use crate::path_rate::PathRate;
use crate::pieces::Pieces;
use crate::ranges::Ranges;

/// Nothing was heard for so long: nobody is there any more (CLAP-P17).
const GIVE_UP: Duration = Duration::from_secs(64);
/// Nothing is sent but hellos to whom nothing was heard from for so long, or for three round trips: he is gone, and it
/// would reach the next holder of its address.
const QUIET: Duration = Duration::from_secs(1);
/// Who waits for an answer says so often that it is there.
const HELLO_EVERY: Duration = Duration::from_secs(1);
/// A length that was tried so often, and was not reached, is too long.
const TRIES: u32 = 4;
/// What a stalled process could not send in time is sent at once, up to this.
const LATE: Duration = Duration::from_millis(4);
/// What interfaces offer is old after this.
const OFFER_LASTS: Duration = Duration::from_millis(500);
/// IP and UDP, in front of each datagram.
const BELOW: usize = 28;
/// So often the files may come otherwise than they were sent.
const ROUNDS_OF_DAMAGE: u32 = 2;

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShipperPhase {
    /// It seeks the other end, and how long datagrams may be.
    Seeking,
    /// It has said what there is, and waits for what is missing.
    Offering,
    /// It sends files.
    Sending,
    /// All came. The driver is to say what the files' digests are.
    Digests,
    /// The other end compares them with its own.
    Comparing,
    /// The files are there.
    Done,
    /// They are not.
    Failed,
}

/// What the interfaces on the way did in their last interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered {
    /// How long that was.
    pub interval: Duration,
    /// Bytes of IP packets that left, of all flows.
    pub out_bytes: u32,
    /// How often something could have left and nothing waited.
    pub underflows: u32,
    /// Bytes of IP packets that find room.
    pub room_bytes: u32,
    /// Flows that are told the same, each for its equal part.
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
    /// Nothing was heard for too long to send files.
    quiet: bool,
    // How long datagrams may be.
    sizes: Vec<usize>,
    size: usize,
    hello_at: Instant,
    hellos: u32,
    /// Lengths to try now.
    to_try: usize,
    hello_left: Instant,
    reached: Option<usize>,
    /// Which start of the receiver answers.
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
    /// Until then it follows interfaces.
    offered_until: Option<Instant>,
    sent: u64,
    most: Rate,
    scratch: Vec<u8>,
}

impl Shipper {
    /// An end that seeks the other at once. `sizes` are the lengths of datagrams to try, the longest first: each is that
    /// of a datagram's contents before they are sealed. `sealed` is what sealing adds. `started` is later than that of
    /// any job of this end before (nanoseconds since 1970, say), `most` the fastest that may be sent at.
    ///
    /// # Errors
    /// If the list of files is too long to say.
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

    /// Bytes of all files.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Where the job stands.
    pub const fn phase(&self) -> ShipperPhase {
        self.phase
    }

    /// When the other end was heard last.
    pub const fn heard(&self) -> Instant {
        self.heard
    }

    /// Why it failed.
    pub const fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Bytes that the other end had before, and those of the files in all, once it has said so.
    pub fn had(&self) -> Option<u64> {
        (self.round > 0 || self.phase >= ShipperPhase::Digests)
            .then(|| self.total - self.missing.bytes())
    }

    /// What the path is taken to carry.
    pub fn rate(&self) -> Rate {
        Rate::from_bps(self.rate.carries() as u64).unwrap_or(self.most)
    }

    /// The least round trip that was measured.
    pub const fn round_trip(&self) -> Option<Duration> {
        self.exchange.round_trip()
    }

    /// Bytes of this round that have been sent, repairs not counted, and how many there are.
    pub fn progress(&self) -> (u64, u64) {
        let all = self.pieces.ranges().bytes();
        let Some(clap) = &self.clap else {
            return (0, all);
        };
        let stats = clap.stats();
        let block = self.size.saturating_sub(OVERHEAD) as u64;
        (((stats.data_sent - stats.repairs) * block).min(all), all)
    }

    /// Packets sent, and how many of them were repairs, in this round.
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

    fn say(&mut self, message: &ToTaker) {
        if let Err(failure) = self.exchange.send(to_json(message), self.size - PART_HEAD) {
            self.fail(failure);
        }
    }

    /// The digests of all files, when they are asked for.
    pub fn give_digests(&mut self, digests: Vec<Digest>) {
        if self.phase == ShipperPhase::Digests {
            self.phase = ShipperPhase::Comparing;
            self.say(&ToTaker::Digests(digests));
        }
    }

    /// Takes the contents of a datagram of the other end. What is none of this job is passed over.
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
            // What is late, or what only a sender says.
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

    /// The receiver was started anew, and has to say again what it has.
    fn begin_again(&mut self, now: Instant) {
        self.started += 1;
        self.session = self.session.wrapping_add(1);
        self.exchange = Exchange::default();
        (self.phase, self.clap, self.round) = (ShipperPhase::Seeking, None, 0);
        (self.hello_at, self.hellos, self.reached) = (now, 0, None);
        self.rate.forget_flight();
    }

    /// How long datagrams may be is known.
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

    /// What the interfaces on the way offer, where an IP packet has so many bytes beside its contents. It counts until it
    /// is old, and before what is measured.
    ///
    /// While the interfaces are full, other flows may have a part of what left: this one keeps to what it was seen to get.
    pub fn set_offered(&mut self, now: Instant, offered: &Offered, headers: usize) {
        let packet = (self.size + headers) as u64;
        let mut out = f64::from(offered.out_bytes);
        if let Some(gets) = self.rate.measured().filter(|_| offered.underflows == 0) {
            let share = packet as f64 / (self.size + BELOW) as f64;
            out = out.min(gets / 8.0 * share * offered.interval.as_secs_f64());
        }
        let most = self.most.as_bps() as f64 / 8.0 * offered.interval.as_secs_f64();
        let out = out.min(most);
        // Half of the room is what is added.
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

    /// CLAP sends at the rate that the path was found to carry, unless interfaces say what they do.
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

    /// Does what is due; an early call does nothing. To be called again for as long as something is due.
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
            // The other end is there, as it answers hellos; CLAP's few repetitions were all lost.
            Some(ClapFailure::NoAnswer) => self.open(now),
            Some(ClapFailure::Silence) => self.fail(Failure::Silence),
            Some(failure) => self.fail(Failure::NotUnderstood(failure.to_string())),
            None => {}
        }
    }

    /// When it is quiet if nothing is heard until then.
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
            // Nobody may be there yet: only what is answered counts as tried.
            self.hellos += u32::from(self.reached.is_some() || self.hellos == 0);
            self.hello_left = now;
        } else {
            self.to_try = 1;
        }
    }

    /// Writes the next datagram's contents into `out`, which has room for the longest of the lengths; how long it is.
    /// `fill` reads bytes of the files from a place on.
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

    /// When `handle_timeout` is due, or `poll_transmit` has something again.
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

fn offer(size: usize, list: &Manifest) -> ToTaker {
    ToTaker::Manifest {
        size: size as u16,
        list: list.clone(),
    }
}

/// Both ends have the same settings. Losses are reported once for as long as anything follows them: files are long, and
/// of a tenth of them much would come twice.
pub(crate) fn clap_config() -> ClapConfig {
    let config = ClapConfig::default();
    ClapConfig {
        sweep_last: Some(config.nack_threshold),
        ..config
    }
}

pub(crate) fn to_json(message: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("text, numbers and lists are always JSON")
}
