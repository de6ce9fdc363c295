//! The beginning of a connection (RFC 9293, section 3.5): SYN, SYN and ACK, ACK.
//!
//! The end that has data to send opens the connection; both may do so at once. An unanswered SYN is sent again after
//! the initial timeout, which doubles each time. The options follow from the settings, which both ends share; here
//! they only have a length (`options`).
//!
//! The end that opens gives up when it gets no answer for too long (`life`); the other end may be asked again.

use airlane_base::{Duration, Instant};

use super::TcpConfig;
use super::life::Patience;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    /// A SYN has been sent.
    Asked,
    /// A SYN has been received and is answered.
    Answered,
    Open,
}

/// What the handshake reveals about the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opened {
    /// Its round trip, unless one of its segments was sent twice.
    pub(super) rtt: Option<Duration>,
    /// How often its segment was sent.
    pub(super) times: u32,
}

/// What follows from a received SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    Nothing,
    /// An acknowledgment must be sent.
    Acknowledge,
    /// The connection is open, and an acknowledgment must be sent.
    Open(Opened),
}

/// The state of the handshake.
#[derive(Clone, Debug)]
pub(super) struct Handshake {
    state: State,
    /// Whether its segment must be sent now.
    leaves: bool,
    /// When its segment is sent again.
    due: Option<Instant>,
    /// When it was first sent, and how often.
    left: Option<Instant>,
    times: u32,
    initial: Duration,
    longest: Duration,
    patience: Patience,
}

impl Handshake {
    /// Without a handshake the connection starts open.
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

    /// There is data to send.
    pub(super) fn ask(&mut self) {
        if self.state == State::Closed {
            self.state = State::Asked;
            self.leaves = true;
        }
    }

    /// A SYN has arrived; `answers` if it answers the own one.
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

    /// Another segment has arrived, which shows that the peer considers the connection open.
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

    /// Whether a SYN is sent now, and whether it answers one.
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

    /// Advances time; true if no answer has come for too long.
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
