//! One peer: its keys in order of use, the handshake that we initiated, and its timers.
//!
//! ```text
//!  our initiation was answered ──────────────────────────────► current ──► retired (four, newest first)
//!  we answered an initiation ──► next ── data under it ──────► current        │
//!                                 │ another initiation                         │ a fifth, or expiry
//!                                 ▼                                            ▼
//!                              dropped                                      dropped
//! ```
//!
//! We send only under *current* and accept under all of them. A responder does not send under *next* until data under it
//! has shown that the initiator has the keys (WireGuard, NDSS 2017, sections 5.4.6 and 6.3); the initiator sends an
//! empty message at once for that purpose.

use std::collections::BTreeMap;

use airlane_base::{Duration, Instant};
use serde::Serialize;

use crate::entropy::Entropy;
use crate::key::{PresharedKey, PublicKey};
use crate::keypair::Keypair;
use crate::limits::Limits;
use crate::mac::{Mac, MacKeys};
use crate::message::INDICES;
use crate::noise::Initiation;
use crate::peer_address::PeerAddress;
use crate::peer_id::PeerId;

/// Pairs of keys kept for frames in flight. One would suffice if handshakes never crossed; if both ends initiate and the
/// delay is close to [`Limits::retry`], keys change several times within a delay.
const RETIRED: usize = 4;

/// The configuration of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurePeer {
    /// Its public key.
    pub key: PublicKey,
    /// Its configured address; without one, the peer must initiate.
    pub address: Option<PeerAddress>,
    /// The secret shared in addition to the keys, if any.
    pub preshared: Option<PresharedKey>,
}

/// The state of a peer, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct SecurePeerStatus {
    /// Its identifier.
    pub peer: PeerId,
    /// Its public key.
    pub key: PublicKey,
    /// Where it was last heard, or its configured address.
    pub address: Option<PeerAddress>,
    /// Age of the keys in use; `None` without a session.
    pub session_age: Option<Duration>,
    /// Whether a handshake is in progress.
    pub handshake: bool,
    /// Payload bytes sealed for the peer.
    pub sealed_bytes: u64,
    /// Payload bytes opened from the peer.
    pub opened_bytes: u64,
}

/// The owners of the indices in received messages. Never iterated over.
#[derive(Debug, Default)]
pub(crate) struct Indices(BTreeMap<u32, PeerId>);

impl Indices {
    pub(crate) fn owner(&self, index: u32) -> Option<PeerId> {
        self.0.get(&index).copied()
    }

    /// Allocates a new random index.
    pub(crate) fn take(&mut self, owner: PeerId, entropy: &mut Entropy) -> u32 {
        loop {
            let index = u32::from_be_bytes(entropy.draw()) % INDICES;
            if let std::collections::btree_map::Entry::Vacant(free) = self.0.entry(index) {
                free.insert(owner);
                return index;
            }
        }
    }

    pub(crate) fn release(&mut self, index: u32) {
        self.0.remove(&index);
    }
}

/// A handshake that we initiated and that is not answered yet.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) index: u32,
    pub(crate) noise: Initiation,
}

/// A request for a session: initiations are sent until there is one, or it is no longer wanted.
#[derive(Clone, Copy, Debug)]
struct Wish {
    /// When it was last wanted.
    renewed: Instant,
    /// When the next initiation is due.
    due: Instant,
}

/// The last handshake message that we sent: a cookie reply refers to it.
#[derive(Clone, Copy, Debug)]
struct Sent {
    index: u32,
    mac1: Mac,
}

/// The keys under which a message arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhichKeys {
    Current,
    Next,
    Retired(usize),
}

pub(crate) struct PeerSession {
    pub(crate) key: PublicKey,
    pub(crate) macs: MacKeys,
    pub(crate) preshared: Option<PresharedKey>,
    pub(crate) configured: Option<PeerAddress>,
    pub(crate) address: Option<PeerAddress>,
    pub(crate) pending: Option<Pending>,
    wish: Option<Wish>,
    last_initiation: Option<Instant>,
    /// Unanswered initiations.
    attempts: u32,
    /// Duration of the last handshake.
    round_trip: Option<Duration>,
    /// The timestamp of our last initiation, and of the last one accepted.
    pub(crate) sent_timestamp: u64,
    pub(crate) heard_timestamp: Option<u64>,
    sent: Option<Sent>,
    cookie: Option<(Mac, Instant)>,
    pub(crate) current: Option<Box<Keypair>>,
    pub(crate) next: Option<Box<Keypair>>,
    /// The binding of bound messages.
    pub(crate) binding: Option<u64>,
    retired: Vec<Keypair>,
    /// Since when we have sent data without hearing anything.
    unanswered: Option<Instant>,
    /// When an empty message is due because we have received data and sent nothing.
    reply_due: Option<Instant>,
    pub(crate) sealed_bytes: u64,
    pub(crate) opened_bytes: u64,
}

