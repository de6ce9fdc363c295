//! Changes of the service table and of the rate while the node runs: by the operator here, by the operator at the peer.
//!
//! Whoever changes what, the whole table is made anew, checked as a file is, and given to the port, which
//! does what is needed; the peer learns it from the next hello, which leaves at once.

use airlane_base::{Instant, Rate};
use airlane_link::{AdminError, ClassesConfig};

use super::Node;
use super::differences::of_rates;
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
        /// The services that there are.
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

    /// Changes the rate of the link. What changed.
    pub(super) fn change_rate(
        &mut self,
        now: Instant,
        rate: Rate,
    ) -> Result<Vec<String>, AdminError> {
        let mut file = self.config.clone();
        file.link.rate = rate;
        let problems = file.link.table_problems(file.tun.mtu);
        if !problems.is_empty() {
            return Err(AdminError::Config { problems });
        }
        let changes = of_rates(&self.config, &file);
        self.set_rates(now, &file);
        self.config = file;
        for change in &changes {
            tracing::info!(change, why = "the operator said so", "rate changed");
        }
        Ok(changes)
    }

    /// Gives every port the services and classes of `file`, which is resolved. All have the same, so the
    /// first refuses, or none.
    pub(super) fn set_services(
        &mut self,
        now: Instant,
        file: &LiveConfig,
    ) -> Result<Vec<String>, AdminError> {
        let mut changes = Vec::new();
        for link in self.links.iter_mut() {
            changes = link.set_services(now, file)?;
        }
        Ok(changes)
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
