//! Real traffic of the Linux kernel over an emulated lossy link.
//!
//! The topology is drawn in `airlane_testkit::live`; the files are the demo's, which users read and
//! copy: 20 Mbit/s, 25 ms, 125 kB of queue and 5 % loss per Ethernet frame each way. A file over
//! kernel TCP (cubic), pages and two-way voice go over it at once; then alone, during a flood from
//! a stranger, and over every scheme.
//!
//! The checks do not depend on the speed of the machine: what arrives is what was sent, and arrives
//! once; losses are repaired; the counters add up. `make bench-live` judges rates and delays.
//!
//! `make live` runs these tests in a release build, alone and one after the other.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use airlane_link::config::SchemeConfig;
use airlane_live::air::AirReport;
use airlane_live::security::new_key;
use airlane_live::ship::Ticket;
use airlane_live::status::Status;
use airlane_probe::{ClientConfig, Times, TrafficReport};
use airlane_testkit::live::{
    EmulatedLink, Experiment, ExperimentOutcome, GRACE, TUNNEL_SERVER, WIRE_SERVER, flooded, run,
};
use airlane_testkit::netns::{self, Process};
use serde_json::Value;

fn demo(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../demo")
        .join(file)
}

/// What went wrong with the applications' traffic, on a machine of any speed.
fn misses(traffic: &TrafficReport) -> Vec<String> {
    let mut misses = Vec::new();
    let mut demand = |holds: bool, what: String| {
        if !holds {
            misses.push(what);
        }
    };
    if let Some(file) = &traffic.file {
        demand(
            file.error.is_none() && file.received_bytes > 0,
            format!("{file:?}"),
        );
    }
    if let Some(pages) = &traffic.pages {
        // A page cut off by the end of the measurement is not an error.
        demand(
            pages.errors.is_empty() && pages.completed > 0,
            format!("{pages:?}"),
        );
    }
    for voice in [&traffic.voice_down, &traffic.voice_up]
        .into_iter()
        .flatten()
    {
        demand(
            voice.received > 0
                && voice.received + voice.lost == voice.sent
                && voice.duplicates == 0,
            format!("{voice:?}"),
        );
    }
    misses
}

/// What the ends' counters do not explain: no service may deliver more than was sent, or receive
/// what it cannot parse.
fn unexplained(status: &[Value; 2]) -> Vec<String> {
    let status = status.each_ref().map(|status| {
        let status: Status = serde_json::from_value(status.clone()).expect("a status");
        status
    });
    let services = |end: usize| status[end].peers[0].services.iter();
    let mut misses = Vec::new();
    for (from, to) in [(0, 1), (1, 0)] {
        for (ours, theirs) in services(from).zip(services(to)) {
            let (sent, came) = (ours.ledger.packets_sent, &theirs.ledger);
            if came.packets_delivered > sent || came.malformed > 0 {
                misses.push(format!("{}: {sent} sent, {came:?}", ours.name));
            }
        }
    }
    misses
}

#[test]
fn three_applications_get_what_they_need_over_a_lossy_link() {
    if !netns::can_run("three_applications_get_what_they_need_over_a_lossy_link") {
        return;
    }
    let (radio, left, right) = (demo("air.toml"), demo("left.toml"), demo("right.toml"));
    let outcome = run(&Experiment {
        airlane: Path::new(env!("CARGO_BIN_EXE_airlane")),
        air: &radio,
        seed: 1,
        ends: Some([&left, &right]),
        warmup: Duration::from_secs(2),
        measure: Duration::from_secs(8),
        pages: true,
    })
    .expect("the experiment runs");
    let air: AirReport = serde_json::from_value(outcome.air.clone()).expect("a report");
    println!("{}\n{air}", outcome.traffic);
    let mut missed = misses(&outcome.traffic);
    missed.extend(unexplained(
        outcome.status.as_ref().expect("both ends answered"),
    ));
    assert!(missed.is_empty(), "{}", missed.join("; "));
    assert!(air.down.lost_air.frames > 20, "{air}");
    // Each loss of the file is repaired; voice is sent twice.
    assert_eq!(count(&outcome, 1, "files", "residual_lost"), 0);
    assert!(count(&outcome, 1, "files", "packets_recovered") > 0);
    assert!(count(&outcome, 0, "voice", "copy_frames_sent") > 0);
}

