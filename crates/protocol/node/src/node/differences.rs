//! The changes that a new file makes, in words.

use std::net::Ipv4Addr;

use airlane_base::Instant;
use airlane_link::FlowKey;
use airlane_link::flow::{TCP, UDP};

use super::Node;
use super::link::{PeerLink, at};
use super::path::Path;
use super::reload::ReloadError;
use crate::PathFacts;
use crate::config::{LiveConfig, PeerConfig};

/// A port that no class matches.
const ANY_PORT: u16 = 54_321;

impl Node {
    /// Describes what `new` changes in the running node, keys aside. Marks the changes that undo commands
    /// given since the last file.
    ///
    /// # Errors
    /// If the services are invalid.
    pub(crate) fn differences(
        &self,
        now: Instant,
        new: &LiveConfig,
    ) -> Result<Vec<String>, ReloadError> {
        let mut all = self.between(now, &self.config, new)?;
        let of_files = self.between(now, &self.file, new)?;
        for change in all.iter_mut().filter(|change| !of_files.contains(change)) {
            change.push_str(" (undoes what a command had changed)");
        }
        Ok(all)
    }

    fn between(
        &self,
        now: Instant,
        old: &LiveConfig,
        new: &LiveConfig,
    ) -> Result<Vec<String>, ReloadError> {
        let mut changes = of_peers(&old.peers(), &new.peers());
        // A port configured as in the old file can list what the new file changes.
        let path = Path::of_interface(now, PathFacts::UNKNOWN);
        if let Some(peer) = old.peers().first() {
            let mut link = PeerLink::new(now, peer, old, self.sizes, path, [0, 1])?;
            let before = repaired(&link);
            changes.extend(link.set_services(now, new)?);
            let after = repaired(&link);
            let lost = before.iter().filter(|name| !after.contains(name));
            changes.extend(lost.map(|name| {
                format!(
                    "WARNING: {name} that no class names gets service 0, which repairs nothing; end the classes with \
                     \"behaviour\" to keep the others where they were"
                )
            }));
        }
        changes.extend(of_rates(old, new));
        Ok(changes)
    }
}

/// Names the transport protocols whose unclassified flows get some repair, at once or by their behaviour.
fn repaired(link: &PeerLink) -> Vec<&'static str> {
    let flow = |protocol| FlowKey {
        dscp: 0,
        protocol,
        src: Ipv4Addr::UNSPECIFIED.into(),
        dst: Ipv4Addr::UNSPECIFIED.into(),
        src_port: ANY_PORT,
        dst_port: ANY_PORT,
    };
    let kinds = [("TCP", TCP), ("UDP", UDP)].into_iter();
    let is_repaired = |protocol| {
        let flow = flow(protocol);
        let mut services = link.port.services_of_flow(&flow);
        services.any(|service| service != 0)
    };
    let some = kinds.filter(|(_, protocol)| is_repaired(*protocol));
    some.map(|(name, _)| name).collect()
}

fn of_peers(old: &[PeerConfig], new: &[PeerConfig]) -> Vec<String> {
    let is_in = |list: &[PeerConfig], name: &str| list.iter().any(|peer| peer.name == name);
    let gone = old.iter().filter(|peer| !is_in(new, &peer.name));
    let begun = new.iter().filter(|peer| !is_in(old, &peer.name));
    let mut changes: Vec<String> = gone
        .map(|peer| format!("peer \"{}\" ends", peer.name))
        .chain(begun.map(|peer| format!("peer \"{}\" begins", peer.name)))
        .collect();
    for peer in new {
        let before = old.iter().find(|old| old.name == peer.name);
        changes.extend(before.into_iter().flat_map(|before| of_peer(before, peer)));
    }
    changes
}

fn of_peer(old: &PeerConfig, new: &PeerConfig) -> Vec<String> {
    let (name, mut changes) = (&new.name, Vec::new());
    if old.key != new.key
        && let Some(key) = new.key
    {
        changes.push(format!("keys are new: peer \"{name}\" is {key}"));
    }
    if old.preshared_key != new.preshared_key {
        let what = "has another pre-shared key from the next handshake on";
        changes.push(format!("peer \"{name}\" {what}"));
    }
    if old.address != new.address {
        changes.push(format!("peer \"{name}\" is {}", at(new.address.as_ref())));
    }
    if old.prefixes != new.prefixes {
        let prefixes: Vec<_> = new.prefixes.iter().map(ToString::to_string).collect();
        changes.push(format!("peer \"{name}\" has {}", prefixes.join(", ")));
    }
    if old.weight != new.weight {
        let (is, was) = (new.weight, old.weight);
        changes.push(format!("peer \"{name}\" has weight {is}, was {was}"));
    }
    changes
}

/// Describes changed rates, of the link and of peers in both files.
pub(crate) fn of_rates(old: &LiveConfig, new: &LiveConfig) -> Vec<String> {
    let (is, was) = (new.link.rate, old.link.rate);
    let mut changes = Vec::new();
    if is != was {
        let (is, was) = (new.link.said(is), old.link.said(was));
        changes.push(format!("the link has rate {is}, was {was}"));
    }
    let before = old.peers();
    for peer in new.peers() {
        let before = before.iter().find(|old| old.name == peer.name);
        if let Some(before) = before.filter(|before| before.rate != peer.rate) {
            let (name, is) = (&peer.name, peer.rate.unwrap_or(is));
            let was = before.rate.unwrap_or(was);
            let (is, was) = (new.link.said(is), old.link.said(was));
            changes.push(format!("peer \"{name}\" has rate {is}, was {was}"));
        }
    }
    changes
}
