//! How long and how often keys are used, and the wall clock that handshakes carry.

use airlane_base::Duration;

/// The constants of WireGuard (NDSS 2017, section 6.1), as a structure so that tests can use small
/// ones. Both ends should have the same. `urgent_retry` is ours: a link that has lost its keys in an
/// outage comes back within a second of it, not within five.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The initiator renews keys that are used after this time.
    pub rekey_after: Duration,
    /// Either end renews keys after this many messages.
    pub rekey_after_messages: u64,
    /// Keys of this age are neither used nor accepted.
    pub reject_after: Duration,
    /// Counters from this one on are neither used nor accepted.
    pub reject_after_messages: u64,
    /// Time between two initiations to the same peer while there are keys, and the longest without.
    pub retry: Duration,
    /// The shortest without keys, when nothing else can be sent.
    pub urgent_retry: Duration,
    /// Up to so much later, at random, so that two ends do not keep step.
    pub jitter: Duration,
    /// Initiations stop if so long nobody wanted to send anything.
    pub give_up_after: Duration,
    /// An end that received data and has sent nothing for so long sends an empty message.
    pub keepalive: Duration,
    /// Lifetime of the secret that cookies are made with, and of a cookie.
    pub cookie_lifetime: Duration,
    /// More handshake messages a second than this are load: senders must show a cookie.
    pub handshakes_per_second: u32,
    /// Under load an address that shows a cookie may send so many handshake messages a second, and as many
    /// at once.
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
    /// Data that is unanswered for so long means that the peer has lost the session.
    pub fn silence(&self) -> Duration {
        self.keepalive + self.retry
    }

    /// When the responder renews keys that the initiator should have renewed.
    pub(crate) fn responder_rekey_after(&self) -> Duration {
        self.rekey_after + self.retry * 3
    }
}

/// Wall-clock time: an initiation carries it, and must be newer than the last one of the same peer.
///
/// It decides nothing else. It may jump forwards; while it lags behind what it was in an earlier
/// initiation, only the other end can start a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wall(u64);

impl Wall {
    /// So long after 1970-01-01 00:00:00 UTC.
    pub const fn from_unix(since: Duration) -> Self {
        Self(since.as_nanos())
    }

    pub(crate) const fn as_nanos(self) -> u64 {
        self.0
    }
}
