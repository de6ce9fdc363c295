//! Events of the session with the peer and of the common services, and their log entries.

use airlane_base::Duration;
use airlane_base::Instant;
use airlane_link::AdminError;
use airlane_session::{About, ServiceOffer, SessionEvent, SessionState};

use super::PeerLink;
use crate::config::LiveConfig;
use crate::config::peers::NoWay;
use crate::node::below::Below;
use crate::node::drops::Reason;
use crate::rounded::{rounded, three_digits};
use crate::status::{RefusedTables, SharedKey};

/// Log interval for a silent peer.
const SILENCE_AGAIN: Duration = Duration::from_secs(60);

/// How long a rate limit must last before the log mentions it. A path that drops long datagrams looks like a
/// policer until its MTU is found, which takes about ten seconds.
const LIMIT_HOLDS: Duration = Duration::from_secs(15);

impl PeerLink {
    /// Handles and logs the events of the session.
    pub(crate) fn take_events(&mut self, now: Instant, below: &mut Below) {
        while let Some(event) = self.session.poll_event() {
            let peer = self.who();
            below.bind(self.to, self.session.id());
            if let Some(search) = &mut self.path.search {
                match event {
                    SessionEvent::Confirmed { .. } => search.begin(now),
                    SessionEvent::Established { .. }
                    | SessionEvent::Refused { .. }
                    | SessionEvent::EpochRenewed => search.stop(),
                    _ => {}
                }
            }
            match event {
                SessionEvent::Established {
                    session, replaced, ..
                } => {
                    self.port.reset(now);
                    self.disconnected_since = None;
                    self.session_since = Some(now);
                    self.sessions += 1;
                    self.refused = None;
                    self.about.forget();
                    self.shared_key.on_session(now, self.to.address);
                    let why = if replaced {
                        "the peer was restarted"
                    } else {
                        "the peer answered"
                    };
                    tracing::info!(%peer, session = format!("{session:08x}"), why, "session begins");
                }
                SessionEvent::Offered { offers, first } => {
                    self.on_offers(now, &offers, first);
                }
                SessionEvent::Confirmed { .. } => {
                    tracing::info!(%peer, why = "the peer is in the session, too", "peer is up");
                }
                SessionEvent::Refused { ours, theirs } => {
                    self.session_since = None;
                    self.disconnected_since = None;
                    let tables = RefusedTables { ours, theirs };
                    let ([here, there], help) = (tables.unlike(), tables.remedy());
                    let why = "services of one number differ";
                    tracing::warn!(%peer, here, there, why, help, "session refused");
                    self.refused = Some(tables);
                }
                SessionEvent::VersionMismatch { ours, theirs } => {
                    tracing::error!(
                        %peer,
                        ours,
                        theirs,
                        help = "install one version of airlane at both ends; `airlane version` prints its protocol",
                        "the peer speaks another version of the protocol: there will be no session"
                    );
                }
                SessionEvent::PeerLost { silent_for } => {
                    self.silent = Some((now - silent_for, now));
                    // The path may have changed, and the peer may have been restarted without the present keys.
                    self.to.from = None;
                    if let (Some(guard), Some(session)) = (&mut below.guard, self.to.session) {
                        guard.call(now, session);
                    }
                    // Without a session there is nothing to disconnect.
                    if self.session.id().is_some() {
                        self.disconnections += 1;
                        self.disconnected_since = Some(now - silent_for);
                        tracing::warn!(%peer, silent_for = %rounded(silent_for), why = "the peer is silent; retrying", "disconnected");
                    } else if self.to.address.is_none() {
                        // The peer's address is unknown, so nothing is sent, and a station may well be switched off.
                        tracing::info!(%peer, "the peer has not called yet");
                    } else {
                        tracing::warn!(%peer, silent_for = %rounded(silent_for), "nothing is heard from the peer; retrying");
                    }
                }
                SessionEvent::PeerBack { silent_for } => {
                    self.disconnected_since = None;
                    tracing::info!(%peer, silent_for = %rounded(silent_for), why = "the peer is heard again", "connected");
                }
                SessionEvent::Unheard { unheard_for } => {
                    tracing::warn!(
                        %peer, unheard_for = %rounded(unheard_for),
                        why = "its hellos arrive and still echo an old one of ours: the path works in one direction",
                        "the peer does not hear us; retrying"
                    );
                }
                SessionEvent::HeardAgain => tracing::info!(%peer, "the peer hears us again"),
                SessionEvent::EpochRenewed => {
                    self.shared_key.on_left(now);
                    self.session_since = None;
                    self.disconnected_since = None;
                    tracing::info!(%peer, why = "the peer had left our session", "new epoch");
                }
                other => tracing::debug!(?other, "session event"),
            }
        }
        if let Some(shared) = self.shared_key.speak(now) {
            let peer = &self.config.name;
            tracing::error!(peer, help = SharedKey::HELP, "{}", shared.says(peer));
        }
    }

