//! The configuration of a service, and its defaults.

use airlane_base::{Duration, QueueLimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::aggregate::AggregateConfig;
use super::arq::DefaultConfig;
use super::goal::Goal;
use super::scheme::SchemeConfig;
use crate::queue::QueueConfig;
use crate::wire::HeaderProfile;

/// One service on a link. Files may give a `goal` instead of scheme and rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Written", rename_all = "kebab-case")]
pub struct ServiceConfig {
    /// Service number, 0 to 15; service 0 takes unrecognised traffic.
    pub number: u8,
    /// The name that classes and reports use.
    pub name: String,
    /// The purpose of the service, with any scheme: traffic of that kind is classified to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<Goal>,
    /// Share of the link, relative to the other services.
    pub rate: f64,
    /// How losses are repaired.
    pub scheme: SchemeConfig,
    /// The age at which a packet is of no more use. Packets that wait longer are dropped, and a lost packet
    /// is neither requested nor retransmitted if it would arrive too late. Left out: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Duration>,
    /// Datagrams older than this are dropped from the queue and not retransmitted. TCP segments are kept: the
    /// queued ones restart a connection after an outage, when its own timers have backed off. Left out: no
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<Duration>,
    /// The queue for packets that the service cannot take yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueConfig>,
    /// Whether small packets share frames. Left out: those up to 256 B that wait anyway; never where the
    /// scheme looks into packets. Live only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<AggregateConfig>,
    /// Whether TCP/IP headers are sent as differences from another packet of their connection: the previous
    /// one or, where packets may be lost or reordered, an acknowledged one. Left out: false. Live only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compact_headers: bool,
}

/// A service as files write it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(extend("anyOf" = [{ "required": ["scheme", "rate"] }, { "required": ["goal"] }]))]
struct Written {
    /// Number of the service, 0 to 15, in its frames; service 0 takes unrecognised traffic.
    #[schemars(range(max = 15), example = 1)]
    number: u8,
    /// The name that classes and reports use.
    #[schemars(example = &"voice")]
    name: String,
    /// The purpose of the service: traffic of that kind is classified to it, and it sets a suitable scheme,
    /// rate and other options. Explicit options take precedence.
    goal: Option<Goal>,
    /// The service's share of the link, relative to the other services. Source: Xylomenos 1999, section 6.2.
    /// Left out: that of the goal.
    #[schemars(example = 0.5, extend("x-unit" = "relative"))]
    rate: Option<f64>,
    /// How losses are repaired. Left out: that of the goal.
    scheme: Option<SchemeConfig>,
    /// The queue for packets that the service cannot take yet. Left out: `fq-codel` (live), `drop-tail` of
    /// the link's `queue` (study), or that of the goal.
    queue: Option<QueueConfig>,
    /// The age at which a packet is of no more use. Packets that wait longer are dropped, and a lost packet
    /// is neither requested nor retransmitted if it would arrive too late. Left out: no limit, or that of the
    /// goal.
    budget: Option<Duration>,
    /// Datagrams older than this are dropped from the queue and, except by schemes that repair everything,
    /// not retransmitted. TCP segments are kept: the queued ones restart a connection after an outage, when
    /// its own timers have backed off. Left out: 10 s (live), no limit (study), or that of the goal.
    patience: Option<Duration>,
    /// Whether small packets share frames. Live only. Left out: those up to 256 B that wait anyway;
    /// never where the scheme looks into packets.
    aggregate: Option<AggregateConfig>,
    /// Whether TCP/IP headers are sent as differences from another packet of their connection: the previous
    /// one or, where packets may be lost or reordered, an acknowledged one. Left out: false, or that of the
    /// goal. Live only, and not for snoop.
    compact_headers: Option<bool>,
}

/// A required field that neither the service nor its goal supplies.
#[derive(Debug, thiserror::Error)]
#[error("missing field `{0}`")]
struct Missing(&'static str);

impl TryFrom<Written> for ServiceConfig {
    type Error = Missing;

    fn try_from(written: Written) -> Result<Self, Missing> {
        let goal = written.goal;
        let rate = written.rate.or(goal.map(Goal::rate));
        let scheme = written.scheme.or(goal.map(Goal::scheme));
        let scheme = scheme.ok_or(Missing("scheme"))?;
        let compact = goal.is_some_and(Goal::compact_headers) && !scheme.looks_into_packets();
        Ok(Self {
            number: written.number,
            name: written.name,
            goal,
            rate: rate.ok_or(Missing("rate"))?,
            scheme,
            queue: written.queue.or(goal.and_then(Goal::queue)),
            aggregate: written.aggregate,
            compact_headers: written.compact_headers.unwrap_or(compact),
            budget: written.budget.or(goal.and_then(Goal::budget)),
            patience: written.patience.or(goal.and_then(Goal::patience)),
        })
    }
}

/// The services of a link whose file has none: one for each kind of traffic that nearly every link carries.
pub fn by_goal() -> Vec<ServiceConfig> {
    let all = [
        (1, "files", Goal::Bulk),
        (2, "pages", Goal::Web),
        (3, "calls", Goal::Voice),
        (4, "interactive", Goal::Interactive),
        (5, "video", Goal::Video),
        (6, "paced", Goal::Paced),
    ];
    all.map(|(number, name, goal)| ServiceConfig::for_goal(number, name, goal))
        .to_vec()
}

impl ServiceConfig {
    /// The explicit goal, or the goal with this scheme, as written or with every default filled in.
    pub(crate) fn goal(&self) -> Option<Goal> {
        let is = |goal: &Goal| {
            let resolved = |header| Self::for_goal(1, "", *goal).resolve(header).scheme;
            let live = [HeaderProfile::Live, HeaderProfile::Sealed];
            goal.scheme() == self.scheme
                || live
                    .into_iter()
                    .any(|header| resolved(header) == self.scheme)
        };
        self.goal.or_else(|| Goal::ALL.into_iter().find(is))
    }

    /// A service with all the settings of a goal.
    fn for_goal(number: u8, name: &str, goal: Goal) -> Self {
        Self {
            number,
            name: name.to_owned(),
            goal: Some(goal),
            rate: goal.rate(),
            scheme: goal.scheme(),
            budget: goal.budget(),
            patience: goal.patience(),
            queue: goal.queue(),
            aggregate: None,
            compact_headers: goal.compact_headers(),
        }
    }
}

/// Datagrams older than this are of no use to anybody after an outage.
const USUAL_PATIENCE: Duration = Duration::from_secs(10);

/// The name of the raw service that is added where none has number 0.
pub const IMPLICIT_NAME: &str = "default";

/// The services with every default filled in, and the raw service added where none has number 0.
pub fn resolve(header: HeaderProfile, services: &[ServiceConfig]) -> Vec<ServiceConfig> {
    let mut all: Vec<_> = services.iter().map(|s| s.resolve(header)).collect();
    if !all.iter().any(|s| s.number == 0) {
        // Unrecognised traffic gets the smallest share of any service, never nothing.
        let rate = all.iter().map(|s| s.rate).fold(1.0, f64::min);
        let implicit = ServiceConfig {
            number: 0,
            name: IMPLICIT_NAME.to_owned(),
            goal: None,
            rate,
            scheme: SchemeConfig::Default(DefaultConfig {}),
            budget: None,
            patience: None,
            queue: None,
            aggregate: None,
            compact_headers: false,
        };
        all.insert(0, implicit.resolve(header));
    }
    all
}

impl ServiceConfig {
    /// This service with every default of the header profile filled in.
    #[must_use]
    pub fn resolve(&self, header: HeaderProfile) -> Self {
        let live = header.is_live();
        let mut all = self.clone();
        let usual = if live {
            QueueConfig::fq_codel()
        } else {
            QueueConfig::DropTail {
                limit: QueueLimit::Packets(50),
            }
        };
        all.queue = Some(
            all.queue
                .unwrap_or(usual)
                .resolve(self.scheme.traits().holds),
        );
        if live {
            all.patience = all.patience.or(Some(USUAL_PATIENCE));
        }
        if live && !self.scheme.looks_into_packets() {
            all.aggregate = all.aggregate.or(Some(AggregateConfig::default()));
        }
        all.scheme.resolve(header);
        // The goal has been expanded, and profiles have become rules by then.
        all.goal = None;
        all
    }
}
