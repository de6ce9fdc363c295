//! The interface's addresses and routes: made at the start, and again where something takes them away.

use airlane_base::{Duration, Instant};

use super::Daemon;
use crate::config::LiveConfig;
use crate::netlink::{Cidr, OwnTable};
use crate::reverse_path;

/// How often they are looked for. `ip link set air0 down` takes all routes and the addresses of IPv6, other programs what
/// they like; the kernel tells of every route of the machine, or when asked.
pub(super) const RESTORE: Duration = Duration::from_secs(2);

/// The mark of this end's datagrams, by which they go past a route of everything into the tunnel; 0: there is none.
pub(crate) fn mark(config: &LiveConfig) -> u32 {
    match config.routes().iter().any(|route| route.is_wide()) {
        true => OwnTable::of(&config.tun.name).mark,
        false => 0,
    }
}

impl Daemon {
    /// What the interface is to be the way to. Everything only once every peer's host has been looked up: from then on
    /// names are asked for through the tunnel.
    pub(super) fn routes(&self) -> Vec<Cidr> {
        let any_sought = self.node.any_sought();
        let mut routes = self.node.config().routes();
        routes.retain(|route| !any_sought || !route.is_wide());
        routes
    }

    /// Makes what is missing.
    pub(super) fn restore_ways(&mut self, now: Instant) {
        if now < self.restore {
            return;
        }
        self.restore = now + RESTORE;
        self.mention_filter(now);
        match self
            .tun
            .restore(&self.node.config().tun.addresses, &self.routes())
        {
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

    /// Says of peers that are not heard that the kernel drops what comes from them.
    pub(super) fn mention_filter(&mut self, now: Instant) {
        let (tun, mark) = (self.tun.name(), mark(self.node.config()));
        let ips = self.node.unheard().filter_map(|address| address.ip());
        for (ip, interface) in ips.filter_map(|ip| Some((ip, reverse_path::blocks(ip, tun, mark)?)))
        {
            if self.filter_said.speak(now, || 0).is_some() {
                tracing::warn!(
                    help = reverse_path::HELP,
                    "{}",
                    reverse_path::says(&interface, ip)
                );
            }
        }
    }

    /// Adds routes to the networks that the peers have now, and removes those of networks that none has any more.
    pub(super) fn change_routes(&self, old: &[Cidr]) {
        let new = self.node.config().routes();
        let gone = old.iter().filter(|route| !new.contains(route));
        let begun = new.iter().filter(|route| !old.contains(route));
        let all = gone.map(|r| (r, false)).chain(begun.map(|r| (r, true)));
        for (route, there) in all {
            if let Err(error) = self.tun.set_route(*route, there) {
                tracing::warn!(%error, "a route stays as it was");
            }
        }
    }
}
