//! `airlane send` and `airlane recv` as programs: folders, the remains of an end that was killed,
//! and refusals.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use airlane_live::ship::Ticket;
use airlane_testkit::netns::Process;
use serde_json::Value;

const AIRLANE: &str = env!("CARGO_BIN_EXE_airlane");
const PATIENCE: Duration = Duration::from_secs(60);

/// A receiver, its address, and the ticket for the other end.
struct Receiver {
    process: Process,
    at: String,
    ticket: String,
}

fn receive(folder: &Path, more: &[&str]) -> Receiver {
    let ticket = Ticket::new().unwrap().to_text().to_string();
    receive_with(&ticket, "127.0.0.1:0", folder, more)
}

fn receive_with(ticket: &str, listen: &str, folder: &Path, more: &[&str]) -> Receiver {
    let mut command = Command::new(AIRLANE);
    command
        .arg("recv")
        .arg(folder)
        .args(["--listen", listen, "--json"])
        .args(more)
        .env("AIRLANE_TICKET", ticket)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = Process::start(&mut command).unwrap();
    let mut log = BufReader::new(process.child().stderr.take().unwrap());
    let mut line = String::new();
    log.read_line(&mut line).unwrap();
    let at = line
        .trim()
        .strip_prefix("listening at UDP ")
        .unwrap()
        .to_owned();
    std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
    let ticket = ticket.to_owned();
    Receiver {
        process,
        at,
        ticket,
    }
}

impl Receiver {
    fn sender(&self, what: &Path, more: &[&str]) -> Command {
        let mut command = Command::new(AIRLANE);
        command
            .arg("send")
            .arg(what)
            .args([&self.at, "--ticket", &self.ticket, "--json"])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Its output, once it has ended by itself.
    fn ends(mut self) -> (bool, Value) {
        let mut out = self.process.child().stdout.take().unwrap();
        let status = self.process.wait(PATIENCE).unwrap();
        let mut text = String::new();
        out.read_to_string(&mut text).unwrap();
        (
            status.success(),
            serde_json::from_str(&text).unwrap_or_default(),
        )
    }
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8)
        .collect()
}

/// A wrong ticket is not answered: the sender gives possible reasons after its timeout, and the
/// receiver reports that somebody called.
#[test]
fn a_wrong_ticket_ends_with_a_reason_at_both_ends() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("a");
    fs::write(&file, "x").unwrap();
    let mut right = Command::new(AIRLANE);
    right
        .arg("recv")
        .arg(to.path())
        .args(["--listen", "127.0.0.1:0", "--timeout", "6 s"]);
    let mut right = Process::start(right.stdout(Stdio::piped()).stderr(Stdio::piped())).unwrap();
    let mut log = BufReader::new(right.child().stderr.take().unwrap());
    let mut line = String::new();
    log.read_line(&mut line).unwrap();
    let at = line.trim().strip_prefix("listening at UDP ").unwrap();
    let other = Ticket::new().unwrap().to_text().to_string();
    let begun = Instant::now();
    let sent = Command::new(AIRLANE)
        .arg("send")
        .arg(&file)
        .args([at, "--timeout", "2 s"])
        .env("AIRLANE_TICKET", other)
        .output()
        .unwrap();
    assert!(begun.elapsed() < Duration::from_secs(30));
    let said = String::from_utf8_lossy(&sent.stderr);
    assert_eq!(sent.status.code(), Some(1), "{said}");
    assert!(said.contains("with this ticket"), "{said}");
    assert_eq!(right.wait(PATIENCE).unwrap().code(), Some(1));
    let mut heard = String::new();
    log.read_to_string(&mut heard).unwrap();
    for part in ["calls with another ticket", "nobody has called"] {
        assert!(heard.contains(part), "{part}: {heard}");
    }
}

