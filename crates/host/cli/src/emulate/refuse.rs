//! What is refused because no kernel has it, and what is named because the kernel has its own.

use std::collections::BTreeSet;

use airlane_base::config::{Problems, key};
use airlane_emulate::flow::LEAST_DATAGRAM;
use airlane_sim::Scenario;
use airlane_sim::scenario::{AppConfig, FlowConfig, LinkConfig, TransportConfig};
use toml::{Table, Value};

/// User bytes of a segment and of a datagram in an Ethernet frame: 1,500 bytes without IP, TCP and its timestamps, or
/// without IP and UDP.
const LONGEST_SEGMENT: u64 = 1_448;
const LONGEST_DATAGRAM: u64 = 1_472;
/// Settings of the profile `modern` that make it Linux. Who says them expects no other TCP than the kernel's.
const LINUX: &str = "kind = \"tcp\"\npacing = false\ntick = \"200 ms\"\nmin-rto = \"200 ms\"\nconservative-rounds = 0\n\
    catch-up = false\ndelayed-ack = { every = 2, within = \"40 ms\", quick = 16 }\n";
/// Settings that the kernel's sockets are given, or that only count headers.
const GIVEN: [&str; 6] = [
    "kind",
    "profile",
    "congestion",
    "ecn",
    "header-size",
    "ack-size",
];

/// Refuses all that cannot be emulated of a resolved scenario.
pub(super) fn refuse(scenario: &Scenario, problems: &mut Problems) {
    check_world(scenario, problems);
    for (name, link) in &scenario.links {
        check_link(name, link, problems);
    }
    let mut ports = BTreeSet::new();
    let session = scenario.links.values().filter_map(LinkConfig::session_by);
    let session = session.max();
    for (i, flow) in scenario.flows.iter().enumerate() {
        problems.within(&format!("flows[{i}]"), |problems| {
            check_flow(flow, problems);
            if let Some(session) = session.filter(|session| flow.start < *session) {
                problems.add(
                    "start",
                    format!(
                        "at {} the simulated ends have no session yet, and the emulated ones have: the results cannot \
                         be compared",
                        flow.start
                    ),
                    format!("start = \"{session}\", or more"),
                );
            }
            let serves = matches!(flow.app, AppConfig::Pages(_));
            if serves && !ports.insert((&flow.ends[0], flow.port)) {
                problems.add(
                    "app",
                    "two servers of pages on one host have the same port",
                    "a `port` of its own for each flow",
                );
            }
        });
    }
    let ecn: BTreeSet<bool> = scenario.flows.iter().filter_map(ecn_of).collect();
    if ecn.len() > 1 {
        problems.add(
            "flows",
            "`ecn` differs between flows, and a host of Linux has one for all",
            "the same `ecn` in all flows",
        );
    }
}

/// Refuses worlds of another shape.
fn check_world(scenario: &Scenario, problems: &mut Problems) {
    let only = "is simulated only";
    for name in scenario.media.keys() {
        let at = format!("media.{}", key(name));
        let found = format!("a medium, such as an 802.11 channel, {only}");
        problems.add(&at, found, "a link with a rate, a delay and errors");
    }
    if !scenario.handoffs.is_empty() {
        problems.add("handoffs", format!("a handoff {only}"), "leave it out");
    }
    if !scenario.retraces.is_empty() {
        problems.add(
            "retraces",
            "a retrace is computed, and nothing runs",
            "leave it out",
        );
    }
    let (nodes, links) = (scenario.nodes.len(), scenario.links.len());
    if (nodes, links) != (2, 1) {
        problems.add(
            if links == 0 { "nodes" } else { "links" },
            format!("one link between two nodes can be emulated; links: {links}, nodes: {nodes}"),
            "the two ends of a link alone, with the flows between them",
        );
    }
    if scenario.flows.is_empty() {
        problems.add("", "there are no flows to compare", "[[flows]]");
    }
}

/// Refuses what `airlane air` cannot do.
fn check_link(name: &str, link: &LinkConfig, problems: &mut Problems) {
    let at = |setting: &str| format!("links.{}.{setting}", key(name));
    let simulated_only = [
        ("gsm", link.gsm.is_some()),
        ("header-compression", link.header_compression.is_some()),
        ("mark-above", link.mark_above.is_some()),
        ("shared-fades", link.shared_fades),
        ("mtu", link.mtu.is_some()),
    ];
    for (setting, _) in simulated_only.iter().filter(|(_, is_stated)| *is_stated) {
        let found = format!("`{setting}` is simulated only: `airlane air` does not have it");
        problems.add(&at(setting), found, "leave it out");
    }
    if link.node.is_none() && !link.services.is_empty() {
        problems.add(
            &at("services"),
            "these ports have neither sessions nor UDP below them: nothing real is built like that",
            "node = \"live\", with the services under nodes.NODE.live.link",
        );
    }
}

