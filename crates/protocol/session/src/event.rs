//! What a session says: where it stands, and what has happened.

use std::fmt;

use airlane_base::Duration;
use serde::Serialize;

use crate::offer::ServiceOffer;

/// What happened, for the driver and for people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionEvent {
    /// A new session. The driver resets its port before the next frame.
    Established {
        /// Number that every frame carries.
        session: u32,
        /// The peer's epoch.
        peer_epoch: u64,
        /// Whether it replaces an earlier session: the peer was restarted.
        replaced: bool,
    },
    /// The peer confirmed that it is in the same session.
    Confirmed {
        /// Number that every frame carries.
        session: u32,
    },
    /// What the peer of a session offers: first as it was when the session began, then whenever it
    /// changes.
    Offered {
        /// Its services.
        offers: Vec<ServiceOffer>,
        /// Whether the session begins with them.
        first: bool,
    },
    /// The peer has another table of services. There is no session from here on.
    Refused {
        /// Our table.
        ours: String,
        /// The peer's.
        theirs: String,
    },
    /// The peer speaks another version of the protocol.
    VersionMismatch {
        /// The version here.
        ours: u8,
        /// The peer's.
        theirs: u8,
    },
    /// Nothing was heard from the peer for so long: the link is disconnected. Hellos go on.
    PeerLost {
        /// How long.
        silent_for: Duration,
    },
    /// The peer is heard again, in the same session.
    PeerBack {
        /// How long nothing was heard.
        silent_for: Duration,
    },
    /// The peer is heard and says that it does not hear us: the path works in one direction.
    Unheard {
        /// For how long.
        unheard_for: Duration,
    },
    /// The peer says that it hears us again.
    HeardAgain,
    /// The peer had left our epoch for another; we drew a new one. There is no session until the
    /// next [`SessionEvent::Established`].
    EpochRenewed,
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SessionState {
    /// No peer was accepted yet.
    Waiting,
    /// A peer was accepted; it has not confirmed yet.
    Accepted,
    /// Both ends are in the same session.
    Confirmed,
    /// Established, but nothing was heard from the peer for [`Keepalives::silence`](crate::Keepalives::silence).
    Disconnected,
    /// The peer's table differs.
    Refused,
}

impl fmt::Display for SessionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Waiting => "waiting for the peer",
            Self::Accepted => "accepted",
            Self::Confirmed => "established",
            Self::Disconnected => "disconnected: the peer is silent",
            Self::Refused => "refused: the service tables do not fit",
        })
    }
}
