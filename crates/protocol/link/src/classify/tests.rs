use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::*;
use crate::flow::{TCP, UDP};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct File {
    classes: Vec<ClassConfig>,
}

fn classes(text: &str) -> Vec<ClassConfig> {
    toml::from_str::<File>(text).unwrap().classes
}

fn number(name: &str) -> Option<u8> {
    ["raw", "file", "pages", "voice"]
        .iter()
        .position(|n| *n == name)
        .map(|n| n as u8)
}

fn flow(dscp: u8, protocol: u8, src: &str, dst: &str, ports: (u16, u16)) -> FlowKey {
    FlowKey {
        dscp,
        protocol,
        src: src.parse().unwrap(),
        dst: dst.parse().unwrap(),
        src_port: ports.0,
        dst_port: ports.1,
    }
}

const RULES: &str = r#"
    [[classes]]
    match = { dscp = "EF" }
    service = "voice"
    [[classes]]
    match = { protocol = "udp", port = "5004-5005" }
    service = "voice"
    [[classes]]
    match = { protocol = "tcp", dst-port = 443, dst = "192.168.40.0/24" }
    service = "pages"
    [[classes]]
    match = { dscp = 8 }
    service = "raw"
    [[classes]]
    match = { src = "fd07::/64", src-port = "80" }
    service = "pages"
    [[classes]]
    match = { protocol = "tcp" }
    service = "file"
"#;

#[test]
fn the_first_rule_that_matches_decides() {
    let classifier = Classifier::new(&classes(RULES), number, 0);
    let (raw, file, pages, voice) = (0, 1, 2, 3);
    for (dscp, protocol, src, dst, ports, service) in [
        (46, UDP, "10.0.0.1", "10.0.0.2", (9, 9), voice),
        (46, TCP, "10.0.0.1", "192.168.40.7", (9, 443), voice),
        (0, UDP, "10.0.0.1", "10.0.0.2", (5004, 9), voice),
        (0, UDP, "10.0.0.1", "10.0.0.2", (9, 5005), voice),
        (0, UDP, "10.0.0.1", "10.0.0.2", (9, 5006), raw),
        (0, TCP, "10.0.0.1", "10.0.0.2", (9, 5005), file),
        (0, TCP, "10.0.0.1", "192.168.40.7", (9, 443), pages),
        (8, TCP, "10.0.0.1", "192.168.40.7", (9, 443), pages),
        (0, TCP, "10.0.0.1", "192.168.41.7", (9, 443), file),
        (8, TCP, "10.0.0.1", "192.168.41.7", (9, 443), raw),
        (0, TCP, "fd07::9", "::1", (80, 9), pages),
        (0, UDP, "fd07::9", "::1", (80, 9), pages),
        (0, UDP, "fd07::9", "::1", (9, 80), raw),
        (0, 1, "10.0.0.1", "10.0.0.2", (0, 0), raw),
        (255, TCP, "10.0.0.1", "10.0.0.2", (9, 9), file),
    ] {
        let flow = flow(dscp, protocol, src, dst, ports);
        assert_eq!(classifier.classify(&flow), service, "{flow:?}");
    }
}

#[test]
fn a_rule_for_a_missing_service_is_skipped() {
    let text = r#"
        [[classes]]
        match = { dscp = "AF41" }
        service = "voice"
        [[classes]]
        match = { dscp = "AF41" }
        service = "file"
    "#;
    let call = flow(46, TCP, "10.0.0.1", "10.0.0.2", (9, 9));
    let video = flow(34, UDP, "10.0.0.1", "10.0.0.2", (9, 9));
    for (gone, services) in [(&[][..], [3, 3]), (&[3], [1, 1]), (&[3, 1], [0, 0])] {
        let number = |name: &str| number(name).filter(|n| !gone.contains(n));
        let found = [(RULES, &call), (text, &video)]
            .map(|(rules, flow)| Classifier::new(&classes(rules), number, 0).classify(flow));
        assert_eq!(found, services, "without {gone:?}");
    }
}

