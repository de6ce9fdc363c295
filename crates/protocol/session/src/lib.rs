//! The session between the two ends of a live link: who talks to whom, under which table of
//! services, since when.
//!
//! Every process draws a 64-bit *epoch* when it starts. A *hello* carries the epoch, a nonce, an
//! echo of the peer's last nonce and the digest of the service table. Rules:
//!
//! ```text
//!            hello with our nonce echoed,          hello of the accepted epoch
//!            new epoch, fitting digest               says that it is in our session
//!  Waiting ──────────────────────────► Accepted ──────────────────────────► Confirmed
//!     │  ▲                                │  ▲ same, with yet another epoch      │
//!     │  └── another digest ◄─────────────┴──┴──────────────────────────────────┘
//!     ▼
//!  Refused (hellos go on slowly, no data)
//! ```
//!
//! 1. A new epoch is accepted only from a hello that echoes our current nonce, and the nonce changes
//!    with every acceptance and refusal. So an old or duplicated hello never resets anything.
//! 2. An epoch that was left is never accepted again; its owner, if it still lives, is told and
//!    draws a new one. So both ends begin a session from the same state: nothing sent.
//! 3. Both ends derive the session's 32-bit number from both epochs; each frame carries it, and a
//!    frame of another session is dropped by the driver ([`Session::check`]).
//! 4. Tables that do not fit each other are refused with both texts in the event; nothing is
//!    exchanged. They fit if every service that both have is the same, but for parts that differ by
//!    their end. What one end has alone waits; tables may change within a session, and each hello
//!    carries what its sender has (`Port::own_services`).
//!
//! Hellos are answered at once where that brings the session forward, at most one every
//! [`SPACING`]; otherwise they are repeated after 250 ms, 500 ms, then every second.
//!
//! Once confirmed they are keepalives ([`Keepalives`]). While frames come or go there is one a second, with the loss that
//! its sender saw per service. Afterwards an end asks every [`Keepalives::idle`] whether the other is there, which
//! answers at once and asks later itself, so that there are two hellos in that time and not four. What is not answered
//! is repeated every second. What a peer knows is not said again: tables, offers, reports.
//!
//! Left out: authenticity. Whoever can read the path can forge a hello; that is the secure
//! session's job.

#![forbid(unsafe_code)]

use std::collections::VecDeque;

use airlane_base::random::fnv1a;
use airlane_base::{Duration, Instant, Rng, Streams};

mod about;
mod event;
mod hello;
mod offer;
mod part;
mod path;
mod probe;
mod status_probe;
mod unheard;

pub use about::About;
pub use event::{SessionEvent, SessionState};
pub use hello::{Hello, HelloError, LossReport, VERSION};
pub use offer::{OwnService, ServiceOffer};
pub use part::{Part, Reassembly};
pub use path::{LEAST, PathSearch, ProbeRequest};
pub use probe::Probe;
pub use status_probe::{Offer, StatusProbe};
use unheard::Unheard;

/// Least time between two hellos.
pub const SPACING: Duration = Duration::from_millis(10);
/// The first repetition of a hello that was not answered; doubles up to the keepalive interval.
const FIRST_RETRY: Duration = Duration::from_millis(250);
/// Hellos to a peer whose table was refused.
const REFUSED_RETRY: Duration = Duration::from_secs(5);
/// Epochs that were left and are remembered. A peer restarts once in a while, not all the time.
const LEFT_EPOCHS: usize = 64;

/// What a session is told by its driver.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Drawn at random by the driver for each start of the process.
    pub epoch: u64,
    /// The table of services as compact text, as seen from this end.
    pub table: String,
    /// What the peer's table must be: the same, but for services with a different part at each end.
    pub peer_table: String,
    /// How often hellos leave.
    pub keepalives: Keepalives,
}

/// How often hellos of an established session leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalives {
    /// While there is traffic, and while the peer owes an answer.
    pub busy: Duration,
    /// While there is none; not less than `busy`.
    pub idle: Duration,
    /// A peer that has been sent something and is silent for so long is reported as lost: the link is disconnected.
    pub silence: Duration,
}

impl Keepalives {
    /// How long after the last frame a link counts as busy: the loss reports of the last packets leave meanwhile.
    fn linger(&self) -> Duration {
        self.busy * 3
    }
}

/// The peer whose epoch was accepted.
#[derive(Clone, Debug)]
struct PeerEpoch {
    epoch: u64,
    session: u32,
    confirmed: bool,
    /// When its newest hello was sent, by its clock; an older one tells nothing.
    sent_ns: u64,
}

