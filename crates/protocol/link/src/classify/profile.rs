//! Ready-made classes: the heuristic classifier and the differentiated services classifier of
//! Xylomenos 1999, sections 8.2 and 8.3 (docs/spec/multi-service.md, sections 10.1 and 10.2).
//!
//! A profile is a table of rules that name no services: they describe what the traffic needs. On a link the
//! profile becomes ordinary rules. Each leads to the service that suits its traffic best by the generic
//! traits of the service's scheme, and a rule that no service suits is left out. So no application is put on
//! a service that harms it, and unrecognised traffic gets the raw service.
//!
//! ```text
//! elastic   files, pages, mail     full repair; or Snoop, for TCP; or limited repair in order
//! prompt    speech, conferencing   limited repair as received; or limited repair in order
//! ```
//!
//! The heuristic reads the code points of prompt traffic, too: a marked call is recognised on any port.
//!
//! `behaviour` is the heuristic followed by rules on the behaviour of flows: small packets are prompt
//! traffic, large ones elastic.
//!
//! Left out: the bits of the old TOS byte, which RFC 2474 withdrew; encrypted traffic, which shows a code
//! point but no ports; subclasses by additional bits of the DS field, because the operator assigns code
//! points for local use: they need a rule each.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::behaviour::Behaviour;
use super::{ClassConfig, Dscp, MatchConfig, Ports, Protocol};
use crate::config::{ConfigError, Goal, SchemeConfig, ServiceConfig};
use crate::flow::{TCP, UDP};
use crate::path::{Class, Reliability};

/// `classes = ...`: rules, or the name of a profile that becomes rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassesConfig {
    /// Rules; the first match decides.
    Rules(Vec<ClassConfig>),
    /// A ready-made set.
    Profile(ClassProfile),
    /// Rules, followed by a ready-made set.
    Both(Vec<ClassConfig>, ClassProfile),
}

/// A set of ready-made rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassProfile {
    /// By protocol, code points of prompt traffic and well-known port.
    Heuristic,
    /// By the DS field only.
    Dscp,
    /// By code point and by the behaviour of flows.
    Behaviour,
}

/// The names of the profiles in files.
const PROFILES: [(&str, ClassProfile); 3] = [
    ("heuristic", ClassProfile::Heuristic),
    ("dscp", ClassProfile::Dscp),
    ("behaviour", ClassProfile::Behaviour),
];

/// What a kind of traffic needs of its service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// Complete delivery, in order.
    Elastic,
    /// Timely delivery.
    Prompt,
    /// The service that suits this goal best.
    For(Goal),
    /// A service with this very goal, where there is one.
    Only(Goal),
}

use Need::{Elastic, For, Only, Prompt};

/// The ports of the web, over TCP and QUIC, for a service with the goal of pages.
const WEB_PORTS: [(MatchConfig, Need); 3] = [
    (at(TCP, 80, 80), Only(Goal::Web)),
    (at(TCP, 443, 443), Only(Goal::Web)),
    (at(UDP, 443, 443), Only(Goal::Web)),
];

/// All TCP on one service. After it come the code points of prompt traffic ([`DSCP`]), then [`UDP_PORTS`].
const ALL_TCP: [(MatchConfig, Need); 1] = [(protocol(TCP), Elastic)];

/// UDP by application (IANA's registry of ports).
const UDP_PORTS: [(MatchConfig, Need); 6] = [
    // QUIC repairs its own losses as TCP does.
    (udp(443, 443), Elastic),
    // RTP and RTCP.
    (udp(5004, 5005), Prompt),
    // STUN and TURN: relayed calls.
    (udp(3478, 3481), Prompt),
    // IAX2 and SIP.
    (udp(4569, 4569), Prompt),
    (udp(5060, 5061), Prompt),
    // A DNS client repeats its query only after seconds.
    (udp(53, 53), Prompt),
];

/// TCP by the behaviour of its flow: TCP is never a call, even if marked as one.
const BEHAVIOUR_TCP: [(MatchConfig, Need); 4] = [
    (tcp_that(Behaviour::Interactive), For(Goal::Interactive)),
    (tcp_that(Behaviour::Page), For(Goal::Web)),
    (tcp_that(Behaviour::File), For(Goal::Bulk)),
    (tcp_that(Behaviour::Paced), For(Goal::Paced)),
];

