//! Ready-made classes: the heuristic classifier and the differentiated services classifier of
//! Xylomenos 1999, sections 8.2 and 8.3 (the specification, sections 10.1 and 10.2).
//!
//! A profile is a table of rules whose services are not named but described, by what the traffic
//! needs. On a link it becomes ordinary rules: each leads to the service that suits its traffic best
//! by the generic traits of its scheme, and a rule that no service suits is left out. So no
//! application is put on a service that harms it, and unrecognised traffic gets the raw service.
//!
//! ```text
//! elastic   files, pages, mail     full repair; or Snoop, for TCP; or limited repair in order
//! prompt    speech, conferencing   limited repair as received; or limited repair in order
//! ```
//!
//! The heuristic reads the code points of prompt traffic, too: whoever marks a call says what it is, on
//! whichever port.
//!
//! `behaviour` is the heuristic, and then asks what a flow does: small packets are prompt traffic, large ones elastic.
//!
//! Left out: the bits of the old TOS byte, which RFC 2474 took back; encrypted traffic, which shows
//! a code point but no ports; subclasses by additional bits of the DS field, since code points for
//! local use are for whoever manages the network: they are a rule each.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::behaviour::Behaviour;
use super::{ClassConfig, Dscp, MatchConfig, Ports, Protocol};
use crate::config::{ConfigError, SchemeConfig, ServiceConfig};
use crate::flow::{TCP, UDP};
use crate::path::{Class, Reliability};

/// `classes = ...`: rules, or the name of a profile that becomes rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ClassesConfig {
    /// First-match rules.
    Rules(Vec<ClassConfig>),
    /// Ready-made ones.
    Profile(ClassProfile),
}

/// A set of ready-made rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassProfile {
    /// By protocol, code points of prompt traffic and well-known port.
    Heuristic,
    /// By the DS field alone.
    Dscp,
    /// As the heuristic; what that does not recognise, by what its flow does.
    Behaviour,
}

/// Names of the profiles in files.
const PROFILES: [(&str, ClassProfile); 3] = [
    ("heuristic", ClassProfile::Heuristic),
    ("dscp", ClassProfile::Dscp),
    ("behaviour", ClassProfile::Behaviour),
];

/// What a kind of traffic wants of its service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// Everything, in order.
    Elastic,
    /// What comes in time.
    Prompt,
}

use Need::{Elastic, Prompt};

/// All TCP for one service. Behind it come the code points of prompt traffic ([`DSCP`]), then [`UDP_PORTS`].
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
    // DNS asks again only after seconds.
    (udp(53, 53), Prompt),
];

/// What is left, by what its flow does.
const BEHAVIOUR: [(MatchConfig, Need); 2] = [
    (behaves(Behaviour::Call), Prompt),
    (behaves(Behaviour::Transfer), Elastic),
];

/// Service classes of RFC 4594, and what the IANA registry has since then. Network control (CS6, CS7) and
/// everything else that is unrecognised keeps the raw service.
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
    // CS2 (administration), CS1 and LE (files that may wait).
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
    MatchConfig {
        port: Ports::new(first, last),
        ..protocol(UDP)
    }
}

impl Default for ClassesConfig {
    fn default() -> Self {
        Self::Rules(Vec::new())
    }
}

impl ClassesConfig {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Rules(rules) if rules.is_empty())
    }

    /// The rules on a link with these services.
    pub fn rules(&self, services: &[ServiceConfig]) -> Vec<ClassConfig> {
        match self {
            Self::Rules(rules) => rules.clone(),
            Self::Profile(profile) => profile.rules(services),
        }
    }

    /// A profile that has nothing to choose from.
    pub fn check(&self, services: &[ServiceConfig]) -> Option<ConfigError> {
        let Self::Profile(profile) = self else {
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
    /// The name that stands in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Heuristic => PROFILES[0].0,
            Self::Dscp => PROFILES[1].0,
            Self::Behaviour => PROFILES[2].0,
        }
    }

    fn rules(self, services: &[ServiceConfig]) -> Vec<ClassConfig> {
        let marked = DSCP.iter().filter(|(_, need)| *need == Prompt);
        let known = ALL_TCP.iter().chain(marked).chain(&UDP_PORTS);
        let table: Vec<&(MatchConfig, Need)> = match self {
            Self::Heuristic => known.collect(),
            Self::Dscp => DSCP.iter().collect(),
            Self::Behaviour => known.chain(&BEHAVIOUR).collect(),
        };
        let rule = |(conditions, need): &(MatchConfig, Need)| {
            let ranked = services.iter().filter_map(|service| {
                let rank = need.rank(&service.scheme, conditions.protocol)?;
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
    /// How well a scheme suits packets of this protocol, 0 best; none if it would harm them.
    fn rank(self, scheme: &SchemeConfig, protocol: Option<Protocol>) -> Option<u8> {
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

impl Serialize for ClassProfile {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.name())
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
                { "const": heuristic, "description": "By protocol, ports and code points." },
                { "const": dscp, "description": "By code points alone." },
                { "const": behaviour, "description": "As \"heuristic\", and the rest by what its flow does." },
                { "type": "array", "items": generator.subschema_for::<ClassConfig>() },
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
                const NAMES: &[&str] = &[PROFILES[0].0, PROFILES[1].0, PROFILES[2].0];
                let found = PROFILES.iter().find(|(name, _)| *name == text);
                let (_, profile) = found.ok_or_else(|| E::unknown_variant(text, NAMES))?;
                Ok(ClassesConfig::Profile(*profile))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<ClassesConfig, A::Error> {
                Vec::deserialize(de::value::SeqAccessDeserializer::new(seq))
                    .map(ClassesConfig::Rules)
            }
        }
        d.deserialize_any(Form)
    }
}

#[cfg(test)]
mod tests;