/// The last hello that was heard, of whatever epoch: what the next one of ours echoes.
#[derive(Clone, Copy, Debug)]
struct Heard {
    epoch: u64,
    nonce: u64,
    sent_ns: u64,
    at: Instant,
}

/// One end's view of the session. Sans-IO: hellos and the time in, hellos and events out.
#[derive(Clone, Debug)]
pub struct Session {
    epoch: u64,
    table: String,
    digest: u64,
    /// Digest that the peer must have.
    peer_digest: u64,
    own: Vec<OwnService>,
    /// Digest of the offers of these.
    own_digest: u64,
    /// What the peer offered last in this session, once it said so within it.
    offered: Option<Vec<ServiceOffer>>,
    keepalives: Keepalives,
    nonces: Rng,
    nonce: u64,
    peer: Option<PeerEpoch>,
    heard: Option<Heard>,
    /// The nonce that our last hello echoed.
    echoed: u64,
    /// Whether our last hello named the present session.
    told: bool,
    left: VecDeque<u64>,
    /// The epoch whose table was refused.
    refused: Option<u64>,
    other_version: Option<u8>,
    /// When the next unsolicited hello leaves, unless the session idles.
    next_hello: Instant,
    /// When one leaves that brings the session forward or answers.
    soon: Option<Instant>,
    retry: Duration,
    last_hello: Option<Instant>,
    /// Whether the last hello answered, and whether the next one does.
    answered: bool,
    to_answer: bool,
    /// What we know of the peer's offers in this session, and what it knows of ours, as digests.
    knows: u64,
    peer_knows: u64,
    /// Until when the link counts as busy.
    busy_until: Instant,
    /// When the peer was last known to be alive, or the start.
    alive: Instant,
    /// What was sent first since then: the peer owes a sign of life.
    owed: Option<Instant>,
    silent: bool,
    srtt: Option<Duration>,
    peer_reports: Vec<LossReport>,
    unheard: Unheard,
    events: VecDeque<SessionEvent>,
}

impl Session {
    /// A session that sends its first hello at `now`.
    pub fn new(now: Instant, config: SessionConfig) -> Self {
        let mut nonces = Streams::new(config.epoch, 0).stream("session.nonces");
        let nonce = draw(&mut nonces);
        Self {
            epoch: config.epoch,
            digest: fnv1a(config.table.as_bytes()),
            peer_digest: fnv1a(config.peer_table.as_bytes()),
            table: config.table,
            own: Vec::new(),
            own_digest: offer::digest([]),
            offered: None,
            keepalives: config.keepalives,
            nonces,
            nonce,
            peer: None,
            heard: None,
            echoed: 0,
            told: false,
            left: VecDeque::new(),
            refused: None,
            other_version: None,
            next_hello: now,
            soon: None,
            retry: FIRST_RETRY,
            last_hello: None,
            answered: false,
            to_answer: false,
            knows: 0,
            peer_knows: 0,
            busy_until: now,
            alive: now,
            owed: Some(now),
            silent: false,
            srtt: None,
            peer_reports: Vec::new(),
            unheard: Unheard::default(),
            events: VecDeque::new(),
        }
    }

    /// Takes the table of services that there is now, and tells the peer soon if it is another one.
    pub fn set_table(
        &mut self,
        now: Instant,
        table: String,
        peer_table: &str,
        own: Vec<OwnService>,
    ) {
        let digest = fnv1a(table.as_bytes());
        self.peer_digest = fnv1a(peer_table.as_bytes());
        if digest != self.digest || own != self.own {
            self.hello_soon(now);
        }
        self.own_digest = offer::digest(own.iter().map(|own| own.offer));
        (self.table, self.digest, self.own) = (table, digest, own);
    }

    /// Keepalives leave at other intervals from now on.
    pub fn set_keepalives(&mut self, keepalives: Keepalives) {
        self.keepalives = keepalives;
        self.retry = self.retry.min(keepalives.busy);
    }

    /// A frame of the session has left.
    pub fn note_sent(&mut self, now: Instant) {
        self.busy_until = now + self.keepalives.linger();
        self.owed.get_or_insert(now);
    }

    /// A frame of the session has come, after [`Session::check`].
    pub fn note_received(&mut self, now: Instant) {
        self.busy_until = now + self.keepalives.linger();
    }

    /// Since when the peer owes a sign of life; none if it has been heard since something was sent.
    pub const fn owed(&self) -> Option<Instant> {
        self.owed
    }

    /// The number that frames carry, once a peer was accepted.
    pub fn id(&self) -> Option<u32> {
        self.peer.as_ref().map(|peer| peer.session)
    }