/// All other protocols by the behaviour of the flow.
const BEHAVIOUR: [(MatchConfig, Need); 5] = [
    (behaves(Behaviour::Call), For(Goal::Voice)),
    (behaves(Behaviour::Interactive), For(Goal::Interactive)),
    (behaves(Behaviour::Page), For(Goal::Web)),
    (behaves(Behaviour::File), For(Goal::Bulk)),
    (behaves(Behaviour::Video), For(Goal::Video)),
];

/// Code points that say more than a flow's behaviour shows (RFC 4594). Background files precede all TCP;
/// calls, games and video follow it.
const MARKED_FILES: [(MatchConfig, Need); 5] = [
    // AF1, CS1 and LE.
    (dscp(10), For(Goal::Bulk)),
    (dscp(12), For(Goal::Bulk)),
    (dscp(14), For(Goal::Bulk)),
    (dscp(8), For(Goal::Bulk)),
    (dscp(1), For(Goal::Bulk)),
];
const MARKED: [(MatchConfig, Need); 9] = [
    // EF, VA and NQB.
    (dscp(46), For(Goal::Voice)),
    (dscp(44), For(Goal::Voice)),
    (dscp(45), For(Goal::Voice)),
    // CS5 and CS4.
    (dscp(40), For(Goal::Interactive)),
    (dscp(32), For(Goal::Interactive)),
    // CS3 and AF4.
    (dscp(24), For(Goal::Video)),
    (dscp(34), For(Goal::Video)),
    (dscp(36), For(Goal::Video)),
    (dscp(38), For(Goal::Video)),
];

/// The service classes of RFC 4594 and later entries of the IANA registry. Network control (CS6, CS7) and
/// everything unrecognised keep the raw service.
const DSCP: [(MatchConfig, Need); 21] = [
    // EF, VA (telephony), NQB.
    (dscp(46), Prompt),
    (dscp(44), Prompt),
    (dscp(45), Prompt),
    // CS5 (signalling), CS4 (games), CS3 (broadcast video).
    (dscp(40), Prompt),
    (dscp(32), Prompt),
    (dscp(24), Prompt),
    // AF4: conferencing.
    (dscp(34), Prompt),
    (dscp(36), Prompt),
    (dscp(38), Prompt),
    // AF3: streaming from a buffer.
    (dscp(26), Elastic),
    (dscp(28), Elastic),
    (dscp(30), Elastic),
    // AF2: transactions.
    (dscp(18), Elastic),
    (dscp(20), Elastic),
    (dscp(22), Elastic),
    // AF1: files.
    (dscp(10), Elastic),
    (dscp(12), Elastic),
    (dscp(14), Elastic),
    // CS2 (administration), CS1 and LE (background files).
    (dscp(16), Elastic),
    (dscp(8), Elastic),
    (dscp(1), Elastic),
];

const NOTHING: MatchConfig = MatchConfig {
    dscp: None,
    protocol: None,
    src: None,
    dst: None,
    src_port: None,
    dst_port: None,
    port: None,
    behaves: None,
};

const fn behaves(behaviour: Behaviour) -> MatchConfig {
    MatchConfig {
        behaves: Some(behaviour),
        ..NOTHING
    }
}

const fn tcp_that(behaviour: Behaviour) -> MatchConfig {
    MatchConfig {
        behaves: Some(behaviour),
        ..protocol(TCP)
    }
}

const fn dscp(code_point: u8) -> MatchConfig {
    MatchConfig {
        dscp: Dscp::new(code_point),
        ..NOTHING
    }
}

const fn protocol(number: u8) -> MatchConfig {
    MatchConfig {
        protocol: Some(Protocol(number)),
        ..NOTHING
    }
}

const fn udp(first: u16, last: u16) -> MatchConfig {
    at(UDP, first, last)
}

const fn at(number: u8, first: u16, last: u16) -> MatchConfig {
    MatchConfig {
        port: Ports::new(first, last),
        ..protocol(number)
    }
}

impl Default for ClassesConfig {
    fn default() -> Self {
        Self::Rules(Vec::new())
    }
}

