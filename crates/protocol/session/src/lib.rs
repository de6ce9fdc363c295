//! The session between the two ends of a live link: which peers communicate, with which table of services, and since
//! when.
//!
//! Each process draws a 64-bit *epoch* when it starts. A *hello* carries the epoch, a nonce, an echo of the peer's last
//! nonce and the digest of the service table. Rules:
//!
//! ```text
//!            hello with our nonce echoed,          hello of the accepted epoch
//!            new epoch, matching digest              that names our session
//!  Waiting ──────────────────────────► Accepted ──────────────────────────► Confirmed
//!     │  ▲                                │  ▲ same, with yet another epoch      │
//!     │  └── another digest ◄─────────────┴──┴──────────────────────────────────┘
//!     ▼
//!  Refused (slow hellos, no data)
//! ```
//!
//! 1. A new epoch is accepted only from a hello that echoes our current nonce, and the nonce changes with every
//!    acceptance and refusal. An old or duplicated hello therefore never resets anything.
//! 2. An epoch that was left is never accepted again. If its owner is still alive, it is notified and draws a new one.
//!    So both ends begin a session from the same state: nothing sent.
//! 3. Both ends derive the session's 32-bit number from both epochs. Each frame carries it, and the driver drops frames
//!    of another session ([`Session::check`]).
//! 4. Tables that do not match are refused, with both texts in the event, and nothing is exchanged. They match if every
//!    service that both ends have is the same, except for parts that depend on the end. A service that only one end has
//!    waits. Tables may change within a session, and each hello carries those of its sender (`Port::own_services`).
//!
//! A hello that brings the session forward is answered at once, but at most every [`SPACING`]. Otherwise hellos are
//! repeated after 250 ms, 500 ms, then every second.
//!
//! Once the session is confirmed, hellos are keepalives ([`Keepalives`]). During traffic one leaves every second, with
//! the loss that its sender measured per service. On an idle link an end asks every [`Keepalives::idle`] whether its
//! peer is alive. The peer answers at once and postpones its own question, so that an interval has two hellos and not
//! four. An unanswered hello is repeated every second. What the peer already knows is not repeated: tables, offers,
//! reports.
//!
//! Left out: authentication. Anyone on the path can forge a hello; the secure session prevents that.

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

/// Shortest time between two hellos.
pub const SPACING: Duration = Duration::from_millis(10);
/// Delay of the first repetition of an unanswered hello; it doubles up to the keepalive interval.
const FIRST_RETRY: Duration = Duration::from_millis(250);
/// Interval of hellos to a peer whose table was refused.
const REFUSED_RETRY: Duration = Duration::from_secs(5);
/// How many of the epochs left are remembered. A peer restarts rarely.
const LEFT_EPOCHS: usize = 64;

/// The driver's parameters of a session.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Drawn at random by the driver each time the process starts.
    pub epoch: u64,
    /// The table of services as compact text, as seen from this end.
    pub table: String,
    /// The table that the peer must have: the same, except for services whose parts differ between the ends.
    pub peer_table: String,
    /// Intervals between hellos.
    pub keepalives: Keepalives,
}

/// Intervals between the hellos of an established session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalives {
    /// During traffic, and while an answer of the peer is outstanding.
    pub busy: Duration,
    /// On an idle link; not less than `busy`.
    pub idle: Duration,
    /// A peer that does not answer for this long is reported as lost: the link is disconnected.
    pub silence: Duration,
}

impl Keepalives {
    /// How long a link counts as busy after its last frame, so that the loss reports of the last packets leave.
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
    /// When its newest hello was sent, by its clock; older ones are ignored.
    sent_ns: u64,
}

/// The last hello received, of any epoch; our next hello echoes it.
#[derive(Clone, Copy, Debug)]
struct Heard {
    epoch: u64,
    nonce: u64,
    sent_ns: u64,
    at: Instant,
}