impl PeerSession {
    pub(crate) fn new(config: &SecurePeer) -> Self {
        Self {
            key: config.key,
            macs: MacKeys::of(&config.key),
            preshared: config.preshared.clone(),
            configured: config.address,
            address: config.address,
            pending: None,
            wish: None,
            last_initiation: None,
            attempts: 0,
            round_trip: None,
            sent_timestamp: 0,
            heard_timestamp: None,
            sent: None,
            cookie: None,
            current: None,
            next: None,
            binding: None,
            retired: Vec::with_capacity(RETIRED + 1),
            unanswered: None,
            reply_due: None,
            sealed_bytes: 0,
            opened_bytes: 0,
        }
    }

    /// Requests a session, or new keys for the current one.
    pub(crate) fn wish(&mut self, now: Instant, limits: &Limits) {
        if let Some(wish) = &mut self.wish {
            wish.renewed = now;
            return;
        }
        // Do not exceed the rate of the retries, nor interfere while the peer is about to confirm its own handshake. And
        // do not initiate so soon after a handshake that the initiation may overtake the first frames under its keys:
        // the peer would replace those keys.
        let keys = [self.next.as_deref(), self.current.as_deref()];
        let made = keys.into_iter().flatten().map(|keypair| keypair.made);
        let after_keys = made.max().map(|made| made + limits.retry);
        let retry = self.retry_after(now, limits);
        let after_initiation = self.last_initiation.map(|last| last + retry);
        let due = after_keys
            .into_iter()
            .chain(after_initiation)
            .fold(now, Instant::max);
        self.wish = Some(Wish { renewed: now, due });
    }

    /// Starts over at another address, where no initiation has been received yet.
    pub(crate) fn seek(&mut self, now: Instant, limits: &Limits) {
        (self.wish, self.last_initiation, self.attempts) = (None, None, 0);
        self.wish(now, limits);
    }

    /// Time between two initiations. An answer belongs to the last initiation, so the interval must be longer than an
    /// answer takes: twice the last round trip, or doubling if that is unknown.
    fn retry_after(&self, now: Instant, limits: &Limits) -> Duration {
        let current = self.current.as_ref();
        if current.is_some_and(|keypair| keypair.can_send(now, limits)) {
            return limits.retry;
        }
        let patience = match self.round_trip {
            Some(round_trip) => round_trip * 2,
            None => limits.urgent_retry * (1 << self.attempts.min(8)),
        };
        patience.max(limits.urgent_retry).min(limits.retry)
    }

    /// Ends the request, since its handshake is complete.
    fn fulfil(&mut self, indices: &mut Indices) {
        self.wish = None;
        self.unanswered = None;
        self.attempts = 0;
        self.abandon(indices);
    }

    /// Discards the handshake that we initiated; the request stays and retries later.
    pub(crate) fn abandon(&mut self, indices: &mut Indices) {
        if let Some(pending) = self.pending.take() {
            indices.release(pending.index);
        }
    }

    /// Whether an initiation is due. Ends a request that is no longer wanted.
    pub(crate) fn initiation_due(
        &mut self,
        now: Instant,
        limits: &Limits,
        indices: &mut Indices,
    ) -> bool {
        match self.wish {
            Some(wish) if wish.due <= now => {
                let wanted = now.saturating_since(wish.renewed) < limits.give_up_after;
                if !wanted || self.address.is_none() {
                    self.wish = None;
                    self.abandon(indices);
                }
                self.wish.is_some()
            }
            _ => false,
        }
    }

