//! Host names of the peers: when to look up each, and how to use an answer.

use std::net::SocketAddr;

use airlane_base::Instant;
use airlane_secure::PeerAddress;

use super::Node;
use super::lookup::Found;
use super::request::Request;
use crate::Underlay;
use crate::config::HostPort;
use crate::config::underlay::reaches;

impl Node {
    /// Requests the lookups that are due.
    pub(crate) fn look_up(&mut self, now: Instant) {
        let Self { links, below, .. } = self;
        for link in links.iter_mut() {
            let heard = link.is_heard();
            let due = link.lookup.as_mut();
            if let Some(host) = due.and_then(|lookup| lookup.handle_timeout(now, heard)) {
                below.requests.push_back(Request::LookUp(host.clone()));
            }
        }
    }

    /// Takes an answer of the resolver. Returns the peer's link and new address, if the address is new. The
    /// driver checks whether a peer can have that address, and then calls [`Node::seek`].
    pub fn handle_name(
        &mut self,
        now: Instant,
        host: &HostPort,
        found: Result<Vec<SocketAddr>, String>,
    ) -> Option<(u8, SocketAddr)> {
        let Underlay::Udp { listen } = self.below.underlay else {
            return None;
        };
        let mut links = self.links.iter_mut();
        let link = links.find(|link| link.config.host() == Some(host))?;
        let (heard, peer) = (link.is_heard(), link.who());
        let tried = match link.to.address {
            Some(PeerAddress::Udp(address)) => Some(address),
            _ => None,
        };
        let usable = |address: &_| reaches(&listen, address);
        let lookup = link.lookup.as_mut()?;
        match lookup.handle_answer(now, heard, found, usable, tried) {
            Found::Seek(address) => Some((link.to.link, address)),
            Found::Obstacle(why) => {
                tracing::warn!(%peer, %host, why, "the peer's host cannot be looked up; retrying");
                None
            }
            Found::Nothing => None,
        }
    }

    /// Seeks the peer of this link at this address.
    pub fn seek(&mut self, now: Instant, link: u8, address: PeerAddress) {
        let Self { links, below, .. } = self;
        if let Some(link) = links.get_mut(link) {
            link.seek(now, address, below);
            let (peer, host) = (link.who(), link.config.host().map(ToString::to_string));
            tracing::info!(%peer, host, "the peer's host was looked up");
            links.index();
        }
    }

    /// Whether a peer has no address yet because its host name has not been resolved.
    pub fn any_sought(&self) -> bool {
        let mut links = self.links.iter();
        links.any(|link| link.lookup.is_some() && link.to.address.is_none())
    }

    /// Addresses of silent peers.
    pub fn unheard(&self) -> impl Iterator<Item = PeerAddress> {
        let unheard = self.links.iter().filter(|link| !link.is_heard());
        unheard.filter_map(|link| link.to.address)
    }
}
