//! The receiving end.

use airlane_base::{Duration, Instant};
use airlane_link::wire::Report;
use airlane_transport::clap::{ClapReceiver, Forward, Taken, wire};

use crate::exchange::Exchange;
use crate::failure::Failure;
use crate::manifest::Manifest;
use crate::message::{
    Digest, LONGEST_DATAGRAM, Message, OVERHEAD, PART_HEAD, ToReceiver, ToShipper, decode,
};
use crate::pieces::Pieces;
use crate::ranges::Ranges;
use crate::shipper::{clap_config, to_json};

/// Longest bitmap in a CLAP-final report, bytes.
const BITMAP: usize = 1_000;
/// Every path carries datagrams of this length (RFC 8200: 1280 bytes with IP headers, less what sealing adds).
const LEAST_SIZE: usize = 1_200;
/// How far `whole_from` looks, bytes.
const FAR: u64 = 1 << 20;
/// A sender that is silent for this long is gone.
const AWAY: Duration = Duration::from_secs(64);

/// The phase of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShipReceiverPhase {
    /// No sender has sent a list of files yet.
    Waiting,
    /// A sender has sent its list of files. The driver must say what is missing, or refuse.
    Offered,
    /// Files are being received.
    Receiving,
    /// All bytes and the sender's digests have arrived. The driver must compare them.
    Comparing,
    /// The files have arrived as they were sent.
    Done,
    /// The files were refused, or the sender's messages cannot be understood.
    Failed,
}

/// The receiving end of one job after the other.
#[derive(Clone, Debug)]
pub struct ShipReceiver {
    instance: u16,
    phase: ShipReceiverPhase,
    failure: Option<Failure>,
    started: u64,
    session: u16,
    size: usize,
    /// The length of a hello received, until it is answered.
    reached: Option<usize>,
    /// The session of a sender that was started before the current one and still calls.
    earlier: Option<u16>,
    exchange: Exchange,
    manifest: Option<Manifest>,
    digests: Vec<Digest>,
    heard: Instant,
    // The files.
    missing: Ranges,
    pieces: Pieces,
    /// One bit for each piece of this round that has arrived.
    came: Vec<u64>,
    came_bytes: u64,
    round: u16,
    clap: Option<ClapReceiver>,
    duplicates: u64,
    packets: u64,
    // Input of the sender's rate estimator.
    received: u64,
    report: Option<(u32, Report)>,
    bitmap: [u8; BITMAP],
}

impl ShipReceiver {
    /// An end that waits for a sender. Each start of a receiver needs its own `instance`, by which a sender notices a
    /// restart.
    pub fn new(now: Instant, instance: u16) -> Self {
        Self {
            instance,
            phase: ShipReceiverPhase::Waiting,
            failure: None,
            started: 0,
            session: 0,
            size: LEAST_SIZE,
            reached: None,
            earlier: None,
            exchange: Exchange::default(),
            manifest: None,
            digests: Vec::new(),
            heard: now,
            missing: Ranges::none(),
            pieces: Pieces::default(),
            came: Vec::new(),
            came_bytes: 0,
            round: 0,
            clap: None,
            duplicates: 0,
            packets: 0,
            received: 0,
            report: None,
            bitmap: [0; BITMAP],
        }
    }

    /// The phase of the job. Another sender, or a restarted one, begins a new job.
    pub const fn phase(&self) -> ShipReceiverPhase {
        self.phase
    }

    /// Identifies the job: the start time of its sender.
    pub const fn job(&self) -> u64 {
        self.started
    }

    /// Why the job failed.
    pub const fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// The sender's list of files, once it has arrived.
    pub const fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    /// The digests of the sender's files, once everything has arrived.
    pub fn digests(&self) -> &[Digest] {
        &self.digests
    }

    /// Packets of files received, and how many of them were duplicates.
    pub const fn packets(&self) -> (u64, u64) {
        (self.packets, self.duplicates)
    }

    /// Number of missing bytes.
    pub fn missing_bytes(&self) -> u64 {
        self.missing.bytes() - self.came_bytes
    }

    /// Whether the sender has been silent for so long that it is gone.
    pub fn is_alone(&self, now: Instant) -> bool {
        now >= self.heard + AWAY
    }