    /// Notes that an initiation is sent.
    pub(crate) fn on_initiated(
        &mut self,
        now: Instant,
        pending: Pending,
        limits: &Limits,
        jitter: Duration,
        indices: &mut Indices,
    ) {
        self.abandon(indices);
        self.pending = Some(pending);
        self.last_initiation = Some(now);
        let due = now + self.retry_after(now, limits) + jitter;
        self.attempts = self.attempts.saturating_add(1);
        if let Some(wish) = &mut self.wish {
            wish.due = due;
        }
    }

    /// Completes a handshake message of ours with its MACs.
    pub(crate) fn sign(&mut self, now: Instant, limits: &Limits, index: u32, message: &mut [u8]) {
        let fresh = |at| now.saturating_since(at) < limits.cookie_lifetime;
        self.cookie = self.cookie.filter(|&(_, at)| fresh(at));
        let cookie = self.cookie.as_ref().map(|(cookie, _)| cookie);
        let mac1 = self.macs.sign(message, cookie);
        self.sent = Some(Sent { index, mac1 });
    }

    /// The mac1 of the message with this index, if it is our last one.
    pub(crate) fn sent_mac1(&self, index: u32) -> Option<&Mac> {
        let sent = self.sent.as_ref().filter(|sent| sent.index == index)?;
        Some(&sent.mac1)
    }

    /// Stores the peer's cookie. Each message gets one reply: a second is a replay.
    pub(crate) fn on_cookie(&mut self, now: Instant, cookie: Mac) {
        self.cookie = Some((cookie, now));
        self.sent = None;
    }

    /// Installs the keys after our initiation was answered.
    pub(crate) fn on_established(&mut self, keypair: Keypair, indices: &mut Indices) {
        let asked = self.last_initiation;
        self.round_trip = asked.map(|asked| keypair.made.saturating_since(asked));
        self.pending = None; // its index is now that of the keys
        self.use_keys(Box::new(keypair), indices);
        self.fulfil(indices);
    }

    /// Stores the keys of an initiation that we answer.
    pub(crate) fn on_answered(&mut self, keypair: Keypair, indices: &mut Indices) {
        if let Some(old) = self.next.replace(Box::new(keypair)) {
            indices.release(old.local);
        }
    }

    /// Promotes the next keys, since data under them proves that the peer has them.
    pub(crate) fn on_confirmed(&mut self, indices: &mut Indices) {
        if let Some(next) = self.next.take() {
            self.use_keys(next, indices);
            self.fulfil(indices);
        }
    }

    fn use_keys(&mut self, keypair: Box<Keypair>, indices: &mut Indices) {
        if let Some(old) = self.current.replace(keypair) {
            self.retired.insert(0, *old);
        }
        for old in self.retired.drain(RETIRED.min(self.retired.len())..) {
            indices.release(old.local);
        }
    }

    fn keypairs(&self) -> impl Iterator<Item = &Keypair> {
        let in_use = [self.current.as_deref(), self.next.as_deref()];
        in_use.into_iter().flatten().chain(&self.retired)
    }

    pub(crate) fn slot(&self, index: u32) -> Option<WhichKeys> {
        let has = |keypair: &Option<Box<Keypair>>| {
            keypair.as_ref().is_some_and(|keys| keys.local == index)
        };
        if has(&self.current) {
            return Some(WhichKeys::Current);
        }
        if has(&self.next) {
            return Some(WhichKeys::Next);
        }
        let retired = self.retired.iter().position(|keys| keys.local == index);
        retired.map(WhichKeys::Retired)
    }

    pub(crate) fn keypair(&mut self, slot: WhichKeys) -> Option<&mut Keypair> {
        match slot {
            WhichKeys::Current => self.current.as_deref_mut(),
            WhichKeys::Next => self.next.as_deref_mut(),
            WhichKeys::Retired(at) => self.retired.get_mut(at),
        }
    }

    /// The keys to send under, if there are usable ones.
    pub(crate) fn sending(&mut self, now: Instant, limits: &Limits) -> Option<&mut Keypair> {
        let keypair = self.current.as_deref_mut();
        keypair.filter(|keypair| keypair.can_send(now, limits))
    }

    /// Notes a message sent under the current keys.
    pub(crate) fn on_sent(&mut self, now: Instant, limits: &Limits, payload: usize) {
        self.reply_due = None;
        if payload > 0 {
            self.unanswered = self.unanswered.or(Some(now));
            self.sealed_bytes += payload as u64;
        }
        self.renew_worn(now, limits);
    }

