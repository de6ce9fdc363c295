//! TCP in parts, each in a file of its own:
//!
//! ```text
//!              Tcp: one end of a connection, open once its Handshake is over
//!  write ─► Sender ─────────────────────────────────────┐
//!           │ SendWindow   what is sent, what is acknowledged
//!           │ Recovery     what is lost, and what leaves next (tahoe, reno, newreno, sack, rack, smart,
//!           │              eln, vegas)
//!           │ Congestion   how much may be on its way (reno, bsd, cubic, vegas, bbr)
//!           │ Pacing       when the next one leaves
//!           │ Timer        when to give up waiting; RtoEstimator: how long that is
//!           └─ Data ─► peer's Receiver ─ Ack ─► peer's Sender
//!  read ◄── Receiver    what has arrived, and when to say so
//! ```
//!
//! The sender and the receiver of one end share no state: acknowledgments are sent on their own, as by the agents of
//! ns-2. Sequence numbers count segments from 0; the end of the data takes one number. Only some profiles have a
//! handshake and a FIN.

pub mod config;
mod congestion;
mod control;
mod duplicates;
mod ecn;
mod handshake;
mod life;
mod messages;
mod options;
mod pacing;
mod persist;
mod ranges;
pub mod receiver;
mod recovery;
pub mod rto;
mod scale;
mod scoreboard;
mod segment;
pub mod sender;
mod spurious;
mod stats;
mod timer;
mod window;

use airlane_base::{Duration, Instant};

use crate::Endpoint;
use handshake::{Handshake, Reaction};
use life::Life;

pub use config::{
    AckClock, CongestionKind, Deflation, DelayedAck, LossMemory, Profile, RecoveryKind, ReportKind,
    SkipAcks, SkippedHoles, TcpConfig, TimerKind, TimerRestart, UndoKind,
};
pub use ecn::Ecn;
pub use life::Over;
pub use options::Options;
pub use ranges::Range;
pub use receiver::{Receiver, ReceiverStats};
pub use rto::RtoEstimator;
pub use segment::{Ack, Blocks, Data, MOST_BLOCKS, Segment, Timestamp, sack_option_len};
pub use sender::Sender;
pub use stats::SenderStats;

/// One end of a TCP connection.
#[derive(Clone, Debug)]
pub struct Tcp {
    handshake: Handshake,
    life: Life,
    sender: Sender,
    receiver: Receiver,
}

impl Tcp {
    /// An end that has sent and received nothing. A full segment has `segment` user bytes, at least 1. `tick_phase`
    /// is the offset of this host's clock ticks; it should be uniform in `[0, tick)` and differ from run to run.
    pub fn new(config: &TcpConfig, segment: u32, tick_phase: Duration) -> Self {
        Self {
            handshake: Handshake::new(config),
            life: Life::new(),
            sender: Sender::new(config, segment, tick_phase),
            receiver: Receiver::new(config, segment, tick_phase),
        }
    }

    /// Starts a new connection. Counters continue, and memory is kept.
    pub fn restart(&mut self, config: &TcpConfig, tick_phase: Duration) {
        self.handshake = Handshake::new(config);
        self.life = Life::new();
        self.sender.restart(config, tick_phase);
        self.receiver.restart(config, tick_phase);
    }

    /// Requests a connection before there is data to send, if there is a handshake.
    pub fn connect(&mut self) {
        self.handshake.ask();
    }

    /// Handles a segment that arrives before the connection is open; true if it is for an open one.
    #[cold]
    fn opens(&mut self, now: Instant, segment: &Segment) -> bool {
        let opened = match segment {
            Segment::Syn { answers } => match self.handshake.on_syn(now, *answers) {
                Reaction::Open(opened) => Some(opened),
                Reaction::Acknowledge | Reaction::Nothing => None,
            },
            _ => self.handshake.on_segment(now),
        };
        if let Some(opened) = opened {
            self.sender.on_opened(now, opened);
        }
        opened.is_some()
    }

    #[cold]
    fn poll_handshake(&mut self, now: Instant) -> Option<Segment> {
        if self.sender.is_frozen() {
            return None;
        }
        if !self.sender.is_finished() {
            self.handshake.ask();
        }
        let answers = self.handshake.poll(now)?;
        if !answers {
            self.sender.on_asked(now);
        }
        Some(Segment::Syn { answers })
    }