impl ClassesConfig {
    /// Whether there are neither rules nor a profile.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Rules(rules) if rules.is_empty())
    }

    /// The rules that the file itself has, in their order.
    pub fn written(&self) -> &[ClassConfig] {
        match self {
            Self::Rules(rules) | Self::Both(rules, _) => rules,
            Self::Profile(_) => &[],
        }
    }

    /// The rules on a link with these services.
    pub fn rules(&self, services: &[ServiceConfig]) -> Vec<ClassConfig> {
        match self {
            Self::Rules(rules) => rules.clone(),
            Self::Profile(profile) => profile.rules(services),
            Self::Both(rules, profile) => {
                let mut all = rules.clone();
                all.extend(profile.rules(services));
                all
            }
        }
    }

    /// The problem of a profile on a link without a service to choose.
    pub fn check(&self, services: &[ServiceConfig]) -> Option<ConfigError> {
        let (Self::Profile(profile) | Self::Both(_, profile)) = self else {
            return None;
        };
        profile.rules(services).is_empty().then(|| ConfigError {
            path: "classes".to_owned(),
            problem: format!(
                "\"{}\" finds no service for any traffic on this link",
                profile.name()
            ),
            help:
                "it needs one that repairs in order, such as sr-m2, for TCP, or one that repairs \
                   with limits, such as rlp-oos, for speech"
                    .to_owned(),
        })
    }
}

impl ClassProfile {
    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Heuristic => PROFILES[0].0,
            Self::Dscp => PROFILES[1].0,
            Self::Behaviour => PROFILES[2].0,
        }
    }

    /// Names of the profiles whose rules reach all services of these names.
    pub(super) fn that_reach<'a>(
        services: &'a [ServiceConfig],
        names: &'a [&str],
    ) -> impl Iterator<Item = &'static str> + 'a {
        let reach = move |rules: Vec<ClassConfig>| {
            let leads = |name: &&str| rules.iter().any(|rule| rule.service == *name);
            names.iter().all(leads)
        };
        let profiles = PROFILES.iter();
        let suit = profiles.filter(move |(_, profile)| reach(profile.rules(services)));
        suit.map(|(name, _)| *name)
    }

    fn rules(self, services: &[ServiceConfig]) -> Vec<ClassConfig> {
        let marked = DSCP.iter().filter(|(_, need)| *need == Prompt);
        let table: Vec<&(MatchConfig, Need)> = match self {
            Self::Heuristic => {
                let tcp = WEB_PORTS.iter().chain(&ALL_TCP);
                tcp.chain(marked).chain(&UDP_PORTS).collect()
            }
            Self::Dscp => DSCP.iter().collect(),
            Self::Behaviour => {
                let first = MARKED_FILES.iter().chain(&BEHAVIOUR_TCP);
                first.chain(&MARKED).chain(&BEHAVIOUR).collect()
            }
        };
        let rule = |(conditions, need): &(MatchConfig, Need)| {
            let ranked = services.iter().filter_map(|service| {
                let rank = need.rank(service, conditions.protocol)?;
                Some((rank, service.number, &service.name))
            });
            let (_, _, name) = ranked.min()?;
            Some(ClassConfig {
                r#match: *conditions,
                service: name.clone(),
            })
        };
        table.into_iter().filter_map(rule).collect()
    }
}

impl Need {
    /// How well a service suits packets of this protocol, 0 best; none if it would harm them.
    fn rank(self, service: &ServiceConfig, protocol: Option<Protocol>) -> Option<u8> {
        let scheme = &service.scheme;
        let (like, nearest, kind) = match self {
            Elastic | Prompt => return self.rank_of_kind(scheme, protocol),
            Only(goal) => return (service.goal() == Some(goal)).then_some(0),
            For(Goal::Web) => (Goal::Web, Goal::Bulk, Elastic),
            For(Goal::Bulk) => (Goal::Bulk, Goal::Web, Elastic),
            For(Goal::Paced) => (Goal::Paced, Goal::Bulk, Elastic),
            For(Goal::Voice) => (Goal::Voice, Goal::Interactive, Prompt),
            For(Goal::Video) => (Goal::Video, Goal::Voice, Prompt),
            // Keystrokes are too few to suffer from any order; without a service for them, TCP needs one that
            // suits TCP.
            For(Goal::Interactive) if protocol == Some(Protocol(TCP)) => {
                (Goal::Interactive, Goal::Web, Elastic)
            }
            For(Goal::Interactive) => (Goal::Interactive, Goal::Voice, Prompt),
        };
        // These rules follow those for TCP, so a rule without protocol never gets TCP.
        if protocol.is_none() && matches!(scheme, SchemeConfig::Snoop(_)) {
            return None;
        }
        match service.goal() {
            Some(goal) if goal == like => Some(0),
            Some(goal) if goal == nearest => Some(1),
            _ => kind.rank_of_kind(scheme, protocol).map(|rank| rank + 2),
        }
    }