#[test]
fn rules_round_trip_through_a_file() {
    let file = File {
        classes: classes(RULES),
    };
    let text = toml::to_string(&file).unwrap();
    assert!(
        text.contains("src-port") && text.contains("\"CS1\""),
        "{text}"
    );
    assert_eq!(toml::from_str::<File>(&text).unwrap(), file);
}

#[test]
fn refusals_name_the_line_and_what_would_be_right() {
    for (conditions, expected) in [
        ("{}", "at least one of dscp"),
        ("{ dscp = \"AF51\" }", "0 to 63 or a name"),
        ("{ dscp = 64 }", "0 to 63"),
        ("{ dscp = -1 }", "0 to 63"),
        ("{ dscp = true }", "\"EF\" or 46"),
        ("{ protocol = \"http\" }", "tcp, udp"),
        ("{ src = \"10.0.0.1/8\" }", "10.0.0.0/8"),
        ("{ port = 0 }", "1 to 65535"),
        ("{ port = \"9-8\" }", "8000-8999"),
        ("{ src_port = 80 }", "src-port"),
    ] {
        let text = format!("[[classes]]\nservice = \"a\"\nmatch = {conditions}\n");
        let error = toml::from_str::<File>(&text).unwrap_err().to_string();
        assert!(error.contains("line 3"), "{conditions}: {error}");
        assert!(error.contains(expected), "{conditions}: {error}");
    }
}

fn any_match() -> impl Strategy<Value = MatchConfig> {
    let prefix = prop::sample::select(vec![
        "10.0.0.0/8",
        "10.0.0.0/31",
        "10.0.0.1",
        "fd07::/64",
        "::/0",
    ]);
    let ports = prop::sample::select(vec!["1", "2", "1-2", "2-3"]);
    fn maybe<T: fmt::Debug + std::str::FromStr<Err: fmt::Debug>>(
        text: impl Strategy<Value = &'static str>,
    ) -> impl Strategy<Value = Option<T>> {
        prop::option::weighted(0.3, text.prop_map(|t| t.parse().unwrap()))
    }
    (
        prop::option::of((0u8..4).prop_map(|n| Dscp::new(n).unwrap())),
        maybe(prop::sample::select(vec!["tcp", "udp"])),
        maybe(prefix.clone()),
        maybe(prefix),
        maybe(ports.clone()),
        maybe(ports.clone()),
        maybe(ports),
    )
        .prop_map(
            |(dscp, protocol, src, dst, src_port, dst_port, port)| MatchConfig {
                dscp,
                protocol,
                src,
                dst,
                src_port,
                dst_port,
                behaves: None,
                port,
            },
        )
        .prop_filter("asks for something", |m| *m != MatchConfig::default())
}

fn any_address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        (0u8..3).prop_map(|n| IpAddr::from(Ipv4Addr::new(10, 0, 0, n))),
        Just("fd07::1".parse().unwrap()),
        Just("fe80::1".parse().unwrap()),
    ]
}

fn any_flow() -> impl Strategy<Value = FlowKey> {
    let protocol = prop::sample::select(vec![TCP, UDP, 1]);
    (
        0u8..5,
        protocol,
        any_address(),
        any_address(),
        0u16..4,
        0u16..4,
    )
        .prop_map(|(dscp, protocol, src, dst, src_port, dst_port)| FlowKey {
            dscp,
            protocol,
            src,
            dst,
            src_port,
            dst_port,
        })
}

#[test]
fn a_rule_is_shown_as_a_file_has_it() {
    for class in classes(RULES) {
        let text = format!("classes = [{class}]");
        assert_eq!(classes(&text), [class]);
    }
}

