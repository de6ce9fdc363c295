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

/// What a node keeps to itself, and what its processor can do.
pub struct Secrets {
    /// Its private key.
    pub private: PrivateKey,
    /// What it has beside the keys with peers of these names.
    pub preshared: BTreeMap<String, PresharedKey>,
    /// Whether AES is fast here.
    pub fast_aes: bool,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

/// What an authentic datagram brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Who sent it.
    pub peer: PeerId,
    /// Bytes of a frame, in the buffer for it, and whether it was bound to our session.
    pub frame: Option<(usize, bool)>,
}

/// Seals frames and opens them. A datagram belongs to the peer whose session it names and whose keys open
/// it, wherever it came from.
pub struct Guard {
    secure: Secure,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = self.secure.public_key();
        f.debug_struct("Guard").field("key", key).finish()
    }
}

/// Those that have keys, and where to seek them: at `anyone` where nobody knows, if there is such a place.
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
    /// What each datagram is longer than its frame.
    pub const OVERHEAD: usize = OVERHEAD;

    /// Sessions with these peers, of which none has begun.
    ///
    /// # Errors
    /// If a key cannot be a peer's.
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

    /// Only learns whether peers answer, so that they keep nothing of it.
    pub fn only_ask(&mut self) {
        self.secure.only_ask();
    }

    /// Forgets all keys, and draws new ones from a seed that only this machine knows.
    pub fn renew(&mut self, now: Instant, seed: [u8; 32]) {
        self.secure.renew(now, seed);
    }

    /// Our own public key, which the peers must have.
    pub fn public_key(&self) -> PublicKey {
        *self.secure.public_key()
    }

    /// The key that was refused last as unknown.
    pub const fn last_stranger(&self) -> Option<&PublicKey> {
        self.secure.last_stranger()
    }

    /// The session with whoever has this key.
    pub fn peer(&self, key: &PublicKey) -> Option<PeerId> {
        self.secure.peer(key)
    }

    /// Where a peer is, as far as is known.
    pub fn address(&self, peer: PeerId) -> Option<PeerAddress> {
        self.secure.address(peer)
    }

    /// Replaces the list of peers; sessions of keys that stay go on.
    pub fn set_peers(
        &mut self,
        now: Instant,
        peers: &[PeerConfig],
        secrets: &Secrets,
        anyone: Option<PeerAddress>,
    ) -> Result<(), NodeError> {
        Ok(self.secure.set_peers(now, &list(peers, secrets, anyone))?)
    }

    /// The peer is sought at this address, by a handshake at once.
    pub fn seek(&mut self, now: Instant, peer: PeerId, address: PeerAddress) {
        self.secure.seek(now, peer, address);
    }

    /// Begins a handshake with the peer, whatever keys there are.
    pub fn call(&mut self, now: Instant, peer: PeerId) {
        self.secure.rekey(now, peer);
    }

    /// The peer is sought where it was at the start.
    pub fn forget_address(&mut self, peer: PeerId) {
        self.secure.forget_address(peer);
    }

    /// Says which session frames of and for this peer belong to from now on: those of another cannot be
    /// opened.
    pub fn bind(&mut self, peer: PeerId, session: Option<u32>) {
        self.secure.bind(peer, session.map(u64::from));
    }

    /// Whether frames for this peer can be sealed.
    pub fn is_ready(&self, now: Instant, peer: PeerId) -> bool {
        self.secure.is_established(now, peer)
    }

    /// Seals the bytes of `parts` into `out`: how long that is.
    ///
    /// # Errors
    /// If there are no keys, or too little room.
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

    /// Takes a datagram from anywhere; the frame goes to `plain`.
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

    /// When [`Guard::handle_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.secure.poll_timeout()
    }

    /// Does what is due; `wall` is what the clock on the wall says.
    pub fn handle_timeout(&mut self, now: Instant, wall: Wall) {
        self.secure.handle_timeout(now, wall);
        // A link is always wanted, with whoever can be asked.
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

    /// What it has counted.
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
