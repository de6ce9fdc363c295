//! The secure session of a node with its one peer.

use std::net::SocketAddr;

use airlane_base::{Duration, Instant};
use airlane_secure::{
    Limits, OVERHEAD, PeerConfig, PeerId, PeerStatus, PublicKey, Received, Refused, SealError,
    Secure, Transmit,
};

use super::UpError;
use crate::clock;
use crate::device::DeviceError;
use crate::security::{Keys, random, read_key};
use crate::status::SecureReport;

/// What an authentic datagram brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Opened {
    /// Bytes of a frame, in the buffer for it.
    pub(crate) frame: Option<usize>,
    /// The peer is there from now on.
    pub(crate) moved_to: Option<SocketAddr>,
}

/// Whether this processor has instructions for AES and for GCM's multiplication.
fn has_fast_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes")
        && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}

/// Seals frames and opens them.
pub(crate) struct Guard {
    secure: Secure,
    peer: PeerId,
    key: PublicKey,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").field("peer", &self.key).finish()
    }
}

impl Guard {
    /// What each datagram is longer than its frame.
    pub(crate) const OVERHEAD: usize = OVERHEAD;

    pub(crate) fn new(
        now: Instant,
        keys: &Keys,
        endpoint: Option<SocketAddr>,
    ) -> Result<Self, UpError> {
        let private = read_key(&keys.private_key)?;
        let seed =
            random().map_err(|error| DeviceError::new("random numbers", "draw a seed", error))?;
        let peer = PeerConfig {
            key: keys.peer_key,
            endpoint,
        };
        let mut secure = Secure::new(now, private, &[peer], Limits::default(), seed)?;
        secure.set_fast_aes(has_fast_aes());
        let peer = secure.peer(&keys.peer_key).expect("the peer of the list");
        Ok(Self {
            secure,
            peer,
            key: keys.peer_key,
        })
    }

    /// Our own public key, which the peer must have.
    pub(crate) fn public_key(&self) -> PublicKey {
        *self.secure.public_key()
    }

    /// The peer's public key.
    pub(crate) const fn peer_key(&self) -> PublicKey {
        self.key
    }

    /// Whether both have the same keys.
    pub(crate) fn has_keys_of(&self, other: &Self) -> bool {
        (self.public_key(), self.key) == (other.public_key(), other.key)
    }

    /// Whether frames can be sealed.
    pub(crate) fn is_ready(&self, now: Instant) -> bool {
        self.secure.is_established(now, self.peer)
    }

    pub(crate) fn seal(
        &mut self,
        now: Instant,
        parts: &[&[u8]],
        out: &mut [u8],
    ) -> Result<usize, SealError> {
        let sealed = self.secure.seal(now, self.peer, parts, out)?;
        Ok(sealed.len)
    }

    /// Takes a datagram from anywhere; the frame goes to `plain`.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &[u8],
        plain: &mut [u8],
    ) -> Result<Opened, Refused> {
        let before = self.secure.endpoint(self.peer);
        let received = self.secure.handle_datagram(now, from, datagram, plain)?;
        let after = self.secure.endpoint(self.peer);
        Ok(Opened {
            frame: match received {
                Received::Data { len, .. } => Some(len),
                _ => None,
            },
            moved_to: after.filter(|_| after != before),
        })
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<Transmit> {
        self.secure.poll_transmit()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.secure.poll_timeout()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.secure.handle_timeout(now, clock::wall());
        if !self.is_ready(now) {
            // A link is always wanted.
            self.secure.rekey(now, self.peer);
        }
    }

    pub(crate) fn report(&self, now: Instant) -> SecureReport {
        let counters = self.secure.counters();
        let status: Option<PeerStatus> = self.secure.status(now).find(|s| s.peer == self.peer);
        let age = status.and_then(|status| status.session_age);
        SecureReport {
            key: self.public_key().to_string(),
            peer_key: self.key.to_string(),
            keys_age_ns: age.map(Duration::as_nanos),
            handshakes_begun: counters.initiations_sent,
            handshakes_answered: counters.responses_sent,
            cookies_sent: counters.cookies_sent,
            refused: counters.refused.total(),
        }
    }
}