    /// Why the connection is over, if it is.
    ///
    /// ```
    /// use airlane_base::{Duration, Instant};
    /// use airlane_transport::tcp::Over;
    /// use airlane_transport::{Endpoint, Tcp, TcpConfig};
    ///
    /// let mut config = TcpConfig::default();
    /// config.give_up = Some(Duration::from_secs(30));
    /// let mut end = Tcp::new(&config, 1_448, Duration::ZERO);
    /// end.write(1);
    ///
    /// let mut now = Instant::ORIGIN;
    /// let mut syns = 0;
    /// while end.over(now).is_none() {
    ///     syns += std::iter::from_fn(|| end.poll_transmit(now)).count(); // nobody answers
    ///     now = end.poll_timeout().expect("an unanswered SYN has a timer");
    ///     end.handle_timeout(now);
    /// }
    /// assert_eq!(end.over(now), Some(Over::GaveUp));
    /// assert!(syns > 3 && now >= Instant::ORIGIN + Duration::from_secs(30));
    /// ```
    pub fn over(&self, now: Instant) -> Option<Over> {
        self.life.over(now)
    }

    /// Whether it has nothing but acknowledgments to send until it receives something.
    #[inline]
    pub fn is_silent(&self) -> bool {
        self.sender.is_finished() && self.handshake.is_open()
    }

    /// Whether it is certain that nothing follows a data segment that was sent just now.
    #[inline]
    pub fn is_held(&mut self, now: Instant) -> bool {
        self.sender.is_held(now)
    }

    /// The half that sends data.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The half that receives data.
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }
}

impl Endpoint for Tcp {
    type Segment = Segment;

    fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }

    fn close(&mut self) {
        self.sender.close();
    }

    fn read(&mut self) -> Option<u64> {
        self.receiver.poll_deliver()
    }

    #[inline]
    fn handle_segment(&mut self, now: Instant, segment: Segment) {
        if self.life.gave_up() {
            return;
        }
        if !self.handshake.is_open() && !self.opens(now, &segment) {
            return;
        }
        let (had_ended, is_data) = (
            self.receiver.has_ended(),
            matches!(segment, Segment::Data(_)),
        );
        match &segment {
            Segment::Data(data) => self.receiver.handle_data(now, data),
            Segment::Ack(ack) => self.sender.handle_ack(now, ack),
            // The answer, or the acknowledgment of it, was lost.
            Segment::Syn { .. } => self.receiver.handle_probe(),
            Segment::Probe(_) => self.receiver.handle_probe(),
        }
        if self.receiver.has_ended() && (is_data || !self.life.is_closed()) {
            self.life.on_end(now, had_ended, self.sender.end());
        }
    }

    fn handle_destroyed(&mut self, segment: &Segment) {
        if let Segment::Data(data) = segment {
            self.receiver.handle_destroyed(data.seq);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if !self.sender.is_frozen() && self.handshake.expire(now) {
            self.life.give_up();
        }
        self.receiver.handle_timeout(now);
        self.sender.handle_timeout(now);
        if self.sender.has_given_up() {
            self.life.give_up();
        }
    }

    fn freeze(&mut self, now: Instant) {
        self.sender.freeze(now);
    }

    fn thaw(&mut self, now: Instant) {
        if self.handshake.expire(now) {
            self.life.give_up();
        }
        self.sender.thaw(now);
    }

    /// Acknowledgments go first.
    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        if let Some(ack) = self.receiver.poll_ack() {
            return Some(Segment::Ack(ack));
        }
        // Most ends send in one direction.
        if self.is_silent() || self.life.gave_up() {
            return None;
        }
        if !self.handshake.is_open() {
            return self.poll_handshake(now);
        }
        if let Some(data) = self.sender.poll_transmit(now) {
            return Some(Segment::Data(data));
        }
        self.sender.poll_probe().map(Segment::Probe)
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        if self.life.gave_up() {
            return None;
        }
        if !self.handshake.is_open() {
            return self.handshake.due().filter(|_| !self.sender.is_frozen());
        }
        match (self.sender.poll_timeout(), self.receiver.poll_timeout()) {
            (Some(sender), Some(receiver)) => Some(sender.min(receiver)),
            (sender, receiver) => sender.or(receiver),
        }
    }

    fn written(&self) -> u64 {
        self.sender.written()
    }

    fn acknowledged(&self) -> u64 {
        self.sender.acked_bytes()
    }

    fn received(&self) -> u64 {
        self.receiver.received()
    }

    fn is_acknowledged(&self) -> bool {
        self.sender.is_acknowledged()
    }
}
