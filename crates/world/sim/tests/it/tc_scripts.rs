//! Scripts with tc commands have the effect that tc gives them; the examples resemble public scripts.

use std::path::Path;

use airlane_base::Duration;
use airlane_channel::ErrorModelConfig;
use airlane_sim::Scenario;
use airlane_sim::import::{ImportedApp, ImportedScenario, NetemChoice, from_netem};

fn choose(text: &str, choice: &NetemChoice<'_>) -> Result<(Scenario, Vec<String>), String> {
    let import = from_netem(text, None, choice, &[ImportedApp::File]).map_err(|e| e.to_string())?;
    let scenario = Scenario::from_toml(&import.text, "import.toml").unwrap();
    Ok((scenario, import.notes))
}

/// Rate, delay and loss of the downlink.
fn link(text: &str, choice: &NetemChoice<'_>) -> (String, String, f64) {
    let (scenario, _) = choose(text, choice).unwrap_or_else(|error| panic!("{text}: {error}"));
    let link = &scenario.links["link"];
    let loss = match &link.errors.down {
        ErrorModelConfig::None => 0.0,
        ErrorModelConfig::Uniform { rate } => rate.value(),
        other => panic!("{other:?}"),
    };
    (
        link.rate.down.to_string(),
        link.delay.down.to_string(),
        loss,
    )
}

fn found(text: &str) -> (String, String, f64) {
    link(text, &NetemChoice::default())
}

fn class<'a>(class: &'a str) -> NetemChoice<'a> {
    NetemChoice {
        class: Some(class),
        ..NetemChoice::default()
    }
}

fn said(text: &str, choice: &NetemChoice<'_>) -> String {
    choose(text, choice)
        .map(|(scenario, _)| scenario.to_toml())
        .unwrap_err()
}

fn is(rate: &str, delay: &str, loss: f64) -> (String, String, f64) {
    (rate.to_owned(), delay.to_owned(), loss)
}

#[test]
fn rates_of_classes_are_the_links() {
    let htb = "tc qdisc add dev lo root handle 1: htb default 12\n\
               tc class add dev lo parent 1:1 classid 1:12 htb rate 100mbit ceil 100mbit\n\
               tc qdisc add dev lo parent 1:12 netem delay 40ms loss 1%\n";
    assert_eq!(found(htb), is("100 Mbit/s", "40 ms", 0.01));
    let hfsc = "tc qdisc add dev w root handle 1:0 hfsc default 1\n\
                tc class add dev w parent 1:0 classid 1:1 hfsc sc rate 1mbit ul rate 2mbit\n";
    assert_eq!(found(hfsc).0, "2 Mbit/s");
    let curves = "tc qdisc add dev w root handle 1: hfsc\n\
                  tc class add dev w parent 1: classid 1:1 hfsc ls m1 9mbit d 5ms m2 1mbit ul m2 3mbit\n";
    assert_eq!(found(curves).0, "3 Mbit/s");
    let cbq = "tc qdisc add dev e root handle 1: cbq avpkt 1000 bandwidth 1000mbit\n\
               tc class add dev e parent 1: classid 1:1 cbq rate 52mbit allot 1500 prio 5 bounded isolated\n";
    assert_eq!(found(cbq).0, "52 Mbit/s");
    let cake = "tc qdisc add dev e root cake bandwidth 18mbit diffserv4 rtt 20ms";
    assert_eq!(found(cake).0, "18 Mbit/s");
    let tbf = "tc qdisc add dev e root handle 1: tbf rate 10mbit burst 4kbit latency 50ms\n\
               tc qdisc add dev e parent 1:1 fq_codel limit 300";
    assert_eq!(found(tbf).0, "10 Mbit/s");
    let (scenario, _) = choose(tbf, &NetemChoice::default()).unwrap();
    assert_eq!(
        scenario.links["link"].queue.unwrap().down.to_string(),
        "300 packets"
    );
    // The rate with borrowing: up to the ceiling, and up to what the class above gets.
    let borrows = "tc qdisc add dev e root handle 1: htb\n\
                   tc class add dev e parent 1: classid 1:1 htb rate 6mbit ceil 9mbit\n\
                   tc class add dev e parent 1:1 classid 1:2 htb rate 1mbit ceil 8mbit\n";
    assert_eq!(found(borrows).0, "6 Mbit/s");
    assert!(
        said(
            "tc class add dev e parent 1: classid 1:1 htb ceil 5mbit",
            &class("1:1")
        )
        .contains("no rate")
    );
}

