use super::*;
use crate::run;

const WORLD: &str = r#"
schema = 1
name = "test"
duration = "10 s"
[nodes.server]
[nodes.base]
[nodes.mobile]
[links.wired]
ends = ["server", "base"]
rate = "10 Mbit/s"
delay = "1 ms"
[links.radio]
ends = ["base", "mobile"]
rate = "14.4 kbit/s"
delay = "100 ms"
frame = "50 B"
header = "study"
errors = { kind = "uniform", rate = 0.05 }
[[links.radio.services]]
number = 1
name = "voice"
rate = 1.0
scheme = { kind = "rlp-oos" }
[[links.radio.classes]]
match = { dscp = "EF" }
service = "voice"
[[flows]]
name = "file"
ends = ["server", "mobile"]
transport = { kind = "tcp", profile = "ns2-1999", window = 30 }
app = { kind = "bulk", size = "2 MB" }
[[flows]]
name = "talk"
ends = ["server", "mobile"]
dscp = "EF"
transport = { kind = "udp" }
app = { kind = "conferencing", rate = "9.6 kbit/s", packet = "50 B", talk = "1 s", silence = "1.35 s" }
"#;

fn world() -> Scenario {
    Scenario::from_toml(WORLD, "world.toml").unwrap()
}

/// The error for the world with one assignment.
fn refusal(assignment: &str) -> String {
    match Scenario::from_toml_with(WORLD, "world.toml", &[assignment]) {
        Err(e) => e.to_string(),
        Ok(_) => panic!("{assignment} was accepted"),
    }
}

