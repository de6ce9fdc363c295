//! How a connection ends: both directions closed and confirmed (RFC 9293, section 3.6), or nobody answers (section
//! 3.8.3, RFC 1122, section 4.2.3.5).
//!
//! The end whose FIN left before the peer's came waits for two segment lifetimes more (TIME-WAIT), as its last
//! acknowledgment may be lost: a FIN that comes again is acknowledged, and it waits anew. The other is closed with
//! the acknowledgment of its FIN. What comes again for a connection that is closed is acknowledged once more, in the
//! place of the reset that a host sends for one it does not know.
//!
//! An end gives up when its timer expires and nothing of what has left has been confirmed for as long as the settings
//! allow (R2), the SYN of a connection and probes of a shut window included. It goes silently, and takes nothing any
//! more: resets are left out.

use airlane_base::{Duration, Instant};

use super::TcpConfig;

/// Two maximum segment lifetimes, of two minutes each (RFC 9293, section 3.4.2).
const TIME_WAIT: Duration = Duration::from_secs(240);

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Both ends have closed it.
    Closed,
    /// Nobody has answered for too long.
    GaveUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Closed, from then on for good.
    Closed(Instant),
    GaveUp,
}

/// Where a connection stands between its first segment and its last.
#[derive(Clone, Debug)]
pub(super) struct Life {
    state: State,
    /// Whether the peer's end came when this one's had not left.
    peer_first: bool,
}

impl Life {
    pub(super) const fn new() -> Self {
        Self {
            state: State::Open,
            peer_first: false,
        }
    }

    /// Why it is over, if it is.
    pub(super) fn over(&self, now: Instant) -> Option<Over> {
        match self.state {
            State::GaveUp => Some(Over::GaveUp),
            State::Closed(until) if until <= now => Some(Over::Closed),
            State::Closed(_) | State::Open => None,
        }
    }

    /// The end of the peer's data has come, for the first time or `again`; of the own one, whether it has `left` and
    /// is `confirmed`.
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

    /// Whether both directions are closed, or wait for nothing but the end's copies.
    #[inline]
    pub(super) const fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed(_))
    }

    /// Nobody answers.
    #[cold]
    pub(super) const fn give_up(&mut self) {
        self.state = State::GaveUp;
    }

    #[inline]
    pub(super) const fn gave_up(&self) -> bool {
        matches!(self.state, State::GaveUp)
    }
}

/// How long nothing has been confirmed (R2).
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

    /// Something was confirmed.
    #[inline]
    pub(super) const fn on_progress(&mut self) {
        self.since = None;
    }

    /// A timer has expired that was set at `set`, as perhaps others before it since the last progress; whether that was
    /// too long.
    #[cold]
    pub(super) fn is_over(&mut self, now: Instant, set: Instant) -> bool {
        let since = *self.since.get_or_insert(set);
        self.limit
            .is_some_and(|limit| now.saturating_since(since) >= limit)
    }
}