/// The demo's file for one end, with keys.
fn with_keys(directory: &Path, end: usize, keys: &[String; 2]) -> PathBuf {
    let name = ["left.toml", "right.toml"][end];
    let text = std::fs::read_to_string(demo(name)).unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with("security"))
        .unwrap();
    let (key, peer) = (directory.join(format!("{end}.key")), &keys[1 - end]);
    let secured = format!(
        "security = {{ private-key = '{}', peer-key = '{peer}' }}",
        key.display()
    );
    let path = directory.join(name);
    std::fs::write(&path, text.replacen(line, &secured, 1)).unwrap();
    path
}

/// A stranger sends one end as many datagrams as the machine can make, up to 100,000 a second; they
/// look like the session's own.
#[test]
fn a_flood_changes_nothing() {
    if !netns::can_run("a_flood_changes_nothing") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let keys = [0, 1].map(|end| {
        let file = directory.path().join(format!("{end}.key"));
        new_key(&file).unwrap().to_string()
    });
    let files = [0, 1].map(|end| with_keys(directory.path(), end, &keys));
    let air = demo("air.toml");
    let airlane = Path::new(env!("CARGO_BIN_EXE_airlane"));
    let mut link = EmulatedLink::new(airlane, &air, 1).unwrap();
    link.up([&files[0], &files[1]]).unwrap();
    let config = ClientConfig {
        times: Times {
            warmup: Duration::from_secs(1),
            measure: Duration::from_secs(4),
            grace: GRACE,
        },
        pages: false,
        ..ClientConfig::new(TUNNEL_SERVER)
    };
    let before = link.status(1).unwrap();
    let (report, mut sent) = flooded(&mut link, 1, 100_000, |link| link.traffic(&config)).unwrap();
    let missed = misses(&report.unwrap());
    assert!(missed.is_empty(), "{}", missed.join("; "));
    // This runs alone, so that only the flood can take memory.
    let resident = link.resident(1).unwrap();
    let alone = Duration::from_secs(3);
    sent += flooded(&mut link, 1, 100_000, |_| std::thread::sleep(alone))
        .unwrap()
        .1;
    let grown = link.resident(1).unwrap().saturating_sub(resident);
    let after = link.status(1).unwrap();
    println!("{sent} datagrams: {}", after["drops"]);
    assert!(grown < 1 << 18, "{grown} bytes more");
    for what in [
        "/peers/0/session/id",
        "/peers/0/session/sessions",
        "/peers/0/address",
    ] {
        assert_eq!(after.pointer(what), before.pointer(what), "{what}");
    }
    let refused = |status: &Value| {
        let drops = status["drops"].as_object().unwrap();
        let secure = drops
            .iter()
            .filter(|(reason, _)| reason.starts_with("secure-"));
        secure.filter_map(|(_, n)| n.as_u64()).sum::<u64>()
    };
    // The kernel drops what the node does not read in time.
    let new = refused(&after) - refused(&before);
    assert!((1..=sent).contains(&new), "{new} of {sent}");
    link.finish().unwrap();
}

