//! Finds services that no traffic reaches. Traffic that matches no class silently gets the raw link, so a
//! link whose classes are missing, or match other traffic, looks as if its services were idle.

use std::fmt;

use super::{ClassConfig, ClassProfile, Classifier};
use crate::config::ServiceConfig;
use crate::flow::FlowKey;

/// Services that no traffic reaches, all for one reason. Its display names them, the reason, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreached {
    /// Names of the services.
    pub services: Vec<String>,
    /// Whether no class leads to them; otherwise their classes match none of the traffic.
    pub without_class: bool,
    /// Names of the profiles whose rules would lead to them.
    pub profiles: Vec<&'static str>,
}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (noun, verb, pronoun) = match self.services.len() {
            1 => ("service", "matches", "it"),
            _ => ("services", "match", "them"),
        };
        write!(f, "{noun} ")?;
        let last = self.services.len() - 1;
        for (i, name) in self.services.iter().enumerate() {
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

/// Finds the services that no traffic reaches. `traffic` lists all flows, where they are known. Service 0
/// takes unrecognised traffic and may be idle.
pub fn unreached(
    services: &[ServiceConfig],
    classes: &[ClassConfig],
    traffic: Option<&[FlowKey]>,
) -> Vec<Unreached> {
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
    let of = |reason: bool| {
        let names = idle
            .iter()
            .filter(|(without_class, _)| *without_class == reason);
        let names: Vec<&str> = names.map(|(_, name)| name.as_str()).collect();
        (!names.is_empty()).then(|| Unreached {
            profiles: ClassProfile::that_reach(services, &names).collect(),
            services: names.into_iter().map(str::to_owned).collect(),
            without_class: reason,
        })
    };
    [true, false].into_iter().filter_map(of).collect()
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
        classes: Vec<ClassConfig>,
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