#[test]
fn siblings_are_chosen_and_never_merged() {
    let two = "tc qdisc add dev eth0 root handle 1: htb default 10\n\
               tc class add dev eth0 parent 1: classid 1:1 htb rate 100mbit\n\
               tc class add dev eth0 parent 1:1 classid 1:10 htb rate 10mbit\n\
               tc class add dev eth0 parent 1:1 classid 1:20 htb rate 5mbit ceil 5mbit\n\
               tc qdisc add dev eth0 parent 1:10 handle 10: netem delay 100ms\n\
               tc qdisc add dev eth0 parent 1:20 handle 20: netem delay 200ms loss 10%\n";
    let refused = said(two, &NetemChoice::default());
    assert!(
        refused.contains("choose one by --class: 1:10, 1:20"),
        "{refused}"
    );
    assert_eq!(link(two, &class("1:10")), is("10 Mbit/s", "100 ms", 0.0));
    for name in ["1:20", "20:", "20"] {
        assert_eq!(link(two, &class(name)), is("5 Mbit/s", "200 ms", 0.1));
    }
    assert!(said(two, &class("1:1")).contains("several below it"));
    assert!(said(two, &class("1:30")).contains("no class \"1:30\""));
    // A filter for all packets selects the class.
    let filter = "tc filter add dev eth0 protocol ip parent 1: prio 5 u32 match ip dst 0.0.0.0/0 \
                  match ip src 0.0.0.0/0 flowid 1:20\n";
    assert_eq!(
        found(&format!("{two}{filter}")),
        is("5 Mbit/s", "200 ms", 0.1)
    );
    // The same, in the output of tc; classes name no interface.
    let shown = "qdisc htb 1: dev eth0 root refcnt 2 r2q 10 default 0x10 direct_packets_stat 0 direct_qlen 1000\n\
                 qdisc netem 10: dev eth0 parent 1:10 limit 1000 delay 100ms\n\
                 qdisc netem 20: dev eth0 parent 1:20 limit 1000 delay 200ms loss 10%\n\
                 class htb 1:1 root rate 100Mbit ceil 100Mbit burst 1600b cburst 1600b\n\
                 class htb 1:10 parent 1:1 leaf 10: prio 0 rate 10Mbit ceil 10Mbit burst 1600b cburst 1600b\n\
                 \x20rate 0bit 0pps backlog 0b 0p requeues 0\n\
                 class htb 1:20 parent 1:1 leaf 20: prio 0 rate 5Mbit ceil 5Mbit burst 1600b cburst 1600b\n";
    assert_eq!(link(shown, &class("1:20")), is("5 Mbit/s", "200 ms", 0.1));
    assert!(said(shown, &NetemChoice::default()).contains("1:10, 1:20"));
    let bands =
        "tc qdisc add dev e root handle 1: prio\ntc qdisc add dev e parent 1:3 netem delay 9ms";
    assert_eq!(found(bands).1, "9 ms");
}

#[test]
fn a_chain_adds_delays_and_combines_losses() {
    let chain = "tc qdisc add dev e root handle 1:0 netem delay 20ms loss 10%\n\
                 tc qdisc add dev e parent 1:1 handle 10: tbf rate 20Mbit burst 10mb latency 1ms\n\
                 tc qdisc add dev e parent 10:1 handle 100: netem delay 5ms loss 20%\n";
    let (rate, delay, loss) = found(chain);
    assert_eq!((rate.as_str(), delay.as_str()), ("20 Mbit/s", "25 ms"));
    assert!((loss - 0.28).abs() < 1e-12, "{loss}");
    let bursts = chain
        .replace("loss 10%", "loss gemodel 1% 10%")
        .replace("loss 20%", "loss gemodel 1% 10%");
    assert!(said(&bursts, &NetemChoice::default()).contains("bursts in a row"));
}