    /// The bytes that are missing.
    pub fn missing(&self) -> Ranges {
        let mut missing = Ranges::none();
        for n in 0..self.pieces.count() {
            if !self.has(n)
                && let Some((from, len)) = self.pieces.get(n)
            {
                missing.push(from, len as u64);
            }
        }
        // Bytes that did not fit into this round.
        let end = self
            .pieces
            .ranges()
            .iter()
            .last()
            .map_or(0, |(from, len)| from + len);
        for (from, len) in self.missing.iter() {
            let start = from.max(end);
            missing.push(start, (from + len).saturating_sub(start));
        }
        missing
    }

    /// The end of the complete bytes from `at` on.
    pub fn whole_from(&self, at: u64) -> u64 {
        let mut end = at;
        while let Some(next) = self.missing.first_from(end) {
            match self
                .pieces
                .find(next)
                .filter(|n| self.has(*n))
                .and_then(|n| self.pieces.get(n))
            {
                // No caller needs more at once.
                Some(_) if next > at + FAR => return next,
                Some((start, len)) => end = start + len as u64,
                None => return next,
            }
        }
        u64::MAX
    }

    fn has(&self, n: u32) -> bool {
        let word = self.came.get((n / 64) as usize);
        word.is_some_and(|word| word >> (n % 64) & 1 == 1)
    }

    fn fail(&mut self, failure: Failure) {
        self.phase = ShipReceiverPhase::Failed;
        self.failure = Some(failure);
        self.clap = None;
    }

    fn say(&mut self, message: &ToShipper) {
        if let Err(failure) = self.exchange.send(to_json(message), self.size - PART_HEAD) {
            self.fail(failure);
        }
    }

    /// Requests the missing bytes of the files offered, or the files that differed from those sent.
    pub fn ask_for(&mut self, missing: Ranges) {
        if !matches!(
            self.phase,
            ShipReceiverPhase::Offered | ShipReceiverPhase::Comparing
        ) {
            return;
        }
        self.phase = ShipReceiverPhase::Receiving;
        self.missing = missing;
        self.ask();
    }

    fn ask(&mut self) {
        self.pieces = Pieces::of(&self.missing, self.size - OVERHEAD);
        self.came = vec![0; self.pieces.count().div_ceil(64) as usize];
        self.came_bytes = 0;
        self.clap = (self.pieces.count() > 0).then(|| ClapReceiver::new(&clap_config()));
        self.round = self.round.wrapping_add(u16::from(self.clap.is_some()));
        self.say(&ToShipper::Missing(self.pieces.ranges().clone()));
    }

    /// Refuses the files.
    pub fn refuse(&mut self, why: &str) {
        self.say(&ToShipper::Refused(why.to_owned()));
        self.phase = ShipReceiverPhase::Failed;
    }

    /// Confirms that the files arrived as they were sent.
    pub fn accept(&mut self) {
        if self.phase == ShipReceiverPhase::Comparing {
            self.phase = ShipReceiverPhase::Done;
            self.say(&ToShipper::Done);
        }
    }

    /// Whether the sender has received everything that was sent to it.
    pub const fn is_heard(&self) -> bool {
        self.exchange.is_idle()
    }

    /// Processes the payload of a datagram from the sender. `keep` writes bytes of the files at a position.
    ///
    /// # Errors
    /// Those of `keep`.
    pub fn handle<E>(
        &mut self,
        now: Instant,
        bytes: &[u8],
        keep: &mut impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some((session, message)) = decode(bytes) else {
            return Ok(());
        };
        if let Message::Hello(started, len) = message {
            self.on_hello(now, session, started, len);
            return Ok(());
        }
        if session != self.session || self.started == 0 {
            return Ok(());
        }
        self.heard = now;
        match message {
            Message::Mark(number) => {
                let report = Report {
                    received: self.received as u32,
                    at_us: (now.as_nanos() / 1_000) as u32,
                };
                self.report = Some((number, report));
            }
            Message::Got(got) => self.exchange.handle_got(now, got),
            Message::Part(part) => {
                if let Some(text) = self.exchange.handle_part(part) {
                    self.on_text(&text);
                }
            }
            Message::Clap(round, wire::Packet::Forward(packet, data)) => {
                self.received += (bytes.len() + 28) as u64;
                if round == self.round {
                    self.on_clap(now, packet, data, keep)?;
                }
            }
            // Sent only by receivers.
            Message::Clap(..)
            | Message::Report(..)
            | Message::Hello(..)
            | Message::Reached(..)
            | Message::Later(..) => {}
        }
        Ok(())
    }

