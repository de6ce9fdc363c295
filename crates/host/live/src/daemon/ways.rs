//! The interface's addresses and routes: added at the start, and restored when something removes them.

use airlane_base::{Duration, Instant};

use super::Daemon;
use crate::config::LiveConfig;
use crate::netlink::{Cidr, OwnTable};
use crate::reverse_path;

/// Interval of checks. `ip link set air0 down` removes all routes and the IPv6 addresses, and other programs
/// may remove any; the kernel would notify only about every route change of the machine.
pub(super) const RESTORE: Duration = Duration::from_secs(2);

/// The mark with which this end's datagrams bypass a default route into the tunnel; 0 without such a route.
pub(crate) fn mark(config: &LiveConfig) -> u32 {
    match config.routes().iter().any(|route| route.is_wide()) {
        true => OwnTable::of(&config.tun.name).mark,
        false => 0,
    }
}

impl Daemon {
    /// Routes of the interface. Default routes are left out until every peer's host name has been resolved,
    /// because names are then resolved through the tunnel.
    pub(super) fn routes(&self) -> Vec<Cidr> {
        let any_sought = self.node.any_sought();
        let mut routes = self.node.config().routes();
        routes.retain(|route| !any_sought || !route.is_wide());
        routes
    }

    /// Restores what is missing.
    pub(super) fn restore_ways(&mut self, now: Instant) {
        if now < self.restore {
            return;
        }
        self.restore = now + RESTORE;
        self.mention_filter(now);
        let restored = self
            .tun
            .restore(&self.node.config().tun.addresses, &self.routes());
        if let Ok(restored) = &restored {
            self.mention_down(restored.is_none());
        }
        match restored {
            Ok(back) => {
                for what in back.into_iter().flatten() {
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

    /// Logs that the interface was set down, or up again.
    fn mention_down(&mut self, is_down: bool) {
        if std::mem::replace(&mut self.is_down, is_down) == is_down {
            return;
        }
        let interface = self.tun.name();
        match is_down {
            true => tracing::warn!(
                interface,
                help = "`ip link set` sets it up again, and its routes come back",
                "the interface was set down, and its routes are gone: packets go where other routes lead"
            ),
            false => tracing::info!(interface, "the interface is up again"),
        }
    }

    /// Warns if the kernel's reverse path filter drops the packets of silent peers.
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

    /// Adds routes to the peers' new networks, and removes those of networks that no peer has any more.
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
