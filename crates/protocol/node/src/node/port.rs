//! A port that the path swallows: translations and firewalls keep a mapping that leads nowhere for as long as datagrams
//! come, and only another port begins another one. So the end that calls leaves its port when nothing that it has sent was
//! answered for [`SWALLOWED`], for a fresh one and back by turns; its peers know it by its key. Where both ends call, and both have left
//! their ports during an outage, neither finds the other until one is back: so a fresh port has [`FRESH`] alone.

use std::net::SocketAddr;

use airlane_base::{Duration, Instant};

use super::Node;
use super::request::Request;
use crate::Underlay;
use crate::config::UnderlayConfig;

/// Longer than a peer takes to be restarted.
const SWALLOWED: Duration = Duration::from_secs(30);
/// Two attempts of a handshake.
const FRESH: Duration = Duration::from_secs(10);

impl Node {
    /// Leaves the port if it is time; that is looked at as often as hellos leave.
    pub(crate) fn leave_port(&mut self, now: Instant) {
        let UnderlayConfig::Udp { listen, .. } = &self.config.link.underlay else {
            return;
        };
        // Who owes nothing was heard through it since something was sent.
        let owed = self.links.iter().map(|link| link.session.owed());
        let Some(owed) = owed.collect::<Option<Vec<_>>>() else {
            return;
        };
        let heard = self.links.iter().map(|link| link.heard);
        let since = heard.chain(owed).fold(self.port_since, Instant::max);
        let is_own = self.below.underlay.port() == Some(listen.port());
        let patience = match is_own || listen.port() == 0 {
            true => SWALLOWED,
            false => FRESH,
        };
        if now < since + patience || !self.config.calls() {
            return;
        }
        self.port_since = now;
        let port = if is_own { 0 } else { listen.port() };
        self.below.requests.push_back(Request::Port(port));
    }

    /// This end listens there from now on, or cannot leave its port, as the driver was asked for another.
    pub fn handle_port(&mut self, now: Instant, listen: Result<SocketAddr, String>) {
        let says = self.port_said.speak(now, || 0).is_some();
        match listen {
            Ok(listen) => {
                let was = self.below.underlay.listen();
                self.below.underlay = Underlay::Udp { listen };
                let Self { links, below, .. } = self;
                for link in links.iter_mut() {
                    if let Some(address) = link.to.address {
                        link.seek(now, address, below);
                    }
                }
                let why = "nothing sent from it was answered for 30 s";
                if says {
                    tracing::info!(%was, %listen, why, "another port");
                }
            }
            Err(error) if says => {
                tracing::warn!(error, "the port stays, though nothing comes to it");
            }
            Err(_) => {}
        }
    }
}