#[test]
fn a_folder_arrives_as_it_was() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = from.path().join("notes");
    fs::create_dir_all(root.join("empty")).unwrap();
    fs::write(root.join("a"), bytes(300_000)).unwrap();
    fs::write(root.join("b"), "").unwrap();
    fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o640)).unwrap();
    let receiver = receive(to.path(), &[]);
    let sent = receiver.sender(&root, &[]).output().unwrap();
    assert!(
        sent.status.success(),
        "{}",
        String::from_utf8_lossy(&sent.stderr)
    );
    let sent: Value = serde_json::from_slice(&sent.stdout).unwrap();
    let (ended, received) = receiver.ends();
    assert!(ended);
    assert_eq!(sent["files"], received["files"]);
    assert_eq!(sent["bytes"], 300_000);
    let at = |name: &str| to.path().join("notes").join(name);
    assert_eq!(fs::read(at("a")).unwrap(), bytes(300_000));
    assert_eq!(fs::read(at("b")).unwrap(), b"");
    assert!(at("empty").is_dir());
    assert_eq!(
        at("a").metadata().unwrap().permissions().mode() & 0o777,
        0o640
    );
    assert_eq!(
        at("a").metadata().unwrap().modified().unwrap(),
        root.join("a").metadata().unwrap().modified().unwrap()
    );
    // Nothing of the job remains.
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 1);

    // Sent again, the files are there already and no data is transferred.
    let receiver = receive(to.path(), &[]);
    let again = receiver.sender(&root, &[]).output().unwrap();
    assert!(again.status.success());
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again["resumed_bytes"], 300_000);
    assert!(receiver.ends().0);
    // Another file of the same name is kept.
    fs::write(at("a"), "mine").unwrap();
    let receiver = receive(to.path(), &[]);
    let again = receiver.sender(&root, &[]).output().unwrap();
    assert_eq!(again.status.code(), Some(1));
    assert_eq!(fs::read(at("a")).unwrap(), b"mine");
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(
        said.contains("already there") && said.contains("--overwrite"),
        "{said}"
    );
    assert!(!receiver.ends().0);
    let receiver = receive(to.path(), &["--overwrite"]);
    assert!(
        receiver
            .sender(&root, &[])
            .output()
            .unwrap()
            .status
            .success()
    );
    assert!(receiver.ends().0);
}

/// Waits until a receiver has stored this much of a job.
fn wait_for_parts(folder: &Path) {
    let begin = Instant::now();
    let has = |entry: fs::DirEntry| {
        let said = fs::read_to_string(entry.path().join("missing.json"));
        said.is_ok_and(|said| !said.contains("[[0,"))
    };
    while !fs::read_dir(folder).unwrap().flatten().any(has) {
        assert!(begin.elapsed() < PATIENCE, "nothing comes");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn either_end_may_be_killed_and_started_again() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("image");
    fs::write(&file, bytes(6_000_000)).unwrap();
    let receiver = receive(to.path(), &[]);
    let mut slow = Process::start(&mut receiver.sender(&file, &["--most", "12 Mbit/s"])).unwrap();
    wait_for_parts(to.path());
    slow.child().kill().unwrap();
    slow.wait(PATIENCE);
    // The same with the other end.
    let mut slow = Process::start(&mut receiver.sender(&file, &["--most", "12 Mbit/s"])).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let Receiver {
        mut process,
        at,
        ticket,
    } = receiver;
    process.child().kill().unwrap();
    process.wait(PATIENCE);
    let receiver = receive_with(&ticket, &at, to.path(), &[]);
    let status = slow.wait(PATIENCE).unwrap();
    assert!(status.success(), "{status}");
    let (ended, received) = receiver.ends();
    assert!(ended);
    let resumed = received["resumed_bytes"].as_u64().unwrap();
    assert!(resumed > 100_000, "{received}");
    assert_eq!(fs::read(to.path().join("image")).unwrap(), bytes(6_000_000));
}

#[test]
fn unreadable_or_unwritable_files_are_named_before_sending() {
    let fails = |args: &[&str], part: &str| {
        let out = Command::new(AIRLANE)
            .args(args)
            .env_remove("AIRLANE_TICKET")
            .output()
            .unwrap();
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(said.contains(part), "{said}");
    };
    let ticket = Ticket::new().unwrap().to_text().to_string();
    fails(
        &["send", "/etc/hostname", "127.0.0.1"],
        "--ticket is missing",
    );
    fails(
        &["send", "/etc/hostname", "127.0.0.1", "--ticket", "x"],
        "44 characters",
    );
    fails(
        &["send", "/etc/hostname", "127.0.0.1:x", "--ticket", &ticket],
        "a host and its port",
    );
    fails(&["recv", "/nowhere/at/all"], "is not a folder");
}
