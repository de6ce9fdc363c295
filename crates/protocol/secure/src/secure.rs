//! One end of the secure sessions with all its peers: the caller's interface and everything that is sent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use airlane_base::Instant;
use thiserror::Error;

use crate::addresses::Addresses;
use crate::cipher::HAS_AES;
use crate::entropy::Entropy;
use crate::key::{PrivateKey, PublicKey};
use crate::limits::{Limits, Wall};
use crate::mac::{CookieSecret, Load, MacKeys};
use crate::message::{INITIATION_LEN, OVERHEAD, initiation};
use crate::noise::{HandshakeOffer, Initiation};
use crate::peer::{Indices, PeerSession, Pending, SecurePeer, SecurePeerStatus};
use crate::peer_address::PeerAddress;
use crate::peer_id::PeerId;
use crate::refused::Counters;

/// Maximum number of our own messages that wait for the caller, which drains them after every input.
const QUEUE: usize = 64;

/// Why a list of peers is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PeersError {
    /// Two peers have the same key.
    #[error("the key {0} stands twice in the list: one peer, one key")]
    Twice(PublicKey),
    /// A peer has our own key.
    #[error("the key {0} is the public key of this end: a peer has its own")]
    Own(PublicKey),
}

/// Why a payload was not sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SealError {
    /// The peer does not exist, or no longer does.
    #[error("there is no such peer")]
    UnknownPeer,
    /// The message was to be bound, but the peer has no binding.
    #[error("nothing was said that messages to this peer are bound to")]
    Unbound,
    /// There are no keys yet; a handshake is in progress if the peer's address is known.
    #[error("there is no session with this peer yet")]
    NoSession,
    /// The buffer is too short for the message.
    #[error("the message needs {needed} bytes, the buffer has {room}")]
    NoRoom {
        /// Length of the payload plus [`OVERHEAD`].
        needed: usize,
        /// Length of the buffer.
        room: usize,
    },
}

/// A sealed data message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Its length, bytes.
    pub len: usize,
    /// Its destination.
    pub to: PeerAddress,
}

/// A message of the session itself, to be sent as it is.
#[derive(Clone, Copy, Debug)]
pub struct Transmit {
    /// Its destination.
    pub to: PeerAddress,
    len: usize,
    message: [u8; INITIATION_LEN],
}

impl Transmit {
    pub(crate) fn new(to: PeerAddress, bytes: &[u8]) -> Self {
        let mut message = [0; INITIATION_LEN];
        message[..bytes.len()].copy_from_slice(bytes);
        Self {
            to,
            len: bytes.len(),
            message,
        }
    }

    /// The datagram.
    pub fn bytes(&self) -> &[u8] {
        &self.message[..self.len]
    }
}

/// The sessions of one node with its peers. See the [crate] for the contract.
pub struct Secure {
    pub(crate) private: PrivateKey,
    pub(crate) public: PublicKey,
    pub(crate) macs: MacKeys,
    pub(crate) limits: Limits,
    pub(crate) fast_aes: bool,
    pub(crate) only_asks: bool,
    pub(crate) entropy: Entropy,
    pub(crate) peers: BTreeMap<PeerId, PeerSession>,
    /// Shared with handshakes in progress.
    pub(crate) by_key: Arc<BTreeMap<PublicKey, PeerId>>,
    pub(crate) indices: Indices,
    next_id: u32,
    pub(crate) cookies: CookieSecret,
    pub(crate) load: Load,
    pub(crate) addresses: Addresses,
    queue: VecDeque<Transmit>,
    pub(crate) counters: Counters,
    /// The key of the last initiation refused as unknown.
    pub(crate) stranger: Option<PublicKey>,
}

