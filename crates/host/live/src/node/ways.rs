//! The interface's addresses and routes: made at the start, and again where something takes them away.

use airlane_base::{Duration, Instant};

use super::Node;
use crate::netlink::Cidr;

/// How often they are looked for. `ip link set air0 down` takes all routes and the addresses of IPv6, other programs what
/// they like; the kernel tells of every route of the machine, or when asked.
pub(super) const RESTORE: Duration = Duration::from_secs(2);

impl Node {
    /// What the interface is to be the way to. Everything only once every peer's host has been looked up: from then on
    /// names are asked for through the tunnel.
    pub(super) fn routes(&self) -> Vec<Cidr> {
        let sought = |link: &super::PeerLink| link.lookup.is_some() && link.to.address.is_none();
        let any_sought = self.links.iter().any(sought);
        let mut routes = self.config.routes();
        routes.retain(|route| !any_sought || !route.is_wide());
        routes
    }

    /// Makes what is missing.
    pub(super) fn restore_ways(&mut self, now: Instant) {
        if now < self.restore {
            return;
        }
        self.restore = now + RESTORE;
        match self.tun.restore(&self.config.tun.addresses, &self.routes()) {
            Ok(back) => {
                for what in back {
                    let interface = self.tun.name();
                    tracing::info!(interface, %what, "an address or a route was missing, and is made");
                }
            }
            Err(error) => {
                if self.restore_said.speak(now, || 0).is_some() {
                    tracing::warn!(%error, "an address or a route is missing");
                }
            }
        }
    }
}
