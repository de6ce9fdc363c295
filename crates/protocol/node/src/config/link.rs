//! `[link]`: what people write about a link, and what is there where they leave it out.

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

/// Shorter than translators of addresses keep a mapping.
const USUAL_KEEPALIVE: Duration = Duration::from_secs(25);
/// Busy links say hello so often; and by then keys have to be renewed.
pub const KEEPALIVES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(120)];
/// More than nearly every link: it paces nothing by itself.
pub const USUAL_DELAY: Duration = Duration::from_millis(50);

/// The link below, `[link]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "WrittenLink", rename_all = "kebab-case")]
pub struct LinkConfig {
    /// Its rate, counted over whole Ethernet frames.
    pub rate: Rate,
    /// Whether both ends find what the link carries of that.
    pub rate_limit: RateLimit,
    /// Its one-way delay.
    pub delay: Duration,
    /// How often it says hello while it idles.
    pub keepalive: Duration,
    /// What frames travel in.
    pub underlay: UnderlayConfig,
    /// Whether packets longer than a frame travel in parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fragment: Option<FragmentConfig>,
    /// How frames are protected; none was said where this is missing, which is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<Security>,
    /// What the outer IP header of a datagram takes from the packet inside.
    pub outer: Outer,
    /// Which service's frame leaves next.
    pub scheduler: SchedulerConfig,
    /// Where the services' shares come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rates: Option<Rates>,
    /// The services.
    pub services: Vec<ServiceConfig>,
    /// Which packets get which service.
    pub classes: ClassesConfig,
}

/// The link below, `[link]`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenLink {
    /// The link carries this at most, counted over whole Ethernet frames, or `"auto"`: what both ends find. The port
    /// shapes to it. Left out: `"auto"`.
    #[serde(default, deserialize_with = "rate_or_auto")]
    #[schemars(with = "Option<RateOrAuto>")]
    rate: Option<Rate>,
    /// Whether both ends find what the link carries of that rate, up and down: `fixed`, `estimated` or `found`. Left
    /// out: `estimated`, and `found` where the rate is `"auto"`.
    rate_limit: Option<RateLimit>,
    /// The link has this one-way delay, which fixed timers use, and all others until round trips were
    /// measured. Left out: 50 ms.
    delay: Option<Duration>,
    /// While nothing is sent, this end asks so often whether the other is there, which keeps the mappings of address
    /// translators and firewalls open: `"1 s"` to `"2 min"`. Left out: 25 s.
    keepalive: Option<Duration>,
    /// What frames travel in.
    underlay: UnderlayConfig,
    /// Whether packets longer than a frame travel in parts, and how long a datagram may be then: what the
    /// path takes, or less; `"adaptive"`: as services choose by what becomes of their frames. Left out: no packet is longer.
    fragment: Option<FragmentConfig>,
    /// How frames are protected; it must be said. Left out: the file is refused.
    security: Option<Security>,
    /// What the outer IP header of a datagram takes from the packet inside: `dscp` and `ecn`.
    #[serde(default)]
    outer: Outer,
    /// The scheduler says which service's frame leaves next. Source: Xylomenos 1999, section 6.2.3.
    #[serde(default)]
    scheduler: SchedulerConfig,
    /// Where the services' shares come from: their `rate` (`fixed`, if left out), or their part of the traffic
    /// in the last second (`measured`), which suits services that always send.
    rates: Option<Rates>,
    /// The services of the link are these. Left out: 1 `files` (bulk), 2 `pages` (web), 3 `calls`
    /// (voice), 4 `interactive`, 5 `video` and 6 `paced`, each by its goal, beside 0 `default`.
    services: Option<Vec<ServiceConfig>>,
    /// These rules, of which the first match decides, or ready-made ones by their name say which
    /// packets get which service. A list may end with such a name. Left out: `behaviour`.
    classes: Option<ClassesConfig>,
}

struct RateOrAuto;

airlane_base::schema_of!(RateOrAuto, "RateOrAuto", {
    "type": "string",
    "pattern": r"^(auto|\s*[+]?[0-9._]+\s*(bit|kbit|Mbit|Gbit)/s\s*)$",
    "examples": ["auto", "20 Mbit/s"],
    "x-unit": "bit/s, kbit/s, Mbit/s, Gbit/s, or \"auto\"",
});

/// None: `"auto"`.
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
            // Nothing would suit any of these services.
            true => ClassesConfig::default(),
            false => usual,
        };
        let limit = match written.rate {
            Some(_) => RateLimit::Estimated,
            None => RateLimit::Found,
        };
        Self {
            rate: written.rate.unwrap_or(RateLimit::UNSTATED),
            rate_limit: written.rate_limit.unwrap_or(limit),
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
