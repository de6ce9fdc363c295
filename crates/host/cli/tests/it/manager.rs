//! What a service manager sees of `airlane up`.

use std::fs::Permissions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use airlane_testkit::netns::{Namespace, Process, can_run};

/// Only ends a hanging test, however slow the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// Collects the node's notifications up to this one.
fn until(socket: &UnixDatagram, word: &str) -> Vec<String> {
    let (mut heard, mut bytes) = (Vec::new(), [0; 256]);
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        match socket.recv(&mut bytes) {
            Ok(length) => heard.push(String::from_utf8_lossy(&bytes[..length]).trim().to_owned()),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
        }
        if heard.last().is_some_and(|last| last == word) {
            return heard;
        }
    }
    panic!("no {word} among {heard:?}");
}

/// A namespace, the file of a node for it, and a listening manager.
struct Managed {
    namespace: Namespace,
    folder: tempfile::TempDir,
    file: PathBuf,
    notify: PathBuf,
    manager: UnixDatagram,
}

impl Managed {
    fn new(name: &str, underlay: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().display();
        let file = folder.path().join("up.toml");
        let text = format!(
            "schema = 1\nname = \"{name}\"\ncontrol = {{ socket = \"{directory}/up.sock\" }}\n\
             [tun]\naddresses = [\"10.7.0.1/24\"]\n[link]\nrate = \"1 Mbit/s\"\nsecurity = \"none\"\n\
             underlay = {{ {underlay} }}\n"
        );
        std::fs::write(&file, text).unwrap();
        let notify = folder.path().join("notify.sock");
        let manager = UnixDatagram::bind(&notify).unwrap();
        let patience = Some(Duration::from_millis(100));
        manager.set_read_timeout(patience).unwrap();
        Self {
            namespace: Namespace::new(name).unwrap(),
            folder,
            file,
            notify,
            manager,
        }
    }
}

#[test]
fn the_manager_is_notified_of_start_watchdog_and_end() {
    if !can_run("the_manager_is_notified_of_start_watchdog_and_end") {
        return;
    }
    let site = Managed::new(
        "managed",
        "kind = \"udp\", listen = \"127.0.0.1:7007\", peer = \"127.0.0.1:7008\"",
    );
    site.namespace.ip(&["link", "set", "lo", "up"]).unwrap();
    // The manager names the process that the watchdog applies to.
    let mut command = site.namespace.command("sh");
    command.args([
        "-c",
        "WATCHDOG_PID=$$ exec \"$0\" up \"$1\" --log-format json",
    ]);
    command.arg(env!("CARGO_BIN_EXE_airlane")).arg(&site.file);
    command.env("NOTIFY_SOCKET", &site.notify);
    command.env("WATCHDOG_USEC", "400000");
    let log = site.folder.path().join("log");
    command.stderr(std::fs::File::create(&log).unwrap());
    let begun = Instant::now();
    let mut up = Process::start(&mut command).unwrap();
    assert_eq!(until(&site.manager, "READY=1"), ["READY=1"]);
    for _ in 0..5 {
        let heard = until(&site.manager, "WATCHDOG=1");
        assert_eq!(heard, ["WATCHDOG=1"]);
    }
    // Four notifications at half the watchdog's timeout.
    assert!(begun.elapsed() >= Duration::from_millis(700), "{begun:?}");
    assert!(up.stop(PATIENCE).unwrap().success());
    until(&site.manager, "STOPPING=1");
    // JSON, one line each.
    let log = std::fs::read_to_string(log).unwrap();
    let lines: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}")))
        .collect();
    let find = |message: &str| lines.iter().find(|line| line["message"] == message);
    let up = find("up").unwrap();
    assert_eq!(up["tun"], "air0");
    assert_eq!(up["level"], "INFO");
    let why = &find("stopping").unwrap()["why"];
    assert_eq!(why, "signal");
}

const UNIT: &str = include_str!("../../../../../deploy/airlane@.service");

