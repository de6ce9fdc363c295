//! Finds services and rules that no traffic reaches. Traffic that matches no class silently gets the raw link, so a
//! link whose classes are missing, or match other traffic, looks as if its services were idle.

use std::fmt;

use super::{ClassConfig, ClassProfile, ClassesConfig, Classifier};
use crate::config::ServiceConfig;
use crate::flow::FlowKey;

/// What no traffic reaches. Its display names it and the reason, and for services the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreached {
    /// Services, all for one reason.
    Services(IdleServices),
    /// A rule without effect.
    Rule {
        /// The rule.
        rule: ClassConfig,
        /// One that comes first and takes all of its packets; none if no packet is as the rule asks.
        first: Option<ClassConfig>,
    },
}

/// Services that no traffic reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleServices {
    names: Vec<String>,
    /// Whether no class leads to them; otherwise their classes match none of the traffic.
    without_class: bool,
    /// Names of the profiles whose rules would lead to them.
    profiles: Vec<&'static str>,
}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Services(services) => services.fmt(f),
            Self::Rule { rule, first } => {
                write!(f, "the class {rule} has no effect: ")?;
                match first {
                    Some(first) => write!(f, "{first} comes first and takes all of its packets"),
                    None => write!(f, "no packet is all that it asks for"),
                }
            }
        }
    }
}

impl fmt::Display for IdleServices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (noun, verb, pronoun) = match self.names.len() {
            1 => ("service", "matches", "it"),
            _ => ("services", "match", "them"),
        };
        write!(f, "{noun} ")?;
        let last = self.names.len() - 1;
        for (i, name) in self.names.iter().enumerate() {
            let before = match i {
                0 => "",
                i if i == last => " and ",
                _ => ", ",
            };
            write!(f, "{before}\"{name}\"")?;
        }
        write!(f, " {verb} no traffic: ")?;
        if self.without_class {
            write!(
                f,
                "no class leads to {pronoun}, and what no class matches is not repaired; write "
            )?;
            for profile in &self.profiles {
                write!(f, "classes = \"{profile}\", or ")?;
            }
            write!(f, "rules that name {pronoun}")
        } else {
            write!(
                f,
                "classes lead to {pronoun}, but no flow's packets are what they ask for"
            )
        }
    }
}

/// Finds what no traffic reaches. `traffic` lists all flows, where they are known. Service 0 takes unrecognised
/// traffic and may be idle.
pub fn unreached(
    services: &[ServiceConfig],
    classes: &ClassesConfig,
    traffic: Option<&[FlowKey]>,
) -> Vec<Unreached> {
    let rules = classes.rules(services);
    let idle = idle_services(services, &rules, traffic).map(Unreached::Services);
    idle.chain(rules_without_effect(classes.written()))
        .collect()
}

/// The rules without effect.
fn rules_without_effect(rules: &[ClassConfig]) -> impl Iterator<Item = Unreached> {
    rules.iter().enumerate().filter_map(|(at, rule)| {
        let mut before = rules[..at].iter();
        let first = before.find(|first| first.r#match.covers(&rule.r#match));
        (first.is_some() || rule.r#match.is_impossible()).then(|| Unreached::Rule {
            rule: rule.clone(),
            first: first.cloned(),
        })
    })
}

