//! Chooses the service of each packet (Xylomenos 1999, sections 6.2 and 8.2; docs/spec/multi-service.md,
//! sections 9.2, 10.1 and 10.2).
//!
//! Rules are tried in the order of the file; the first match decides, and a packet that no rule matches gets
//! the default service, the raw link. A rule on the code point alone is compiled into a table with one entry
//! for each of the 64 values of the DS field. The field itself is the index, so no hash collision can put
//! unrecognised traffic into a recovering service, and a file of such rules costs one look-up per packet.
//!
//! A rule whose service does not exist is skipped. A rule may ask how the packet's flow behaves (`behaves`),
//! for traffic that neither port nor code point identifies. The classifier then also sees received packets,
//! and caches the result of the rules for each flow until something they depend on changes.

mod behaviour;
mod fields;
mod flight;
mod ip_fragments;
mod profile;
mod signs;
mod status;
mod table;
mod unreached;

use std::fmt;

use airlane_base::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use behaviour::SHORT;
pub use behaviour::{Behaviour, Way};
pub use fields::{Dscp, FieldError, Ports, Prefix, Protocol};
use ip_fragments::IpFragments;
pub use profile::{ClassProfile, ClassesConfig};
pub use status::FlowStatus;
use table::{Asked, Chosen, Table};
pub use unreached::{IdleServices, Unreached, unreached};

use crate::flow::{self, FlowKey, IpFragment};

/// A rule: matching packets go to the service of this name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassConfig {
    /// The conditions on the packet; all must hold.
    #[schemars(extend("examples" = [{ "protocol": "tcp" }]))]
    pub r#match: MatchConfig,
    /// The name of a service on the same link.
    #[schemars(example = &"voice")]
    pub service: String,
}

/// Formats the rule as it appears in a list of a file.
impl fmt::Display for ClassConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MatchConfig {
            dscp,
            protocol,
            src,
            dst,
            src_port,
            dst_port,
            port,
            behaves,
        } = self.r#match;
        let mut all = Vec::new();
        let mut add = |name: &str, value: Option<String>| {
            all.extend(value.map(|value| format!("{name} = \"{value}\"")));
        };
        add("dscp", dscp.map(|dscp| dscp.to_string()));
        add("protocol", protocol.map(|protocol| protocol.to_string()));
        add("src", src.map(|src| src.to_string()));
        add("dst", dst.map(|dst| dst.to_string()));
        add("src-port", src_port.map(|port| port.to_string()));
        add("dst-port", dst_port.map(|port| port.to_string()));
        add("port", port.map(|port| port.to_string()));
        add("behaves", behaves.map(|behaves| behaves.name().to_owned()));
        let (all, service) = (all.join(", "), &self.service);
        write!(f, "{{ match = {{ {all} }}, service = {service:?} }}")
    }
}

/// The differences between two rule lists, including a changed order, since the first match decides.
pub(crate) fn differences(old: &[ClassConfig], new: &[ClassConfig]) -> Vec<String> {
    let gone = old.iter().filter(|rule| !new.contains(rule));
    let begun = new.iter().filter(|rule| !old.contains(rule));
    let mut all: Vec<String> = gone
        .map(|rule| format!("class {rule} is removed"))
        .chain(begun.map(|rule| format!("class {rule} is added")))
        .collect();
    let stay = |all: &[ClassConfig], there: &[ClassConfig]| -> Vec<ClassConfig> {
        let stay = all.iter().filter(|rule| there.contains(rule));
        stay.cloned().collect()
    };
    if stay(old, new) != stay(new, old) {
        all.push("classes come in another order, or stand there more or less often".to_owned());
    }
    all
}

