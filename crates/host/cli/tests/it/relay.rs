//! `airlane relay` as a program: what it prints, and that it leaks nothing.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use airlane_testkit::netns::Process;
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::Value;

const AIRLANE: &str = env!("CARGO_BIN_EXE_airlane");
const PATIENCE: Duration = Duration::from_secs(60);

/// A relay to `to`, and the address on which it listens.
fn relay(to: SocketAddr, more: &[&str]) -> (Process, SocketAddr) {
    let to = to.to_string();
    let mut command = Command::new(AIRLANE);
    command
        .args(["relay", "--listen", "127.0.0.1:0", "--to", &to])
        .args(["--json", "--log-format", "json"])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = Process::start(&mut command).unwrap();
    let mut log = BufReader::new(process.child().stderr.take().unwrap());
    let mut line = String::new();
    log.read_line(&mut line).unwrap();
    let began: Value = serde_json::from_str(&line).unwrap();
    let listen = began["listen"].as_str().unwrap();
    // Its log is drained, so that it never waits for a reader.
    std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
    (process, listen.parse().unwrap())
}

fn stop(mut process: Process) -> Value {
    let mut out = process.child().stdout.take().unwrap();
    let status = process.stop(PATIENCE);
    assert!(status.is_some_and(|status| status.success()), "{status:?}");
    let mut text = String::new();
    out.read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Resident memory, kB.
fn memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let words = line.unwrap().split_whitespace();
    words.rev().nth(1).unwrap().parse().unwrap()
}

/// Both ends of each connection are in this process.
fn allow_descriptors(needed: u64) {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.current.map(|current| current.max(needed));
    setrlimit(Resource::Nofile, limit).unwrap();
}

#[test]
fn a_thousand_connections_leave_no_descriptors_open() {
    allow_descriptors(4096);
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let (mut process, at) = relay(server.local_addr().unwrap(), &[]);
    let pid = process.child().id();
    let before = descriptors(pid);
    let mut used = vec![];
    for round in 0..4 {
        let pairs: Vec<_> = (0..1000)
            .map(|_| {
                let mut client = TcpStream::connect(at).unwrap();
                let (mut connection, _) = server.accept().unwrap();
                for stream in [&client, &connection] {
                    stream.set_read_timeout(Some(PATIENCE)).unwrap();
                }
                let mut got = [0; 1000];
                client.write_all(&[7; 1000]).unwrap();
                connection.read_exact(&mut got).unwrap();
                connection.write_all(&got).unwrap();
                client.read_exact(&mut got).unwrap();
                assert_eq!(got, [7; 1000]);
                (client, connection)
            })
            .collect();
        assert!(descriptors(pid) >= before + 2000);
        drop(pairs);
        let deadline = Instant::now() + PATIENCE;
        while descriptors(pid) != before {
            assert!(Instant::now() < deadline, "{}", descriptors(pid));
            std::thread::sleep(Duration::from_millis(20));
        }
        // The first rounds fill the buffers that are kept for reuse.
        if round > 0 {
            used.push(memory(pid));
        }
    }
    assert!(used[2] <= used[0] + 200, "{used:?} kB");
    let report = stop(process);
    assert_eq!(report["accepted"], 4000);
    assert_eq!(report["most_open"], 1000);
    assert_eq!(report["to_servers_bytes"], 4_000_000);
    assert_eq!(report["cut"], 0);
    let [closed, reset] = ["closed", "reset_by_server"].map(|name| report[name].as_u64());
    // The last to close, with data still in flight, may reset.
    assert!(closed.unwrap() + reset.unwrap() + report["reset_by_client"].as_u64().unwrap() == 4000);
}

fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let output: Output = Command::new(AIRLANE)
        .arg("relay")
        .args(arguments)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), text)
}

#[test]
fn unworkable_relays_are_refused_in_one_line() {
    for (arguments, says) in [
        (&["--listen", "127.0.0.1:0"][..], "--to"),
        (
            &["--listen", "127.0.0.1:9", "--to", "127.0.0.1:9"],
            "would pass on to itself",
        ),
        (
            &["--listen", "127.0.0.1:0", "--to", "nowhere"],
            "--to nowhere",
        ),
        (
            &[
                "--listen",
                "127.0.0.1:0",
                "--to",
                "127.0.0.1:9",
                "--pool",
                "0 B",
            ],
            "passes nothing on",
        ),
    ] {
        let (code, text) = refused(arguments);
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains(says), "{text}");
    }
}
