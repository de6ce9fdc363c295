//! Lifetimes of keys, retry timers, and the wall clock that handshakes carry.

use airlane_base::Duration;

/// The constants of WireGuard (NDSS 2017, section 6.1), as a structure so that tests can use small ones. Both ends
/// should use the same. `urgent_retry` is our addition: a link that has lost its keys in an outage recovers within a
/// second of the end of the outage, not within five.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Age at which the initiator renews keys in use.
    pub rekey_after: Duration,
    /// Number of messages after which either end renews keys.
    pub rekey_after_messages: u64,
    /// Age from which keys are neither used nor accepted.
    pub reject_after: Duration,
    /// Counter from which keys are neither used nor accepted.
    pub reject_after_messages: u64,
    /// Time between two initiations to the same peer while there are keys, and the longest such time without keys.
    pub retry: Duration,
    /// The shortest such time without keys, when nothing else can be sent.
    pub urgent_retry: Duration,
    /// Largest random addition to these times, so that two ends do not synchronise.
    pub jitter: Duration,
    /// Initiations stop after this time without anything to send.
    pub give_up_after: Duration,
    /// An end that received data and has sent nothing for this long sends an empty message.
    pub keepalive: Duration,
    /// Lifetime of the cookie secret, and of a cookie.
    pub cookie_lifetime: Duration,
    /// More handshake messages per second than this count as load: senders must show a cookie.
    pub handshakes_per_second: u32,
    /// Handshake messages per second that an address with a cookie may send under load, and the size of its burst.
    pub handshakes_per_address: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rekey_after: Duration::from_secs(120),
            rekey_after_messages: 1 << 60,
            reject_after: Duration::from_secs(180),
            reject_after_messages: u64::MAX - (1 << 13),
            retry: Duration::from_secs(5),
            urgent_retry: Duration::from_millis(500),
            jitter: Duration::from_millis(333),
            give_up_after: Duration::from_secs(90),
            keepalive: Duration::from_secs(10),
            cookie_lifetime: Duration::from_secs(120),
            handshakes_per_second: 50,
            handshakes_per_address: 10,
        }
    }
}

impl Limits {
    /// Data unanswered for this long means that the peer has lost the session.
    pub fn silence(&self) -> Duration {
        self.keepalive + self.retry
    }

    /// Age at which the responder renews keys that the initiator should have renewed.
    pub(crate) fn responder_rekey_after(&self) -> Duration {
        self.rekey_after + self.retry * 3
    }
}

/// Wall-clock time. An initiation carries it, and must be newer than the last one of the same peer.
///
/// It has no other use. It may jump forwards; while it is behind the time of an earlier initiation, only the other end
/// can start a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wall(u64);

impl Wall {
    /// The time `since` 1970-01-01 00:00:00 UTC.
    pub const fn from_unix(since: Duration) -> Self {
        Self(since.as_nanos())
    }

    pub(crate) const fn as_nanos(self) -> u64 {
        self.0
    }
}
