//! The beginning of a connection (RFC 9293, section 3.5): SYN, SYN and ACK, ACK.
//!
//! The end begins that has something to send; both may at once. A SYN that nobody answers leaves again after
//! the initial timeout, and then after twice as long each time. Options are agreed upon by the settings, which both
//! ends share; here they only have a length (`options`).
//!
//! Who asked gives up when nobody has answered for too long (`life`); who was asked may be asked again.

use airlane_base::{Duration, Instant};

use super::TcpConfig;
use super::life::Patience;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    /// A SYN has left.
    Asked,
    /// A SYN has come, and is answered.
    Answered,
    Open,
}

/// What the handshake said of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opened {
    /// Its round trip, if nothing of it left twice.
    pub(super) rtt: Option<Duration>,
    /// How often its segment left.
    pub(super) times: u32,
}

/// What follows from a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    Nothing,
    /// An acknowledgment has to leave.
    Acknowledge,
    /// The connection is open, and an acknowledgment has to leave.
    Open(Opened),
}

/// Where the beginning of a connection stands.
#[derive(Clone, Debug)]
pub(super) struct Handshake {
    state: State,
    /// Its segment has to leave now.
    leaves: bool,
    /// When its segment leaves again.
    due: Option<Instant>,
    /// When it left first, and how often.
    left: Option<Instant>,
    times: u32,
    initial: Duration,
    longest: Duration,
    patience: Patience,
}

impl Handshake {
    /// Without one the connection is open.
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            state: match config.handshake.unwrap_or_default() {
                true => State::Closed,
                false => State::Open,
            },
            leaves: false,
            due: None,
            left: None,
            times: 0,
            initial: config.initial_rto,
            longest: config.max_rto,
            patience: Patience::new(config),
        }
    }

    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// There is something to send.
    pub(super) fn ask(&mut self) {
        if self.state == State::Closed {
            self.state = State::Asked;
            self.leaves = true;
        }
    }

    /// A SYN has come, which answers one or does not.
    pub(super) fn on_syn(&mut self, now: Instant, answers: bool) -> Reaction {
        match (self.state, answers) {
            (State::Closed, true) => Reaction::Nothing,
            (State::Closed | State::Asked | State::Answered, false) => {
                self.state = State::Answered;
                self.leaves = true;
                Reaction::Nothing
            }
            (State::Asked | State::Answered, true) => Reaction::Open(self.open(now)),
            (State::Open, _) => Reaction::Acknowledge,
        }
    }

    /// Something else has come from the peer, for which the connection is open.
    pub(super) fn on_segment(&mut self, now: Instant) -> Option<Opened> {
        (self.state == State::Answered).then(|| self.open(now))
    }

    fn open(&mut self, now: Instant) -> Opened {
        self.state = State::Open;
        self.leaves = false;
        self.due = None;
        let once = self.left.filter(|_| self.times == 1);
        Opened {
            rtt: once.map(|left| now.saturating_since(left)),
            times: self.times,
        }
    }

    /// Whether a SYN leaves now, and whether it answers one.
    pub(super) fn poll(&mut self, now: Instant) -> Option<bool> {
        if !std::mem::take(&mut self.leaves) {
            return None;
        }
        let wait = self.initial * (1u64 << self.times.min(16));
        self.due = Some(now + wait.min(self.longest));
        self.left.get_or_insert(now);
        self.times += 1;
        Some(self.state == State::Answered)
    }

    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Time has passed; whether nobody has answered for too long.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        if self.due.is_none_or(|due| due > now) {
            return false;
        }
        self.due = None;
        if !self.patience.is_over(now, self.left.unwrap_or(now)) {
            self.leaves = true;
            return false;
        }
        let asked = self.state == State::Asked;
        self.state = State::Closed;
        (self.left, self.times) = (None, 0);
        self.patience.on_progress();
        asked
    }
}
