//! The secure sessions of a node with its peers.

use std::collections::BTreeMap;

use airlane_base::{Duration, Instant};
use airlane_secure::{
    AcceptedDatagram, Limits, OVERHEAD, PeerAddress, PeerId, PresharedKey, PrivateKey, PublicKey,
    Refused, SealError, Secure, SecurePeer, Transmit, Wall,
};

use super::error::NodeError;
use crate::config::PeerConfig;
use crate::status::SecureReport;

/// A node's secrets, and a fact about its processor.
pub struct Secrets {
    /// Its private key.
    pub private: PrivateKey,
    /// Pre-shared keys by the peer's name.
    pub preshared: BTreeMap<String, PresharedKey>,
    /// Whether AES is fast on this processor.
    pub fast_aes: bool,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

/// The content of an authentic datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Its sender.
    pub peer: PeerId,
    /// Length of the frame in the buffer, and whether it was bound to our session.
    pub frame: Option<(usize, bool)>,
}

/// Seals and opens frames. A datagram belongs to the peer whose session identifier it has and whose keys open
/// it, whatever its source address.
pub struct Guard {
    secure: Secure,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = self.secure.public_key();
        f.debug_struct("Guard").field("key", key).finish()
    }
}

/// Lists the peers with keys and their addresses; `anyone` stands for an unknown address.
fn list(peers: &[PeerConfig], secrets: &Secrets, anyone: Option<PeerAddress>) -> Vec<SecurePeer> {
    let keyed = peers.iter().filter_map(|peer| Some((peer, peer.key?)));
    let listed = keyed.map(|(peer, key)| SecurePeer {
        key,
        address: peer.fixed_address().or(anyone),
        preshared: secrets.preshared.get(&peer.name).cloned(),
    });
    listed.collect()
}

impl Guard {
    /// Bytes by which a datagram is longer than its frame.
    pub const OVERHEAD: usize = OVERHEAD;

    /// Creates the sessions with these peers; no handshake has begun.
    ///
    /// # Errors
    /// If a peer's key is invalid.
    pub fn new(
        now: Instant,
        secrets: &Secrets,
        peers: &[PeerConfig],
        anyone: Option<PeerAddress>,
        seed: [u8; 32],
    ) -> Result<Self, NodeError> {
        let peers = list(peers, secrets, anyone);
        let private = secrets.private.clone();
        let mut secure = Secure::new(now, private, &peers, Limits::default(), seed)?;
        secure.set_fast_aes(secrets.fast_aes);
        Ok(Self { secure })
    }

    /// Limits handshakes to probes of whether peers answer, so that the peers keep no state of them.
    pub fn only_ask(&mut self) {
        self.secure.only_ask();
    }

    /// Discards all keys, and draws new ones from a seed that is secret to this machine.
    pub fn renew(&mut self, now: Instant, seed: [u8; 32]) {
        self.secure.renew(now, seed);
    }

    /// Our public key, which the peers must know.
    pub fn public_key(&self) -> PublicKey {
        *self.secure.public_key()
    }

    /// The last key that was refused as unknown.
    pub const fn last_stranger(&self) -> Option<&PublicKey> {
        self.secure.last_stranger()
    }

    /// The session with the peer of this key.
    pub fn peer(&self, key: &PublicKey) -> Option<PeerId> {
        self.secure.peer(key)
    }

    /// A peer's address, if known.
    pub fn address(&self, peer: PeerId) -> Option<PeerAddress> {
        self.secure.address(peer)
    }

    /// Replaces the list of peers; sessions of keys in both lists continue.
    pub fn set_peers(
        &mut self,
        now: Instant,
        peers: &[PeerConfig],
        secrets: &Secrets,
        anyone: Option<PeerAddress>,
    ) -> Result<(), NodeError> {
        Ok(self.secure.set_peers(now, &list(peers, secrets, anyone))?)
    }

    /// Sets the peer's address and starts a handshake there.
    pub fn seek(&mut self, now: Instant, peer: PeerId, address: PeerAddress) {
        self.secure.seek(now, peer, address);
    }

    /// Starts a handshake with the peer even if there are keys.
    pub fn call(&mut self, now: Instant, peer: PeerId) {
        self.secure.rekey(now, peer);
    }

    /// Resets the peer's address to that at the start.
    pub fn forget_address(&mut self, peer: PeerId) {
        self.secure.forget_address(peer);
    }

    /// Sets the session that frames to and from this peer belong to from now on; frames of another session
    /// fail authentication.
    pub fn bind(&mut self, peer: PeerId, session: Option<u32>) {
        self.secure.bind(peer, session.map(u64::from));
    }

    /// Whether frames for this peer can be sealed.
    pub fn is_ready(&self, now: Instant, peer: PeerId) -> bool {
        self.secure.is_established(now, peer)
    }

    /// Seals the bytes of `parts` into `out` and returns the length.
    ///
    /// # Errors
    /// If there are no keys, or `out` is too short.
    pub fn seal(
        &mut self,
        now: Instant,
        peer: PeerId,
        bound: bool,
        parts: &[&[u8]],
        out: &mut [u8],
    ) -> Result<usize, SealError> {
        let sealed = match bound {
            true => self.secure.seal_bound(now, peer, parts, out)?,
            false => self.secure.seal(now, peer, parts, out)?,
        };
        Ok(sealed.len)
    }

    /// Opens a datagram from any source, and writes its frame to `plain`.
    pub fn open(
        &mut self,
        now: Instant,
        from: PeerAddress,
        datagram: &[u8],
        plain: &mut [u8],
    ) -> Result<Option<Opened>, Refused> {
        let opened = |peer, frame| Some(Opened { peer, frame });
        Ok(
            match self.secure.handle_datagram(now, from, datagram, plain)? {
                AcceptedDatagram::Data {
                    peer, len, bound, ..
                } => opened(peer, Some((len, bound))),
                AcceptedDatagram::Keepalive { peer, .. }
                | AcceptedDatagram::Handshake { peer }
                | AcceptedDatagram::Cookie { peer } => opened(peer, None),
                _ => None,
            },
        )
    }

    /// The next message of a session.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.secure.poll_transmit()
    }

    /// Time at which [`Guard::handle_timeout`] must be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.secure.poll_timeout()
    }

    /// Handles what is due at `now`; `wall` is the wall-clock time.
    pub fn handle_timeout(&mut self, now: Instant, wall: Wall) {
        self.secure.handle_timeout(now, wall);
        // Peers with a known address and no session always get a handshake.
        let wanted = self.secure.status(now);
        let wanted = wanted.filter(|s| s.session_age.is_none() && s.address.is_some());
        let wanted: Vec<PeerId> = wanted.map(|status| status.peer).collect();
        for peer in wanted {
            self.secure.rekey(now, peer);
        }
    }

    /// Age of the keys that frames for this peer are sealed with.
    pub fn keys_age(&self, now: Instant, peer: PeerId) -> Option<Duration> {
        let status = self.secure.status(now).find(|s| s.peer == peer);
        status.and_then(|status| status.session_age)
    }

    /// Its counters.
    pub fn report(&self) -> SecureReport {
        let counters = self.secure.counters();
        SecureReport {
            key: self.public_key().to_string(),
            handshakes_begun: counters.initiations_sent,
            handshakes_answered: counters.responses_sent,
            cookies_sent: counters.cookies_sent,
            refused: counters.refused.total(),
        }
    }
}
