//! Reload of a changed file: keys, peers, their addresses, services and classes are applied, and settings
//! that need a restart are named. The sessions of links in both files continue; frames in flight under old
//! keys are lost, and repaired like other lost frames.

use airlane_base::Instant;
use airlane_link::AdminError;
use airlane_link::config::RateLimit;

use super::Node;
use super::error::NodeError;
use super::guard::{Guard, Secrets};
use crate::PathFacts;
use crate::config::{LiveConfig, PeerConfig, Security};

/// Why a changed file was not applied. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReloadError {
    /// It changes a setting that needs a restart.
    #[error(
        "{} cannot change while the node runs; restart it, or leave that as it was (a reload takes over \
         keys, peers, rates, link.underlay.peer, services and classes)", .places.join(", ")
    )]
    NeedsRestart {
        /// The settings that differ.
        places: Vec<&'static str>,
    },
    /// The keys, or a new peer, are invalid.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The services are invalid.
    #[error(transparent)]
    Services(#[from] AdminError),
}

impl Node {
    /// Checks whether `file`, which is resolved, can be applied without a restart.
    ///
    /// # Errors
    /// If it changes a setting that needs a restart.
    pub fn check_reload(&self, file: &LiveConfig) -> Result<(), ReloadError> {
        let places = fixed_differences(&self.config, file);
        match places.is_empty() {
            true => Ok(()),
            false => Err(ReloadError::NeedsRestart { places }),
        }
    }

    /// Whether a peer of a changed file is new, or has a new address.
    pub fn is_elsewhere(&self, peer: &PeerConfig) -> bool {
        let there = self.links.named(&peer.name);
        there.is_none_or(|link| link.config.address != peer.address)
    }

    /// Applies the changes in the file, unless this is a `dry_run`, and lists them. `paths` lead to the
    /// peers of the file, in its order.
    ///
    /// # Errors
    /// If the file cannot be applied to a running node; nothing has changed then.
    pub fn reload(
        &mut self,
        now: Instant,
        file: &LiveConfig,
        secrets: Option<&Secrets>,
        paths: &[PathFacts],
        dry_run: bool,
    ) -> Result<Vec<String>, ReloadError> {
        let new = file.resolve();
        self.check_reload(&new)?;
        let peers = new.peers();
        // The key file may have the same name and a new key.
        let guard = match secrets {
            Some(secrets) => {
                let seed = self.seed();
                let anyone = self.below.underlay.anyone();
                Some(Guard::new(now, secrets, &peers, anyone, seed)?)
            }
            None => None,
        };
        let mut begin = Vec::new();
        for (at, peer) in peers.iter().enumerate() {
            if self.links.named(&peer.name).is_none() {
                let facts = paths.get(at).copied().unwrap_or(PathFacts::UNKNOWN);
                begin.push(self.new_link(now, peer, facts, &new)?);
            }
        }
        let mut changes = Vec::from_iter(self.new_key(guard.as_ref()));
        // The last step that can fail.
        changes.extend(self.differences(now, &new)?);
        if dry_run {
            return Ok(changes);
        }
        self.set_services(now, &new)?;
        self.set_keys(now, guard, secrets, &peers)?;
        self.remove_links(&peers);
        for mut link in begin {
            let named = !new.peers.is_empty();
            if let Some(journals) = &mut self.journals
                && let Err(error) = link.keep_journal(&mut **journals, named)
            {
                tracing::warn!(%error, "a new peer has no journal");
            }
            self.add_link(link);
        }
        for peer in &peers {
            let session = self.session_of(peer);
            let Self {
                links,
                below,
                shared,
                ..
            } = self;
            let mut links = links.iter_mut();
            if let Some(link) = links.find(|link| link.config.name == peer.name) {
                link.set_config(now, peer, session, below);
                shared.set_weight(link.to.link, peer.weight);
            }
        }
        self.links.index();
        if !changes.is_empty() {
            for link in self.links.iter_mut() {
                link.path.ask(now);
            }
        }
        self.set_rates(now, &new);
        (self.config, self.file) = (new.clone(), new);
        self.follow_paths(now);
        for change in &changes {
            tracing::info!(change, "reloaded");
        }
        Ok(changes)
    }