    fn on_hello(&mut self, now: Instant, session: u16, started: u64, len: usize) {
        if started < self.started {
            self.earlier = Some(session);
            return;
        }
        if started > self.started {
            *self = Self {
                started,
                session,
                ..Self::new(now, self.instance)
            };
        }
        self.heard = now;
        self.reached = Some(len);
    }

    fn on_text(&mut self, text: &[u8]) {
        match serde_json::from_slice(text) {
            Err(error) => self.fail(Failure::NotUnderstood(error.to_string())),
            Ok(ToReceiver::Manifest { size, list }) if self.manifest.is_none() => {
                match list.check() {
                    Ok(()) => {
                        self.size = usize::from(size).clamp(LEAST_SIZE, LONGEST_DATAGRAM);
                        self.manifest = Some(list);
                        self.phase = ShipReceiverPhase::Offered;
                    }
                    Err(why) => self.refuse(&why),
                }
            }
            Ok(ToReceiver::Manifest { .. }) => {
                self.fail(Failure::NotUnderstood("a second list".to_owned()))
            }
            Ok(ToReceiver::Digests(digests)) => {
                let wanted = self
                    .manifest
                    .as_ref()
                    .map_or(0, |list| list.files().count());
                if digests.len() == wanted
                    && self.phase == ShipReceiverPhase::Receiving
                    && self.missing_bytes() == 0
                {
                    self.digests = digests;
                    self.phase = ShipReceiverPhase::Comparing;
                } else {
                    self.fail(Failure::NotUnderstood(format!(
                        "{} digests, now",
                        digests.len()
                    )));
                }
            }
        }
    }

    fn on_clap<E>(
        &mut self,
        now: Instant,
        packet: Forward,
        data: &[u8],
        keep: &mut impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(clap) = &mut self.clap else {
            return Ok(());
        };
        let mut place = None;
        match packet {
            Forward::Syn { first, count } if (first, count) != (0, self.pieces.count()) => {
                return Ok(());
            }
            Forward::Data(packet) => {
                place = self
                    .pieces
                    .get(packet.seq)
                    .filter(|(_, len)| *len == data.len());
                if place.is_none() {
                    return Ok(());
                }
                self.packets += 1;
            }
            Forward::Syn { .. } | Forward::FinAck { .. } => {}
        }
        match (clap.handle(now, packet), packet, place) {
            (Taken::New, Forward::Data(packet), Some((from, len))) => {
                keep(from, data)?;
                self.came[(packet.seq / 64) as usize] |= 1 << (packet.seq % 64);
                self.came_bytes += len as u64;
                if clap.completed().is_some() {
                    self.missing = self.missing();
                    self.ask();
                }
            }
            (Taken::Duplicate, ..) => self.duplicates += 1,
            _ => {}
        }
        Ok(())
    }

    /// Does what is due; an early call does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(clap) = &mut self.clap {
            clap.handle_timeout(now);
        }
    }

    /// Writes the payload of the next datagram into `out`, which must have room for [`LONGEST_DATAGRAM`], and returns
    /// its length.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut [u8]) -> Option<usize> {
        let session = self.session;
        if let Some(len) = self.reached.take() {
            let len = u16::try_from(len).unwrap_or(u16::MAX);
            let reached = Message::Reached(len, self.instance);
            return Some(reached.encode(session, now, out));
        }
        if let Some(earlier) = self.earlier.take() {
            return Some(Message::Later(self.started).encode(earlier, now, out));
        }
        if let Some((number, report)) = self.report.take() {
            return Some(Message::Report(number, report).encode(session, now, out));
        }
        if let Some(got) = self.exchange.poll_got() {
            return Some(Message::Got(got).encode(session, now, out));
        }
        if let Some(part) = self.exchange.poll_part(now) {
            return Some(Message::Part(part).encode(session, now, out));
        }
        let room = BITMAP.min(self.size.saturating_sub(OVERHEAD));
        let feedback = self
            .clap
            .as_mut()?
            .poll_transmit(now, &mut self.bitmap[..room])?;
        let message = Message::Clap(self.round, wire::Packet::Feedback(feedback));
        Some(message.encode(session, now, out))
    }

    /// When to call `handle_timeout` or `poll_transmit` next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let clap = self.clap.as_ref().and_then(ClapReceiver::poll_timeout);
        clap.into_iter().chain(self.exchange.poll_timeout()).min()
    }
}