/// What an operator sees with `airlane test` at one end and `airlane test --serve` at the other.
#[test]
fn airlane_test_shows_what_a_link_gains() {
    if !netns::can_run("airlane_test_shows_what_a_link_gains") {
        return;
    }
    let (air, left, right) = (demo("air.toml"), demo("left.toml"), demo("right.toml"));
    let airlane = Path::new(env!("CARGO_BIN_EXE_airlane"));
    let mut link = EmulatedLink::new(airlane, &air, 1).unwrap();
    link.up([&left, &right]).unwrap();
    let sockets = [0, 1].map(|end| link.socket(end).display().to_string());
    let [far, near] = link.shared_hosts();
    let test = |arguments: &[&str]| {
        let mut command = near.command(airlane);
        command.arg("test").args(arguments).output().unwrap()
    };
    let said = |output: &std::process::Output| String::from_utf8_lossy(&output.stderr).into_owned();

    let nobody = test(&[&sockets[1]]);
    assert_eq!(nobody.status.code(), Some(1));
    let words = said(&nobody);
    assert!(words.contains("run `airlane test --serve` at"), "{words}");

    let mut command = far.command(airlane);
    command.args(["test", "--serve", &sockets[0]]);
    let mut serving = Process::start(command.stdout(Stdio::piped())).unwrap();
    let mut heard = BufReader::new(serving.child().stdout.take().unwrap());
    let mut line = String::new();
    heard.read_line(&mut line).unwrap();
    assert!(line.contains("the peers of the link left"), "{line}");

    let cubic = ["--congestion-control", "cubic"];
    let short = ["--warmup", "500ms", "--duration", "2s"];
    let all = test(&[&[&sockets[1], "--json"], &short[..], &cubic].concat());
    assert!(all.status.success(), "{}", said(&all));
    let all: Value = serde_json::from_slice(&all.stdout).unwrap();
    println!("{all:#}");
    let number = |path: &str| {
        let value = all.pointer(path).and_then(Value::as_f64);
        value.unwrap_or_else(|| panic!("no number at {path} of {all:#}"))
    };
    for path in ["before", "after"] {
        for (app, part) in [
            ("file", "file"),
            ("pages", "pages"),
            ("voice", "voice_down"),
        ] {
            for run in [&format!("alone/{app}"), "together"] {
                let part = all.pointer(&format!("/{path}/{run}/{part}"));
                assert!(
                    part.is_some_and(Value::is_object),
                    "{path}, {run}: {part:?}"
                );
            }
        }
        // Both ends run on one machine with one clock, but do not know it.
        let clock = |what: &str| number(&format!("/{path}/alone/voice/clock/{what}"));
        assert!(clock("server_ahead_ns").abs() <= clock("uncertainty_ns"));
        // No machine is faster than the link's 25 ms each way.
        let idle = number(&format!("/{path}/alone/file/idle/rtt_p50_ns")) / 1e6;
        assert!(idle >= 50.0, "{path}: {idle} ms");
        let fastest = number(&format!("/{path}/alone/voice/voice_down/delay_min_ns"));
        assert!(
            fastest + clock("uncertainty_ns") >= 25e6,
            "{path}: {fastest} ns"
        );
    }
    // The loss on the air is measured: 5 % of 400 packets.
    let voice = |what: &str| {
        let ways = ["voice_down", "voice_up"];
        let of = |run, way| number(&format!("/before/{run}/{way}/{what}"));
        ways.map(|way| of("alone/voice", way) + of("together", way))
            .iter()
            .sum::<f64>()
    };
    assert!(
        voice("lost") > 0.0 && voice("lost") < voice("sent"),
        "{all:#}"
    );

    let voice = ["--only", "voice", "--duration", "1s", "--link", &sockets[1]];
    let voice = test(&[&["10.7.0.1", "--after"], &voice[..]].concat());
    let table = String::from_utf8_lossy(&voice.stdout);
    assert!(
        table.contains("after") && table.contains("lost, alone"),
        "{table}"
    );
    assert!(
        !table.contains("before") && !table.contains("pages"),
        "{table}"
    );

    // The control port is closed on the plain path, unlike through the link.
    let stranger = test(&["192.0.2.1", "--before", "--only", "voice"]);
    assert_eq!(stranger.status.code(), Some(1));
    let words = said(&stranger);
    assert!(words.contains("--serve 192.0.2.1` there"), "{words}");

    let ended = serving.stop(Duration::from_secs(5));
    assert!(ended.is_some_and(|status| status.success()));
    let mut rest = String::new();
    heard.read_to_string(&mut rest).unwrap();
    assert_eq!(rest.matches("done").count(), 9, "{rest}");
    link.finish().unwrap();
}

/// Each scheme for TCP with one for UDP, as they stand in a file; `{end}` is an end's own part.
const PAIRS: [[&str; 2]; 9] = [
    ["{ kind = 'gbn' }", "{ kind = 'xor', block = 4 }"],
    [
        "{ kind = 'sr' }",
        "{ kind = 'xor-ad', block = 4, silence = '50 ms' }",
    ],
    ["{ kind = 'sr-m1' }", "{ kind = 'rlp-oos', retries = 2 }"],
    ["{ kind = 'sr-m2' }", "{ kind = 'default' }"],
    [
        "{ kind = 'sr-bitmap' }",
        "{ kind = 'rlp-oos', retries = 1 }",
    ],
    [
        "{ kind = 'rlp', retries = 3 }",
        "{ kind = 'rlp', retries = 2 }",
    ],
    [
        "{ kind = 'snoop', base-station = '{end}' }",
        "{ kind = 'rlp-oos', retries = 3 }",
    ],
    [
        "{ kind = 'rlp-oos', retries = 3 }",
        "{ kind = 'rse', block = 4, parity = 2 }",
    ],
    ["{ kind = 'gsm-rlp' }", "{ kind = 'rse-ad', block = 4 }"],
];