impl Secure {
    /// A node that begins a handshake with every peer whose address is known, at its first timeout, which is `now`. The
    /// seed is 32 bytes from the operating system's random source, and must be different for every node and every start.
    ///
    /// # Errors
    /// If two peers have the same key, or one has our own.
    pub fn new(
        now: Instant,
        private: PrivateKey,
        peers: &[SecurePeer],
        limits: Limits,
        seed: [u8; 32],
    ) -> Result<Self, PeersError> {
        let public = private.public();
        let mut secure = Self {
            private,
            public,
            macs: MacKeys::of(&public),
            limits,
            fast_aes: false,
            only_asks: false,
            entropy: Entropy::new(seed),
            peers: BTreeMap::new(),
            by_key: Arc::default(),
            indices: Indices::default(),
            next_id: 0,
            cookies: CookieSecret::new(limits.cookie_lifetime),
            load: Load::new(now, limits.handshakes_per_second),
            addresses: Addresses::new(now, limits.handshakes_per_address),
            queue: VecDeque::with_capacity(QUEUE),
            counters: Counters::default(),
            stranger: None,
        };
        secure.set_peers(now, peers)?;
        Ok(secure)
    }

    /// Declares that this processor has instructions for AES: sessions with peers that have them, too, use AES-256-GCM
    /// from their next keys on. On WebAssembly, where no processor has them, it changes nothing.
    pub const fn set_fast_aes(&mut self, fast_aes: bool) {
        self.fast_aes = fast_aes && HAS_AES;
    }

    /// Makes this end only test whether peers answer: it neither answers nor confirms handshakes, and initiates to any
    /// peer that calls. No peer therefore starts to use keys that this end is about to lose.
    pub const fn only_ask(&mut self) {
        self.only_asks = true;
    }

    /// Replaces the list of peers. A peer whose key stays keeps its session; sessions of removed keys end at once, and
    /// new peers begin as after a start. A changed address takes effect at once, a changed pre-shared key with the next
    /// handshake.
    ///
    /// # Errors
    /// If two peers have the same key, or one has our own; then nothing changes.
    pub fn set_peers(&mut self, now: Instant, list: &[SecurePeer]) -> Result<(), PeersError> {
        let mut wanted = BTreeSet::new();
        for config in list {
            if config.key == self.public {
                return Err(PeersError::Own(config.key));
            }
            if !wanted.insert(config.key) {
                return Err(PeersError::Twice(config.key));
            }
        }
        let Self { peers, indices, .. } = self;
        peers.retain(|_, peer| {
            let stays = wanted.contains(&peer.key);
            if !stays {
                peer.release(indices);
            }
            stays
        });
        Arc::make_mut(&mut self.by_key).retain(|key, _| wanted.contains(key));
        for config in list {
            match self.by_key.get(&config.key).copied() {
                Some(id) => self.configure(id, config),
                None => self.add(now, config),
            }
        }
        Ok(())
    }

    fn configure(&mut self, id: PeerId, config: &SecurePeer) {
        let Some(peer) = self.peers.get_mut(&id) else {
            return;
        };
        // Takes effect with the next handshake.
        peer.preshared.clone_from(&config.preshared);
        if peer.configured != config.address {
            peer.configured = config.address;
            peer.address = config.address.or(peer.address);
        }
    }

    fn add(&mut self, now: Instant, config: &SecurePeer) {
        let id = PeerId(self.next_id);
        self.next_id += 1;
        let mut peer = PeerSession::new(config);
        if config.address.is_some() {
            peer.wish(now, &self.limits);
        }
        self.peers.insert(id, peer);
        Arc::make_mut(&mut self.by_key).insert(config.key, id);
    }

    /// Forgets all keys and draws future ones from `seed`, which only this machine may know. For a machine that has
    /// slept or was copied: its memory may be known elsewhere, and a copy would draw the same numbers. Peers stay;
    /// handshakes with those whose address is known begin at the next timeout.
    pub fn renew(&mut self, now: Instant, seed: [u8; 32]) {
        self.entropy = Entropy::new(seed);
        self.cookies = CookieSecret::new(self.limits.cookie_lifetime);
        self.queue.clear();
        for peer in self.peers.values_mut() {
            peer.forget_keys(&mut self.indices);
            if peer.address.is_some() {
                peer.wish(now, &self.limits);
            }
        }
    }

