//! Why datagrams are refused, and how many were: every one is counted.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use thiserror::Error;

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $text:literal;)+) => {
        /// Why a datagram was refused. Nothing but a counter has changed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
        #[non_exhaustive]
        pub enum Refused {
            $($(#[doc = $doc])+ #[error($text)] $variant,)+
        }

        impl Refused {
            /// All reasons.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name of the reason in results and status.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

reasons! {
    /// Not a message: an unknown type, or reserved bytes that are not zero.
    Type = "type", "not a message of this protocol";
    /// The length does not match the type.
    Length = "length", "not as long as a message of its type";
    /// A handshake message whose sender does not know our public key.
    Mac1 = "mac1", "the sender does not know our public key";
    /// A handshake message of our own that came back.
    Own = "own", "is our own, and came back";
    /// A handshake message without a valid cookie while we are under load.
    Load = "load", "under load, and the sender has no valid cookie";
    /// A handshake message from an address that sends too many while we are under load.
    Rate = "rate", "under load, and the sender's address sends too many handshake messages";
    /// Authentication failed: the message is forged, damaged, for other keys, or has another binding.
    Forged = "forged", "fails authentication";
    /// A bound message while this end has no binding.
    Unbound = "unbound", "is bound, and this end is bound to nothing yet";
    /// An initiation with a key that is not configured.
    UnknownKey = "unknown-key", "the sender's key is not that of a configured peer";
    /// A handshake whose two ends have different pre-shared keys, or only one of them has one; or a forged response to
    /// an end that has one.
    Preshared = "preshared", "the pre-shared keys of the two ends differ, or it is forged";
    /// An initiation that is not newer than one already accepted.
    OldInitiation = "old-initiation", "not newer than the last initiation of this peer";
    /// A message for keys or a handshake that we do not have: from before a restart, or made up.
    UnknownIndex = "unknown-index", "belongs to no session of ours";
    /// A data message under keys that are too old or were used too often.
    Expired = "expired", "its keys have expired";
    /// A data message whose counter was received before.
    Replayed = "replayed", "was received before";
    /// A data message too old for the window to know whether it was received before.
    BehindWindow = "behind-window", "older than the replay window";
    /// A data message longer than the caller's buffer.
    NoRoom = "no-room", "longer than the buffer for its payload";
}

/// Numbers of refused datagrams by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals([u64; Refused::ALL.len()]);

impl Refusals {
    /// The number for this reason.
    pub const fn of(&self, reason: Refused) -> u64 {
        self.0[reason as usize]
    }

    /// The number for all reasons.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(crate) fn count(&mut self, reason: Refused) {
        self.0[reason as usize] += 1;
    }
}

impl Serialize for Refusals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for &reason in Refused::ALL {
            map.serialize_entry(reason.name(), &self.of(reason))?;
        }
        map.end()
    }
}

/// What one end did and refused since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct Counters {
    /// Data messages with a payload sealed.
    pub sealed: u64,
    /// Data messages with a payload opened.
    pub opened: u64,
    /// Payloads not sealed for lack of keys.
    pub unsealed: u64,
    /// Empty data messages sent.
    pub keepalives_sent: u64,
    /// Empty data messages received.
    pub keepalives_received: u64,
    /// Handshake initiations sent.
    pub initiations_sent: u64,
    /// Handshake responses sent.
    pub responses_sent: u64,
    /// Cookie replies sent.
    pub cookies_sent: u64,
    /// Cookies received.
    pub cookies_received: u64,
    /// Handshake messages admitted to a Diffie-Hellman exchange.
    pub exchanges: u64,
    /// Sessions established: keys that both ends are known to have.
    pub established: u64,
    /// Our own messages dropped by a full queue because the caller did not drain it.
    pub queue_full: u64,
    /// Datagrams refused.
    pub refused: Refusals,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_name_and_place() {
        let mut counted = Refusals::default();
        for (at, &reason) in Refused::ALL.iter().enumerate() {
            assert_eq!(reason as usize, at);
            for _ in 0..=at {
                counted.count(reason);
            }
        }
        let json = serde_json::to_value(counted).expect("a map");
        for (at, &reason) in Refused::ALL.iter().enumerate() {
            assert_eq!(json[reason.name()], at as u64 + 1);
        }
        assert_eq!(
            json.as_object().expect("a map").len(),
            Refused::ALL.len(),
            "two reasons share a name"
        );
        let n = Refused::ALL.len() as u64;
        assert_eq!(counted.total(), n * (n + 1) / 2);
    }
}
