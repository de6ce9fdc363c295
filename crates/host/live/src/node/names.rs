//! Names of peers' hosts: what is due goes to the resolver, and what it found to the links.

use std::sync::Arc;

use airlane_base::Instant;
use airlane_secure::PeerAddress;

use super::Node;
use super::lookup::Found;
use crate::config::underlay::reaches;
use crate::resolver::{Resolve, Resolver, SystemResolver};

impl Node {
    /// Has names looked up by somebody else than the system: for tests.
    ///
    /// # Errors
    /// If the operating system gives no thread.
    pub fn resolve_by(
        &mut self,
        resolver: Arc<dyn Resolve>,
    ) -> Result<(), crate::device::DeviceError> {
        self.resolver = Some(Resolver::start(resolver)?);
        Ok(())
    }

    /// Has the names looked up whose turn it is.
    pub(super) fn look_up(&mut self, now: Instant) {
        for link in self.links.iter_mut() {
            let heard = link.is_heard();
            let due = link.lookup.as_mut();
            let Some(host) = due.and_then(|lookup| lookup.handle_timeout(now, heard)) else {
                continue;
            };
            if self.resolver.is_none() {
                match Resolver::start(Arc::new(SystemResolver)) {
                    Ok(started) => self.resolver = Some(started),
                    Err(error) => tracing::error!(%error, "names cannot be looked up"),
                }
            }
            if let Some(resolver) = &mut self.resolver {
                resolver.ask(host.clone());
            }
        }
    }

    /// Takes what the resolver found.
    pub(super) fn take_names(&mut self, now: Instant) {
        let listen = match self.listen {
            PeerAddress::Udp(listen) => listen,
            PeerAddress::Ethernet(_) => return,
        };
        while let Some((host, found)) = self.resolver.as_mut().and_then(Resolver::poll) {
            let found = found.map_err(|error| error.to_string());
            let of_host = |link: &&mut super::PeerLink| link.config.host() == Some(&host);
            let mut seek = None;
            if let Some(link) = self.links.iter_mut().find(of_host) {
                let (heard, peer) = (link.is_heard(), link.who());
                let tried = match link.to.address {
                    Some(PeerAddress::Udp(address)) => Some(address),
                    _ => None,
                };
                let usable = |address: &_| reaches(&listen, address);
                let found = link
                    .lookup
                    .as_mut()
                    .map(|lookup| lookup.handle_answer(now, heard, found, usable, tried));
                match found {
                    Some(Found::Seek(address)) => seek = Some((link.to.link, address)),
                    Some(Found::Obstacle(why)) => {
                        tracing::warn!(%peer, %host, why, "the peer's host cannot be looked up; trying on");
                    }
                    Some(Found::Nothing) | None => {}
                }
            }
            if let Some((number, address)) = seek {
                self.seek(now, number, PeerAddress::Udp(address));
            }
        }
    }

    /// Seeks a peer where its host is, unless that is no place for one.
    fn seek(&mut self, now: Instant, number: u8, address: PeerAddress) {
        let refused = self.refuse_loop_to(address);
        let Self { links, below, .. } = self;
        let Some(link) = links.get_mut(number) else {
            return;
        };
        match refused {
            Ok(()) => {
                link.seek(now, address, below);
                let (peer, host) = (link.who(), link.config.host().map(ToString::to_string));
                tracing::info!(%peer, host, "the peer's host was looked up");
                links.index();
            }
            Err(error) => tracing::error!(%error, "the peer's host is no place for a peer"),
        }
    }
}