    /// Asks the peer of a session for its version and addresses, until it has answered.
    pub(crate) fn ask_about(&mut self, now: Instant, below: &mut Below) {
        let session = self.session.id().unwrap_or_default();
        if self.session.state() == SessionState::Confirmed
            && let Some(question) = self.about.question(session)
        {
            self.push_beside(now, &question.encode(), below);
        }
    }

    /// Handles the peer's version and addresses.
    pub(crate) fn handle_about(
        &mut self,
        now: Instant,
        about: About,
        below: &mut Below,
    ) -> Result<(), Reason> {
        if !self.session.check(now, about.session) {
            return Err(Reason::StaleSession);
        }
        if about.asks {
            let answer = self.about.answer(about.session);
            self.push_beside(now, &answer.encode(), below);
        }
        let peer = self.who();
        if let Some([here, there]) = self.about.take(about) {
            let there = there.escape_debug().to_string();
            tracing::info!(%peer, here, there, "the peer runs another version");
        }
        Ok(())
    }

    /// Warns, once in each session, if no packet can reach the peer's addresses. An end with routes may not need to.
    pub(crate) fn mention_no_way(&mut self, file: &LiveConfig) {
        let Some(theirs) = self.about.take_addresses() else {
            return;
        };
        let why = match file.no_way(&theirs) {
            Some(NoWay::SameAddress(_)) => "both ends have the same address under [tun]",
            Some(NoWay::OtherNetwork) if file.routes().is_empty() => {
                "no address of this end is in a network of the peer's"
            }
            _ => return,
        };
        let (peer, help) = (self.who(), "`airlane doctor` shows the addresses of both");
        tracing::warn!(%peer, why, help, "no packet for the peer will arrive");
    }

    /// Logs once a minute that a called peer is still silent. Returns whether that was due.
    pub(crate) fn mention_silence(&mut self, now: Instant) -> bool {
        self.silent = self.silent.filter(|_| self.session.is_silent());
        let due = self.silent.filter(|(_, last)| now >= *last + SILENCE_AGAIN);
        if let Some((since, _)) = due {
            self.silent = Some((since, now));
            let (peer, silent_for) = (self.who(), now.saturating_since(since));
            if self.to.address.is_some() {
                tracing::warn!(%peer, silent_for = %rounded(silent_for), "nothing is heard from the peer; retrying");
            }
        }
        due.is_some()
    }

    /// Logs when a policer or another sender begins or ceases to limit the rate.
    pub(crate) fn mention_limit(&mut self, now: Instant) {
        let Some(found) = self.port.found_rate() else {
            return;
        };
        let limit = Some(found.limit).filter(|limit| limit.is_of_others());
        if self.limit.changes(now, limit, LIMIT_HOLDS) {
            let (peer, rate_bps, because) =
                (self.who(), three_digits(found.bps), found.limit.says());
            tracing::info!(%peer, rate_bps, because, "what limits the rate has changed");
        }
    }

    /// Sets the port's services and classes from `file`, which is resolved.
    pub(crate) fn set_services(
        &mut self,
        now: Instant,
        file: &LiveConfig,
    ) -> Result<Vec<String>, AdminError> {
        let services = &file.link.services;
        let classes = file.link.classes.rules(services);
        let changes = self.port.set_services(now, services, &classes)?;
        self.offer_services(now);
        Ok(changes)
    }

    /// Sends the peer the services of this end.
    pub(crate) fn offer_services(&mut self, now: Instant) {
        let (table, own) = (self.port.service_table(), self.port.own_services());
        let peer_table = self.port.peer_service_table();
        self.session.set_table(now, table, &peer_table, own);
    }

    /// Handles the peer's list of services.
    fn on_offers(&mut self, now: Instant, offers: &[ServiceOffer], first: bool) {
        let before = self.waiting_services();
        if first {
            self.port.begin_agreement(now, offers);
        } else {
            self.port.handle_offers(now, offers);
        }
        let peer = self.who();
        for (name, waits) in self.waiting_services() {
            let waited = before.iter().any(|(n, w)| *n == name && *w);
            match (waited && !first, waits) {
                (false, true) => tracing::warn!(
                    %peer,
                    service = name,
                    why = "the peer has no such service, or not yet",
                    "service waits; its packets travel as those without a class"
                ),
                (true, false) => {
                    tracing::info!(%peer, service = name, why = "the peer has it, too", "service opens");
                }
                _ => {}
            }
        }
        if self.port.services_changed() {
            self.offer_services(now);
        }
    }

    /// The services, each with whether it waits for the peer or drains.
    fn waiting_services(&self) -> Vec<(String, bool)> {
        let services = self.port.services();
        services
            .map(|s| (s.name, s.waiting || s.draining))
            .collect()
    }
}