#[test]
fn verbs_do_what_they_do_in_tc() {
    let netem = |rest: &str| {
        format!("tc qdisc add dev e root netem delay 30ms rate 5mbit loss 50%\n{rest}")
    };
    // A change resets delay and losses, and keeps the rate.
    assert_eq!(
        found(&netem("tc qdisc change dev e root netem loss 1%")),
        is("5 Mbit/s", "0 s", 0.01)
    );
    assert_eq!(
        found(&netem("tc qdisc replace dev e root netem delay 9ms")),
        is("5 Mbit/s", "9 ms", 0.0)
    );
    assert_eq!(
        found(&netem(
            "tc qdisc replace dev e root handle 5: netem delay 9ms"
        )),
        is("1 Gbit/s", "9 ms", 0.0)
    );
    // An existing qdisc cannot be added again.
    assert_eq!(
        found(&netem("tc qdisc add dev e root netem delay 9ms")).1,
        "30 ms"
    );
    let (_, notes) = choose(
        &netem("tc qdisc add dev e root netem delay 9ms"),
        &NetemChoice::default(),
    )
    .unwrap();
    assert!(
        notes
            .iter()
            .any(|note| note.contains("add fails, as it does in tc")),
        "{notes:?}"
    );
    // A deleted 50 % is gone.
    assert_eq!(
        found(&netem(
            "tc qdisc del dev e root\ntc qdisc add dev e root netem delay 7ms"
        )),
        is("1 Gbit/s", "7 ms", 0.0)
    );
    assert!(
        said(&netem("tc qdisc del dev e root"), &NetemChoice::default())
            .contains("nothing here is shaped")
    );
    let either = "tc qdisc change dev e root netem delay 4ms 2>/dev/null || tc qdisc add dev e root netem delay 3ms";
    assert_eq!(found(either).1, "3 ms");
    assert_eq!(
        found("tc qdisc change dev e root netem loss 1.3% 25% delay 200ms 50ms").1,
        "200 ms"
    );
    let class = "tc qdisc add dev e root handle 1: htb\ntc class add dev e parent 1: classid 1:1 htb rate 1mbit\n\
                 tc class change dev e parent 1: classid 1:1 htb rate 2mbit\n\
                 tc class add dev e parent 1: classid 1:2 htb rate 3mbit\ntc class del dev e classid 1:2";
    assert_eq!(found(class).0, "2 Mbit/s");
}

#[test]
fn scripts_are_read_around_tc() {
    for script in [
        "#!/bin/sh\nset -e\nDEV=eth0\nls -l\nsudo /sbin/tc qdisc del dev $DEV root 2> /dev/null || true\n\
         sudo /sbin/tc qdisc add dev ${DEV} root netem delay 8ms\ntc -s qdisc ls dev $DEV\nping -c 3 10.0.0.1\n",
        "docker exec -it web1 tc qdisc add dev eth0 root netem delay 8ms",
        "docker exec web1 sh -c \"tc qdisc add dev eth0 root netem delay 8ms\"",
        "sudo ip netns exec ns1 tc qdisc add dev veth1 root netem delay 8ms",
        "sudo nsenter -t 17 -n tc qdisc add dev veth1 root netem delay 8ms",
        "qdisc add dev eth0 root netem delay 8ms",
        "sleep 5\nif ! tc qdisc change dev e root netem delay 9ms; then\ntc qdisc replace dev e root netem delay 8ms\nfi",
        "tc qdisc add dev ${1:-eth0} root netem delay 8ms; sleep 30; tc qdisc del dev ${1:-eth0} root",
    ] {
        assert_eq!(found(script).1, "8 ms", "{script}");
    }
    let (_, notes) = choose(
        "ls -l\ntc qdisc add dev e root netem delay 8ms",
        &NetemChoice::default(),
    )
    .unwrap();
    assert!(
        notes.iter().any(|note| note == "ls: is not run"),
        "{notes:?}"
    );
    let (_, notes) = choose(
        "ip link set e up\ndocker start web\ntc qdisc add dev lo root fq_codel\ntc qdisc add dev e root netem delay 8ms",
        &NetemChoice::default(),
    )
    .unwrap();
    for skipped in [
        "ip: is not run",
        "docker: is not run",
        "lo: its qdiscs shape nothing; left out",
    ] {
        assert!(
            notes.iter().any(|note| note == skipped),
            "{skipped}: {notes:?}"
        );
    }
    for (text, part) in [
        ("tcset eth0 --delay 25ms", "tcset --tc-command"),
        ("frobnicate eth0", "\"frobnicate\" is not known"),
        ("frobnicate eth0", "give the tc commands that tcset prints"),
    ] {
        let refused = said(text, &NetemChoice::default());
        assert!(refused.contains(part), "{text}: {refused}");
    }
}

