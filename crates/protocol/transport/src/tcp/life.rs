//! How a connection ends: both directions are closed and acknowledged (RFC 9293, section 3.6), or the peer does not
//! answer (section 3.8.3, RFC 1122, section 4.2.3.5).
//!
//! The end whose FIN was sent before the peer's FIN arrived waits for two more segment lifetimes (TIME-WAIT), because
//! its last acknowledgment may be lost: it acknowledges a repeated FIN and restarts the wait. The other end closes
//! with the acknowledgment of its FIN. A repeated segment for a closed connection is acknowledged once more, in place
//! of the reset that a host sends for an unknown connection.
//!
//! An end gives up when its timer expires and nothing in flight has been acknowledged for as long as the settings
//! allow (R2); that includes the SYN and zero-window probes. It gives up silently and accepts nothing afterwards:
//! resets are left out.

use airlane_base::{Duration, Instant};

use super::TcpConfig;

/// Two maximum segment lifetimes, of two minutes each (RFC 9293, section 3.4.2).
const TIME_WAIT: Duration = Duration::from_secs(240);

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Both ends have closed it.
    Closed,
    /// The peer has not answered for too long.
    GaveUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Closed from this time on.
    Closed(Instant),
    GaveUp,
}

/// The state of a connection between its first and its last segment.
#[derive(Clone, Debug)]
pub(super) struct Life {
    state: State,
    /// Whether the peer's FIN arrived before the own one was sent.
    peer_first: bool,
}

impl Life {
    pub(super) const fn new() -> Self {
        Self {
            state: State::Open,
            peer_first: false,
        }
    }

    /// Why the connection is over, if it is.
    pub(super) fn over(&self, now: Instant) -> Option<Over> {
        match self.state {
            State::GaveUp => Some(Over::GaveUp),
            State::Closed(until) if until <= now => Some(Over::Closed),
            State::Closed(_) | State::Open => None,
        }
    }

    /// The peer's FIN has arrived, for the first time or `again`. `left` and `confirmed` say whether the own FIN has
    /// been sent and acknowledged.
    #[cold]
    pub(super) fn on_end(&mut self, now: Instant, again: bool, (left, confirmed): (bool, bool)) {
        if !again {
            self.peer_first = !left;
        }
        if confirmed {
            self.state = match self.peer_first {
                true => State::Closed(now),
                false => State::Closed(now + TIME_WAIT),
            };
        }
    }

    /// Whether both directions are closed, or only copies of the FIN may still arrive.
    #[inline]
    pub(super) const fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed(_))
    }

    /// The peer does not answer.
    #[cold]
    pub(super) const fn give_up(&mut self) {
        self.state = State::GaveUp;
    }

    #[inline]
    pub(super) const fn gave_up(&self) -> bool {
        matches!(self.state, State::GaveUp)
    }
}

/// How long nothing has been acknowledged (R2).
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    limit: Option<Duration>,
    since: Option<Instant>,
}

impl Patience {
    pub(super) const fn new(config: &TcpConfig) -> Self {
        Self {
            limit: config.give_up,
            since: None,
        }
    }

    /// Something was acknowledged.
    #[inline]
    pub(super) const fn on_progress(&mut self) {
        self.since = None;
    }

    /// A timer has expired that was set at `set`, perhaps one of several since the last progress; true if that is too
    /// long.
    #[cold]
    pub(super) fn is_over(&mut self, now: Instant, set: Instant) -> bool {
        let since = *self.since.get_or_insert(set);
        self.limit
            .is_some_and(|limit| now.saturating_since(since) >= limit)
    }
}