    /// Our own public key.
    pub const fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// The peer with this key.
    pub fn peer(&self, key: &PublicKey) -> Option<PeerId> {
        self.by_key.get(key).copied()
    }

    /// The current address of this peer.
    pub fn address(&self, peer: PeerId) -> Option<PeerAddress> {
        self.peers.get(&peer)?.address
    }

    /// Returns to the configured address, if there is one, until the peer is heard: it may have moved without knowing
    /// our address.
    pub fn forget_address(&mut self, peer: PeerId) {
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.address = peer.configured.or(peer.address);
        }
    }

    /// Uses a new address for this peer until it is heard from another, and begins a handshake there at the next
    /// timeout.
    pub fn seek(&mut self, now: Instant, peer: PeerId, address: PeerAddress) {
        if let Some(peer) = self.peers.get_mut(&peer) {
            (peer.configured, peer.address) = (Some(address), Some(address));
            peer.seek(now, &self.limits);
        }
    }

    /// Whether a payload for this peer could be sealed now.
    pub fn is_established(&self, now: Instant, peer: PeerId) -> bool {
        let peer = self.peers.get(&peer);
        peer.and_then(|peer| peer.current.as_ref())
            .is_some_and(|keypair| keypair.can_send(now, &self.limits))
    }

    /// The state of all peers, in the order in which they were added.
    pub fn status(&self, now: Instant) -> impl Iterator<Item = SecurePeerStatus> {
        let peers = self.peers.iter();
        peers.map(move |(&id, peer)| peer.status(id, now, &self.limits))
    }

    /// What was done and refused so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The key in the last initiation with an unknown key ([`Refused::UnknownKey`](crate::Refused)). Unauthenticated:
    /// any sender that knows our public key can claim any key.
    pub const fn last_stranger(&self) -> Option<&PublicKey> {
        self.stranger.as_ref()
    }

    /// Sets the binding of bound messages to and from this peer; with `None` there can be none.
    ///
    /// Both ends must set the same value. It is authenticated with each bound message but not sent, so a message with
    /// another binding, such as this end's previous one, cannot be opened.
    pub fn bind(&mut self, peer: PeerId, binding: Option<u64>) {
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.binding = binding;
        }
    }

    /// Encrypts a payload, given in parts, into one data message for this peer, which is [`OVERHEAD`] bytes longer than
    /// the parts together.
    ///
    /// # Errors
    /// If there is no session; one is then requested, and [`Secure::poll_timeout`] says when the handshake begins. If
    /// the buffer is too short, nothing changes.
    pub fn seal(
        &mut self,
        now: Instant,
        peer: PeerId,
        parts: &[&[u8]],
        out: &mut [u8],
    ) -> Result<Sealed, SealError> {
        self.seal_as(now, peer, false, parts, out)
    }

    /// Like [`Secure::seal`], but only an end with the same binding can open the message ([`Secure::bind`]).
    ///
    /// # Errors
    /// Like [`Secure::seal`], and if the peer has no binding.
    pub fn seal_bound(
        &mut self,
        now: Instant,
        peer: PeerId,
        parts: &[&[u8]],
        out: &mut [u8],
    ) -> Result<Sealed, SealError> {
        self.seal_as(now, peer, true, parts, out)
    }

    fn seal_as(
        &mut self,
        now: Instant,
        peer: PeerId,
        bound: bool,
        parts: &[&[u8]],
        out: &mut [u8],
    ) -> Result<Sealed, SealError> {
        let Self { peers, limits, .. } = self;
        let peer = peers.get_mut(&peer).ok_or(SealError::UnknownPeer)?;
        let binding = peer.binding.filter(|_| bound);
        if bound && binding.is_none() {
            return Err(SealError::Unbound);
        }
        let payload = parts.iter().map(|part| part.len()).sum::<usize>();
        let (needed, room) = (payload + OVERHEAD, out.len());
        if needed > room {
            return Err(SealError::NoRoom { needed, room });
        }
        let to = peer.address;
        let (Some(keypair), Some(to)) = (peer.sending(now, limits), to) else {
            self.counters.unsealed += 1;
            if to.is_some() {
                peer.wish(now, limits);
            }
            return Err(SealError::NoSession);
        };
        let len = keypair.seal(binding, parts, out);
        peer.on_sent(now, limits, payload);
        match payload {
            0 => self.counters.keepalives_sent += 1,
            _ => self.counters.sealed += 1,
        }
        Ok(Sealed { len, to })
    }

    /// Requests new keys at the next timeout, as after [`Limits::rekey_after`].
    pub fn rekey(&mut self, now: Instant, peer: PeerId) {
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.wish(now, &self.limits);
        }
    }

    /// The next message to send, if any.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.queue.pop_front()
    }

    /// When to call [`Secure::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let peers = self.peers.values();
        peers.filter_map(|peer| peer.deadline(&self.limits)).min()
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant, wall: Wall) {
        let mut at = self.peers.keys().next().copied();
        while let Some(id) = at {
            self.peer_timeout(now, wall, id);
            let after = (std::ops::Bound::Excluded(id), std::ops::Bound::Unbounded);
            at = self.peers.range(after).next().map(|(&id, _)| id);
        }
    }

    fn peer_timeout(&mut self, now: Instant, wall: Wall, id: PeerId) {
        let Self {
            peers,
            indices,
            limits,
            ..
        } = self;
        let Some(peer) = peers.get_mut(&id) else {
            return;
        };
        peer.on_timeout(now, limits, indices);
        // Before the initiation, because an empty message, too, may find the keys worn.
        if peer.keepalive_due(now) {
            self.send_keepalive(now, id);
        }
        self.send_initiation_if_due(now, wall, id);
    }

    fn send_initiation_if_due(&mut self, now: Instant, wall: Wall, id: PeerId) {
        let Self {
            peers,
            indices,
            limits,
            entropy,
            fast_aes,
            ..
        } = self;
        let Some(peer) = peers.get_mut(&id) else {
            return;
        };
        if !peer.initiation_due(now, limits, indices) {
            return;
        }
        // Always later than the last timestamp, even if the clock was set back.
        peer.sent_timestamp = wall.as_nanos().max(peer.sent_timestamp.saturating_add(1));
        let index = indices.take(id, entropy);
        let mut message = [0; INITIATION_LEN];
        let noise = initiation(&mut message, index);
        let noise = Initiation::write(
            &self.private,
            (&peer.key, peer.preshared.as_ref()),
            entropy.draw(),
            HandshakeOffer {
                timestamp: peer.sent_timestamp,
                fast_aes: *fast_aes,
                preshared: peer.preshared.is_some(),
            },
            noise,
        )
        .expect("the peer's key is not of small order and the message has its length");
        let jitter = entropy.below(limits.jitter);
        peer.on_initiated(now, Pending { index, noise }, limits, jitter, indices);
        peer.sign(now, limits, index, &mut message);
        if let Some(to) = peer.address {
            self.counters.initiations_sent += 1;
            self.transmit(to, &message);
        }
    }

    pub(crate) fn send_keepalive(&mut self, now: Instant, id: PeerId) {
        // Without keys there is nothing to keep alive.
        if !self.is_established(now, id) {
            return;
        }
        let mut message = [0; OVERHEAD];
        if let Ok(Sealed { len, to }) = self.seal(now, id, &[], &mut message) {
            self.transmit(to, &message[..len]);
        }
    }

    pub(crate) fn transmit(&mut self, to: PeerAddress, bytes: &[u8]) {
        match self.queue.len() < QUEUE {
            true => self.queue.push_back(Transmit::new(to, bytes)),
            false => self.counters.queue_full += 1,
        }
    }
}

/// Shows everything except keys and counters.
impl std::fmt::Debug for Secure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secure")
            .field("public", &self.public)
            .field("limits", &self.limits)
            .field("peers", &self.peers)
            .field("indices", &self.indices)
            .field("queued", &self.queue.len())
            .finish_non_exhaustive()
    }
}
