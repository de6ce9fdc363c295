//! Records a lossy link at both ends, and replays it in the simulator.
//!
//! ```text
//!  left: air0 ─ up ─ wire ═══ one [ air: 20 Mbit/s, 25 ms, 5 % loss ] two ═══ wire ─ up ─ air0 :right
//! ```

use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use airlane_testkit::netns::{Namespace, Process, can_run};
use serde_json::Value;

/// Only ends a hanging test, however slow the machine is.
const PATIENCE: Duration = Duration::from_secs(60);
const AIRLANE: &str = env!("CARGO_BIN_EXE_airlane");

fn airlane(arguments: &[&str]) -> Output {
    let mut command = Command::new(AIRLANE);
    command.args(arguments).env_remove("CLICOLOR_FORCE");
    command.output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn up_file(folder: &Path, end: usize, peer_key: &str, security: bool) -> String {
    let (mine, theirs) = (end + 1, 2 - end);
    let folder = folder.display();
    let security = if security {
        format!("{{ private-key = \"{folder}/{end}.key\", peer-key = \"{peer_key}\" }}")
    } else {
        "\"none\"".to_owned()
    };
    format!(
        r#"
schema = 1
name = "end-{end}"
[tun]
addresses = ["10.7.0.{mine}/24"]
[control]
socket = "{folder}/{end}.sock"
[link]
rate = "19.5 Mbit/s"
delay = "25 ms"
underlay = {{ kind = "udp", listen = "0.0.0.0:7007", peer = "192.0.2.{theirs}:7007" }}
security = {security}
[[link.services]]
number = 1
name = "voice"
rate = 1
scheme = {{ kind = "rlp-oos", retries = 2 }}
[[link.classes]]
match = {{ protocol = "udp" }}
service = "voice"
"#
    )
}

/// Sends this many datagrams in one direction, at least this far apart.
fn send(namespace: &Namespace, to: &str, count: usize, every: Duration) {
    namespace
        .run(|| {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            for _ in 0..count {
                // There is no listener; only what the link does counts.
                let _refused = socket.send_to(&[7; 500], to);
                std::thread::sleep(every);
            }
        })
        .unwrap();
}

const SCENARIO: &str = r#"
schema = 1
name = "replayed"
duration = "30 s"
nodes = { base = {}, mobile = {} }
[links.radio]
ends = ["base", "mobile"]
rate = "4 Mbit/s"
delay = "25 ms"
frame = "500 B"
header = "study"
errors = { kind = "uniform", rate = 0.5 }
[[links.radio.services]]
number = 0
name = "raw"
rate = 1
scheme = { kind = "default" }
[[flows]]
name = "there"
ends = ["base", "mobile"]
transport = { kind = "udp" }
app = { kind = "conferencing", rate = "2 Mbit/s", talk = "10000 s", silence = "1 us" }
[[flows]]
name = "back"
ends = ["mobile", "base"]
transport = { kind = "udp" }
app = { kind = "conferencing", rate = "2 Mbit/s", talk = "10000 s", silence = "1 us" }
"#;

struct Link {
    ends: [Namespace; 2],
    _middle: Namespace,
    _running: Vec<Process>,
    ups: Vec<Process>,
    folder: tempfile::TempDir,
}

impl Link {
    fn new(security: bool) -> Self {
        Self::over("{ kind = \"uniform\", rate = 0.05 }", security)
    }

    /// A link over an emulator with these errors.
    fn over(errors: &str, security: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let ends = ["left", "right"].map(|name| Namespace::new(name).unwrap());
        let middle = Namespace::new("middle").unwrap();
        ends[0].join("wire", &middle, "one").unwrap();
        ends[1].join("wire", &middle, "two").unwrap();
        for (end, last) in ends.iter().zip(1..) {
            let address = format!("192.0.2.{last}/24");
            end.ip(&["addr", "add", &address, "dev", "wire"]).unwrap();
        }
        std::fs::write(
            path("air.toml"),
            format!(
                "schema = 1\ninterfaces = [\"one\", \"two\"]\nrate = \"20 Mbit/s\"\ndelay = \"25 ms\"\nerrors = {errors}\n"
            ),
        )
        .unwrap();
        let start = |namespace: &Namespace, arguments: &[&str]| {
            let mut command = namespace.command(AIRLANE);
            let quiet = command.args(arguments).env("AIRLANE_LOG", "warn");
            Process::start(quiet.stdout(Stdio::null()).stderr(Stdio::null())).unwrap()
        };
        let running = vec![start(&middle, &["air", &path("air.toml")])];
        let keys = [0, 1].map(|end| {
            let made = airlane(&["keygen", &path(&format!("{end}.key"))]);
            String::from_utf8(made.stdout).unwrap().trim().to_owned()
        });
        let ups = [0, 1].map(|end| {
            let file = path(&format!("{end}.toml"));
            let text = up_file(folder.path(), end, &keys[1 - end], security);
            std::fs::write(&file, text).unwrap();
            let journal = path(&format!("{end}.journal"));
            start(&ends[end], &["up", &file, "--journal", &journal])
        });
        let link = Self {
            ends,
            _middle: middle,
            _running: running,
            ups: ups.into(),
            folder,
        };
        let deadline = Instant::now() + PATIENCE;
        while !(0..2).all(|end| link.state(end).is_some_and(|state| state == "confirmed")) {
            assert!(Instant::now() < deadline, "the link does not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
        link
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn status(&self, end: usize) -> Option<Value> {
        let output = airlane(&["status", &self.path(&format!("{end}.sock")), "--json"]);
        serde_json::from_slice(&output.stdout).ok()
    }

    fn state(&self, end: usize) -> Option<String> {
        Some(
            self.status(end)?["peers"][0]["session"]["state"]
                .as_str()?
                .to_owned(),
        )
    }

    fn record(&self, end: usize, arguments: &[&str]) -> Command {
        let mut command = Command::new(AIRLANE);
        command.args(["record", &self.path(&format!("{end}.trace"))]);
        command.args([&self.path(&format!("{end}.sock")), "--json"]);
        command.args(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

#[test]
fn a_recorded_link_loses_as_many_frames_in_the_simulator() {
    if !can_run("a_recorded_link_loses_as_many_frames_in_the_simulator") {
        return;
    }
    let mut link = Link::new(true);
    let recording = [0, 1].map(|end| link.record(end, &[]).spawn().unwrap());
    let deadline = Instant::now() + PATIENCE;
    let begun = |end: usize| {
        let file = std::fs::metadata(link.path(&format!("{end}.trace")));
        file.is_ok_and(|file| file.len() > 0)
    };
    while !(begun(0) && begun(1)) {
        assert!(Instant::now() < deadline, "nothing is recorded");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::scope(|scope| {
        for (end, to) in [(0, "10.7.0.2:5004"), (1, "10.7.0.1:5004")] {
            let namespace = &link.ends[end];
            scope.spawn(move || send(namespace, to, 3_000, Duration::from_millis(1)));
        }
    });
    let alone = recording.map(|child| {
        let id = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        json(&child.wait_with_output().unwrap())
    });
    for end in &alone {
        assert!(end["out"].is_null() && end["records_missed"] == 0, "{end}");
    }

    let joined = link.path("link.trace");
    let traces = [0, 1].map(|end| link.path(&format!("{end}.trace")));
    let joined = json(&airlane(&[
        "trace", "join", &traces[0], &traces[1], &joined, "--json",
    ]));
    for (end, way) in [(0, "in"), (1, "out")] {
        let (both, one) = (&joined[way], &alone[end]["in"]);
        let number = |value: &Value, key: &str| value[key].as_f64().unwrap();
        let frames = number(both, "frames_received") + number(both, "frames_lost");
        assert!(frames > 2_500.0, "{joined}");
        // 5 %, within four standard errors.
        let loss = number(both, "loss_ratio");
        let four = 4.0 * (0.05f64 * 0.95 / frames).sqrt();
        assert!((loss - 0.05).abs() < four, "{way}: {loss}");
        // One end infers the same losses from missing numbers.
        let alone = number(one, "loss_ratio");
        assert!(
            (loss - alone).abs() < 0.003,
            "{loss} of both, {alone} of one"
        );
        let late = number(both, "delay_p99_s");
        assert!(
            (0.0..=late).contains(&number(both, "delay_median_s")),
            "{joined}"
        );
    }

    // Another protocol, at other times, over the recorded link.
    let scenario = link.path("scenario.toml");
    std::fs::write(&scenario, SCENARIO).unwrap();
    for trace in ["link.trace", "1.trace"] {
        let channel = format!("trace:{}", link.path(trace));
        let run = || airlane(&["sim", "run", &scenario, "--json", "--channel", &channel]);
        let output = run();
        let warned = stderr(&output).contains("the other direction");
        assert_eq!(warned, trace == "1.trace", "{}", stderr(&output));
        let result = json(&output);
        assert_eq!(run().stdout, output.stdout, "it is the same each time");
        let radio = &result["runs"][0]["links"][0];
        for (way, recorded) in [("down", &joined["in"]), ("up", &joined["out"])] {
            let frames = |key: &str| radio[way]["channel"][key]["frames"].as_f64().unwrap();
            let loss = frames("lost_air") / frames("offered");
            let recorded = recorded["loss_ratio"].as_f64().unwrap();
            // The replay samples the recording's 3,000 frames at other times: four standard errors
            // of 3,000 frames.
            assert!(frames("offered") > 10_000.0, "{radio}");
            assert!(
                (loss - recorded).abs() < 0.016,
                "{way}: {loss}, not {recorded}"
            );
        }
    }
    let output = airlane(&["sim", "run", &scenario, "--channel", "raido=trace:x"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("one of: radio"),
        "{}",
        stderr(&output)
    );

    let socket = link.path("0.sock");
    // The name of a link's file is easily given for that of the recording.
    let file = link.path("hill-top.toml");
    std::fs::write(&file, "schema = 1\n").unwrap();
    let output = airlane(&["record", &file, &socket, "--for", "1s"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("no recording"),
        "{}",
        stderr(&output)
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "schema = 1\n");

    // A full disk ends the recording, but not the link.
    let output = airlane(&["record", "/dev/full", &socket]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("/dev/full"), "{}", stderr(&output));
    // There is no other recording now, since it was ended. The size limit leaves room for little
    // more than a header.
    let output = link.record(0, &["--max-size", "300B"]).output().unwrap();
    assert!(
        stderr(&output).contains("--max-size"),
        "{}",
        stderr(&output)
    );
    assert!(std::fs::metadata(&traces[0]).unwrap().len() <= 300);
    assert_eq!(link.state(0).unwrap(), "confirmed");

    // Replaying the journals of the ports gives the same outputs.
    link.ups.iter_mut().for_each(|up| {
        up.stop(PATIENCE).unwrap();
    });
    for end in [0, 1] {
        let replayed = airlane(&[
            "journal",
            "replay",
            &link.path(&format!("{end}.journal")),
            "--json",
        ]);
        let replayed = json(&replayed);
        let packets = replayed["packets_in"].as_u64().unwrap();
        assert!(
            packets > 2_500 && replayed["checks"].as_u64().unwrap() > 3,
            "{replayed}"
        );
    }
}

#[test]
fn frames_without_numbers_cannot_be_recorded() {
    if !can_run("frames_without_numbers_cannot_be_recorded") {
        return;
    }
    let link = Link::new(false);
    let output = link.record(0, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("security is \"none\"") && said.contains("keygen"),
        "{said}"
    );
}

/// Blocks of a known model on the air, seen only through frames, fit back to that model.
#[test]
fn a_recorded_radio_fits_back_to_its_model() {
    if !can_run("a_recorded_radio_fits_back_to_its_model") {
        return;
    }
    let (to_bad, to_good) = (0.04, 0.3);
    let errors = format!(
        "{{ kind = \"blocks\", model = \"gilbert {to_bad} {to_good}\", block = \"40 ms\" }}"
    );
    let link = Link::over(&errors, true);
    let recording = [0, 1].map(|end| link.record(end, &["--for", "40s"]).spawn().unwrap());
    // Each block of 40 ms gets more frames than a busy machine leaves out, and sending lasts longer
    // than the recordings: a pause takes at least a millisecond.
    send(
        &link.ends[0],
        "10.7.0.2:5004",
        42_000,
        Duration::from_millis(1),
    );
    for end in recording {
        json(&end.wait_with_output().unwrap());
    }
    // `check` records the link for itself.
    let judged = Command::new(AIRLANE)
        .args(["check", &link.path("1.sock"), "--record-for", "5s"])
        .args([
            "--apps",
            "call",
            "--want",
            "call-loss<=100%,call-delay<=1us",
        ])
        .args(["--runs", "3", "--for", "5s", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    send(
        &link.ends[0],
        "10.7.0.2:5004",
        7_000,
        Duration::from_millis(1),
    );
    let judged = judged.wait_with_output().unwrap();
    assert_eq!(judged.status.code(), Some(1), "{}", stderr(&judged));
    assert!(
        stderr(&judged).contains("missed: call-delay<=1us"),
        "{}",
        stderr(&judged)
    );
    let judged: Value = serde_json::from_slice(&judged.stdout).unwrap();
    assert_eq!(judged["wanted"][0], "call-loss<=100%", "{judged}");
    assert_eq!(judged["goals"][0], "met", "{judged}");
    let path = |name: &str| link.path(name);
    let (joined, blocks) = (path("link.trace"), path("link.blocks"));
    json(&airlane(&[
        "trace",
        "join",
        &path("0.trace"),
        &path("1.trace"),
        &joined,
        "--json",
    ]));
    let from = ["--from", "recording", "--outwards", "--block", "40ms"];
    let output = airlane(&[&["trace", "convert", &joined, "-o", &blocks], &from[..]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let fitted = json(&airlane(&[
        "trace", "fit", &blocks, "--models", "gilbert", "--json",
    ]));
    let model = &fitted["models"][0];
    assert_ne!(model["verdict"], "poor", "{model}");
    for (at, value) in [to_bad, to_good].into_iter().enumerate() {
        let number = |key: &str| model["parameters"][at][key].as_f64().unwrap();
        // Twice the half width of the 95 % interval, because frames at the edges of blocks blur
        // them.
        let far = 2.0 * libm::log(number("high_95") / number("low_95")) / 2.0;
        let apart = libm::log(number("value") / value).abs();
        assert!(apart < far, "{value}: {model}");
    }
}