    /// Says that the key of this end has changed, if it has.
    fn new_key(&self, new: Option<&Guard>) -> Option<String> {
        let (old, new) = self.below.guard.as_ref().zip(new)?;
        let key = new.public_key();
        (old.public_key() != key).then(|| format!("keys are new: this end is {key}"))
    }

    /// Applies our key and the peers' keys; sessions with peers in both files continue.
    fn set_keys(
        &mut self,
        now: Instant,
        new: Option<Guard>,
        secrets: Option<&Secrets>,
        peers: &[PeerConfig],
    ) -> Result<(), NodeError> {
        let anyone = self.below.underlay.anyone();
        match (self.below.guard.as_mut().zip(new), secrets) {
            (Some((old, new)), Some(secrets)) if old.public_key() == new.public_key() => {
                old.set_peers(now, peers, secrets, anyone)?;
            }
            (Some((old, new)), _) => *old = new,
            (None, _) => {}
        }
        Ok(())
    }

    /// Removes the links whose peers are not in the list.
    fn remove_links(&mut self, peers: &[PeerConfig]) {
        let Self { links, below, .. } = self;
        links.all.retain(|number, link| {
            let name = &link.config.name;
            let stays = peers.iter().any(|p| p.name == *name);
            if !stays {
                below.tap.take_if(|(tapped, _)| tapped == number);
                let waiting = link.port.waiting_bytes();
                tracing::info!(peer = %link.who(), waiting, "the link with the peer ends");
            }
            stays
        });
    }

    /// Applies the rates of `new`.
    pub(crate) fn set_rates(&mut self, now: Instant, new: &LiveConfig) {
        let (is, was) = (new.link.rate, self.config.link.rate);
        if is != was {
            self.shared.set_rate(is);
        }
        let old = self.config.peers();
        for peer in new.peers() {
            let before = old.iter().find(|old| old.name == peer.name);
            let Some(before) = before else { continue };
            let (rate, before_rate) = (peer.rate.unwrap_or(is), before.rate.unwrap_or(was));
            let mut links = self.links.iter_mut();
            let link = links.find(|link| link.config.name == peer.name);
            if let Some(link) = link.filter(|_| rate != before_rate) {
                link.set_rate(now, rate);
            }
        }
    }
}

fn fixed_differences(old: &LiveConfig, new: &LiveConfig) -> Vec<&'static str> {
    let [here, new_here] = [old, new].map(|file| file.link.underlay.without_peer());
    let secured = |file: &LiveConfig| matches!(file.link.security, Some(Security::Keys(_)));
    [
        ("name", old.name != new.name),
        ("tun.name", old.tun.name != new.tun.name),
        ("tun.addresses", old.tun.addresses != new.tun.addresses),
        ("tun.routes", old.tun.routes != new.tun.routes),
        ("tun.mtu", old.tun.mtu != new.tun.mtu),
        ("control", old.control != new.control),
        ("metrics", old.metrics != new.metrics),
        (
            "link.rate-limit",
            (old.link.rate_limit == RateLimit::Fixed) != (new.link.rate_limit == RateLimit::Fixed),
        ),
        ("link.delay", old.link.delay != new.link.delay),
        ("link.keepalive", old.link.keepalive != new.link.keepalive),
        ("link.underlay", here != new_here),
        ("link.security", secured(old) != secured(new)),
        ("link.outer", old.link.outer != new.link.outer),
        ("link.fragment", old.link.fragment != new.link.fragment),
        ("link.scheduler", old.link.scheduler != new.link.scheduler),
        ("link.rates", old.link.rates != new.link.rates),
    ]
    .into_iter()
    .filter_map(|(place, differs)| differs.then_some(place))
    .collect()
}
