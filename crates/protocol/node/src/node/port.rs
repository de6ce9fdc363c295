//! Leaves a UDP port whose mapping is dead, in either direction. NATs and firewalls keep a mapping that leads nowhere
//! for as long as datagrams arrive, and only a new source port creates a new one. So the end that calls changes to a
//! fresh port when nothing that it sent was answered for [`SWALLOWED`], or was heard, as its peers say, and then
//! alternates between the two; its peers identify it by its key. If both ends call and both have changed ports during
//! an outage, neither finds the other until one is back on its own port: so a fresh port that nobody answers is kept for
//! [`FRESH`] only. One that a peer answers is kept: to go back would give up a way that works for one that did not.

use std::net::SocketAddr;

use airlane_base::{Duration, Instant};

use rand_chacha::rand_core::Rng as _;

use super::Node;
use super::request::Request;
use crate::Underlay;
use crate::config::UnderlayConfig;

/// Longer than a peer takes to restart.
const SWALLOWED: Duration = Duration::from_secs(30);
/// Two attempts of a handshake.
const FRESH: Duration = Duration::from_secs(10);
/// The own port is kept for up to this much longer each time it is taken back.
const STEP: Duration = Duration::from_secs(15);

impl Node {
    /// Changes the port if it is time; checked at the interval of hellos.
    pub(crate) fn leave_port(&mut self, now: Instant) {
        let UnderlayConfig::Udp { listen, .. } = &self.config.link.underlay else {
            return;
        };
        let listen = *listen;
        self.mention_port(now);
        let dead = self.links.iter().map(|link| {
            let session = &link.session;
            // A peer that does not hear this end may still send hellos to its port, or begin sessions. It has been
            // heard since the last transmission if it owes nothing, and in its way if it speaks another version.
            let heard = session.unheard_since().or(session.owed());
            heard.filter(|_| session.other_version().is_none())
        });
        let Some(dead) = dead.collect::<Option<Vec<_>>>() else {
            return;
        };
        let since = dead.into_iter().fold(self.port_since, Instant::max);
        let is_own = self.below.underlay.port() == Some(listen.port());
        if now < since + self.patience() || !self.config.calls() {
            return;
        }
        // Two ends whose ports are dead may alternate in step, and then never meet.
        let more = match is_own {
            true => 0,
            false => self.random.next_u64() % STEP.as_nanos(),
        };
        self.port_since = now + Duration::from_nanos(more);
        let port = if is_own { 0 } else { listen.port() };
        self.below.requests.push_back(Request::Port(port));
    }

    /// This end did not run until now: that nothing was heard before says nothing about its port.
    pub fn handle_standstill(&mut self, now: Instant) {
        self.port_since = self.port_since.max(now);
    }

    /// How long the present port is kept when nothing is heard.
    fn patience(&self) -> Duration {
        match self.left_port() {
            None => SWALLOWED,
            Some(_) => FRESH,
        }
    }

    /// The port in the file, if this end has left it.
    pub(crate) fn left_port(&self) -> Option<u16> {
        let UnderlayConfig::Udp { listen, .. } = &self.config.link.underlay else {
            return None;
        };
        let port = listen.port();
        (port != 0 && self.below.underlay.port() != Some(port)).then_some(port)
    }

    /// Warns that the port in the file is not used, once a peer answers through another.
    fn mention_port(&mut self, now: Instant) {
        let Some(port) = self.left_port() else {
            return;
        };
        let heard =
            (self.links.iter()).find(|link| link.is_heard() && link.heard > self.port_since);
        if let Some(link) = heard
            && self.swallowed_said.speak(now, || 0).is_some()
        {
            let (peer, listen) = (link.who(), self.below.underlay.listen());
            tracing::warn!(
                %peer, port, %listen,
                help = "if the peer was not merely away, write port 0 in link.underlay.listen, which takes a free one; \
                        a restart takes the configured one again",
                "no answer came to the configured port, and one comes to another: the path drops its datagrams, or the \
                 peer was away"
            );
        }
    }

    /// Tests all peers at once with a hello. Returns their number.
    pub fn ask_peers(&mut self, now: Instant) -> usize {
        for link in self.links.iter_mut() {
            link.session.ask(now);
        }
        self.links.iter().count()
    }

    /// Takes the driver's answer: the new local address, or why the port could not be changed.
    pub fn handle_port(&mut self, now: Instant, listen: Result<SocketAddr, String>) {
        let says = self.port_said.speak(now, || 0).is_some();
        match listen {
            Ok(listen) => {
                let (was, silent) = (self.below.underlay.listen(), self.patience());
                self.below.underlay = Underlay::Udp { listen };
                let Self { links, below, .. } = self;
                for link in links.iter_mut() {
                    if let Some(address) = link.to.address {
                        link.seek(now, address, below);
                    }
                }
                let why = "nothing sent from it was answered or heard";
                if says {
                    tracing::info!(%was, %listen, %silent, why, "port changed");
                }
            }
            Err(error) if says => {
                tracing::warn!(
                    error,
                    "the port cannot be changed, though nothing comes to it"
                );
            }
            Err(_) => {}
        }
    }
}
