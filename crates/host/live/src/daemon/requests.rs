//! The driver's answers to the node's requests.

use std::sync::Arc;

use airlane_base::Instant;
use airlane_node::Request;
use airlane_secure::PeerAddress;

use super::Daemon;
use crate::config::HostPort;
use crate::device::DeviceError;
use crate::resolver::{Resolve, Resolver, SystemResolver};

impl Daemon {
    /// Replaces the system's resolver, for tests.
    ///
    /// # Errors
    /// If the resolver cannot be started.
    pub fn resolve_by(&mut self, resolver: Arc<dyn Resolve>) -> Result<(), DeviceError> {
        self.resolver = Some(Resolver::start(resolver)?);
        Ok(())
    }

    /// Answers the node's requests.
    pub(super) fn answer(&mut self, now: Instant) {
        while let Some(request) = self.node.poll_request() {
            match request {
                // A route that is missing for a moment changes nothing.
                Request::Path { link, to } => {
                    if let Ok(facts) = self.underlay.path(to) {
                        self.node.handle_path(now, link, facts);
                    }
                }
                Request::LookUp(host) => self.look_up(host),
                Request::Mtu(mtu) => match self.tun.set_mtu(mtu) {
                    Ok(()) => self.node.handle_mtu(now, mtu),
                    Err(error) => tracing::warn!(%error, mtu, "could not follow the path MTU"),
                },
                Request::Port(port) => match self.underlay.change_port(port) {
                    Ok(PeerAddress::Udp(listen)) => self.node.handle_port(now, Ok(listen)),
                    Ok(PeerAddress::Ethernet(_)) => {}
                    Err(error) => self.node.handle_port(now, Err(error.to_string())),
                },
            }
        }
    }

    fn look_up(&mut self, host: HostPort) {
        if self.resolver.is_none() {
            match Resolver::start(Arc::new(SystemResolver)) {
                Ok(started) => self.resolver = Some(started),
                Err(error) => tracing::error!(%error, "names cannot be looked up"),
            }
        }
        if let Some(resolver) = &mut self.resolver {
            resolver.ask(host);
        }
    }

    /// Takes the resolver's answers.
    pub(super) fn take_names(&mut self, now: Instant) {
        while let Some((host, found)) = self.resolver.as_mut().and_then(Resolver::poll) {
            let found = found.map_err(|error| error.to_string());
            if let Some((link, address)) = self.node.handle_name(now, &host, found) {
                let address = PeerAddress::Udp(address);
                match self.refuse_loop(address) {
                    Ok(()) => self.node.seek(now, link, address),
                    Err(error) => {
                        tracing::error!(%error, "the address of the peer's host cannot be used");
                    }
                }
            }
        }
    }
}
