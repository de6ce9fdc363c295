//! Changes of the service table while the node runs: by the operator here, by the operator at the peer.
//!
//! Whoever changes what, the whole table is made anew, checked as a file is, and given to the port, which
//! does what is needed; the peer learns it from the next hello, which leaves at once.

use airlane_base::Instant;
use airlane_link::session::ServiceOffer;
use airlane_link::{AdminError, ClassesConfig};

use super::Node;
use super::start::peer_name;
use crate::config::LiveConfig;
use crate::control::ServiceChange;

/// Why services stay as they are.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// There is no service of this name.
    #[error("there is no service \"{name}\"; the services are {}", .known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// The new table would not work.
    #[error(transparent)]
    Port(#[from] AdminError),
}

impl Node {
    /// Changes the service table. What changed.
    pub(super) fn change_services(
        &mut self,
        now: Instant,
        change: &ServiceChange,
    ) -> Result<Vec<String>, ServiceError> {
        let mut file = self.config.clone();
        apply(&mut file, change)?;
        let problems = file.link.table_problems(file.tun.mtu);
        if !problems.is_empty() {
            return Err(AdminError::Config { problems }.into());
        }
        let changes = self.set_services(now, &file)?;
        self.config = file;
        for change in &changes {
            tracing::info!(change, why = "the operator said so", "services changed");
        }
        Ok(changes)
    }

    /// Gives the port the services and classes of `file`, which is resolved.
    pub(super) fn set_services(
        &mut self,
        now: Instant,
        file: &LiveConfig,
    ) -> Result<Vec<String>, AdminError> {
        let services = &file.link.services;
        let classes = file.link.classes.rules(services);
        let changes = self.port.set_services(now, services, &classes)?;
        self.offer_services(now);
        Ok(changes)
    }

    /// Has the session tell the peer which services there are here.
    pub(super) fn offer_services(&mut self, now: Instant) {
        let (table, own) = (self.port.service_table(), self.port.own_services());
        let peer_table = self.port.peer_service_table();
        self.session.set_table(now, table, &peer_table, own);
    }

    /// The peer said which services it has.
    pub(super) fn on_offers(&mut self, now: Instant, offers: &[ServiceOffer], first: bool) {
        let before = self.waiting();
        if first {
            self.port.begin_agreement(now, offers);
        } else {
            self.port.handle_offers(now, offers);
        }
        let peer = peer_name(self.underlay.peer());
        for (name, waits) in self.waiting() {
            let waited = before.iter().any(|(n, w)| *n == name && *w);
            match (waited && !first, waits) {
                (false, true) => tracing::warn!(
                    %peer,
                    service = name,
                    why = "the peer has no such service, or not yet",
                    "service waits; its packets travel as those without a class"
                ),
                (true, false) => {
                    tracing::info!(%peer, service = name, why = "the peer has it, too", "service opens");
                }
                _ => {}
            }
        }
        if self.port.services_changed() {
            self.offer_services(now);
        }
    }

    /// The services with whether they wait for the peer.
    fn waiting(&self) -> Vec<(String, bool)> {
        let services = self.port.services();
        services
            .map(|s| (s.name, s.waiting || s.draining))
            .collect()
    }
}

/// `file` with the change made.
fn apply(file: &mut LiveConfig, change: &ServiceChange) -> Result<(), ServiceError> {
    let services = &mut file.link.services;
    let unknown = |name: &str, file: &LiveConfig| ServiceError::Unknown {
        name: name.to_owned(),
        known: file.link.services.iter().map(|s| s.name.clone()).collect(),
    };
    match change {
        ServiceChange::Add(added) => {
            services.extend(added.services.iter().cloned());
            let there = file.link.classes.rules(&file.link.services);
            // The first match decides, so what is new goes before what there is.
            let all = added.classes.iter().cloned().chain(there).collect();
            file.link.classes = ClassesConfig::Rules(all);
        }
        ServiceChange::Remove { name } => {
            let Some(at) = services.iter().position(|s| s.name == *name) else {
                return Err(unknown(name, file));
            };
            if services[at].number == 0 {
                return Err(AdminError::DefaultService.into());
            }
            services.remove(at);
            let mut rules = file.link.classes.rules(&file.link.services);
            rules.retain(|class| class.service != *name);
            file.link.classes = ClassesConfig::Rules(rules);
        }
        ServiceChange::Set { name, rate } => {
            let Some(service) = services.iter_mut().find(|s| s.name == *name) else {
                return Err(unknown(name, file));
            };
            service.rate = *rate;
        }
    }
    *file = file.resolve();
    Ok(())
}