/// A scheme over which no test carries traffic is not known to work live.
#[test]
fn every_scheme_has_a_live_test() {
    let unknown = toml::from_str::<SchemeConfig>("kind = \"unknown\"").unwrap_err();
    let (_, known) = unknown.message().split_once("expected").expect("a list");
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    assert!(known.len() >= 12, "{known:?}");
    for kind in known {
        let quoted = format!("kind = '{kind}'");
        let here = |way: usize| PAIRS.iter().any(|pair| pair[way].contains(&quoted));
        let parity = ["xor", "xor-ad", "rse", "rse-ad", "default"].contains(&kind);
        assert!(here(usize::from(parity)), "no traffic over {kind}");
    }
}

/// The file of one end with two services, one for TCP and one for everything else.
fn end_file(end: usize, [tcp, udp]: [&str; 2]) -> String {
    let (own, other) = (end + 1, 2 - end);
    let view = |scheme: &str| scheme.replace("{end}", ["here", "peer"][end]);
    format!(
        r#"
        schema = 1
        name = "{name}"
        tun = {{ name = "air0", addresses = ["10.7.0.{own}/24"] }}
        [link]
        rate = "9.9 Mbit/s"
        delay = "10 ms"
        underlay = {{ kind = "udp", listen = "192.0.2.{own}:7007", peer = "192.0.2.{other}:7007" }}
        security = "none"
        [[link.services]]
        number = 1
        name = "tcp"
        rate = 0.8
        scheme = {tcp}
        [[link.services]]
        number = 2
        name = "udp"
        rate = 0.2
        scheme = {udp}
        [[link.classes]]
        match = {{ protocol = "tcp" }}
        service = "tcp"
        [[link.classes]]
        match = {{ protocol = "udp" }}
        service = "udp"
        "#,
        name = ["left", "right"][end],
        tcp = view(tcp),
        udp = view(udp),
    )
}

const AIR: &str = r#"
schema = 1
name = "radio"
interfaces = ["to-left", "to-right"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = "60 kB"
errors = { kind = "uniform", rate = 0.05 }
"#;

/// A counter of the service's ledger at one end; 0 is the left end, where the file and the server
/// are.
fn count(outcome: &ExperimentOutcome, end: usize, service: &str, key: &str) -> u64 {
    let status = outcome.status.as_ref().expect("both ends answered");
    let services = status[end]["peers"][0]["services"]
        .as_array()
        .expect("a list");
    let found = services.iter().find(|s| s["name"] == service);
    let value = &found.expect("the service is there")["ledger"][key];
    value
        .as_u64()
        .unwrap_or_else(|| panic!("no {key} in {status:?}"))
}

#[test]
fn every_scheme_carries_real_traffic_over_a_lossy_link() {
    if !netns::can_run("every_scheme_carries_real_traffic_over_a_lossy_link") {
        return;
    }
    let mut misses = Vec::new();
    let pairs: Vec<_> = (1..).zip(PAIRS).collect();
    for some in pairs.chunks(3) {
        std::thread::scope(|scope| {
            let links = some
                .iter()
                .map(|(seed, schemes)| scope.spawn(|| carry(*seed, *schemes)));
            for link in links.collect::<Vec<_>>() {
                misses.extend(link.join().expect("the experiment runs"));
            }
        });
    }
    assert!(misses.is_empty(), "{}", misses.join("; "));
}

/// Carries real traffic over a link with these schemes; returns what went wrong.
fn carry(seed: u64, schemes: [&str; 2]) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file can be written");
        path
    };
    let air = write("air.toml", AIR);
    let mut misses = Vec::new();
    let ends = [0, 1].map(|end| write(&format!("{end}.toml"), &end_file(end, schemes)));
    let outcome = run(&Experiment {
        airlane: Path::new(env!("CARGO_BIN_EXE_airlane")),
        air: &air,
        seed,
        ends: Some([&ends[0], &ends[1]]),
        warmup: Duration::from_millis(500),
        measure: Duration::from_secs(3),
        pages: false,
    })
    .unwrap_or_else(|error| panic!("{schemes:?}: {error}"));
    let [tcp, udp] = schemes;
    println!("{tcp} and {udp}\n{}", outcome.traffic);
    misses.extend(crate::misses(&outcome.traffic));
    misses.extend(unexplained(
        outcome.status.as_ref().expect("both ends answered"),
    ));
    let mut demand = |holds: bool, what: String| {
        if !holds {
            misses.push(format!("{tcp} and {udp}: {what}"));
        }
    };
    // The losses of the file were repaired by the link. RLP may give up, which a slow machine can
    // cause.
    let repairs = count(&outcome, 0, "tcp", "repair_frames_sent");
    demand(repairs > 0, "nothing was repaired".to_owned());
    let lost = count(&outcome, 1, "tcp", "residual_lost");
    println!("{repairs} repairs, {lost} lost for good");
    let may_lose = tcp.contains("rlp") || tcp.contains("snoop");
    demand(
        may_lose || lost == 0,
        format!("{lost} packets were lost for good"),
    );
    let recovered: u64 = [0, 1]
        .map(|end| count(&outcome, end, "udp", "packets_recovered"))
        .iter()
        .sum();
    demand(
        (recovered > 0) != udp.contains("default"),
        format!("{recovered} packets recovered"),
    );
    misses
}

