//! A changed file for a running node: keys, the peer's address, services and classes are taken over, and
//! what only a new start can change is named. The link's session goes on; frames in flight under old keys are repaired
//! as any that were lost.

use airlane_base::Instant;
use airlane_link::AdminError;

use super::guard::Guard;
use super::start::peer_name;
use super::{Node, UpError};
use crate::config::{LiveConfig, UnderlayConfig};
use crate::security::Security;

/// Why a changed file was not taken over. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReloadError {
    /// Something else changed than what a running node can change.
    #[error(
        "{} cannot change while the node runs; restart it, or leave that as it was (a reload takes over \
         keys, link.underlay.peer, services and classes)", .places.join(", ")
    )]
    NeedsRestart {
        /// Where the two files differ.
        places: Vec<&'static str>,
    },
    /// The keys are of no use.
    #[error(transparent)]
    Keys(#[from] UpError),
    /// The services are of no use.
    #[error(transparent)]
    Services(#[from] AdminError),
}

impl Node {
    /// Takes over what changed in the file. What that was.
    pub(super) fn reload(
        &mut self,
        now: Instant,
        file: &LiveConfig,
    ) -> Result<Vec<String>, ReloadError> {
        let new = file.resolve();
        let places = fixed_differences(&self.config, &new);
        if !places.is_empty() {
            return Err(ReloadError::NeedsRestart { places });
        }
        let UnderlayConfig::Udp { peer: old_peer, .. } = self.config.link.underlay;
        let UnderlayConfig::Udp { peer, .. } = new.link.underlay;
        let mut changes = Vec::new();
        // The file may name the same key file, which has another key by now.
        let guard = match &new.link.security {
            Some(Security::Keys(keys)) => Some(Guard::new(now, keys, peer)?),
            _ => None,
        };
        // The last that can fail.
        let services = self.set_services(now, &new)?;
        if peer != old_peer {
            changes.push(format!("link.underlay.peer is {}", peer_name(peer)));
        }
        if let (Some(old), Some(guard)) = (&self.guard, &guard)
            && !old.has_keys_of(guard)
        {
            changes.push(format!(
                "keys are new: this end is {}, the peer {}",
                guard.public_key(),
                guard.peer_key()
            ));
        }
        if !changes.is_empty() {
            if guard.is_some() {
                self.guard = guard;
            }
            // Left out, it stays where it called from last.
            if let Some(peer) = peer {
                self.underlay.set_peer(peer);
            }
            self.check_mtu(now);
        }
        changes.extend(services);
        self.config = new;
        for change in &changes {
            tracing::info!(change, "reloaded");
        }
        Ok(changes)
    }
}

/// Where two files differ in what only a new start can change.
fn fixed_differences(old: &LiveConfig, new: &LiveConfig) -> Vec<&'static str> {
    let UnderlayConfig::Udp { listen, .. } = old.link.underlay;
    let UnderlayConfig::Udp {
        listen: new_listen, ..
    } = new.link.underlay;
    let secured = |file: &LiveConfig| matches!(file.link.security, Some(Security::Keys(_)));
    [
        ("name", old.name != new.name),
        ("tun", old.tun != new.tun),
        ("control", old.control != new.control),
        ("metrics", old.metrics != new.metrics),
        ("link.rate", old.link.rate != new.link.rate),
        ("link.delay", old.link.delay != new.link.delay),
        ("link.underlay", listen != new_listen),
        ("link.security", secured(old) != secured(new)),
        ("link.outer", old.link.outer != new.link.outer),
        ("link.scheduler", old.link.scheduler != new.link.scheduler),
        ("link.rates", old.link.rates != new.link.rates),
    ]
    .into_iter()
    .filter_map(|(place, differs)| differs.then_some(place))
    .collect()
}
