use super::*;
use crate::classify::Classifier;
use crate::flow::FlowKey;
use std::net::{IpAddr, Ipv4Addr};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct File {
    classes: ClassesConfig,
}

fn services(schemes: &[&str]) -> Vec<ServiceConfig> {
    let service = |(i, scheme): (usize, &&str)| {
        toml::from_str(&format!(
            "number = {i}\nname = \"s{i}\"\nrate = 1.0\nscheme = {{ {scheme} }}",
            i = i + 1
        ))
        .unwrap()
    };
    schemes.iter().enumerate().map(service).collect()
}

/// The service of a packet from port 40000 to `port`.
fn classify(profile: ClassProfile, schemes: &[&str], protocol: u8, port: u16, dscp: &str) -> u8 {
    let services = services(schemes);
    let rules = ClassesConfig::Profile(profile).rules(&services);
    let number = |name: &str| Some(services.iter().find(|s| s.name == name)?.number);
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let flow = |src_port, dst_port| FlowKey {
        src: address,
        dst: address,
        protocol,
        src_port,
        dst_port,
        dscp: dscp.parse::<Dscp>().unwrap().value(),
    };
    let classifier = Classifier::new(&rules, number, 0);
    let there = classifier.classify(&flow(40_000, port));
    assert_eq!(classifier.classify(&flow(port, 40_000)), there, "both ways");
    there
}

const SR: &str = "kind = \"sr-m2\"";
const RLP: &str = "kind = \"rlp\"";
const OOS: &str = "kind = \"rlp-oos\"";
const XOR: &str = "kind = \"xor\"";
const SNOOP: &str = "kind = \"snoop\", base-station = \"here\"";
const RAW: &str = "kind = \"default\"";

#[test]
fn the_heuristic_knows_protocols_and_ports() {
    use ClassProfile::Heuristic;
    let both = [SR, OOS];
    for (protocol, port, service) in [
        (TCP, 80, 1),
        (TCP, 5004, 1),
        (UDP, 443, 1),
        (UDP, 5004, 2),
        (UDP, 5005, 2),
        (UDP, 3479, 2),
        (UDP, 53, 2),
        (UDP, 5006, 0),
        (UDP, 123, 0),
        (1, 0, 0),
        // IPsec hides its contents.
        (50, 0, 0),
    ] {
        let found = classify(Heuristic, &both, protocol, port, "BE");
        assert_eq!(found, service, "{protocol} {port}");
        let raw = classify(Heuristic, &[SR], protocol, port, "EF");
        assert_ne!(raw, 2, "{protocol} {port}");
    }
    // A marked call is recognised on any port and with any contents; TCP stays TCP.
    for (protocol, port, dscp, service) in [
        (UDP, 4000, "EF", 2),
        (UDP, 4000, "VA", 2),
        (UDP, 4000, "AF41", 2),
        (UDP, 443, "EF", 2),
        (50, 0, "EF", 2),
        (TCP, 5060, "EF", 1),
        (UDP, 4000, "AF11", 0),
        (UDP, 443, "AF11", 1),
    ] {
        let found = classify(Heuristic, &both, protocol, port, dscp);
        assert_eq!(found, service, "{protocol} {port} {dscp}");
    }
}

/// Names of the services for packets of these lengths, each of a separate flow.
fn by_behaviour(
    services: &[ServiceConfig],
    packets: &[(u8, u16, usize, &str)],
) -> Vec<&'static str> {
    const NAMES: [&str; 7] = [
        "default",
        "files",
        "pages",
        "calls",
        "interactive",
        "video",
        "paced",
    ];
    let rules = ClassesConfig::Profile(ClassProfile::Behaviour).rules(services);
    let number = |name: &str| Some(services.iter().find(|s| s.name == name)?.number);
    let mut classifier = Classifier::new(&rules, number, 0);
    let service = |(protocol, port, len, dscp): &(u8, u16, usize, &str)| {
        let flow = FlowKey {
            dscp: dscp.parse::<Dscp>().unwrap().value(),
            protocol: *protocol,
            src: IpAddr::V4(Ipv4Addr::LOCALHOST),
            dst: IpAddr::V4(Ipv4Addr::LOCALHOST),
            src_port: 40_000,
            dst_port: *port,
        };
        let now = airlane_base::Instant::ORIGIN;
        let choice = classifier.classify_packet(now, &flow, *len, || &[]);
        NAMES[usize::from(choice.service)]
    };
    packets.iter().map(service).collect()
}

#[test]
fn the_behaviour_of_a_flow_selects_its_goal() {
    let packets = [
        (UDP, 5_006, 200, "BE"),
        (UDP, 5_007, 1_250, "BE"),
        (50, 0, 1_400, "BE"),
        (TCP, 443, 60, "BE"),
        (UDP, 444, 60, "BE"),
        (UDP, 53, 60, "BE"),
        // Marks take precedence, and TCP is not a call.
        (TCP, 80, 60, "CS1"),
        (TCP, 81, 60, "EF"),
        (UDP, 4_000, 200, "EF"),
        (50, 0, 1_400, "EF"),
        (UDP, 4_001, 1_200, "AF41"),
        (UDP, 4_002, 60, "CS4"),
    ];
    let (interactive, pages, files) = ("interactive", "pages", "files");
    assert_eq!(
        by_behaviour(&crate::config::by_goal(), &packets),
        [
            interactive,
            pages,
            pages,
            pages,
            interactive,
            interactive,
            files,
            pages,
            "calls",
            "calls",
            "video",
            interactive
        ]
    );
    // Whichever services are missing, no traffic gets one that harms it.
    let without = |names: &[&str]| {
        let mut services = crate::config::by_goal();
        services.retain(|service| !names.contains(&&*service.name));
        by_behaviour(&services, &packets)
    };
    let two = without(&["pages", "interactive", "video", "paced"]);
    assert_eq!(two[..5], ["calls", files, files, files, "calls"]);
    let reliable = without(&["calls", "interactive", "video", "paced"]);
    assert_eq!(reliable[..5], ["default", pages, pages, pages, "default"]);
}