/// One end's view of the session. Sans-IO: hellos and time in, hellos and events out.
#[derive(Clone, Debug)]
pub struct Session {
    epoch: u64,
    table: String,
    digest: u64,
    /// The digest that the peer must have.
    peer_digest: u64,
    own: Vec<OwnService>,
    /// Digest of the offers in `own`.
    own_digest: u64,
    /// What the peer offered last within this session; `None` before its first offer.
    offered: Option<Vec<ServiceOffer>>,
    keepalives: Keepalives,
    nonces: Rng,
    nonce: u64,
    peer: Option<PeerEpoch>,
    heard: Option<Heard>,
    /// The nonce that our last hello echoed.
    echoed: u64,
    /// Whether our last hello named the current session.
    named_session: bool,
    left: VecDeque<u64>,
    /// The epoch whose table was refused.
    refused: Option<u64>,
    other_version: Option<u8>,
    /// When the next regular hello leaves, unless the session is idle.
    next_hello: Instant,
    /// When an early hello leaves, which brings the session forward or answers one.
    soon: Option<Instant>,
    retry: Duration,
    last_hello: Option<Instant>,
    /// Whether the last hello was an answer, and whether the next one is.
    answered: bool,
    to_answer: bool,
    /// Whether the next hello asks for an answer in any case.
    to_ask: bool,
    /// When the newest hello left that the peer reports to have received.
    reached: Option<Instant>,
    /// Digests of the peer's offers as we know them in this session, and of ours as the peer knows them.
    knows: u64,
    peer_knows: u64,
    /// The end of the busy period.
    busy_until: Instant,
    /// When the peer last proved to be alive; initially the start.
    alive: Instant,
    /// When the first frame after that was sent: the peer owes a sign of life.
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
            named_session: false,
            left: VecDeque::new(),
            refused: None,
            other_version: None,
            next_hello: now,
            soon: None,
            retry: FIRST_RETRY,
            last_hello: None,
            answered: false,
            to_answer: false,
            to_ask: false,
            reached: None,
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

    /// Replaces the table of services, and sends a hello soon if it has changed.
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

    /// Changes the keepalive intervals.
    pub fn set_keepalives(&mut self, keepalives: Keepalives) {
        self.keepalives = keepalives;
        self.retry = self.retry.min(keepalives.busy);
    }

    /// Notes that a frame of the session was sent.
    pub fn note_sent(&mut self, now: Instant) {
        self.busy_until = now + self.keepalives.linger();
        self.owed.get_or_insert(now);
    }

    /// Notes that the hello that is due cannot leave, because the ends have no keys: the peer owes a sign of life, as if
    /// it had left.
    pub fn note_unsent(&mut self, now: Instant) {
        if now >= self.hello_due() {
            self.owed.get_or_insert(now);
        }
    }

    /// Notes that a frame of the session was received, after [`Session::check`].
    pub fn note_received(&mut self, now: Instant) {
        self.busy_until = now + self.keepalives.linger();
    }

    /// Asks the peer of an established session for an answer at once; see [`Session::reached`].
    pub fn ask(&mut self, now: Instant) {
        if self.peer.is_some() {
            self.to_ask = true;
            self.hello_soon(now);
        }
    }

    /// When the newest hello left that the peer reports to have received in this session.
    pub const fn reached(&self) -> Option<Instant> {
        self.reached
    }

    /// Since when the peer owes a sign of life; `None` if it has been heard since the last transmission.
    pub const fn owed(&self) -> Option<Instant> {
        self.owed
    }

    /// The session number that frames carry; `None` until a peer is accepted.
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

    /// Smoothed round trip time of hellos; `None` until the first sample.
    pub const fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    /// The losses per service that the peer reported in its last keepalive.
    pub fn peer_reports(&self) -> &[LossReport] {
        &self.peer_reports
    }

    /// The protocol version of the peer, if it differs from ours.
    pub const fn other_version(&self) -> Option<u8> {
        self.other_version
    }

    /// The state of the session.
    pub fn state(&self) -> SessionState {
        match &self.peer {
            None if self.refused.is_some() => SessionState::Refused,
            None => SessionState::Waiting,
            Some(_) if self.silent => SessionState::Disconnected,
            Some(peer) if peer.confirmed => match self.unheard_since() {
                Some(_) => SessionState::Unheard,
                None => SessionState::Confirmed,
            },
            Some(_) => SessionState::Accepted,
        }
    }