#[test]
fn a_file_is_shipped_beside_a_call_that_stays_good() {
    if !netns::can_run("a_file_is_shipped_beside_a_call_that_stays_good") {
        return;
    }
    const SECONDS: u64 = 12;
    let airlane = Path::new(env!("CARGO_BIN_EXE_airlane"));
    let air = demo("air.toml");
    let mut link = EmulatedLink::new(airlane, &air, 1).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let ticket = Ticket::new().unwrap().to_text().to_string();
    let (file, to) = (folder.path().join("file"), folder.path().join("to"));
    // Long enough to outlast the call at the link's full rate.
    let bytes: Vec<u8> = (0..20_000_000 / 8 * (SECONDS + 4) as u32)
        .map(|i| (i.wrapping_mul(0x9E37_79B9) >> 24) as u8)
        .collect();
    std::fs::write(&file, &bytes).unwrap();
    std::fs::create_dir(&to).unwrap();
    let start = |host: usize, what: &[&str], path: &Path| {
        let mut command = link.hosts()[host].command(airlane);
        command.arg(what[0]).arg(path).args(&what[1..]);
        command.arg("--json").env("AIRLANE_TICKET", &ticket);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        Process::start(&mut command).unwrap()
    };
    let mut receiver = start(1, &["recv"], &to);
    let mut sender = start(0, &["send", "192.0.2.2"], &file);
    let config = ClientConfig {
        times: Times {
            warmup: Duration::from_secs(2),
            measure: Duration::from_secs(SECONDS),
            grace: GRACE,
        },
        file: false,
        pages: false,
        ..ClientConfig::new(WIRE_SERVER)
    };
    let call = link.traffic(&config).unwrap();
    for process in [&mut sender, &mut receiver] {
        let status = process.wait(Duration::from_secs(90)).unwrap();
        assert!(status.success(), "{status}");
    }
    assert!(std::fs::read(to.join("file")).unwrap() == bytes, "it came");
    let mut said = String::new();
    let mut out = sender.child().stdout.take().unwrap();
    out.read_to_string(&mut said).unwrap();
    let sent: Value = serde_json::from_str(&said).unwrap();
    let mbps = sent["goodput_mbps"].as_f64().unwrap();
    // The server speaks from the file's side, so its voice shares the queue with the file.
    let beside = call.voice_down.unwrap();
    let late_ms = beside.delay_p99_ns as f64 / 1e6;
    println!(
        "{mbps} Mbit/s of 20; of the call {:.4} lost, 1 % later than {late_ms} ms",
        beside.loss
    );
    // The link loses 5 % of all frames and delays them by 25 ms. An idle machine gives 17 Mbit/s
    // and 15 ms more; a busy one schedules all processes late.
    assert!(mbps > 12.0, "{mbps} Mbit/s");
    assert!(beside.loss < 0.09, "{} of the call are lost", beside.loss);
    assert!(late_ms < 100.0, "{late_ms} ms");
}
