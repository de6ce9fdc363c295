//! Live nodes in scenarios: the software of `airlane up`, from the first handshake on.

use airlane_base::Instant;
use airlane_sim::event::{Event, Watcher};
use airlane_sim::{FlowResult, Prepared, RunResult, Scenario, run};

use crate::common::load;

fn play(name: &str, assignments: &[&str]) -> RunResult {
    run(&load(name, assignments), 1, 0).unwrap()
}

fn flow<'a>(result: &'a RunResult, name: &str) -> &'a FlowResult {
    result.flows.iter().find(|flow| flow.name == name).unwrap()
}

fn mbits(result: &RunResult, name: &str) -> f64 {
    flow(result, name).throughput_bps.unwrap() / 1e6
}

#[test]
fn applications_get_what_live_services_are_for() {
    let result = play("live-link", &[]);
    assert!(mbits(&result, "file") > 16.0, "{}", mbits(&result, "file"));
    for call in ["call-down", "call-up"] {
        let call = flow(&result, call);
        assert_eq!(call.loss_ratio, Some(0.0), "{call:?}");
        let [services] = &call.services[..] else {
            panic!("{:?}", call.services)
        };
        assert_eq!(services.there[0].service, "calls");
    }
    // The ledgers of both ends agree: everything delivered was offered, and the rest is in flight.
    for link in result.links.iter().filter(|link| link.name == "radio") {
        for way in [&link.down, &link.up] {
            for service in &way.services {
                let (sent, got) = (&service.sender, &service.receiver);
                assert!(got.packets_delivered <= sent.packets_offered, "{service:?}");
            }
        }
    }
    let nodes = result.nodes.iter();
    let states: Vec<_> = nodes
        .map(|n| (&*n.node, &*n.status.peers[0].session.state))
        .collect();
    assert_eq!(states, [("client", "confirmed"), ("left", "confirmed")]);
}

#[test]
fn scenario_seed_and_run_decide_every_byte() {
    let scenario = load("live-link", &["duration=6 s"]);
    let text = |seed, at| serde_json::to_string(&run(&scenario, seed, at).unwrap()).unwrap();
    assert_eq!(text(1, 0), text(1, 0));
    assert_ne!(text(1, 0), text(1, 1));
    assert_ne!(text(1, 0), text(2, 0));
}

#[test]
fn stations_share_a_base_by_weight() {
    let result = play("live-base", &[]);
    let [hill, farm, mill] = ["hill", "farm", "mill"].map(|name| mbits(&result, name));
    let rest = (farm + mill) / 2.0;
    assert!((2.6..3.4).contains(&(hill / rest)), "{hill} {farm} {mill}");
    assert!(hill + farm + mill > 15.0, "{hill} {farm} {mill}");
}

#[test]
fn a_session_goes_on_where_a_node_roams() {
    let result = play("live-roaming", &["duration=38 s"]);
    let file = flow(&result, "file");
    // A second without any link.
    let pause = file.pause_max_s.unwrap();
    assert!((1.0..1.5).contains(&pause), "{pause}");
    assert_eq!(file.timeouts, Some(0));
    assert!(
        file.delivered_bytes > 50_000_000,
        "{}",
        file.delivered_bytes
    );
    let mast = result.nodes.iter().find(|n| n.node == "mast").unwrap();
    assert_eq!(mast.status.peers[0].session.sessions, 1);
}

/// High loss reveals the smaller MTU, and the rate recovers as soon as it is known.
#[test]
fn a_smaller_path_mtu_is_detected() {
    let result = play("live-roaming", &[]);
    let mast = result.nodes.iter().find(|n| n.node == "mast").unwrap();
    let mtu = mast.status.peers[0].path_mtu_bytes;
    assert!((1_000..=1_300).contains(&mtu), "{mtu}");
    let link = result.links.iter().find(|l| l.name == "cellular").unwrap();
    assert!(link.down.too_long.frames > 0);
    let file = flow(&result, "file");
    let pause = file.pause_max_s.unwrap();
    assert!(pause < 4.0, "{pause}");
    // 2 to 20 s at 20 Mbit/s, 21 to 60 s at 8 Mbit/s, minus headers, repairs and the pause.
    assert!(
        file.delivered_bytes > 66_000_000,
        "{}",
        file.delivered_bytes
    );
}

#[test]
fn flows_without_keys_travel_too() {
    let none = "nodes.left.live={ link = { security = \"none\" } }";
    let other = "nodes.client.live={ link = { security = \"none\" } }";
    let open = play("live-link", &["duration=8 s", none, other]);
    let sealed = play("live-link", &["duration=8 s"]);
    assert!(mbits(&open, "file") > mbits(&sealed, "file") * 0.95);
    assert_eq!(open.nodes[0].status.underlay.security, "none");
}

