//! A changed file for a running node: keys, peers, their addresses, services and classes are taken over,
//! and what only a new start can change is named. The sessions of links that stay go on; frames in flight
//! under old keys are repaired as any that were lost.

use airlane_base::Instant;
use airlane_link::AdminError;
use airlane_link::config::RateLimit;

use super::Node;
use super::guard::Guard;
use super::up_error::UpError;
use crate::config::{LiveConfig, PeerConfig};
use crate::security::Security;
use crate::underlay::PathFacts;

/// Why a changed file was not taken over. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReloadError {
    /// Something else changed than what a running node can change.
    #[error(
        "{} cannot change while the node runs; restart it, or leave that as it was (a reload takes over \
         keys, peers, rates, link.underlay.peer, services and classes)", .places.join(", ")
    )]
    NeedsRestart {
        /// Where the two files differ.
        places: Vec<&'static str>,
    },
    /// The keys, or a new peer, are of no use.
    #[error(transparent)]
    Up(#[from] UpError),
    /// The services are of no use.
    #[error(transparent)]
    Services(#[from] AdminError),
}

impl Node {
    /// Takes over what changed in the file, unless this is a `dry_run`. What that was, or would be.
    pub(super) fn reload(
        &mut self,
        now: Instant,
        file: &LiveConfig,
        dry_run: bool,
    ) -> Result<Vec<String>, ReloadError> {
        let new = file.resolve();
        let places = fixed_differences(&self.config, &new);
        if !places.is_empty() {
            return Err(ReloadError::NeedsRestart { places });
        }
        let peers = new.peers();
        // The file may name the same key file, which has another key by now.
        let guard = match &new.link.security {
            Some(Security::Keys(keys)) => {
                let anyone = self.below.underlay.anyone();
                Some(Guard::new(now, keys, &peers, anyone)?)
            }
            _ => None,
        };
        let mut begin = Vec::new();
        for peer in &peers {
            let there = self.links.named(&peer.name);
            if there.is_none_or(|link| link.config.address != peer.address) {
                self.refuse_loop(peer)?;
            }
            if there.is_none() {
                let facts = self.below.underlay.path(peer.fixed_address());
                let facts = facts.unwrap_or(PathFacts::UNKNOWN);
                begin.push(self.new_link(now, peer, facts, &new)?);
            }
        }
        let mut changes = Vec::from_iter(self.new_key(guard.as_ref()));
        // The last that can fail.
        changes.extend(self.differences(now, &new)?);
        if dry_run {
            return Ok(changes);
        }
        self.set_services(now, &new)?;
        self.set_keys(now, guard, &peers)?;
        // What they have sent is still theirs.
        self.flush(now);
        self.remove_links(&peers);
        for mut link in begin {
            if let Some(journals) = &self.journals
                && let Err(error) = journals.begin(&mut link)
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
        self.set_routes(&new);
        self.restore = now;
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

    /// That the key of this end is another, if so.
    fn new_key(&self, new: Option<&Guard>) -> Option<String> {
        let (old, new) = self.below.guard.as_ref().zip(new)?;
        let key = new.public_key();
        (old.public_key() != key).then(|| format!("keys are new: this end is {key}"))
    }

    /// Takes over our own key and the peers': sessions of those that stay go on.
    fn set_keys(
        &mut self,
        now: Instant,
        new: Option<Guard>,
        peers: &[PeerConfig],
    ) -> Result<(), UpError> {
        let anyone = self.below.underlay.anyone();
        match self.below.guard.as_mut().zip(new) {
            Some((old, new)) if old.public_key() == new.public_key() => {
                old.set_peers(now, peers, anyone)?;
            }
            Some((old, new)) => *old = new,
            None => {}
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
                below.recorder.forget_link(*number);
                let waiting = link.port.waiting_bytes();
                tracing::info!(peer = %link.who(), waiting, "the link with the peer ends");
            }
            stays
        });
    }

    /// Has frames leave at the rates of `new`.
    pub(super) fn set_rates(&mut self, now: Instant, new: &LiveConfig) {
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

    /// Makes the routes to what is behind the peers, and removes those that lead nowhere any more.
    fn set_routes(&self, new: &LiveConfig) {
        let (old, new) = (self.config.routes(), new.routes());
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

/// Where two files differ in what only a new start can change.
fn fixed_differences(old: &LiveConfig, new: &LiveConfig) -> Vec<&'static str> {
    let [here, new_here] = [old, new].map(|file| file.link.underlay.without_peer());
    let secured = |file: &LiveConfig| matches!(file.link.security, Some(Security::Keys(_)));
    [
        ("name", old.name != new.name),
        ("tun", old.tun != new.tun),
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