    /// Our epoch.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The accepted peer's epoch.
    pub fn peer_epoch(&self) -> Option<u64> {
        self.peer.as_ref().map(|peer| peer.epoch)
    }

    /// Smoothed round trip time of hellos. None until the first sample.
    pub const fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    /// What the peer said it lost, per service, in its last keepalive.
    pub fn peer_reports(&self) -> &[LossReport] {
        &self.peer_reports
    }

    /// The version of the protocol that the peer speaks, if it is another than ours.
    pub const fn other_version(&self) -> Option<u8> {
        self.other_version
    }

    /// Where the session stands.
    pub fn state(&self) -> SessionState {
        match &self.peer {
            None if self.refused.is_some() => SessionState::Refused,
            None => SessionState::Waiting,
            Some(_) if self.silent => SessionState::Disconnected,
            Some(peer) if peer.confirmed => SessionState::Confirmed,
            Some(_) => SessionState::Accepted,
        }
    }

    /// Whether nothing has been heard from the peer for longer than it may be silent.
    pub const fn is_silent(&self) -> bool {
        self.silent
    }

    /// Since when the peer, which is heard, has not heard this end, as its hellos tell.
    pub fn unheard_since(&self) -> Option<Instant> {
        self.unheard.since().filter(|_| !self.silent)
    }

    /// Whether a frame that carries this number belongs to the session. It shows that the peer lives.
    pub fn check(&mut self, now: Instant, session: u32) -> bool {
        let ours = self.id() == Some(session);
        if ours {
            self.on_alive(now);
        }
        ours
    }

    /// Takes the body of a hello frame.
    ///
    /// # Errors
    /// Tells why the hello was of no use; the driver counts it. The session is unchanged then.
    pub fn handle_hello(&mut self, now: Instant, body: &[u8]) -> Result<(), HelloError> {
        let hello = match Hello::decode(body) {
            Ok(hello) => hello,
            Err(HelloError::Version { ours, theirs }) => {
                if self.other_version != Some(theirs) {
                    self.other_version = Some(theirs);
                    self.push(SessionEvent::VersionMismatch { ours, theirs });
                }
                return Err(HelloError::Version { ours, theirs });
            }
            Err(error) => return Err(error),
        };
        if hello.epoch == self.epoch {
            return Err(HelloError::OwnEpoch);
        }
        let older = |epoch, sent_ns| epoch == hello.epoch && hello.sent_ns <= sent_ns;
        if self.heard.is_some_and(|h| older(h.epoch, h.sent_ns))
            || self
                .peer
                .as_ref()
                .is_some_and(|p| older(p.epoch, p.sent_ns))
        {
            return Err(HelloError::Old);
        }
        let fresh = hello.echo == self.nonce;
        let accepted = self.peer_epoch() == Some(hello.epoch);
        if fresh {
            self.on_alive(now);
        }
        self.heard = Some(Heard {
            epoch: hello.epoch,
            nonce: hello.nonce,
            sent_ns: hello.sent_ns,
            at: now,
        });
        if fresh && hello.retired {
            self.on_retired(now);
        } else if accepted {
            self.on_peer_hello(now, &hello);
        } else if fresh {
            self.on_new_epoch(now, &hello);
        } else {
            self.answer(now, &hello);
        }
        Ok(())
    }