    fn rank_of_kind(self, scheme: &SchemeConfig, protocol: Option<Protocol>) -> Option<u8> {
        let Class {
            reliability,
            in_order,
        } = scheme.class();
        let snoop = matches!(scheme, SchemeConfig::Snoop(_));
        match (self, reliability, in_order) {
            (Elastic, Reliability::Full, _) => Some(0),
            (Elastic, _, _) if snoop => {
                let other = protocol.is_some_and(|p| p != Protocol(TCP));
                (!other).then_some(1)
            }
            (Elastic, Reliability::Limited, true) => Some(2),
            (Prompt, Reliability::Limited, false) => Some(0),
            (Prompt, Reliability::Limited, true) => Some(1),
            _ => None,
        }
    }
}

/// An entry of a list.
#[derive(Serialize)]
#[serde(untagged)]
enum Entry {
    /// A rule.
    Rule(ClassConfig),
    /// A ready-made set, after all rules.
    Profile(String),
}

impl Serialize for ClassesConfig {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Rules(rules) => rules.serialize(s),
            Self::Profile(profile) => s.serialize_str(profile.name()),
            Self::Both(rules, profile) => {
                let all = rules.iter().cloned().map(Entry::Rule);
                s.collect_seq(all.chain([Entry::Profile(profile.name().to_owned())]))
            }
        }
    }
}

impl JsonSchema for ClassesConfig {
    fn schema_name() -> Cow<'static, str> {
        "Classes".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let [heuristic, dscp, behaviour] = PROFILES.map(|(name, _)| name);
        json_schema!({
            "anyOf": [
                { "const": heuristic, "description": "By protocol, ports and DSCP." },
                { "const": dscp, "description": "By DSCP alone." },
                { "const": behaviour, "description": "By DSCP, and what flows do." },
                { "type": "array", "items": { "anyOf": [
                    generator.subschema_for::<ClassConfig>(), { "enum": [heuristic, dscp, behaviour] },
                ] } },
            ],
        })
    }
}

impl<'de> Deserialize<'de> for ClassesConfig {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> Visitor<'de> for Form {
            type Value = ClassesConfig;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of classes, \"heuristic\", \"dscp\" or \"behaviour\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<ClassesConfig, E> {
                profile(text).map(ClassesConfig::Profile)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ClassesConfig, A::Error> {
                let mut rules = Vec::new();
                while let Some(element) = seq.next_element::<Element>()? {
                    match element {
                        Element::Rule(rule) => rules.push(*rule),
                        Element::Profile(name) if seq.next_element::<Element>()?.is_none() => {
                            return Ok(ClassesConfig::Both(rules, profile(&name)?));
                        }
                        Element::Profile(name) => {
                            return Err(de::Error::custom(format!(
                                "\"{name}\" decides for everything, so no class behind it ever does: write it last"
                            )));
                        }
                    }
                }
                Ok(ClassesConfig::Rules(rules))
            }
        }
        d.deserialize_any(Form)
    }
}

/// The profile of this name.
fn profile<E: de::Error>(text: &str) -> Result<ClassProfile, E> {
    const NAMES: &[&str] = &[PROFILES[0].0, PROFILES[1].0, PROFILES[2].0];
    let found = PROFILES.iter().find(|(name, _)| *name == text);
    let found = found.map(|(_, profile)| *profile);
    found.ok_or_else(|| E::unknown_variant(text, NAMES))
}

/// An entry of a list, read so that an error in a rule names the rule.
enum Element {
    Rule(Box<ClassConfig>),
    Profile(String),
}

impl<'de> Deserialize<'de> for Element {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> Visitor<'de> for Form {
            type Value = Element;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a class, or, last, a predefined set")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Element, E> {
                Ok(Element::Profile(text.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Element, A::Error> {
                let rule = ClassConfig::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(Element::Rule(Box::new(rule)))
            }
        }
        d.deserialize_any(Form)
    }
}

#[cfg(test)]
mod tests;