/// Conditions that must all hold. At least one is given.
// `remote` makes serde derive inherent functions, so that reading can check more than they do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    remote = "Self",
    rename = "match",
    rename_all = "kebab-case",
    deny_unknown_fields
)]
#[schemars(!remote, rename = "MatchConfig")]
pub struct MatchConfig {
    /// The packet has this DS code point. Left out: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<Dscp>,
    /// The packet carries this protocol above IP. Left out: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// The packet comes from this address or network. Left out: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub src: Option<Prefix>,
    /// The packet goes to this address or network. Left out: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst: Option<Prefix>,
    /// The packet comes from this port or one of these. Left out: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub src_port: Option<Ports>,
    /// The packet goes to this port or one of these. Left out: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst_port: Option<Ports>,
    /// The packet comes from or goes to this port or one of these. Left out: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<Ports>,
    /// The packet's flow behaves like this: `"call"`, `"interactive"`, `"page"`, `"file"`, `"paced"` or `"video"`. Left out: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behaves: Option<Behaviour>,
}

/// The error for a rule without conditions.
const EMPTY: &str = "this match asks for nothing; give at least one of dscp, protocol, src, dst, src-port, dst-port, port, \
                     behaves (what no rule matches gets the default service)";

impl<'de> Deserialize<'de> for MatchConfig {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let config = Self::deserialize(d)?;
        match config == Self::default() {
            true => Err(de::Error::custom(EMPTY)),
            false => Ok(config),
        }
    }
}

impl Serialize for MatchConfig {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, s)
    }
}

impl MatchConfig {
    /// Whether all conditions on the packet itself hold. True without conditions.
    pub fn matches(&self, flow: &FlowKey) -> bool {
        self.dscp.is_none_or(|dscp| dscp.value() == flow.dscp)
            && self.protocol.is_none_or(|p| p.0 == flow.protocol)
            && self.src.is_none_or(|prefix| prefix.contains(flow.src))
            && self.dst.is_none_or(|prefix| prefix.contains(flow.dst))
            && self.src_port.is_none_or(|p| p.contains(flow.src_port))
            && self.dst_port.is_none_or(|p| p.contains(flow.dst_port))
            && self
                .port
                .is_none_or(|p| p.contains(flow.src_port) || p.contains(flow.dst_port))
    }

    /// Whether the conditions hold for every packet that meets the `other` ones.
    fn covers(&self, other: &Self) -> bool {
        fn holds<T: Copy>(asked: Option<T>, known: &[Option<T>], covers: fn(T, T) -> bool) -> bool {
            let mut known = known.iter().flatten();
            asked.is_none_or(|asked| known.any(|known| covers(asked, *known)))
        }
        holds(self.dscp, &[other.dscp], |a, b| a == b)
            && holds(self.protocol, &[other.protocol], |a, b| a == b)
            && holds(self.src, &[other.src], Prefix::covers)
            && holds(self.dst, &[other.dst], Prefix::covers)
            && holds(self.src_port, &[other.src_port], Ports::covers)
            && holds(self.dst_port, &[other.dst_port], Ports::covers)
            && holds(
                self.port,
                &[other.port, other.src_port, other.dst_port],
                Ports::covers,
            )
            && holds(self.behaves, &[other.behaves], |a, b| a == b)
    }

    /// Whether no packet meets all conditions.
    fn is_impossible(&self) -> bool {
        let asks_ports = self.port.or(self.src_port).or(self.dst_port).is_some();
        let prefixes = [self.src, self.dst].into_iter().flatten();
        let [v4, v6]: [Vec<Prefix>; 2] = prefixes.partition(|prefix| prefix.is_v4()).into();
        match self.protocol.map(|protocol| protocol.0) {
            Some(flow::ICMP) => asks_ports || !v6.is_empty(),
            Some(flow::ICMPV6) => asks_ports || !v4.is_empty(),
            _ => !v4.is_empty() && !v6.is_empty(),
        }
    }

    /// The code point, if it is the only condition.
    fn dscp_alone(&self) -> Option<Dscp> {
        let dscp = self.dscp;
        let alone = Self {
            dscp,
            ..Self::default()
        };
        dscp.filter(|_| *self == alone)
    }
}