#[test]
fn a_list_may_end_with_a_profile() {
    let text = "classes = [{ match = { port = 9 }, service = \"s2\" }, \"behaviour\"]";
    let file: File = toml::from_str(text).unwrap();
    let services = services(&[SR, OOS]);
    let rules = file.classes.rules(&services);
    assert_eq!(rules[0].service, "s2");
    let behaviour = ClassesConfig::Profile(ClassProfile::Behaviour);
    assert_eq!(rules[1..], behaviour.rules(&services));
    let written = toml::to_string(&file).unwrap();
    assert_eq!(toml::from_str::<File>(&written).unwrap(), file);
    for (text, expected) in [
        ("classes = [\"dscp\", \"behaviour\"]", "write it last"),
        ("classes = [\"bahaviour\"]", "behaviour"),
        (
            "classes = [{ match = { prt = 9 }, service = \"s2\" }]",
            "prt",
        ),
    ] {
        let error = toml::from_str::<File>(text).unwrap_err();
        assert!(error.message().contains(expected), "{error}");
    }
}

#[test]
fn the_ds_classifier_reads_nothing_but_the_field() {
    for (dscp, service) in [
        ("EF", 2),
        ("VA", 2),
        ("AF41", 2),
        ("AF43", 2),
        ("CS4", 2),
        ("AF31", 1),
        ("AF11", 1),
        ("LE", 1),
        ("BE", 0),
        ("CS6", 0),
        // A code point for local use.
        ("3", 0),
    ] {
        for (protocol, port) in [(TCP, 80), (UDP, 5004), (50, 0)] {
            let found = classify(ClassProfile::Dscp, &[SR, OOS], protocol, port, dscp);
            assert_eq!(found, service, "{dscp} {protocol}");
        }
    }
    let mut code_points: Vec<_> = DSCP.iter().map(|(m, _)| m.dscp.unwrap()).collect();
    code_points.sort_unstable();
    code_points.dedup();
    assert_eq!(code_points.len(), DSCP.len(), "each code point once");
}

#[test]
fn no_flow_is_assigned_a_harmful_service() {
    use ClassProfile::Heuristic;
    for (schemes, tcp, quic, speech) in [
        (&[SR, OOS][..], 1, 1, 2),
        (&[OOS, SR], 2, 2, 1),
        // Out of order, TCP takes delays for losses; in order, speech waits for repairs without limit.
        (&[OOS, XOR], 0, 0, 1),
        (&[SR], 1, 1, 0),
        // Limited repair suits both, if it keeps the order.
        (&[RLP], 1, 1, 1),
        (&[RLP, SR, XOR], 2, 2, 3),
        // Snoop handles TCP only.
        (&[SNOOP, RLP], 1, 2, 2),
        (&[SNOOP, XOR], 1, 0, 2),
        (&[RAW, SR, SR], 2, 2, 0),
    ] {
        let found = [(TCP, 80), (UDP, 443), (UDP, 5004)]
            .map(|(protocol, port)| classify(Heuristic, schemes, protocol, port, "BE"));
        assert_eq!(found, [tcp, quic, speech], "{schemes:?}");
    }
}

#[test]
fn a_profile_without_a_choice_is_refused() {
    for (name, profile) in PROFILES {
        let classes = ClassesConfig::Profile(profile);
        let error = classes.check(&services(&[RAW])).unwrap();
        assert!(
            error.path == "classes" && error.problem.contains(name),
            "{error}"
        );
        assert_eq!(classes.check(&services(&[RAW, OOS])), None);
    }
    assert_eq!(ClassesConfig::default().check(&[]), None);
}

#[test]
fn classes_are_a_name_or_a_list() {
    for (name, profile) in PROFILES {
        let file: File = toml::from_str(&format!("classes = \"{name}\"")).unwrap();
        assert_eq!(file.classes, ClassesConfig::Profile(profile));
        let text = toml::to_string(&file).unwrap();
        assert_eq!(toml::from_str::<File>(&text).unwrap(), file);
        // The resulting rules can be written to a file as well.
        let rules = ClassesConfig::Rules(file.classes.rules(&services(&[SR, OOS])));
        let text = toml::to_string(&File { classes: rules }).unwrap();
        let again: File = toml::from_str(&text).unwrap();
        assert_eq!(
            again.classes.rules(&[]),
            file.classes.rules(&services(&[SR, OOS]))
        );
    }
    let error = toml::from_str::<File>("classes = \"heuristc\"").unwrap_err();
    assert!(error.message().contains("heuristic"), "{error}");
    let error = toml::from_str::<File>("classes = 5").unwrap_err();
    assert!(error.message().contains("a list of classes"), "{error}");
}