#[test]
fn slips_of_units_are_read_as_tc_reads_them() {
    let (scenario, notes) = choose(
        "tc qdisc add dev e root netem limit 1000mbit delay 100 rate 10mbps reorder 25% 50% gap 5",
        &NetemChoice::default(),
    )
    .unwrap();
    let link = &scenario.links["link"];
    assert_eq!(link.queue.unwrap().down.to_string(), "131072000 packets");
    assert_eq!(
        (link.delay.down.to_string(), link.rate.down.to_string()),
        ("0 s".to_owned(), "80 Mbit/s".to_owned())
    );
    let jitter = link.jitter.and_then(|jitter| jitter.of(true)).unwrap();
    assert_eq!(jitter.late.to_string(), "100 us");
    for part in [
        "limit 1000mbit",
        "microseconds",
        "bytes a second",
        "correlation of 50%",
        "gap 5",
    ] {
        assert!(
            notes.iter().any(|note| note.contains(part)),
            "{part}: {notes:?}"
        );
    }
    let tbf = "tc qdisc add dev e root handle 1:0 netem delay 10ms limit 1000\n\
               tc qdisc add dev e parent 1:1 handle 10: tbf rate 80mbit buffer 1mbit limit 1000mbit\n\
               tc qdisc add dev e parent 10:1 handle 100: tbf rate 80mbit burst .05mbit limit 220000b\n";
    let (scenario, _) = choose(tbf, &NetemChoice::default()).unwrap();
    let link = &scenario.links["link"];
    assert_eq!(link.rate.down.to_string(), "80 Mbit/s");
    assert_eq!(link.queue.unwrap().down.to_string(), "220 kB");
}

#[test]
fn the_other_direction_is_another_interface() {
    let both = "tc qdisc add dev veth1 root netem delay 10ms\ntc qdisc add dev veth2 root netem delay 30ms loss 2%\n";
    assert!(said(both, &NetemChoice::default()).contains("--dev: veth1, veth2"));
    for device in [Some("veth1"), None] {
        let choice = NetemChoice {
            device,
            reverse_device: Some("veth2"),
            ..NetemChoice::default()
        };
        let (scenario, _) = choose(both, &choice).unwrap();
        assert_eq!(
            scenario.links["link"].delay.to_string(),
            "10 ms down, 30 ms up"
        );
    }
    let two = "docker exec a tc qdisc add dev eth0 root netem delay 10ms\n\
               docker exec b tc qdisc add dev eth0 root netem delay 30ms\n";
    let choice = NetemChoice {
        device: Some("a/eth0"),
        reverse_device: Some("b/eth0"),
        ..NetemChoice::default()
    };
    assert_eq!(
        choose(two, &choice).unwrap().0.links["link"]
            .delay
            .to_string(),
        "10 ms down, 30 ms up"
    );
}

#[test]
fn steps_are_named_and_chosen() {
    let steps = "tc qdisc add dev e root netem rate 10mbit\nsleep 30\ntc qdisc change dev e root netem rate 2mbit\n\
                 sleep 1m\ntc qdisc del dev e root\n";
    let refused = said(steps, &NetemChoice::default());
    assert!(
        refused.contains("0 s, 30 s") && refused.contains("--at"),
        "{refused}"
    );
    let at = |seconds| NetemChoice {
        at: Some(Duration::from_secs(seconds)),
        ..NetemChoice::default()
    };
    assert_eq!(link(steps, &at(10)).0, "10 Mbit/s");
    assert_eq!(link(steps, &at(30)).0, "2 Mbit/s");
}

/// The number of packets that may leave in each of these periods, in ms, according to the file for a direction.
fn leave(import: &ImportedScenario, way: &str, stretches: &[[u64; 2]]) -> Vec<usize> {
    let name = format!("steps.{way}");
    let found = import.beside.iter().find(|(known, _)| *known == name);
    let lines = found.unwrap().1.lines();
    let times: Vec<u64> = lines.map(|line| line.parse().unwrap()).collect();
    let within = |[from, to]: &[u64; 2]| {
        let inside = times.iter().filter(|at| (*from..*to).contains(*at));
        inside.count()
    };
    stretches.iter().map(within).collect()
}

/// The scenario, with the files next to it.
fn loaded(import: &ImportedScenario) -> Scenario {
    let mut scenario = Scenario::from_toml(&import.text, "steps.toml").unwrap();
    let read = |path: &Path| {
        let mut files = import.beside.iter();
        let file = files.find(|(name, _)| path == Path::new(name));
        Ok(file.unwrap().1.clone().into_bytes())
    };
    scenario.load_traces(read).unwrap();
    scenario
}