/// The compiled rules of a port, and the flow table where a rule asks for behaviour.
#[derive(Clone, Debug)]
pub struct Classifier {
    rules: Rules,
    /// Incremented with each change that may alter the result of the rules for a flow.
    generation: u32,
    /// What is known of flows, where a rule asks for behaviour.
    flows: Option<Table>,
    /// Fragment tables, one for each direction.
    fragments: [IpFragments; 2],
}

#[derive(Clone, Debug)]
struct Rules {
    /// Rules whose service exists, in the order of the file.
    all: Vec<Rule>,
    /// For each code point, the index of the first rule that asks for it alone: earlier rules take
    /// precedence.
    table: [Option<usize>; 64],
    /// Indices of the rules that are not in the table, ascending.
    others: Vec<usize>,
    default: u8,
}

#[derive(Clone, Copy, Debug)]
struct Rule {
    conditions: MatchConfig,
    service: u8,
}

/// The service of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The number of the service.
    pub service: u8,
    /// The service of the flow's previous packet, if it was another one, and the time of that packet.
    pub before: Option<(u8, Instant)>,
}

impl Classifier {
    /// Compiles the rules. `lookup` maps a service name to its number; `default` is the number of the service
    /// for all other packets.
    pub fn new(classes: &[ClassConfig], lookup: impl Fn(&str) -> Option<u8>, default: u8) -> Self {
        let rules = classes.iter().filter_map(|class| {
            Some(Rule {
                conditions: class.r#match,
                service: lookup(&class.service)?,
            })
        });
        let rules = Rules::new(rules.collect(), default);
        let asks = |rule: &Rule| rule.conditions.behaves.is_some();
        Self {
            flows: rules.all.iter().any(asks).then(|| Table::new(0)),
            rules,
            generation: 0,
            fragments: Default::default(),
        }
    }

    /// Keeps the flow table of the previous classifier. `salt` prevents outsiders from choosing which flows
    /// share a table entry.
    #[must_use]
    pub fn succeeding(mut self, before: Self, salt: u64) -> Self {
        self.generation = before.generation + 1;
        self.fragments = before.fragments;
        if self.flows.is_some() {
            self.flows = before.flows.or_else(|| Some(Table::new(salt)));
        }
        self
    }

    /// The flow of an IP fragment: that of the packet's first fragment, if it has arrived.
    pub fn join(&mut self, now: Instant, way: Way, fragment: &IpFragment) -> FlowKey {
        self.fragments[way as usize].flow(now, fragment)
    }

    /// The service for packets of a flow of unknown behaviour.
    #[inline]
    pub fn classify(&self, flow: &FlowKey) -> u8 {
        if self.rules.all.is_empty() {
            return self.rules.default;
        }
        self.rules.decide(flow, None).0
    }

    /// The service for packets of a flow with this behaviour.
    pub fn classify_as(&self, flow: &FlowKey, behaviour: Behaviour) -> u8 {
        self.rules.decide(flow, Some(behaviour)).0
    }

