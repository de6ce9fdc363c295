//! Snoop in the simulator: the agent is at the end that the file names.

use crate::common::{Air, Link, file};
use airlane_sim::{FlowResult, Scenario, run};

fn transfer(link: Link, errors: &str, scheme: &str, size: &str) -> FlowResult {
    let air = Air {
        errors: Some(errors),
        scheme: Some(scheme),
        ..Air::default()
    };
    let scenario = file(link, "LAN1", air, size, 20);
    run(&scenario, 1999, 0).unwrap().flows.remove(0)
}

const FIRST: &str = "{ kind = \"snoop\", base-station = \"first\" }";
const SECOND: &str = "{ kind = \"snoop\", base-station = \"second\" }";
const RAW: &str = "{ kind = \"default\" }";

/// Section 12.1 of docs/spec/multi-service.md: at most F / (F + 1) (1 - p) of the bytes sent are new, and TCP
/// retransmits little that Snoop has repaired.
#[test]
fn losses_on_the_air_are_repaired_at_the_base_station() {
    for (link, errors, p, bound, size) in [
        (
            Link::Cellular,
            "{ kind = \"uniform\", rate = 0.05 }",
            0.05,
            50.0 / 51.0,
            "100 kB",
        ),
        (
            Link::Wlan,
            "{ kind = \"byte-exponential\", mean = \"32768 B\" }",
            0.0301,
            1000.0 / 1001.0,
            "5 MB",
        ),
    ] {
        let raw = transfer(link, errors, RAW, size);
        let snoop = transfer(link, errors, FIRST, size);
        let gain = snoop.throughput_bps.unwrap() / raw.throughput_bps.unwrap();
        assert!(gain > 1.5, "{link:?}: gain {gain}");
        assert!(snoop.retransmissions < raw.retransmissions, "{snoop:?}");
        let goodput = snoop.goodput_ratio.unwrap();
        let most = bound * (1.0 - p);
        assert!(
            (0.9 * most..1.02 * most).contains(&goodput),
            "{link:?}: goodput {goodput} of {most}"
        );
    }
}

/// An agent cannot see TCP in encrypted packets.
#[test]
fn an_agent_can_do_nothing_for_encrypted_segments() {
    let errors = Some("{ kind = \"uniform\", rate = 0.05 }");
    let flow = |scheme, encrypted: bool| {
        let air = Air {
            errors,
            scheme: Some(scheme),
            ..Air::default()
        };
        let mut scenario = file(Link::Cellular, "LAN1", air, "50 kB", 20);
        scenario.flows[0].encrypted = encrypted;
        let flow = run(&scenario, 1999, 0).unwrap().flows.remove(0);
        (flow.throughput_bps, flow.retransmissions, flow.timeouts)
    };
    assert_eq!(flow(FIRST, true), flow(RAW, false));
    assert_eq!(flow(RAW, true), flow(RAW, false));
    assert_ne!(flow(FIRST, false), flow(RAW, false));
}

/// An agent at the mobile host sees no segments on their way to a wireless host.
#[test]
fn an_agent_at_the_wrong_end_does_nothing() {
    let errors = "{ kind = \"uniform\", rate = 0.05 }";
    let raw = transfer(Link::Cellular, errors, RAW, "50 kB");
    let wrong = transfer(Link::Cellular, errors, SECOND, "50 kB");
    assert_eq!(wrong.throughput_bps, raw.throughput_bps);
    assert_eq!(wrong.retransmissions, raw.retransmissions);
}

#[test]
fn a_scenario_must_name_an_end() {
    let text = "schema = 1\nname = \"test\"\nduration = \"1 s\"\n[nodes.a]\n[nodes.b]\n[links.radio]\n\
        ends = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nframe = \"100 B\"\n\
        services = [{ number = 0, name = \"all\", rate = 1, scheme = { kind = \"snoop\", base-station = \"here\" } }]\n";
    let error = Scenario::from_toml(text, "test.toml")
        .unwrap_err()
        .to_string();
    assert!(error.contains("\"first\" or \"second\""), "{error}");
    let error = Scenario::from_toml(&text.replace(", base-station = \"here\"", ""), "test.toml");
    assert!(error.unwrap_err().to_string().contains("base-station"));
}