    /// Lets the time pass; an early call does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        if !self.silent && self.silence_due().is_some_and(|due| now >= due) {
            self.silent = true;
            let silent_for = now.saturating_since(self.alive);
            self.push(SessionEvent::PeerLost { silent_for });
        }
    }

    /// The next hello, if one is due. `reports` are the losses seen here, per service.
    pub fn poll_transmit(&mut self, now: Instant, reports: &[LossReport]) -> Option<Hello> {
        if now < self.hello_due() {
            return None;
        }
        let confirmed = self.is_confirmed();
        let interval = if confirmed {
            self.keepalives.busy
        } else if self.refused.is_some() && self.peer.is_none() {
            REFUSED_RETRY
        } else {
            let retry = self.retry;
            self.retry = (retry * 2).min(self.keepalives.busy);
            retry
        };
        let busy = now < self.busy_until;
        self.answered = std::mem::take(&mut self.to_answer);
        if !self.answered {
            self.owed.get_or_insert(now);
        }
        self.soon = None;
        self.next_hello = now + interval;
        self.last_hello = Some(now);
        self.unheard.on_sent(now);
        self.echoed = self.heard.map_or(0, |heard| heard.nonce);
        self.told = self.peer.is_some();
        // The text is for a peer that may have to refuse it; a confirmed one has the same.
        let known = confirmed && self.heard.map(|heard| heard.epoch) == self.peer_epoch();
        Some(Hello {
            epoch: self.epoch,
            nonce: self.nonce,
            echo: self.echoed,
            digest: self.digest,
            session: self.id().unwrap_or(0),
            retired: self
                .heard
                .is_some_and(|heard| self.left.contains(&heard.epoch)),
            sent_ns: now.as_nanos(),
            echo_sent_ns: self.heard.map_or(0, |heard| heard.sent_ns),
            held_ns: self
                .heard
                .map_or(0, |heard| now.saturating_since(heard.at).as_nanos()),
            asks: self.peer.is_some() && !self.answered && !(confirmed && busy),
            knows: self.knows,
            reports: match self.peer.is_some() && busy {
                true => reports.to_vec(),
                false => Vec::new(),
            },
            offers: match known && self.peer_knows == self.own_digest {
                true => Vec::new(),
                false => self.own.iter().map(|own| own.offer).collect(),
            },
            table: (!known).then(|| self.table.clone()),
        })
    }

    /// What happened since the last call.
    pub fn poll_event(&mut self) -> Option<SessionEvent> {
        self.events.pop_front()
    }

    /// When to call [`Session::handle_timeout`] and [`Session::poll_transmit`] next.
    pub fn poll_timeout(&self) -> Instant {
        let hello = self.hello_due();
        match self.silence_due().filter(|_| !self.silent) {
            Some(silence) => hello.min(silence),
            None => hello,
        }
    }

    fn is_confirmed(&self) -> bool {
        self.peer.as_ref().is_some_and(|peer| peer.confirmed)
    }

    /// When the peer has been silent for too long.
    fn silence_due(&self) -> Option<Instant> {
        Some(self.owed? + self.keepalives.silence)
    }

    /// When the next hello leaves.
    fn hello_due(&self) -> Instant {
        let Keepalives { busy, idle, .. } = self.keepalives;
        let idles = self.is_confirmed() && self.next_hello >= self.busy_until;
        let regular = match self.last_hello {
            Some(last) if idles && self.peer_knows == self.own_digest => match self.owed {
                None if self.answered => last + idle + idle / 4,
                None => last + idle,
                // Who is away for long is asked for less often.
                Some(_) => last + (last.saturating_since(self.alive) / 16).min(idle).max(busy),
            },
            _ => self.next_hello,
        };
        self.soon.map_or(regular, |soon| soon.min(regular))
    }

    /// A hello of the epoch that we accepted.
    fn on_peer_hello(&mut self, now: Instant, hello: &Hello) {
        self.on_alive(now);
        let rtt = now
            .saturating_since(Instant::from_nanos(hello.echo_sent_ns))
            .saturating_sub(Duration::from_nanos(hello.held_ns));
        if hello.echo_sent_ns != 0 && rtt > Duration::ZERO {
            // RFC 6298 (2.3), the smoothed value alone.
            self.srtt = Some(match self.srtt {
                None => rtt,
                Some(srtt) => (srtt * 7 + rtt) / 8,
            });
        }
        if self.id() == Some(hello.session) {
            self.follow_echo(now, hello);
        }
        let Some(peer) = &mut self.peer else { return };
        peer.sent_ns = hello.sent_ns;
        if hello.session == peer.session {
            self.peer_knows = hello.knows;
            if !hello.reports.is_empty() {
                self.peer_reports.clone_from(&hello.reports);
            }
            if !hello.offers.is_empty() && self.offered.as_ref() != Some(&hello.offers) {
                self.knows = offer::digest(hello.offers.iter().copied());
                self.offered = Some(hello.offers.clone());
                let offers = hello.offers.clone();
                self.events.push_back(SessionEvent::Offered {
                    offers,
                    first: false,
                });
            }
            if !peer.confirmed {
                peer.confirmed = true;
                let session = peer.session;
                self.push(SessionEvent::Confirmed { session });
            }
            self.to_answer |= hello.asks;
            if !self.told || hello.asks {
                // It waits for the same word from us.
                self.hello_soon(now);
            }
        } else {
            // It has not accepted us yet and needs its nonce back.
            self.answer(now, hello);
        }
    }

    /// What a hello of the session tells of whether the peer hears us. Hellos alone count, where any frame breaks a
    /// silence; so the patience is twice that.
    fn follow_echo(&mut self, now: Instant, hello: &Hello) {
        let before = self.unheard.since();
        let received =
            |reports: &[LossReport]| reports.iter().map(|r| r.received_packets).sum::<u64>();
        if received(&hello.reports) > received(&self.peer_reports) {
            self.unheard.on_heard(now);
        }
        let patience = self.keepalives.silence * 2;
        self.unheard
            .on_echo(now, hello.echo_sent_ns, self.last_hello, patience);
        match (before, self.unheard.since()) {
            (None, Some(since)) => {
                let unheard_for = now.saturating_since(since);
                self.push(SessionEvent::Unheard { unheard_for });
            }
            (Some(_), None) => self.push(SessionEvent::HeardAgain),
            _ => {}
        }
    }

    /// A hello that proves to be fresh, of an epoch that is not the accepted one.
    fn on_new_epoch(&mut self, now: Instant, hello: &Hello) {
        if self.left.contains(&hello.epoch) {
            self.hello_soon(now);
            return;
        }
        if hello.table.is_none() {
            // It takes us for one that knows its services; the answer shows that we are not.
            self.hello_soon(now);
            return;
        }
        if hello.digest != self.peer_digest && !offer::fit(&self.own, &hello.offers) {
            if self.refused != Some(hello.epoch) {
                self.leave();
                self.refused = Some(hello.epoch);
                self.nonce = draw(&mut self.nonces);
                let theirs = hello
                    .table
                    .clone()
                    .unwrap_or_else(|| format!("digest {:016x}", hello.digest));
                let ours = self.table.clone();
                self.push(SessionEvent::Refused { ours, theirs });
                // The peer shall see our table, too.
                self.hello_soon(now);
            }
            return;
        }
        let replaced = self.peer.is_some();
        self.leave();
        self.refused = None;
        self.other_version = None;
        let session = session_number(self.epoch, hello.epoch);
        self.peer = Some(PeerEpoch {
            epoch: hello.epoch,
            session,
            confirmed: false,
            sent_ns: 0,
        });
        self.nonce = draw(&mut self.nonces);
        self.told = false;
        self.retry = FIRST_RETRY;
        self.srtt = None;
        self.push(SessionEvent::Established {
            session,
            peer_epoch: hello.epoch,
            replaced,
        });
        self.offered = None;
        (self.knows, self.peer_knows) = (0, 0);
        self.push(SessionEvent::Offered {
            offers: hello.offers.clone(),
            first: true,
        });
        self.on_peer_hello(now, hello);
    }

    /// The peer had accepted our epoch once and left it for another: only a new one helps.
    fn on_retired(&mut self, now: Instant) {
        self.peer = None;
        self.peer_reports.clear();
        self.unheard = Unheard::default();
        // No session of the new epoch was ever left.
        self.left.clear();
        self.epoch = self.nonces.next_u64();
        self.nonce = draw(&mut self.nonces);
        self.retry = FIRST_RETRY;
        self.push(SessionEvent::EpochRenewed);
        self.hello_soon(now);
    }

    /// Ends the session, if there is one; its epoch is not welcome again.
    fn leave(&mut self) {
        self.peer_reports.clear();
        self.unheard = Unheard::default();
        if let Some(peer) = self.peer.take() {
            if self.left.len() == LEFT_EPOCHS {
                self.left.pop_front();
            }
            self.left.push_back(peer.epoch);
        }
    }

    fn on_alive(&mut self, now: Instant) {
        let silent_for = now.saturating_since(self.alive);
        self.alive = now;
        self.owed = None;
        if self.silent {
            self.silent = false;
            if self.peer.is_some() {
                self.push(SessionEvent::PeerBack { silent_for });
            }
        }
    }

    /// Brings the peer our nonce and its own, unless it shows that it has both.
    fn answer(&mut self, now: Instant, hello: &Hello) {
        if self.echoed != hello.nonce || hello.echo != self.nonce {
            self.hello_soon(now);
        }
    }

    fn hello_soon(&mut self, now: Instant) {
        let soon = match self.last_hello {
            Some(last) => now.max(last + SPACING),
            None => now,
        };
        self.soon = Some(self.soon.map_or(soon, |before| before.min(soon)));
    }

    fn push(&mut self, event: SessionEvent) {
        self.events.push_back(event);
    }
}

/// A nonce; never zero, which stands for "none heard".
fn draw(nonces: &mut Rng) -> u64 {
    nonces.next_u64() | 1
}

/// The number of the session between two epochs, the same at both ends; never zero.
fn session_number(a: u64, b: u64) -> u32 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&a.min(b).to_be_bytes());
    bytes[8..].copy_from_slice(&a.max(b).to_be_bytes());
    let hash = fnv1a(&bytes);
    ((hash >> 32) as u32 ^ hash as u32).max(1)
}

#[cfg(test)]
mod tests;