fn idle_services(
    services: &[ServiceConfig],
    classes: &[ClassConfig],
    traffic: Option<&[FlowKey]>,
) -> impl Iterator<Item = IdleServices> {
    let number = |name: &str| services.iter().find(|s| s.name == name).map(|s| s.number);
    let classifier = Classifier::new(classes, number, 0);
    let used: Option<Vec<u8>> =
        traffic.map(|flows| flows.iter().map(|flow| classifier.classify(flow)).collect());
    let others = services.iter().filter(|service| service.number != 0);
    let idle = others.filter_map(|service| {
        let without_class = !classes.iter().any(|class| class.service == service.name);
        // The behaviour of flows is known only when they run.
        let may =
            |class: &ClassConfig| class.r#match.behaves.is_some() && class.service == service.name;
        let asks = classes.iter().any(may);
        let used = used
            .as_ref()
            .map(|used| asks || used.contains(&service.number));
        (without_class || used == Some(false)).then_some((without_class, &service.name))
    });
    let idle: Vec<(bool, &String)> = idle.collect();
    let of = move |reason: bool| {
        let names = idle
            .iter()
            .filter(|(without_class, _)| *without_class == reason);
        let names: Vec<&str> = names.map(|(_, name)| name.as_str()).collect();
        (!names.is_empty()).then(|| IdleServices {
            profiles: ClassProfile::that_reach(services, &names).collect(),
            names: names.into_iter().map(str::to_owned).collect(),
            without_class: reason,
        })
    };
    [true, false].into_iter().filter_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{TCP, UDP};
    use crate::sample;

    #[derive(serde::Deserialize)]
    struct Table {
        services: Vec<ServiceConfig>,
        #[serde(default)]
        classes: ClassesConfig,
    }

    const SERVICES: &str = "services = [
        { number = 0, name = \"rest\", rate = 1, scheme = { kind = \"default\" } },
        { number = 1, name = \"file\", rate = 1, scheme = { kind = \"sr-m2\" } },
        { number = 2, name = \"voice\", rate = 1, scheme = { kind = \"rlp-oos\", retries = 1 } }]\n";
    const CLASSES: &str = "classes = [
        { match = { protocol = \"tcp\" }, service = \"file\" },
        { match = { protocol = \"udp\", port = 5004 }, service = \"voice\" }]\n";

    fn found(classes: &str, traffic: Option<&[FlowKey]>) -> Vec<String> {
        let table: Table = toml::from_str(&(SERVICES.to_owned() + classes)).unwrap();
        let all = unreached(&table.services, &table.classes, traffic);
        all.iter().map(ToString::to_string).collect()
    }

    fn flow(protocol: u8, port: u16) -> FlowKey {
        sample::flow(protocol, port, 49_152)
    }

    #[test]
    fn services_without_a_class_are_named() {
        let [both] = &found("", None)[..] else {
            panic!("one reason");
        };
        assert!(
            both.starts_with(
                "services \"file\" and \"voice\" match no traffic: no class leads to them"
            ),
            "{both}"
        );
        assert_eq!(found(CLASSES, None), Vec::<String>::new());
    }

    #[test]
    fn services_whose_classes_no_flow_matches_are_named() {
        let traffic = [flow(TCP, 20), flow(UDP, 6000)];
        let [voice] = &found(CLASSES, Some(&traffic))[..] else {
            panic!("one reason");
        };
        assert!(
            voice.starts_with("service \"voice\" matches no traffic: classes lead to it"),
            "{voice}"
        );
        let traffic = [flow(TCP, 20), flow(UDP, 5004)];
        assert_eq!(found(CLASSES, Some(&traffic)), Vec::<String>::new());
    }

    #[test]
    fn rules_after_one_that_takes_all_their_packets_are_named() {
        let hidden = |first: &str, second: &str| {
            let classes = format!(
                "classes = [{{ match = {{ {first} }}, service = \"file\" }}, {{ match = {{ {second} }}, service = \"voice\" }}]"
            );
            let found = found(&classes, None);
            assert!(found.len() < 2, "{found:?}");
            found.into_iter().any(|text| text.contains("has no effect"))
        };
        for (first, second) in [
            ("protocol = \"udp\"", "protocol = \"udp\", port = 5004"),
            ("port = \"5000-5999\"", "dst-port = 5004"),
            (
                "src = \"10.0.0.0/8\"",
                "src = \"10.1.2.0/24\", dscp = \"EF\"",
            ),
            ("behaves = \"file\"", "behaves = \"file\""),
        ] {
            assert!(hidden(first, second), "{first}, then {second}");
            assert!(
                first == second || !hidden(second, first),
                "{second}, then {first}"
            );
        }
        for (first, second) in [
            ("protocol = \"udp\"", "port = 5004"),
            ("dst-port = 5004", "port = 5004"),
            ("src = \"10.0.0.0/8\"", "dst = \"10.1.2.0/24\""),
            ("src = \"0.0.0.0/0\"", "src = \"fd07::/64\""),
            ("behaves = \"file\"", "protocol = \"tcp\""),
        ] {
            assert!(!hidden(first, second), "{first}, then {second}");
        }
    }

    #[test]
    fn rules_that_no_packet_meets_are_named() {
        let is_named = |asked: &str| {
            let rule = format!("{{ match = {{ {asked} }}, service = \"file\" }}");
            let voice = "{ match = { dscp = \"EF\" }, service = \"voice\" }";
            let found = found(&format!("classes = [{rule}, {voice}]"), None);
            found
                .into_iter()
                .any(|text| text.contains("no packet is all that it asks for"))
        };
        for asked in [
            "protocol = \"icmp\", port = 53",
            "src = \"10.0.0.0/8\", dst = \"fd00::/8\"",
            "protocol = \"icmpv6\", src = \"10.0.0.0/8\"",
        ] {
            assert!(is_named(asked), "{asked}");
        }
        for asked in [
            "protocol = \"udp\", port = 53",
            "src = \"10.0.0.0/8\", dst = \"10.0.0.0/8\"",
            "protocol = \"sctp\", dst-port = 9899",
        ] {
            assert!(!is_named(asked), "{asked}");
        }
    }

    #[test]
    fn only_classes_that_help_are_advised() {
        let advised = |goals: &[&str], classes: &str| {
            let service = |(i, goal): (usize, &&str)| {
                format!(
                    "{{ number = {}, name = \"{goal}\", goal = \"{goal}\" }}",
                    i + 1
                )
            };
            let services: Vec<String> = goals.iter().enumerate().map(service).collect();
            let text = format!("services = [{}]\n{classes}", services.join(", "));
            let table: Table = toml::from_str(&text).unwrap();
            let idle = unreached(&table.services, &table.classes, None);
            idle[0].to_string()
        };
        let pages = "classes = [{ match = { protocol = \"tcp\" }, service = \"bulk\" }]";
        let said = advised(&["bulk", "web"], pages);
        assert!(
            said.contains("\"heuristic\"") && !said.contains("\"dscp\""),
            "{said}"
        );
        // Keystrokes have no port of their own.
        let said = advised(&["bulk", "voice", "interactive"], "");
        assert!(
            said.contains("write classes = \"behaviour\", or rules"),
            "{said}"
        );
        let said = advised(&["voice", "video", "paced"], "");
        assert!(!said.contains("heuristic"), "{said}");
    }
}
