//! `airlane setup`: the files it writes work unchanged, and no file is overwritten.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use airlane_testkit::netns::{Namespace, Process, can_run};
use serde_json::Value;

const AIRLANE: &str = env!("CARGO_BIN_EXE_airlane");
/// Only ends a hanging test.
const PATIENCE: Duration = Duration::from_secs(60);

/// `airlane setup` in a folder, with answers on standard input.
fn setup(folder: &Path, arguments: &[&str], answers: &str) -> Output {
    let mut command = Command::new(AIRLANE);
    command.current_dir(folder).arg("setup").args(arguments);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = pipes.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program that refuses its arguments reads no answers.
    let _unread = stdin.write_all(answers.as_bytes());
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn an_invalid_answer_is_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let answers =
        "none\nno such/host\ngate.example.org\n10.7.0.0/99\n10.8.0.0/24\n70000\n0\n7009\n";
    let written = setup(folder.path(), &[], answers);
    let said = text(&written.stderr);
    assert!(written.status.success(), "{said}");
    assert_eq!(said.matches('?').count(), 8, "{said}");
    for part in ["no such/host", "too long", "a port is a number"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let file = fs::read_to_string(folder.path().join("air0-1.toml")).unwrap();
    assert!(
        file.contains("gate.example.org:7009") && file.contains("10.8.0.1/24"),
        "{file}"
    );
}

#[test]
fn four_answers_make_the_files_of_both_ends_which_then_stay() {
    let folder = tempfile::tempdir().unwrap();
    let written = setup(folder.path(), &[], "none\ngate.example.org\n\n7008\n");
    assert!(written.status.success(), "{}", text(&written.stderr));
    let questions = text(&written.stderr);
    assert_eq!(questions.matches('?').count(), 4, "{questions}");
    assert!(questions.contains("[10.7.0.0/24]"), "{questions}");
    let said = text(&written.stdout);
    for part in [
        "airlane up ./air0-1.toml",
        "airlane up air0-2.toml",
        "10.7.0.2",
        "calls",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let before = ["air0-1.toml", "air0-1.key", "air0-2.toml", "air0-2.key"].map(|name| {
        let mode = fs::metadata(folder.path().join(name)).unwrap();
        assert_eq!(mode.permissions().mode() & 0o777, 0o600, "{name}");
        read(name)
    });
    assert!(before[0].contains("gate.example.org:7008"), "{}", before[0]);
    assert!(!said.contains(before[1].trim()), "a private key is shown");

    let options = [
        "--here",
        "192.0.2.1",
        "--there",
        "none",
        "--network",
        "fd07::/64",
        "--port",
        "7007",
    ];
    let again = setup(folder.path(), &options, "");
    assert_eq!(again.status.code(), Some(2));
    assert!(
        text(&again.stderr).contains("--force"),
        "{}",
        text(&again.stderr)
    );
    assert_eq!(read("air0-1.key"), before[1]);
    let forced = setup(
        folder.path(),
        &[&options[..], &["--force", "--json"]].concat(),
        "",
    );
    let json: Value = serde_json::from_slice(&forced.stdout).unwrap();
    assert_eq!(json["there"]["address"], "fd07::2");
    assert_eq!(json["here"]["run"][2], "./air0-1.toml");
    assert_ne!(read("air0-1.key"), before[1]);
}

#[test]
fn missing_or_wrong_answers_are_named_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, answers, part) in [
        (
            &["--here", "none", "--there", "none"][..],
            "\n\n",
            "at least one",
        ),
        (
            &["--there", "192.0.2.2", "--here", "none"],
            "",
            "give --network",
        ),
        (&["--there", "192.0.2.2", "--json"], "", "--here is missing"),
        (
            &[
                "--there",
                "192.0.2.2",
                "--here",
                "none",
                "--network",
                "10.7.0.0",
            ],
            "\n",
            "10.7.0.1/24",
        ),
        (
            &[
                "--there",
                "192.0.2.2",
                "--here",
                "none",
                "--network",
                "10.7.0.0/24",
                "--port",
                "x",
            ],
            "",
            "7007",
        ),
        (
            &["--there", "the gate", "--here", "none"],
            "\n\n",
            "gate.example.org",
        ),
    ] {
        let refused = setup(folder.path(), arguments, answers);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// `airlane flows` shows it, with a rule that keeps it in its service.
fn what_was_tried_is_a_flow_that_the_link_knows(link: &str, there: &str) {
    let flows = |more: &[&str]| {
        let mut command = Command::new(AIRLANE);
        let output = command.arg("flows").arg(link).args(more).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let told: Value = serde_json::from_str(&flows(&["--json"])).unwrap();
    let all = told[0]["flows"].as_array().unwrap();
    let flow = all.iter().find(|flow| flow["there"] == there).unwrap();
    assert_eq!(flow["protocol"], "tcp");
    let rule = flow["rule"].as_str().unwrap();
    let service = flow["service"].as_str().unwrap();
    assert!(
        rule.contains("dst-port = \"9\"") && rule.contains(service),
        "{rule}"
    );
    let shown = flows(&[]);
    assert!(shown.contains(rule) && shown.contains(flow["why"].as_str().unwrap()));
}

/// With addresses of both ends, of one alone, and with a pre-shared key, the files work unchanged.
#[test]
fn both_ends_start_from_the_written_files_and_connect() {
    if !can_run("both_ends_start_from_the_written_files_and_connect") {
        return;
    }
    let hosts = ["left", "right"].map(|name| Namespace::new(name).unwrap());
    hosts[0].join("wire", &hosts[1], "wire").unwrap();
    for (end, host) in hosts.iter().enumerate() {
        let v4 = format!("192.0.2.{}/24", end + 1);
        let v6 = format!("2001:db8::{}/64", end + 1);
        host.ip(&["addr", "add", &v4, "dev", "wire"]).unwrap();
        host.ip(&["addr", "add", &v6, "dev", "wire", "nodad"])
            .unwrap();
    }
    for (at, (here, there, network, more)) in [
        ("192.0.2.1", "192.0.2.2", "10.7.0.0/24", &[][..]),
        ("none", "2001:db8::2", "fd07::/64", &["--preshared"]),
    ]
    .into_iter()
    .enumerate()
    {
        let folder = tempfile::tempdir().unwrap();
        // The control sockets of all namespaces share one folder.
        let name = format!("s{}x{at}", std::process::id() % 100_000);
        let options = [
            "--here",
            here,
            "--there",
            there,
            "--network",
            network,
            "--port",
            "7007",
        ];
        let options = [&options[..], more, &["--name", &name, "--json"]].concat();
        let written = setup(folder.path(), &options, "");
        let json: Value = serde_json::from_slice(&written.stdout).unwrap();
        let mut running = Vec::new();
        for (end, which) in ["here", "there"].into_iter().enumerate() {
            let file = folder
                .path()
                .join(json[which]["files"][0].as_str().unwrap());
            let mut command = hosts[end].command(AIRLANE);
            command.arg("up").arg(file).stdout(Stdio::null());
            let log = fs::File::create(folder.path().join(which)).unwrap();
            running.push(Process::start(command.stderr(log)).unwrap());
        }
        let other = json["there"]["address"].as_str().unwrap();
        let deadline = Instant::now() + PATIENCE;
        let nobody = SocketAddr::new(other.parse().unwrap(), 9);
        // A peer that refuses has been reached.
        let reached = || {
            let tried =
                hosts[0].run(|| TcpStream::connect_timeout(&nobody, Duration::from_secs(1)));
            tried.unwrap().err().map(|error| error.kind()) == Some(ErrorKind::ConnectionRefused)
        };
        while !reached() {
            let log = fs::read_to_string(folder.path().join("here")).unwrap();
            assert!(Instant::now() < deadline, "{other} is not reached:\n{log}");
        }
        what_was_tried_is_a_flow_that_the_link_knows(&format!("{name}-1"), &nobody.to_string());
    }
}
