//! The state and the events of a session.

use std::fmt;

use airlane_base::Duration;
use serde::Serialize;

use crate::offer::ServiceOffer;

/// An event, for the driver and for people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionEvent {
    /// A new session began. The driver resets its port before the next frame.
    Established {
        /// The session number, which every frame carries.
        session: u32,
        /// The peer's epoch.
        peer_epoch: u64,
        /// Whether it replaces an earlier session because the peer was restarted.
        replaced: bool,
    },
    /// The peer confirmed that it is in the same session.
    Confirmed {
        /// The session number, which every frame carries.
        session: u32,
    },
    /// The peer's services: as they are when the session begins, and whenever they change.
    Offered {
        /// Its services.
        offers: Vec<ServiceOffer>,
        /// Whether these are the services at the beginning of the session.
        first: bool,
    },
    /// The peer's table of services does not match. There is no session any more.
    Refused {
        /// Our table.
        ours: String,
        /// The peer's.
        theirs: String,
    },
    /// The peer speaks another version of the protocol.
    VersionMismatch {
        /// Our version.
        ours: u8,
        /// The peer's version.
        theirs: u8,
    },
    /// The peer has been silent for too long: the link is disconnected. Hellos continue.
    PeerLost {
        /// The duration of the silence so far.
        silent_for: Duration,
    },
    /// The peer is heard again, in the same session.
    PeerBack {
        /// The duration of the silence.
        silent_for: Duration,
    },
    /// The peer is heard and reports that it does not hear us: the path works in one direction only.
    Unheard {
        /// For how long.
        unheard_for: Duration,
    },
    /// The peer reports that it hears us again.
    HeardAgain,
    /// The peer had left our epoch for another, so we drew a new one. There is no session until the next
    /// [`SessionEvent::Established`].
    EpochRenewed,
}

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SessionState {
    /// No peer has been accepted yet.
    Waiting,
    /// A peer was accepted but has not confirmed yet.
    Accepted,
    /// Both ends are in the same session.
    Confirmed,
    /// Confirmed, but the peer's hellos say that it does not hear this end.
    Unheard,
    /// Established, but the peer has been silent for [`Keepalives::silence`](crate::Keepalives::silence).
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
            Self::Unheard => "not heard by the peer",
            Self::Disconnected => "disconnected: the peer is silent",
            Self::Refused => "refused: the service tables do not fit",
        })
    }
}