/// The value of `key` in the unit file.
fn unit(key: &str) -> &'static str {
    let value = UNIT.lines().find_map(|line| line.strip_prefix(key));
    value.unwrap().strip_prefix('=').unwrap()
}

/// systemd may be missing where Airlane is built.
#[test]
fn systemd_accepts_the_unit_and_rates_its_exposure_low() {
    let analyze = |arguments: &[&str]| Command::new("systemd-analyze").args(arguments).output();
    if analyze(&["--version"]).is_err() {
        let skipped =
            "SKIPPED systemd_accepts_the_unit_and_rates_its_exposure_low: no systemd-analyze\n";
        let _ = std::io::stderr().write_all(skipped.as_bytes());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("airlane@hill-top.service");
    let binary = env!("CARGO_BIN_EXE_airlane");
    std::fs::write(&file, UNIT.replace("/usr/bin/airlane", binary)).unwrap();
    let file = file.to_str().unwrap();
    // The threshold is in tenths; access to the network, packet sockets and a device alone scores
    // more than one of ten.
    let secure = ["security", "--offline=true", "--threshold=30", file];
    for arguments in [&["verify", file][..], &secure] {
        let output = analyze(arguments).unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
    }
}

#[test]
fn the_unit_grants_what_a_node_on_ethernet_needs_and_no_more() {
    if !can_run("the_unit_grants_what_a_node_on_ethernet_needs_and_no_more") {
        return;
    }
    let site = Managed::new(
        "granted",
        "kind = \"ethernet\", interface = \"wire\", peer = \"02:00:00:00:00:02\"",
    );
    let namespace = &site.namespace;
    namespace.join("wire", namespace, "other").unwrap();
    let granted: Vec<_> = unit("CapabilityBoundingSet").split_whitespace().collect();
    let families: Vec<_> = unit("RestrictAddressFamilies").split_whitespace().collect();
    assert!(families.contains(&"AF_PACKET"), "{families:?}");
    assert_eq!(unit("AmbientCapabilities"), unit("CapabilityBoundingSet"));
    // As in the unit: a user other than root, who owns the run directory and the files.
    for path in [site.folder.path(), &site.notify] {
        std::fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    }
    // Without udev the device may belong to root alone.
    let device = site.folder.path().join("tun");
    let script = "mknod -m 666 \"$0\" c 10 200 2> /dev/null; mount --bind \"$0\" /dev/net/tun && exec setpriv \"$@\"";
    let start = |capabilities: &[&str]| {
        let added = capabilities.iter().map(|capability| {
            let name = capability.strip_prefix("CAP_").unwrap();
            format!(",+{}", name.to_lowercase())
        });
        let bounds = format!("-all{}", added.collect::<String>());
        let mut command = namespace.command("sh");
        command.args(["-c", script]).arg(&device);
        command.args(["--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]);
        for set in ["--bounding-set", "--inh-caps", "--ambient-caps"] {
            command.args([set, &bounds]);
        }
        command
            .arg(env!("CARGO_BIN_EXE_airlane"))
            .arg("up")
            .arg(&site.file);
        command.env("NOTIFY_SOCKET", &site.notify);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        Process::start(&mut command).unwrap()
    };
    let mut up = start(&granted);
    assert_eq!(until(&site.manager, "READY=1"), ["READY=1"]);
    assert!(up.stop(PATIENCE).unwrap().success());
    until(&site.manager, "STOPPING=1");
    for missing in ["CAP_NET_RAW", "CAP_NET_ADMIN"] {
        let others: Vec<_> = granted.iter().copied().filter(|c| *c != missing).collect();
        let mut up = start(&others);
        let status = up.wait(PATIENCE);
        assert_eq!(
            status.and_then(|status| status.code()),
            Some(1),
            "{missing}"
        );
        let mut said = String::new();
        let stderr = up.child().stderr.as_mut().unwrap();
        std::io::Read::read_to_string(stderr, &mut said).unwrap();
        assert!(said.contains(missing), "{said}");
    }
}