    /// The service for a packet to send. The packet's length and, early in a flow, its UDP payload update
    /// what is known of the flow's behaviour.
    #[inline]
    pub fn classify_packet<'a>(
        &mut self,
        now: Instant,
        flow: &FlowKey,
        len: usize,
        datagram: impl FnOnce() -> &'a [u8],
    ) -> Choice {
        let Some(flows) = &mut self.flows else {
            return Choice {
                service: self.classify(flow),
                before: None,
            };
        };
        let known = flows.add(now, Way::Sent, flow, len, datagram);
        let asked = Asked {
            generation: self.generation,
            dscp: flow.dscp,
            behaviour: known.conduct.behaviour,
            answers: known.brought.filter(|_| known.conduct.only_answers()),
        };
        let sent_at = std::mem::replace(&mut known.sent_at, now);
        if let Some(chosen) = &known.chosen
            && chosen.asked == asked
        {
            return Choice {
                service: chosen.service,
                before: None,
            };
        }
        let (service, rule) = self.rules.decide_known(flow, &asked);
        let chosen = known.chosen.replace(Chosen {
            asked,
            service,
            rule: rule.map(|rule| rule as u16),
        });
        let before = chosen.filter(|before| before.service != service);
        Choice {
            service,
            before: before.map(|before| (before.service, sent_at)),
        }
    }

    /// The service for packets of this flow, by its behaviour so far where that is known.
    pub fn service_of(&self, flow: &FlowKey) -> u8 {
        let known = self.flows.as_ref().and_then(|flows| flows.get(flow));
        let behaves = known.map(|known| known.conduct.behaviour);
        self.rules.decide(flow, behaves).0
    }

    /// Every service that packets of this flow may get, whatever its behaviour.
    pub fn services_of(&self, flow: &FlowKey) -> impl Iterator<Item = u8> {
        let behaviours = Behaviour::ALL.into_iter().map(Some);
        let all = std::iter::once(None).chain(behaviours);
        all.map(|behaves| self.rules.decide(flow, behaves).0)
    }

    /// Updates the flow's behaviour from a packet that a service received.
    #[inline]
    pub fn note_received<'a>(
        &mut self,
        now: Instant,
        service: u8,
        flow: &FlowKey,
        len: usize,
        datagram: impl FnOnce() -> &'a [u8],
    ) {
        if let Some(flows) = &mut self.flows {
            let known = flows.add(now, Way::Received, flow, len, datagram);
            if len > SHORT {
                known.brought = Some(service);
            }
        }
    }

    /// Whether the classifier has to see each packet to learn how flows behave.
    #[inline]
    pub fn learns(&self) -> bool {
        self.flows.is_some()
    }
}

impl Rules {
    fn new(all: Vec<Rule>, default: u8) -> Self {
        let (mut table, mut others) = ([None; 64], Vec::new());
        for (index, rule) in all.iter().enumerate() {
            match rule.conditions.dscp_alone() {
                Some(dscp) => _ = table[usize::from(dscp.value())].get_or_insert(index),
                None => others.push(index),
            }
        }
        Self {
            all,
            table,
            others,
            default,
        }
    }

    /// The service for packets of a flow, and the index of the rule that chose it.
    fn decide(&self, flow: &FlowKey, behaves: Option<Behaviour>) -> (u8, Option<usize>) {
        // The driver masks the DS byte, so every code point is in the table.
        let entry = self.table.get(usize::from(flow.dscp)).copied().flatten();
        let end = entry.unwrap_or(usize::MAX);
        let found = self.others.iter().take_while(|index| **index < end);
        let found = found.copied().find(|index| {
            let conditions = self.all[*index].conditions;
            let asked = conditions.behaves;
            conditions.matches(flow) && (asked.is_none() || asked == behaves)
        });
        let rule = found.or(entry);
        (
            rule.map_or(self.default, |rule| self.all[rule].service),
            rule,
        )
    }

    /// The same for a flow of known behaviour. A flow of mere acknowledgments uses the service that carries
    /// the traffic it acknowledges, because the peer sees more of that flow; a rule with more than a
    /// condition on behaviour overrides this.
    fn decide_known(&self, flow: &FlowKey, asked: &Asked) -> (u8, Option<usize>) {
        let (service, rule) = self.decide(flow, Some(asked.behaviour));
        let by_behaviour = rule.is_some_and(|rule| self.all[rule].conditions.behaves.is_some());
        let is_there = |by: &u8| self.all.iter().any(|rule| rule.service == *by);
        let answers = asked.answers.filter(|by| by_behaviour && is_there(by));
        (answers.unwrap_or(service), rule)
    }
}

#[cfg(test)]
mod tests;