    /// Whether the peer has been silent for longer than allowed.
    pub const fn is_silent(&self) -> bool {
        self.silent
    }

    /// Since when the peer does not hear this end, according to its hellos; `None` while the peer is silent itself.
    pub fn unheard_since(&self) -> Option<Instant> {
        self.unheard.since().filter(|_| !self.silent)
    }

    /// Whether a frame with this session number belongs to the session. If so, it proves that the peer is alive.
    pub fn check(&mut self, now: Instant, session: u32) -> bool {
        let ours = self.id() == Some(session);
        if ours {
            self.on_alive(now);
        }
        ours
    }

    /// Processes the body of a hello frame.
    ///
    /// # Errors
    /// Why the hello was ignored, for the driver's counters. The session is then unchanged.
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

    /// Processes the passage of time; an early call does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        if !self.silent && self.silence_due().is_some_and(|due| now >= due) {
            self.silent = true;
            let silent_for = now.saturating_since(self.alive);
            self.push(SessionEvent::PeerLost { silent_for });
        }
    }

    /// The next hello, if one is due. `reports` are the losses measured at this end, per service.
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
        let is_asked = std::mem::take(&mut self.to_ask);
        if is_asked || !self.answered {
            self.owed.get_or_insert(now);
        }
        self.soon = None;
        self.next_hello = now + interval;
        self.last_hello = Some(now);
        self.unheard.on_sent(now);
        self.echoed = self.heard.map_or(0, |heard| heard.nonce);
        self.named_session = self.peer.is_some();
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
            asks: self.peer.is_some() && (is_asked || !(self.answered || confirmed && busy)),
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

    /// The next event, if any.
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

    /// When to call [`Session::handle_timeout`] and [`Session::note_unsent`] next while no hello can leave.
    pub fn poll_timeout_unsent(&self) -> Instant {
        match self.silence_due() {
            None => self.hello_due(),
            Some(_) if self.silent => Instant::FAR_FUTURE,
            Some(silence) => silence,
        }
    }

    fn is_confirmed(&self) -> bool {
        self.peer.as_ref().is_some_and(|peer| peer.confirmed)
    }

    /// When the peer will have been silent for too long.
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

    /// Processes a hello of the accepted epoch.
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
            if hello.echo_sent_ns != 0 {
                let left = Instant::from_nanos(hello.echo_sent_ns);
                self.reached = self.reached.max(Some(left));
            }
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
            if !self.named_session || hello.asks {
                // It waits for the same word from us.
                self.hello_soon(now);
            }
        } else {
            // It has not accepted us yet and needs its nonce back.
            self.answer(now, hello);
        }
    }

    /// Processes what a hello of the session says about whether the peer hears us. Only hellos count, whereas any frame
    /// ends a silence, so the patience is twice that for silence.
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

    /// Processes a hello that is proven fresh and of another epoch than the accepted one.
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
        self.named_session = false;
        self.retry = FIRST_RETRY;
        self.srtt = None;
        self.push(SessionEvent::Established {
            session,
            peer_epoch: hello.epoch,
            replaced,
        });
        (self.offered, self.reached) = (None, None);
        (self.knows, self.peer_knows) = (0, 0);
        self.push(SessionEvent::Offered {
            offers: hello.offers.clone(),
            first: true,
        });
        self.on_peer_hello(now, hello);
    }

    /// The peer had accepted our epoch and left it for another, so we must draw a new one.
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

    /// Ends the session, if there is one; its epoch is not accepted again.
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

    /// Sends the peer our nonce and the echo of its own, unless its hello shows that it has both.
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

/// A nonce; never zero, which means "none received".
fn draw(nonces: &mut Rng) -> u64 {
    nonces.next_u64() | 1
}

/// The session number of two epochs, the same at both ends; never zero.
fn session_number(a: u64, b: u64) -> u32 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&a.min(b).to_be_bytes());
    bytes[8..].copy_from_slice(&a.max(b).to_be_bytes());
    let hash = fnv1a(&bytes);
    ((hash >> 32) as u32 ^ hash as u32).max(1)
}

#[cfg(test)]
mod tests;