/// Refuses applications and transports that the kernel does not have.
fn check_flow(flow: &FlowConfig, problems: &mut Problems) {
    let mut refuse = |is: bool, at: &str, found: &str, help: &str| {
        if is {
            problems.add(at, found, help);
        }
    };
    let packet = flow.app.packet().map_or(0, |packet| packet.as_bytes());
    refuse(
        flow.encrypted,
        "encrypted",
        "ESP is simulated only",
        "leave it out",
    );
    refuse(
        flow.relay.is_some(),
        "relay",
        "a relay is simulated only",
        "leave it out",
    );
    match &flow.app {
        AppConfig::Bulk(app) => {
            let found = "a receiver that takes its time is simulated only";
            refuse(app.takes.is_some(), "app.takes", found, "leave it out");
        }
        AppConfig::Pages(_) => {}
        AppConfig::Conferencing(_) => {
            let fits = (LEAST_DATAGRAM as u64..=LONGEST_DATAGRAM).contains(&packet);
            let found = format!("a datagram of {packet} B cannot be emulated");
            let help = format!("{LEAST_DATAGRAM} to {LONGEST_DATAGRAM} B");
            refuse(!fits, "app.packet", &found, &help);
        }
        other => {
            let found = format!("\"{}\" is simulated only", other.kind());
            let help = "\"bulk\", \"pages\", \"cbr\", \"on-off\" or \"conferencing\"";
            refuse(true, "app.kind", &found, help);
        }
    }
    match &flow.transport {
        TransportConfig::Udp(_) => {}
        TransportConfig::Clap(_) => {
            refuse(
                true,
                "transport.kind",
                "no kernel has CLAP",
                "\"tcp\" or \"udp\"",
            );
        }
        TransportConfig::Tcp(_) => {
            let said = |name| setting(&flow.transport, name).unwrap_or_default();
            let old = said("profile") != "modern";
            let found = format!("no kernel of today has the TCP \"{}\"", said("profile"));
            refuse(old, "transport.profile", &found, "profile = \"modern\"");
            let other = !old && said("recovery") != "rack";
            let found = format!(
                "the kernel repairs by RACK, not by \"{}\"",
                said("recovery")
            );
            refuse(other, "transport.recovery", &found, "leave it out");
            let found = format!("no segment of {packet} B fits into an Ethernet frame");
            let help = format!("{LONGEST_SEGMENT} B or less");
            refuse(
                !old && packet > LONGEST_SEGMENT,
                "app.packet",
                &found,
                &help,
            );
        }
    }
}

/// The value of a setting of TCP, as a file writes it.
pub(super) fn setting(transport: &TransportConfig, name: &str) -> Option<String> {
    let table = Table::try_from(transport).ok()?;
    Some(table.get(name)?.as_str()?.to_owned())
}

pub(super) fn ecn_of(flow: &FlowConfig) -> Option<bool> {
    match flow.transport {
        TransportConfig::Tcp(_) => {
            let table = Table::try_from(&flow.transport).ok()?;
            Some(table.get("ecn") == Some(&Value::Boolean(true)))
        }
        _ => None,
    }
}

/// Names settings of TCP that are neither those of `modern` nor those of Linux: the kernel has its own.
pub(super) fn notes_of(flow: &FlowConfig) -> Option<String> {
    let TransportConfig::Tcp(_) = flow.transport else {
        return None;
    };
    let written = |transport: &TransportConfig| Table::try_from(transport).unwrap_or_default();
    // Some defaults depend on the congestion control, which the kernel is given.
    let congestion = setting(&flow.transport, "congestion").unwrap_or_default();
    let known = [LINUX, "kind = \"tcp\"\n"].map(|text| {
        let text = format!("{text}congestion = {congestion:?}\n");
        toml::from_str::<TransportConfig>(&text).ok()
    });
    let known: Vec<Table> = known.iter().flatten().map(written).collect();
    let all = written(&flow.transport);
    let other = all.iter().filter(|(name, value)| {
        let is_known = known.iter().any(|table| table.get(*name) == Some(value));
        !is_known && !GIVEN.contains(&name.as_str())
    });
    let other: Vec<String> = other
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    (!other.is_empty()).then(|| {
        let (name, other) = (&flow.name, other.join(", "));
        format!(
            "the flow \"{name}\": the kernel's TCP does not have {other}; the simulated one does"
        )
    })
}

