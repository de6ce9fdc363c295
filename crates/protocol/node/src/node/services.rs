//! Changes of services and rate at run time, by the operator of this end or of the peer.
//!
//! Either way, the whole table is rebuilt, checked like a file, and given to the port, which makes the
//! transition. The peer learns of it from the next hello, which is sent at once.

use airlane_base::config::{Problems, Validate};
use airlane_base::{Instant, Rate};
use airlane_link::config::{ConfigError, RateLimit};
use airlane_link::{AdminError, ClassConfig, ClassesConfig, ServiceConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Node;
use super::differences::of_rates;
use crate::config::LiveConfig;

/// New services, written as under `[link]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddServices {
    /// The services, each with an unused number and name.
    pub services: Vec<ServiceConfig>,
    /// Rules that are placed before the existing ones.
    #[serde(default)]
    pub classes: Vec<ClassConfig>,
}

impl Validate for AddServices {
    fn validate(&self, problems: &mut Problems) {
        if self.services.is_empty() {
            let help =
                "write it as in a live file: [[services]] with number, name, rate and scheme";
            problems.add("services", "there is no service to add", help);
        }
    }
}

/// A change of a running node's services. The file on disk stays as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ServiceChange {
    /// New services.
    Add(AddServices),
    /// Remove a service and its rules once its queue is empty.
    Remove {
        /// Its name.
        name: String,
    },
    /// Change a service's share.
    Set {
        /// Its name.
        name: String,
        /// Its share of the link, relative to the others'.
        rate: f64,
    },
}

/// Why the services were not changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// There is no service of this name.
    #[error("there is no service \"{name}\"; the services are {}", .known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The existing services.
        known: Vec<String>,
    },
    /// The new table would be invalid.
    #[error(transparent)]
    Port(#[from] AdminError),
}

impl Node {
    /// Changes the service table. Returns what changed.
    pub fn change_services(
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
            tracing::info!(change, why = "command", "services changed");
        }
        Ok(changes)
    }

    /// Changes the rate of the link. Returns what changed.
    pub fn change_rate(&mut self, now: Instant, rate: Rate) -> Result<Vec<String>, AdminError> {
        let mut file = self.config.clone();
        file.link.rate = rate;
        let mut problems = file.link.table_problems(file.tun.mtu);
        if rate == RateLimit::UNSTATED && file.link.rate_limit != RateLimit::Found {
            problems.push(ConfigError {
                path: "link.rate".to_owned(),
                problem: "the file of this link does not leave its rate to be found".to_owned(),
                help: "state a rate; or write rate = \"auto\" in the file, and reload".to_owned(),
            });
        }
        if !problems.is_empty() {
            return Err(AdminError::Config { problems });
        }
        let changes = of_rates(&self.config, &file);
        self.set_rates(now, &file);
        self.config = file;
        for change in &changes {
            tracing::info!(change, why = "command", "rate changed");
        }
        Ok(changes)
    }

    /// Applies the services and classes of `file`, which is resolved, to every port. All ports have the same
    /// table, so either the first refuses it or none does.
    pub(crate) fn set_services(
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

/// Makes the change in `file`.
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
            // The first match decides, so new rules go before the existing ones.
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
