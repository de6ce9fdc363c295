//! `[link]`: the settings of a link and their defaults.

use std::fmt;

use airlane_base::{Duration, Rate};
use airlane_link::classify::ClassProfile;
use airlane_link::config::{RateLimit, Rates, SchedulerConfig, by_goal};
use airlane_link::{ClassesConfig, ServiceConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use super::fragment::FragmentConfig;
use super::underlay::UnderlayConfig;
use crate::config::Security;
use crate::packet::ecn::Outer;

/// Shorter than the mapping timeout of common NATs.
const USUAL_KEEPALIVE: Duration = Duration::from_secs(25);
/// Limits of `keepalive`: the interval of a busy link, and the time after which keys must be renewed.
pub const KEEPALIVES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(120)];
/// Longer than on nearly every link, so that it paces nothing by itself.
pub const USUAL_DELAY: Duration = Duration::from_millis(50);

/// The link below the interface, `[link]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "WrittenLink", rename_all = "kebab-case")]
pub struct LinkConfig {
    /// Its rate, counted over whole Ethernet frames, bit/s.
    pub rate: Rate,
    /// Whether both ends estimate how much of the rate the link carries.
    pub rate_limit: RateLimit,
    /// One-way delay.
    pub delay: Duration,
    /// Interval of hellos while the link is idle.
    pub keepalive: Duration,
    /// What carries the frames.
    pub underlay: UnderlayConfig,
    /// Whether packets longer than a frame are fragmented.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fragment: Option<FragmentConfig>,
    /// Protection of frames. A file without it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<Security>,
    /// Which fields of the outer IP header are copied from the inner packet.
    pub outer: Outer,
    /// The scheduler that chooses the service whose frame leaves next.
    pub scheduler: SchedulerConfig,
    /// Source of the services' shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rates: Option<Rates>,
    /// The services.
    pub services: Vec<ServiceConfig>,
    /// Rules that assign packets to services.
    pub classes: ClassesConfig,
}

/// The link below the interface, `[link]`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenLink {
    /// The rate of the link, counted over whole Ethernet frames: the port shapes to it. With `"auto"` both
    /// ends measure what the link carries. Left out: `"auto"`.
    #[serde(default, deserialize_with = "rate_or_auto")]
    #[schemars(with = "Option<RateOrAuto>")]
    rate: Option<Rate>,
    /// Whether both ends estimate, for each direction, what the link carries of that rate: `fixed`,
    /// `estimated` or `found`. Left out: `estimated`, and `found` where the rate is `"auto"`.
    rate_limit: Option<RateLimit>,
    /// The one-way delay of the link. Fixed timers use it, and the others do until a round trip has been
    /// measured. Left out: 50 ms.
    delay: Option<Duration>,
    /// The interval of hellos while nothing is sent. They test whether the peer is there and keep the
    /// mappings of NATs and firewalls open: `"1 s"` to `"2 min"`. Left out: 25 s.
    keepalive: Option<Duration>,
    /// What carries the frames.
    underlay: UnderlayConfig,
    /// Whether packets longer than a frame are fragmented, and the longest datagram then: the path MTU with
    /// `"auto"`, or a smaller size; with `"adaptive"` each service chooses by the loss of its frames. Left
    /// out: packets are limited to one frame.
    fragment: Option<FragmentConfig>,
    /// How frames are protected. It has no default. Left out: the file is refused.
    security: Option<Security>,
    /// Which fields of the outer IP header are copied from the inner packet: `dscp` and `ecn`.
    #[serde(default)]
    outer: Outer,
    /// The scheduler that chooses the service whose frame leaves next. Source: Xylomenos 1999, section 6.2.3.
    #[serde(default)]
    scheduler: SchedulerConfig,
    /// Source of the services' shares: their `rate` (`fixed`, if left out), or their part of the traffic in
    /// the last second (`measured`), which suits services that always send.
    rates: Option<Rates>,
    /// The services of the link. Left out: 1 `files` (bulk), 2 `pages` (web), 3 `calls` (voice), 4
    /// `interactive`, 5 `video` and 6 `paced`, each by its goal, beside 0 `default`.
    services: Option<Vec<ServiceConfig>>,
    /// The rules that assign packets to services, of which the first match decides, or ready-made ones by
    /// name. A list may end with such a name. Left out: `behaviour`.
    classes: Option<ClassesConfig>,
}

struct RateOrAuto;

airlane_base::schema_of!(RateOrAuto, "RateOrAuto", {
    "type": "string",
    "pattern": r"^(auto|\s*[+]?[0-9._]+\s*(bit|kbit|Mbit|Gbit)/s\s*)$",
    "examples": ["auto", "20 Mbit/s"],
    "x-unit": "bit/s, kbit/s, Mbit/s, Gbit/s, or \"auto\"",
});

/// Returns `None` for `"auto"`.
fn rate_or_auto<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Rate>, D::Error> {
    struct Text;
    impl de::Visitor<'_> for Text {
        type Value = Option<Rate>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("\"auto\" or a rate such as \"20 Mbit/s\"")
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<Rate>, E> {
            match text {
                "auto" => Ok(None),
                rate => rate.parse().map(Some).map_err(E::custom),
            }
        }
    }
    d.deserialize_any(Text)
}

impl From<WrittenLink> for LinkConfig {
    fn from(written: WrittenLink) -> Self {
        let services = written.services.unwrap_or_else(by_goal);
        let usual = ClassesConfig::Profile(ClassProfile::Behaviour);
        let usual = match usual.rules(&services).is_empty() {
            // None of the ready-made rules refers to one of these services.
            true => ClassesConfig::default(),
            false => usual,
        };
        // An estimate that begins at no stated rate is a search.
        let limit = match (written.rate, written.rate_limit) {
            (None, None | Some(RateLimit::Estimated)) => RateLimit::Found,
            (_, limit) => limit.unwrap_or(RateLimit::Estimated),
        };
        Self {
            rate: written.rate.unwrap_or(RateLimit::UNSTATED),
            rate_limit: limit,
            delay: written.delay.unwrap_or(USUAL_DELAY),
            keepalive: written.keepalive.unwrap_or(USUAL_KEEPALIVE),
            underlay: written.underlay,
            fragment: written.fragment,
            security: written.security,
            outer: written.outer,
            scheduler: written.scheduler,
            rates: written.rates,
            services,
            classes: written.classes.unwrap_or(usual),
        }
    }
}