#[cfg(test)]
mod tests {
    use airlane_base::config::Document;

    use super::*;

    const BARE: &str = r#"
schema = 1
name = "bare"
duration = "1 s"
[nodes.a]
[nodes.b]
[links.radio]
ends = ["a", "b"]
rate = "10 Mbit/s"
delay = "20 ms"
[[flows]]
name = "file"
ends = ["a", "b"]
transport = { kind = "tcp" }
app = { kind = "bulk" }
"#;

    /// What is refused of this text, with its place.
    fn refused(text: &str) -> String {
        let document = Document::parse(text, "x.toml").unwrap();
        let scenario: Scenario = document.read().unwrap();
        let mut problems = Problems::new();
        refuse(&scenario.resolved(), &mut problems);
        match problems.is_empty() {
            true => String::new(),
            false => document.locate(problems).to_string(),
        }
    }

    fn with(line: &str, other: &str) -> String {
        assert!(BARE.contains(line), "{line}");
        refused(&BARE.replace(line, other))
    }

    #[test]
    fn what_no_kernel_has_is_refused_by_name_and_place() {
        assert_eq!(refused(BARE), "");
        let tcp = "kind = \"tcp\"";
        let cases = [
            (tcp, "kind = \"tcp\", profile = \"ns2-1999\"", "ns2-1999"),
            (tcp, "kind = \"tcp\", recovery = \"newreno\"", "newreno"),
            (
                "kind = \"bulk\"",
                "kind = \"bulk\", takes = \"1 Mbit/s\"",
                "app.takes",
            ),
            (
                "kind = \"bulk\"",
                "kind = \"bulk\", packet = \"1460 B\"",
                "1448 B",
            ),
            ("kind = \"bulk\"", "kind = \"telnet\", count = 1", "telnet"),
            (
                "name = \"file\"",
                "name = \"file\"\nencrypted = true",
                "ESP",
            ),
            (
                "delay =",
                "mark-above = \"5 packets\"\ndelay =",
                "mark-above",
            ),
            (
                "delay =",
                "services = [{ number = 0, name = \"all\", rate = 1.0, scheme = { kind = \"sr-m2\" } }]\ndelay =",
                "node = \"live\"",
            ),
            (
                "[nodes.b]",
                "[nodes.b]\n[nodes.c]\n[links.wired]\nends = [\"b\", \"c\"]\nrate = \"1 Gbit/s\"\ndelay = \"0 s\"",
                "links: 2, nodes: 3",
            ),
            (
                "delay =",
                "node = \"live\"\ndelay =",
                "start = \"120 ms\", or more",
            ),
        ];
        for (line, other, named) in cases {
            let error = with(line, other);
            assert!(error.starts_with("x.toml:"), "{other}: {error}");
            assert!(error.contains(named), "{other}: {error}");
        }
    }

    #[test]
    fn two_flows_may_not_share_what_a_host_has_once() {
        let pages = "app = { kind = \"pages\", request = \"100 B\", reply = \"1 kB\" }";
        let file = "app = { kind = \"bulk\" }";
        let second = BARE
            .split_once("[[flows]]")
            .unwrap()
            .1
            .replace("\"file\"", "\"second\"");
        let both = format!("{BARE}[[flows]]{second}");
        assert_eq!(refused(&both), "");
        let error = refused(&both.replace(file, pages));
        assert!(error.contains("same port"), "{error}");
        let error = refused(&format!(
            "{BARE}[[flows]]{}",
            second.replace("kind = \"tcp\"", "kind = \"tcp\", ecn = false")
        ));
        assert!(error.contains("`ecn` differs"), "{error}");
    }

    #[test]
    fn settings_that_neither_modern_nor_linux_has_are_named() {
        let notes = |transport: &str| {
            let text = BARE.replace("kind = \"tcp\"", transport);
            let scenario = Scenario::from_toml(&text, "x.toml").unwrap();
            notes_of(&scenario.flows[0]).unwrap_or_default()
        };
        assert_eq!(notes("kind = \"tcp\", congestion = \"reno\""), "");
        let linux = "kind = \"tcp\", min-rto = \"200 ms\", pacing = false, header-size = \"54 B\"";
        assert_eq!(notes(linux), "");
        let said = notes("kind = \"tcp\", min-rto = \"200 ms\", initial-window = 2");
        assert!(
            said.contains("initial-window = 2") && !said.contains("min-rto"),
            "{said}"
        );
    }
}
