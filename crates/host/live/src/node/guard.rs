//! The secure sessions of a node with its peers.

use airlane_base::{Duration, Instant};
use airlane_secure::{
    AcceptedDatagram, Limits, OVERHEAD, PeerAddress, PeerId, PublicKey, Refused, SealError, Secure,
    SecurePeer, Transmit,
};

use super::up_error::UpError;
use crate::clock;
use crate::config::PeerConfig;
use crate::device::DeviceError;
use crate::security::{KeyFileError, Keys, has_fast_aes, random, read_key, read_preshared};
use crate::status::SecureReport;

/// What an authentic datagram brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    /// Who sent it.
    pub(crate) peer: PeerId,
    /// Bytes of a frame, in the buffer for it, and whether it was bound to our session.
    pub(crate) frame: Option<(usize, bool)>,
}

/// Seals frames and opens them. A datagram belongs to the peer whose session it names and whose keys open
/// it, wherever it came from.
pub(crate) struct Guard {
    secure: Secure,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = self.secure.public_key();
        f.debug_struct("Guard").field("key", key).finish()
    }
}

/// Those that have keys, and where to seek them: at `anyone` where nobody knows, if there is such a place.
///
/// # Errors
/// If a pre-shared key cannot be read.
fn list(
    peers: &[PeerConfig],
    anyone: Option<PeerAddress>,
) -> Result<Vec<SecurePeer>, KeyFileError> {
    let mut all = Vec::with_capacity(peers.len());
    for peer in peers {
        let Some(key) = peer.key else { continue };
        let preshared = peer.preshared_key.as_deref();
        all.push(SecurePeer {
            key,
            address: peer.fixed_address().or(anyone),
            preshared: preshared.map(read_preshared).transpose()?,
        });
    }
    Ok(all)
}

impl Guard {
    /// What each datagram is longer than its frame.
    pub(crate) const OVERHEAD: usize = OVERHEAD;

    pub(crate) fn new(
        now: Instant,
        keys: &Keys,
        peers: &[PeerConfig],
        anyone: Option<PeerAddress>,
    ) -> Result<Self, UpError> {
        let private = read_key(&keys.private_key)?;
        let seed =
            random().map_err(|error| DeviceError::new("random numbers", "draw a seed", error))?;
        let mut secure = Secure::new(now, private, &list(peers, anyone)?, Limits::default(), seed)?;
        secure.set_fast_aes(has_fast_aes());
        Ok(Self { secure })
    }

    /// Forgets all keys, and draws new ones from a seed that only this machine knows.
    pub(crate) fn renew(&mut self, now: Instant) -> std::io::Result<()> {
        self.secure.renew(now, random()?);
        Ok(())
    }

    /// Our own public key, which the peers must have.
    pub(crate) fn public_key(&self) -> PublicKey {
        *self.secure.public_key()
    }

    /// The key that was refused last as unknown.
    pub(crate) const fn last_stranger(&self) -> Option<&PublicKey> {
        self.secure.last_stranger()
    }

    /// The session with whoever has this key.
    pub(crate) fn peer(&self, key: &PublicKey) -> Option<PeerId> {
        self.secure.peer(key)
    }

    /// Where a peer is, as far as is known.
    pub(crate) fn address(&self, peer: PeerId) -> Option<PeerAddress> {
        self.secure.address(peer)
    }

    /// Replaces the list of peers; sessions of keys that stay go on.
    pub(crate) fn set_peers(
        &mut self,
        now: Instant,
        peers: &[PeerConfig],
        anyone: Option<PeerAddress>,
    ) -> Result<(), UpError> {
        Ok(self.secure.set_peers(now, &list(peers, anyone)?)?)
    }

    /// The peer is sought at this address, by a handshake at once.
    pub(crate) fn seek(&mut self, now: Instant, peer: PeerId, address: PeerAddress) {
        self.secure.seek(now, peer, address);
    }

    /// The peer is sought where it was at the start.
    pub(crate) fn forget_address(&mut self, peer: PeerId) {
        self.secure.forget_address(peer);
    }

    /// Says which session frames of and for this peer belong to from now on: those of another cannot be
    /// opened.
    pub(crate) fn bind(&mut self, peer: PeerId, session: Option<u32>) {
        self.secure.bind(peer, session.map(u64::from));
    }

    /// Whether frames for this peer can be sealed.
    pub(crate) fn is_ready(&self, now: Instant, peer: PeerId) -> bool {
        self.secure.is_established(now, peer)
    }

    pub(crate) fn seal(
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
    pub(crate) fn open(
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

    pub(crate) fn poll_transmit(&mut self) -> Option<Transmit> {
        self.secure.poll_transmit()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.secure.poll_timeout()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.secure.handle_timeout(now, clock::wall());
        // A link is always wanted, with whoever can be asked.
        let wanted = self.secure.status(now);
        let wanted = wanted.filter(|s| s.session_age.is_none() && s.address.is_some());
        let wanted: Vec<PeerId> = wanted.map(|status| status.peer).collect();
        for peer in wanted {
            self.secure.rekey(now, peer);
        }
    }

    /// Age of the keys that frames for this peer are sealed with.
    pub(crate) fn keys_age(&self, now: Instant, peer: PeerId) -> Option<Duration> {
        let status = self.secure.status(now).find(|s| s.peer == peer);
        status.and_then(|status| status.session_age)
    }

    pub(crate) fn report(&self) -> SecureReport {
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