/// No node on the path sees the ports, and the flow is still delivered.
#[test]
fn what_is_encrypted_travels_too() {
    let all = ["file", "call-down"].map(|flow| format!("flows[{flow}].encrypted=true"));
    let hidden = play("live-link", &["duration=8 s", &all[0], &all[1]]);
    assert!(mbits(&hidden, "file") > 10.0, "{}", mbits(&hidden, "file"));
    assert!(flow(&hidden, "call-down").loss_ratio.unwrap() < 0.05);
}

/// Packets at a base station show as arrivals on the link of the station that sent them.
#[test]
fn arrivals_are_seen_on_the_link_that_they_came_over() {
    #[derive(Default)]
    struct Arrivals(std::collections::BTreeMap<(u32, u16), u64>);
    impl Watcher for Arrivals {
        fn on_event(&mut self, _: Instant, event: &Event) {
            if let Event::PacketLeft { way, packet } = event {
                *self.0.entry((packet.flow, way.link)).or_default() += 1;
            }
        }
    }
    let prepared = Prepared::new(&load("live-base", &["duration=4 s"])).unwrap();
    let mut arrivals = Arrivals::default();
    prepared.run_watched(1, 0, &mut arrivals);
    let links = prepared.names().links().to_vec();
    for (number, station) in ["hill", "farm", "mill"].iter().enumerate() {
        for (link, name) in links
            .iter()
            .enumerate()
            .filter(|(_, name)| name.starts_with("to-"))
        {
            let came = arrivals
                .0
                .get(&(number as u32, link as u16))
                .copied()
                .unwrap_or(0);
            let own = *name == format!("to-{station}");
            assert_eq!(came > 100, own, "{station} on {name}: {came}");
            assert!(own || came == 0, "{station} on {name}: {came}");
        }
    }
}

/// Errors in a file name their place.
#[test]
fn files_that_cannot_work_are_refused() {
    let text = load("live-link", &[]).to_toml();
    for (assignment, says) in [
        (
            "nodes.left.live={ link = { rate = \"fast\" } }",
            "nodes.left.live",
        ),
        (
            "nodes.server.live={}",
            "no link of this node runs live nodes",
        ),
        (
            "links.radio.frame=1500 B",
            "the ends of this link run live nodes",
        ),
        ("links.wired.mtu=1500 B", "only the ends of live links"),
        ("links.radio.mtu=10 B", "no IP link takes so little"),
        (
            "nodes.left.live={ peers = [{ name = \"nobody\" }] }",
            "no live link leads to a node \"nobody\"",
        ),
        (
            "nodes.left.live={ link = { services = [{ number = 1, name = \"a\", rate = -1, goal = \"bulk\" }] } }",
            "nodes.left.live",
        ),
        (
            "nodes.left.live={ tun = { mtu = \"65000 B\" }, link = { fragment = \"256 B\" } }",
            "nodes.left.live",
        ),
        ("nodes.left.live=left.toml", "has not been read"),
    ] {
        let scenario = Scenario::from_toml_with(&text, "live-link", &[assignment]);
        let error = match scenario {
            Err(refused) => refused.to_string(),
            Ok(scenario) => run(&scenario, 1, 0).unwrap_err().to_string(),
        };
        assert!(error.contains(says), "{assignment}:\n{error}");
    }
}

#[test]
fn a_live_file_is_read_by_its_name() {
    let mut scenario = load("live-link", &["duration=6 s"]);
    let hash = scenario.hash();
    for node in ["left", "client"] {
        scenario.nodes.get_mut(node).unwrap().live = Some(airlane_sim::scenario::LiveFile::Named(
            format!("{node}.toml"),
        ));
    }
    let file = "schema = 1\n[tun]\naddresses = [\"10.7.0.1/24\"]\n[link]\nrate = \"9 Mbit/s\"\n\
        underlay = { kind = \"udp\", listen = \"0.0.0.0:7007\", peer = \"mast.example.org:7007\" }\n\
        security = { private-key = \"/etc/airlane/left.key\" }\n";
    scenario.load_tables(|_| Ok(file.to_owned())).unwrap();
    assert_ne!(scenario.hash(), hash);
    let result = run(&scenario, 1, 0).unwrap();
    let file = mbits(&result, "file");
    assert!((6.0..9.0).contains(&file), "{file}");
    let refused = scenario
        .load_tables(|_| Ok("schema = 1\nlink = 3".to_owned()))
        .unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("nodes.client.live names client.toml"),
        "{refused}"
    );
}