const STEPS: NetemChoice<'_> = NetemChoice {
    device: None,
    class: None,
    reverse_device: None,
    reverse_class: None,
    at: None,
    rates: Some("steps"),
};

#[test]
fn rates_that_change_become_a_trace() {
    let read = |text: &str| from_netem(text, None, &STEPS, &[ImportedApp::File]).unwrap();
    // 12.112 Mbit/s is one packet of 1514 B per ms.
    let import = read(
        "sleep 5\ntc qdisc add dev e root netem delay 20ms rate 12112kbit\nsleep 2\n\
         tc qdisc change dev e root netem delay 20ms rate 1211200bit\nsleep 10\ntc qdisc del dev e root\n",
    );
    let counts = leave(&import, "down", &[[1, 2_001], [2_001, 12_001]]);
    assert_eq!(counts, [2_000, 1_000]);
    let world = loaded(&import);
    assert_eq!(world.duration, Duration::from_secs(12));
    let link = &world.links["link"];
    assert_eq!(link.delay.down.to_string(), "20 ms");
    assert_eq!(link.rate.down.mean().unwrap().as_bps() / 1_000, 3_028);
    let result = airlane_sim::run(&world, 1, 0).unwrap();
    let bps = result.flows[0].throughput_bps.unwrap();
    assert!((2e6..3.028e6).contains(&bps), "{bps}");
    // A last step that the script does not end lasts as long as the step before it, with a note.
    let import = read(
        "tc qdisc add dev e root netem rate 12112kbit\nsleep 2\n\
         tc qdisc change dev e root netem rate 1211200bit\n",
    );
    let counts = leave(&import, "down", &[[1, 2_001], [2_001, 9_000]]);
    assert_eq!(counts, [2_000, 200]);
    for part in [
        "how long the last one holds",
        "12.112 Mbit/s, 1.2112 Mbit/s from 0 s, 2 s on",
    ] {
        let said = import.notes.iter().any(|note| note.contains(part));
        assert!(said, "{part}: {:?}", import.notes);
    }
}

#[test]
fn rates_of_the_other_direction_become_a_trace_too() {
    let both = "tc qdisc add dev a root netem rate 1mbit\ntc qdisc add dev b root netem rate 2mbit\nsleep 3\n\
                tc qdisc change dev b root netem rate 4mbit\nsleep 3\n";
    let choice = NetemChoice {
        device: Some("a"),
        reverse_device: Some("b"),
        ..STEPS
    };
    let import = from_netem(both, None, &choice, &[ImportedApp::File]).unwrap();
    assert_eq!(import.beside.len(), 1);
    let counts = leave(&import, "up", &[[1, 3_001], [3_001, 6_001]]);
    assert_eq!(counts, [495, 991]);
    let link = &loaded(&import).links["link"];
    assert_eq!(link.rate.down.to_string(), "1 Mbit/s");
}

#[test]
fn steps_that_no_trace_of_rates_can_say_are_refused() {
    let refused = |text: &str, part: &str| {
        let error = said(text, &STEPS);
        assert!(error.contains(part) && error.contains("--at"), "{error}");
    };
    refused(
        "tc qdisc add dev e root netem rate 1mbit\nsleep 1\n\
         tc qdisc change dev e root netem rate 2mbit delay 9ms\n",
        "rates alone become a trace",
    );
    // For a while, nothing is shaped.
    refused(
        "tc qdisc add dev e root netem delay 9ms\nsleep 1\ntc qdisc del dev e root\nsleep 1\n\
         tc qdisc add dev e root netem delay 9ms\n",
        "at 0 s, 1 s, 2 s",
    );
    refused(
        "tc qdisc add dev e root netem delay 9ms\nsleep 3h\n\
         tc qdisc change dev e root netem delay 9ms rate 1mbit\n",
        "20 million packets",
    );
}

#[test]
fn tcp_is_todays_and_a_full_packet_as_long_as_tc_counts_it() {
    let (scenario, _) = choose("netem delay 25ms rate 20mbit", &NetemChoice::default()).unwrap();
    let text = scenario.to_toml();
    assert!(text.contains("profile = \"modern\""), "{text}");
    let result = airlane_sim::run(&scenario, 1, 0).unwrap();
    let offered = result.links[0].down.channel.offered;
    let mean = offered.bytes / offered.frames;
    assert!((1_500..=1_514).contains(&mean), "{mean}");
}