proptest! {
    /// The table affects only the speed: the reference walks the list of rules.
    #[test]
    fn classifies_like_the_plain_list(
        rules in prop::collection::vec((any_match(), 0u8..6), 0..20),
        removed in prop::collection::vec(0u8..6, 0..3),
        flows in prop::collection::vec(any_flow(), 1..40),
    ) {
        let classes: Vec<_> = rules
            .iter()
            .map(|(r#match, service)| ClassConfig { r#match: *r#match, service: service.to_string() })
            .collect();
        let is_there = |service: &u8| *service < 5 && !removed.contains(service);
        let lookup = |name: &str| name.parse().ok().filter(is_there);
        let classifier = Classifier::new(&classes, lookup, 9);
        for flow in flows {
            let naive = rules
                .iter()
                .filter(|(_, service)| is_there(service))
                .find(|(m, _)| m.matches(&flow))
                .map_or(9, |(_, service)| *service);
            prop_assert_eq!(classifier.classify(&flow), naive);
        }
    }
}

#[test]
fn pure_acknowledgments_take_the_service_of_their_data() {
    let behaves = |behaves: &str, service: &str| {
        format!(
            "{{ match = {{ protocol = \"tcp\", behaves = \"{behaves}\" }}, service = \"{service}\" }}"
        )
    };
    let rules = [
        behaves("page", "pages"),
        behaves("file", "files"),
        behaves("paced", "paced"),
    ];
    let fixed = "{ match = { port = 8080 }, service = \"files\" }";
    let text = format!("[{fixed}, {}]", rules.join(", "));
    let rules: ClassesConfig = toml::from_str::<toml::Table>(&format!("classes = {text}")).unwrap()
        ["classes"]
        .clone()
        .try_into()
        .unwrap();
    let numbers = |name: &str| ["pages", "files", "paced"].iter().position(|n| *n == name);
    let number = |name: &str| numbers(name).map(|at| at as u8 + 1);
    let mut classifier = Classifier::new(&rules.rules(&[]), number, 0);
    let mut goes_to = |port: u16, brought_by: u8| {
        let mut service = 0;
        for n in 0..100 {
            let now = Instant::from_nanos(n * 1_000_000);
            let data = flow(0, TCP, "10.0.0.1", "10.0.0.2", (port, 40_000));
            classifier.note_received(now, brought_by, &data, 1_400, || &[]);
            let choice = classifier.classify_packet(now, &data.reversed(), 60, || &[]);
            service = choice.service;
        }
        service
    };
    assert_eq!(goes_to(443, 3), 3);
    assert_eq!(goes_to(444, 2), 2);
    // A rule with more than a condition on behaviour takes precedence; a service without a rule carries no
    // data.
    assert_eq!(goes_to(8_080, 3), 2);
    assert_eq!(goes_to(445, 9), 1);
}

/// A flow that is silent when the rules change is shown as they would judge it.
#[test]
fn a_silent_flow_is_shown_by_the_rules_of_now() {
    let rules = |text: &str| {
        let table = toml::from_str::<toml::Table>(&format!("classes = {text}")).unwrap();
        let classes: ClassesConfig = table["classes"].clone().try_into().unwrap();
        let number = |name: &str| ["calls", "games"].iter().position(|n| *n == name);
        let number = move |name: &str| number(name).map(|at| at as u8 + 1);
        Classifier::new(&classes.rules(&[]), number, 0)
    };
    let behaves = "{ match = { protocol = \"udp\", behaves = \"call\" }, service = \"calls\" }";
    let dscp = "{ match = { dscp = \"AF43\" }, service = \"games\" }";
    let mut before = rules(&format!("[{behaves}, {dscp}]"));
    let call = flow(0, UDP, "10.0.0.1", "10.0.0.2", (40_000, 5_004));
    let at = |n: u64| Instant::from_nanos(n * 20_000_000);
    for n in 0..200 {
        before.classify_packet(at(n), &call, 188, || &[]);
    }
    let why = |classifier: &Classifier| {
        let flows = classifier.flows(at(200), |number| Some(format!("service {number}")));
        (flows[0].service.clone(), flows[0].why.clone())
    };
    let (service, reason) = why(&before);
    assert_eq!(service.as_deref(), Some("service 1"));
    assert!(reason.contains("even gaps"), "{reason}");
    let first = "{ match = { port = 9 }, service = \"games\" }";
    let after = rules(&format!("[{first}, {behaves}, {dscp}]")).succeeding(before, 0);
    assert_eq!(why(&after), (service, reason));
    let moved = "{ match = { port = 5004 }, service = \"games\" }";
    let after = rules(&format!("[{moved}, {behaves}]")).succeeding(after, 0);
    let told = why(&after);
    assert_eq!(told.0.as_deref(), Some("service 2"), "{told:?}");
}