    /// Notes an authentic message.
    pub(crate) fn on_received(&mut self, now: Instant, limits: &Limits, payload: usize) {
        self.unanswered = None;
        if payload > 0 {
            self.reply_due = self.reply_due.or(Some(now + limits.keepalive));
            self.opened_bytes += payload as u64;
        }
        self.renew_worn(now, limits);
    }

    fn renew_worn(&mut self, now: Instant, limits: &Limits) {
        if let Some(current) = &self.current
            && current.is_worn(now, limits)
        {
            self.wish(now, limits);
        }
    }

    /// Drops expired keys, and requests new ones if the peer has been silent for too long.
    pub(crate) fn on_timeout(&mut self, now: Instant, limits: &Limits, indices: &mut Indices) {
        let mut drop_expired = |keypair: &Keypair| {
            let expired = keypair.expiry(limits) <= now;
            if expired {
                indices.release(keypair.local);
            }
            expired
        };
        self.current.take_if(|keypair| drop_expired(keypair));
        self.next.take_if(|keypair| drop_expired(keypair));
        self.retired.retain(|keypair| !drop_expired(keypair));
        let silent = |since| since + limits.silence() <= now;
        if self.unanswered.is_some_and(silent) {
            self.unanswered = None;
            self.wish(now, limits);
        }
    }

    /// Whether an empty message is due.
    pub(crate) fn keepalive_due(&mut self, now: Instant) -> bool {
        self.reply_due.take_if(|due| *due <= now).is_some()
    }

    /// The next time at which there is something to do.
    pub(crate) fn deadline(&self, limits: &Limits) -> Option<Instant> {
        let expiry = self.keypairs().map(|keypair| keypair.expiry(limits)).min();
        [
            self.wish.map(|wish| wish.due),
            self.unanswered.map(|since| since + limits.silence()),
            self.reply_due,
            expiry,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Releases all of its indices.
    pub(crate) fn release(&mut self, indices: &mut Indices) {
        self.abandon(indices);
        for keypair in self.keypairs() {
            indices.release(keypair.local);
        }
    }

    /// Drops all secrets and pending work; the identity of the peer and the progress of its timestamps stay.
    pub(crate) fn forget_keys(&mut self, indices: &mut Indices) {
        self.release(indices);
        (self.current, self.next, self.cookie) = (None, None, None);
        self.retired.clear();
        (self.wish, self.last_initiation, self.attempts) = (None, None, 0);
        (self.sent, self.unanswered, self.reply_due) = (None, None, None);
    }

    pub(crate) fn status(&self, peer: PeerId, now: Instant, limits: &Limits) -> SecurePeerStatus {
        let current = self.current.as_ref();
        let usable = current.filter(|keypair| keypair.can_send(now, limits));
        SecurePeerStatus {
            peer,
            key: self.key,
            address: self.address,
            session_age: usable.map(|keypair| now.saturating_since(keypair.made)),
            handshake: self.wish.is_some(),
            sealed_bytes: self.sealed_bytes,
            opened_bytes: self.opened_bytes,
        }
    }
}

/// Everything that determines the peer's behaviour, without keys: two peers that print the same behave the same.
impl std::fmt::Debug for PeerSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peer")
            .field("key", &self.key)
            .field("configured", &self.configured)
            .field("address", &self.address)
            .field("pending", &self.pending)
            .field("wish", &self.wish)
            .field("last_initiation", &self.last_initiation)
            .field("attempts", &self.attempts)
            .field("round_trip", &self.round_trip)
            .field("sent_timestamp", &self.sent_timestamp)
            .field("heard_timestamp", &self.heard_timestamp)
            .field("awaits_cookie", &self.sent.map(|sent| sent.index))
            .field("cookie", &self.cookie.map(|(_, at)| at))
            .field("current", &self.current)
            .field("next", &self.next)
            .field("binding", &self.binding)
            .field("retired", &self.retired)
            .field("unanswered", &self.unanswered)
            .field("reply_due", &self.reply_due)
            .field("sealed_bytes", &self.sealed_bytes)
            .field("opened_bytes", &self.opened_bytes)
            .finish_non_exhaustive()
    }
}
