//! `airlane emulate`: both columns are filled, a tolerance decides the exit code, and an interrupted run cleans up.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use airlane_testkit::netns::{Process, can_run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const AIRLANE: &str = env!("CARGO_BIN_EXE_airlane");
const SCENARIO: &str = r#"
schema = 1
name = "a file and a call"
duration = "4 s"
[nodes.near]
[nodes.far]
[links.radio]
ends = ["near", "far"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = "100 packets"
[[flows]]
name = "file"
ends = ["near", "far"]
start = "60 ms"
transport = { kind = "tcp", pacing = false }
app = { kind = "bulk" }
[[flows]]
name = "call"
ends = ["far", "near"]
start = "1 s"
dscp = "EF"
transport = { kind = "udp" }
app = { kind = "cbr", packet = "160 B", rate = "64 kbit/s" }
[[flows]]
name = "pages"
ends = ["near", "far"]
start = "1 s"
transport = { kind = "tcp", pacing = false }
app = { kind = "pages", request = "100 B", reply = "5 kB", pause = "50 ms" }
"#;

fn written(folder: &Path, text: &str) -> PathBuf {
    let file = folder.join("scenario.toml");
    std::fs::write(&file, text).unwrap();
    file
}

fn emulate(file: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(AIRLANE);
    command.arg("emulate").arg(file).args(arguments);
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The namespaces that a process has made.
fn namespaces_of(pid: u32) -> usize {
    let Ok(all) = std::fs::read_dir("/run/netns") else {
        return 0;
    };
    let own = format!("airlane-{pid}-");
    let names = all
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&own)).count()
}

#[test]
fn a_bare_link_carries_in_the_kernel_about_what_is_simulated() {
    if !can_run("a_bare_link_carries_in_the_kernel_about_what_is_simulated") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), SCENARIO);
    let output = emulate(&file, &["--json", "--tolerance", "throughput_bps=50%"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let measures = all["measures"].as_array().unwrap();
    assert_eq!(measures.len(), 6, "{all:#}");
    for measure in measures {
        for column in ["simulated", "emulated"] {
            assert!(measure[column]["mean"].is_number(), "{measure:#}");
        }
        assert!(measure["difference_ratio"].is_number(), "{measure:#}");
    }
    // The link's rate is the kernel's, too.
    let file = measures[0]["emulated"]["mean"].as_f64().unwrap();
    assert!((5e6..10e6).contains(&file), "{file}");
    // Nothing is lost on the way of the call.
    assert_eq!(measures[1]["measure"], "loss_ratio");
    assert_eq!(
        measures[1]["emulated"]["mean"].as_f64(),
        Some(0.0),
        "{all:#}"
    );
}

#[test]
fn live_nodes_run_at_both_ends_and_a_tolerance_names_what_exceeds_it() {
    if !can_run("live_nodes_run_at_both_ends_and_a_tolerance_names_what_exceeds_it") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = SCENARIO
        .replace("delay =", "node = \"live\"\ndelay =")
        .replace("4 s", "3 s");
    let file = written(folder.path(), &text);
    let output = emulate(&file, &["--runs", "1", "--tolerance", "throughput_bps=0%"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("live nodes at both ends"), "{text}");
    assert!(
        said(&output).contains("file, throughput"),
        "{}",
        said(&output)
    );
}

#[test]
fn what_cannot_be_emulated_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let text = SCENARIO.replace("pacing = false", "profile = \"ns2-1999\"");
    let file = written(folder.path(), &text);
    let output = emulate(&file, &[]);
    assert_eq!(output.status.code(), Some(2));
    let said = said(&output);
    assert!(
        said.contains("scenario.toml:16:") && said.contains("ns2-1999"),
        "{said}"
    );
    let output = emulate(&file, &["--tolerance", "throughput=1%"]);
    let said = self::said(&output);
    assert!(said.contains("throughput_bps"), "{said}");
}

#[test]
fn an_interrupted_emulation_leaves_nothing_behind() {
    if !can_run("an_interrupted_emulation_leaves_nothing_behind") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Called by its name alone, as from its folder.
    let file = written(folder.path(), &SCENARIO.replace("4 s", "1000 s"));
    let mut command = Command::new(AIRLANE);
    command
        .arg("emulate")
        .arg(file.file_name().unwrap())
        .current_dir(folder.path())
        .env("TMPDIR", folder.path());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = Process::start(&mut command).unwrap();
    let pid = running.child().id();
    let deadline = Instant::now() + Duration::from_secs(30);
    while namespaces_of(pid) < 3 {
        assert!(Instant::now() < deadline && running.ended().is_none());
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(500));
    kill_process(Pid::from_child(running.child()), Signal::INT).unwrap();
    let status = running.wait(Duration::from_secs(20)).expect("it ends");
    assert_eq!(status.code(), Some(130));
    assert_eq!(namespaces_of(pid), 0);
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .flatten()
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
}