#[test]
fn defaults_are_filled_in_and_printed() {
    let all = world().resolved();
    assert_eq!(all.seed, 1);
    assert_eq!(all.flows[0].app.packet(), Some(Size::from_bytes(50)));
    assert_eq!(all.flows[0].port, Some(20));
    let addresses: Vec<String> = all
        .nodes
        .values()
        .map(|n| n.address.unwrap().to_string())
        .collect();
    assert_eq!(addresses, ["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
    let text = all.to_toml();
    for needle in [
        "handed-over = 2",
        "pacing = \"off\"",
        "kind = \"scfq\"",
        "timers = \"relaxed\"",
        "retries = 3",
        "window = 30",
        "tick = \"500 ms\"",
        "limit = \"50 packets\"",
    ] {
        assert!(text.contains(needle), "{needle} is not in\n{text}");
    }
    // The printed form describes the same world completely.
    let again = Scenario::from_toml(&text, "printed").unwrap();
    assert_eq!(again, all);
    assert_eq!(again.resolved(), all);
    assert_eq!(again.hash(), world().hash());
}

#[test]
fn the_hash_is_that_of_the_world_and_not_of_the_seed() {
    let with = |a: &str| Scenario::from_toml_with(WORLD, "w", &[a]).unwrap().hash();
    assert_eq!(with("seed=7"), world().hash());
    assert_eq!(with("links.radio.queue=50 packets"), world().hash());
    assert_ne!(with("links.radio.errors.rate=0.06"), world().hash());
}

#[test]
fn a_wrong_error_rate_is_one_problem() {
    let error = Scenario::from_toml_with(WORLD, "w", &["links.radio.errors.rate=1.5"]).unwrap_err();
    let paths: Vec<&str> = error.problems().iter().map(|p| p.path.as_str()).collect();
    assert_eq!(paths, ["links.radio.errors.rate"]);
}

#[test]
fn assignments_reach_into_tables_and_lists() {
    let s = Scenario::from_toml_with(
        WORLD,
        "w",
        &[
            "links.radio.errors.rate=0.1",
            "links.radio.services[voice].rate=0.5",
            "flows[file].app.size=1 MB",
        ],
    )
    .unwrap();
    assert_eq!(s.links["radio"].services[0].rate, 0.5);
    let AppConfig::Bulk(file) = &s.flows[0].app else {
        panic!("the first flow is the file");
    };
    assert_eq!(file.size, Some(Size::from_bytes(1_000_000)));
}

#[test]
fn an_invalid_scenario_is_refused_with_path_value_and_range() {
    for (assignment, needles) in [
        ("schema=2", &["schema 2", "schema = 1"][..]),
        ("duration=0 s", &["duration", "more than zero"]),
        ("until=song", &["no flow \"song\"", "file, talk"]),
        ("until=talk", &["never ends", "size"]),
        (
            "links.wired.ends=[\"server\", \"bse\"]",
            &["no node \"bse\"", "base, mobile, server"],
        ),
        (
            "links.wired.ends=[\"base\", \"base\"]",
            &["both ends are \"base\""],
        ),
        (
            "links.wired.ends=[\"base\", \"mobile\"]",
            &["no links join \"server\" and \"mobile\""],
        ),
        ("links.wired.rate=0 bit/s", &["at least 1 bit/s"]),
        ("links.radio.frame=0 B", &["frame of 0 B"]),
        (
            "links.radio.frame=30 B",
            &["acknowledgment of 40 B does not fit", "\"30 B\""],
        ),
        ("links.radio.services[0].rate=0", &["share above 0"]),
        ("links.radio.services[0].number=16", &["0 to 15"]),
        ("links.radio.services[0].scheme.window=128", &["1 to 127"]),
        ("links.radio.classes[0].service=vioce", &["vioce", "voice"]),
        ("links.radio.errors.rate=1.5", &["between 0 and 1"]),
        (
            "links.radio.shared-fades=true",
            &["errors that run in real time", "two-state"],
        ),
        ("links.radio.qeue=3", &["qeue"]),
        (
            "links.radoi.errors.rate=0.1",
            &[
                "there is no `links.radoi`; there are: radio, wired",
                "has `ends`",
            ],
        ),
        ("flows[0].name=talk", &["two flows are called \"talk\""]),
        (
            "flows[0].ends=[\"server\", \"moon\"]",
            &["no node \"moon\""],
        ),
        (
            "flows[0].transport={ kind = \"udp\" }",
            &["bulk does not run over udp", "\"tcp\""],
        ),
        (
            "flows[1].transport={ kind = \"tcp\" }",
            &["conferencing does not run over tcp"],
        ),
        (
            "flows[1].transport={ kind = \"udp\", window = 3 }",
            &["window"],
        ),
        ("flows[0].transport.window=0", &["window = 0"]),
        ("flows[0].app.size=0 B", &["app.size is zero"]),
        (
            "flows[0].app.packet=60 B",
            &["packet of 60 B does not fit the link \"radio\"", "\"50 B\""],
        ),
        ("flows[1].app.talk=0 s", &["talk period of 0 s"]),
        (
            "flows[1].app.rate=1 Gbit/s",
            &["more than a million packets"],
        ),
        ("nodes.base.address=10.0.0.256", &["10.0.0.256"]),
    ] {
        let message = refusal(assignment);
        for needle in needles {
            assert!(
                message.contains(needle),
                "{assignment}: no {needle:?} in\n{message}"
            );
        }
    }
}

#[test]
fn a_world_without_frame_sizes_has_those_of_ethernet() {
    let text = WORLD.replace("frame = \"50 B\"\n", "");
    let all = Scenario::from_toml(&text, "w").unwrap();
    assert_eq!(all.links["radio"].frame, None);
    let all = all.resolved();
    assert_eq!(all.links["radio"].frame, Some(Size::from_bytes(1_500)));
    assert_eq!(all.flows[0].app.packet(), Some(Size::from_bytes(1_500)));
    // A stated value is kept, and a link without services takes any packet.
    let stated = Scenario::from_toml_with(&text, "w", &["flows[0].app.packet=900 B"]);
    assert_eq!(
        stated.unwrap().resolved().flows[0].app.packet(),
        Some(Size::from_bytes(900))
    );
    let today = Scenario::from_toml(&format!("{BARE}app = {{ kind = \"bulk\" }}\n"), "w");
    let today = today.unwrap().resolved();
    assert_eq!(today.links["radio"].frame, None);
    assert!(run(&today, 1, 0).unwrap().flows[0].throughput_bps > Some(9e6));
    let long = "flows[0].app.packet=9000 B";
    let e = Scenario::from_toml_with(&text, "w", &[long]).unwrap_err();
    assert!(
        e.to_string().contains("its frames take at most \"1.5 kB\""),
        "{e}"
    );
}

/// Two nodes, to be followed by a flow with its application.
const BARE: &str = "schema = 1\nname = \"bare\"\nduration = \"5 s\"\nnodes = { a = {}, b = {} }
    [links.radio]\nends = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"
    [[flows]]\nname = \"f\"\nends = [\"a\", \"b\"]\ntransport = { kind = \"tcp\" }\n";

#[test]
fn constant_rate_and_on_off_sources_are_chosen_by_name() {
    let read = |app: &str| {
        let text = BARE.replace("\"tcp\"", "\"udp\"") + app;
        Scenario::from_toml(&text, "w").map_err(|e| e.to_string())
    };
    let cbr = read("app = { kind = \"cbr\", rate = \"1 Mbit/s\" }").unwrap();
    let flow = &run(&cbr, 1, 0).unwrap().flows[0];
    // 1400 B every 11.2 ms, the first at once.
    assert_eq!(flow.packets_sent, 5_000_000 / 11_200 + 1);
    assert!(flow.delay_sd_s.unwrap() < 1e-9, "{flow:?}");
    let same = "app = { kind = \"conferencing\", rate = \"1 Mbit/s\", talk = \"1000 s\", silence = \"0 s\" }";
    assert_eq!(cbr, read(same).unwrap());
    let on_off = read("app = { kind = \"on-off\", rate = \"64 kbit/s\" }\n").unwrap();
    let long = Scenario {
        duration: Duration::from_secs(2_000),
        ..on_off
    };
    let sent = run(&long, 1, 0).unwrap().flows[0].packets_sent as f64;
    // On for 1.004 s of 2.591 s.
    assert!(
        (sent / (2_000.0 / 0.02) / 0.3875 - 1.0).abs() < 0.15,
        "{sent}"
    );
    let e = read("app = { kind = \"cbr\", rate = \"1 Mbit/s\", talk = \"1 s\" }").unwrap_err();
    assert!(
        e.contains("talk") && e.contains("rate, packet, lasts"),
        "{e}"
    );
}

#[test]
fn two_nodes_cannot_share_an_address() {
    let assignments = [
        "nodes.base.address=10.0.0.9",
        "nodes.mobile.address=10.0.0.9",
    ];
    let e = Scenario::from_toml_with(WORLD, "w", &assignments).unwrap_err();
    assert!(e.to_string().contains("address of \"base\" already"), "{e}");
}

#[test]
fn a_node_without_a_link_is_a_mistake() {
    let e = Scenario::from_toml_with(WORLD, "w", &["nodes.bsae.address=10.0.0.9"]).unwrap_err();
    assert!(e.to_string().contains("no link ends at \"bsae\""), "{e}");
}

#[test]
fn a_scenario_that_was_never_a_file_is_checked_too() {
    let mut scenario = world();
    scenario.flows[0].ends[1] = "moon".to_owned();
    let e = run(&scenario, 1, 0).unwrap_err().to_string();
    assert!(
        e.contains("no node \"moon\"") && e.contains("flows[0].ends[1]"),
        "{e}"
    );
}

#[test]
fn numbers_that_no_file_can_hold_are_refused_without_a_line() {
    let mut scenario = world();
    scenario.seed = u64::MAX;
    let e = run(&scenario, 1, 0).unwrap_err().to_string();
    assert!(e.contains("seed of 18446744073709551615"), "{e}");
}

#[test]
fn predefined_classes_become_rules() {
    let read = |name: &str| {
        let classes = format!("links.radio.classes={name}");
        Scenario::from_toml_with(WORLD, "world.toml", &[classes]).unwrap()
    };
    let found = read("heuristic").resolved();
    let radio = &found.links["radio"];
    assert_eq!(radio.rates, Some(Rates::Fixed), "as their services say");
    let classes = radio.classes.rules(&[]);
    assert!(!classes.is_empty());
    // The resolved file describes the same world.
    let again = Scenario::from_toml(&found.to_toml(), "again").unwrap();
    assert_eq!(again.resolved(), found);
    assert_eq!(again.hash(), read("heuristic").hash());
    assert_eq!(
        read("dscp").resolved().links["radio"].rates,
        Some(Rates::Fixed)
    );
}

#[test]
fn more_flows_than_packets_can_number_are_one_error() {
    let flow = |i| {
        format!(
            "[[flows]]\nname = \"f{i}\"\nends = [\"moon\", \"base\"]\n\
             transport = {{ kind = \"udp\" }}\napp = {{ kind = \"conferencing\", \
             rate = \"9.6 kbit/s\", packet = \"50 B\", talk = \"1 s\", silence = \"1 s\" }}\n"
        )
    };
    let flows: String = (0..=65_536).map(flow).collect();
    let head = WORLD.split("[[flows]]").next().unwrap_or_default();
    let refusal = Scenario::from_toml(&format!("{head}{flows}"), "world.toml")
        .unwrap_err()
        .to_string();
    assert!(refusal.contains("65537 flows are too many"), "{refusal}");
    assert!(!refusal.contains("moon"), "{refusal}");
}
