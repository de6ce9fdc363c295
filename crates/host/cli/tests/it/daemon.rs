//! What a running `airlane up` must withstand besides packets: signals, a log that is not read, a
//! start before the network is up, and privileges that it has given up.
//!
//! ```text
//!  namespace left            namespace right
//!  air0 10.7.0.1             air0 10.7.0.2
//!  wire 192.0.2.1 ══ veth ══ wire 192.0.2.2
//! ```

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use airlane_testkit::netns::{Namespace, Process, can_run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const AIRLANE: &str = env!("CARGO_BIN_EXE_airlane");
/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until something holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Two hosts that are not connected yet.
struct Site {
    hosts: [Namespace; 2],
    folder: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Users that a test allows to ask must be able to reach the socket.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self {
            hosts: ["left", "right"].map(|name| Namespace::new(name).unwrap()),
            folder,
        }
    }

    /// Connects the hosts with a cable.
    fn join(&self) {
        self.hosts[0].join("wire", &self.hosts[1], "wire").unwrap();
    }

    fn number(&self, end: usize) {
        let address = format!("192.0.2.{}/24", end + 1);
        self.hosts[end]
            .ip(&["addr", "add", &address, "dev", "wire"])
            .unwrap();
    }

    /// Connected hosts with addresses.
    fn connected() -> Self {
        let site = Self::new();
        site.join();
        [0, 1].iter().for_each(|end| site.number(*end));
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes the file of an end. `link` has the underlay, security and services; `rest` other
    /// tables.
    fn write(&self, end: usize, top: &str, link: &str) -> PathBuf {
        let (file, socket) = (
            self.path(&format!("{end}.toml")),
            self.path(&format!("{end}.sock")),
        );
        let text = format!(
            "schema = 1\nname = \"end-{end}\"\ncontrol = {{ socket = \"{}\" }}\n{top}\n[tun]\n\
             addresses = [\"10.7.0.{}/24\"]\n[link]\nrate = \"20 Mbit/s\"\n{link}\n",
            socket.display(),
            end + 1
        );
        fs::write(&file, text).unwrap();
        file
    }

    fn udp(&self, end: usize, rest: &str) -> PathBuf {
        // With no services by default, no packets are pending that a test would have to wait for.
        let rest = if rest.is_empty() { NO_SERVICES } else { rest };
        let link = format!(
            "underlay = {{ kind = \"udp\", listen = \"0.0.0.0:7007\", peer = \"192.0.2.{}:7007\" }}\n\
             security = \"none\"\n{rest}",
            2 - end
        );
        self.write(end, "", &link)
    }

    /// Runs `airlane up` on the end's file, with its log in a file.
    fn up(&self, end: usize, arguments: &[&str]) -> Process {
        let log = File::create(self.path(&format!("{end}.log"))).unwrap();
        self.up_with(end, arguments, log.into())
    }

    fn up_with(&self, end: usize, arguments: &[&str], log: Stdio) -> Process {
        let mut command = self.hosts[end].command(AIRLANE);
        command
            .arg("up")
            .arg(self.path(&format!("{end}.toml")))
            .args(arguments);
        command
            .env("AIRLANE_LOG", "debug")
            .stdout(Stdio::null())
            .stderr(log);
        Process::start(&mut command).unwrap()
    }

    fn log(&self, end: usize) -> String {
        fs::read_to_string(self.path(&format!("{end}.log"))).unwrap()
    }

    fn ask(&self, end: usize) -> Option<Value> {
        let output = Command::new(AIRLANE)
            .args(["status", "--json"])
            .arg(self.path(&format!("{end}.sock")))
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).ok()
    }

    fn is_confirmed(&self, end: usize) -> bool {
        let status = self.ask(end);
        status.is_some_and(|s| s["peers"][0]["session"]["state"] == "confirmed")
    }
}

fn signal(process: &mut Process, signal: Signal) {
    let pid = Pid::from_child(process.child());
    kill_process(pid, signal).unwrap();
}

fn ends_well(mut process: Process) {
    let status = process.stop(PATIENCE);
    assert_eq!(status.and_then(|status| status.code()), Some(0));
}

const NO_SERVICES: &str = "services = []";
const GAMES: &str = "[[link.services]]\nnumber = 2\nname = \"games\"\nrate = 0.1\n\
                     scheme = { kind = \"rlp-oos\" }\n";

#[test]
fn a_hangup_reloads_and_a_wrong_file_changes_nothing() {
    if !can_run("a_hangup_reloads_and_a_wrong_file_changes_nothing") {
        return;
    }
    let site = Site::connected();
    let file = site.udp(0, "");
    let mut up = site.up(0, &["--set", "link.delay=7 ms"]);
    until("it answers", || site.ask(0).is_some());
    fs::write(&file, "schema = 1\nname = ").unwrap();
    signal(&mut up, Signal::HUP);
    until("it says what is wrong", || site.log(0).contains("0.toml:2"));
    // The value set on the command line still applies: the delay cannot change while the node runs.
    site.udp(0, GAMES);
    signal(&mut up, Signal::HUP);
    until("it has the service", || {
        let status = site.ask(0).unwrap();
        let services = status["peers"][0]["services"].as_array().unwrap();
        services.iter().any(|service| service["name"] == "games")
    });
    ends_well(up);
}

#[test]
fn a_user_signal_logs_the_status_and_quit_ends_the_node_cleanly() {
    if !can_run("a_user_signal_logs_the_status_and_quit_ends_the_node_cleanly") {
        return;
    }
    let site = Site::connected();
    site.udp(0, "");
    let mut up = site.up(0, &[]);
    until("it answers", || site.ask(0).is_some());
    signal(&mut up, Signal::USR1);
    until("it says where it stands", || {
        let log = site.log(0);
        log.lines()
            .any(|line| line.contains("status") && line.contains("waiting"))
    });
    signal(&mut up, Signal::QUIT);
    assert_eq!(up.wait(PATIENCE).and_then(|status| status.code()), Some(0));
}

/// A process that is stopped hears nothing, which says nothing about its port.
#[test]
fn a_node_that_stood_still_keeps_its_port() {
    if !can_run("a_node_that_stood_still_keeps_its_port") {
        return;
    }
    let site = Site::connected();
    let key = |end: usize| {
        let file = site.path(&format!("{end}.key"));
        let made = Command::new(AIRLANE)
            .arg("keygen")
            .arg(file)
            .output()
            .unwrap();
        String::from_utf8(made.stdout).unwrap().trim().to_owned()
    };
    let keys = [key(0), key(1)];
    for end in [0, 1] {
        let link = format!(
            "underlay = {{ kind = \"udp\", listen = \"0.0.0.0:7007\", peer = \"192.0.2.{}:7007\" }}\n\
             security = {{ private-key = \"{end}.key\", peer-key = \"{}\" }}\n{NO_SERVICES}",
            2 - end,
            keys[1 - end]
        );
        site.write(end, "", &link);
    }
    let [mut left, right] = [0, 1].map(|end| site.up(end, &[]));
    until("they meet", || {
        [0, 1].iter().all(|end| site.is_confirmed(*end))
    });
    signal(&mut left, Signal::STOP);
    std::thread::sleep(Duration::from_secs(33));
    signal(&mut left, Signal::CONT);
    std::thread::sleep(Duration::from_secs(1));
    until("they meet again", || {
        let log = site.log(0);
        assert!(!log.contains("port changed"), "{log}");
        [0, 1].iter().all(|end| site.is_confirmed(*end))
    });
    ends_well(left);
    ends_well(right);
}

/// People type `kill PID; airlane up`.
#[test]
fn a_node_can_be_restarted_while_it_is_ending() {
    if !can_run("a_node_can_be_restarted_while_it_is_ending") {
        return;
    }
    let site = Site::connected();
    site.udp(0, "");
    let mut up = site.up(0, &[]);
    until("it answers", || site.ask(0).is_some());
    for _ in 0..5 {
        signal(&mut up, Signal::TERM);
        let mut next = site.up(0, &[]);
        assert_eq!(up.wait(PATIENCE).and_then(|status| status.code()), Some(0));
        until("the next one answers", || {
            let ended = next.ended();
            assert!(ended.is_none(), "{}", site.log(0));
            site.ask(0).is_some()
        });
        up = next;
    }
    ends_well(up);
}

#[test]
fn an_unread_log_neither_ends_nor_blocks_the_link() {
    if !can_run("an_unread_log_neither_ends_nor_blocks_the_link") {
        return;
    }
    // A full disk, a closed reader, and a reader that has stopped reading.
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);
    let (mut stuck_reader, mut stuck) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&stuck, true).unwrap();
    while stuck.write(&[b'\n'; 4096]).is_ok() {}
    while stuck.write(b"\n").is_ok() {}
    rustix::io::ioctl_fionbio(&stuck, false).unwrap();
    for log in [full(), closed.into(), stuck.into()] {
        let site = Site::connected();
        let _files = [0, 1].map(|end| site.udp(end, ""));
        let mut left = site.up_with(0, &[], log);
        let right = site.up(1, &[]);
        until("they have a session", || site.is_confirmed(0));
        // More lines than the queue of any of them holds.
        for _ in 0..100 {
            signal(&mut left, Signal::USR1);
            std::thread::sleep(Duration::from_millis(1));
        }
        until("it still answers", || site.is_confirmed(0));
        ends_well(left);
        ends_well(right);
    }
    let mut said = String::new();
    stuck_reader.read_to_string(&mut said).unwrap();
}

#[test]
fn a_link_starts_without_a_route_and_connects_when_one_appears() {
    if !can_run("a_link_starts_without_a_route_and_connects_when_one_appears") {
        return;
    }
    let site = Site::new();
    let _files = [0, 1].map(|end| site.udp(end, ""));
    let ends = [0, 1].map(|end| site.up(end, &[]));
    until("both answer", || {
        [0, 1].iter().all(|end| site.ask(*end).is_some())
    });
    site.join();
    [0, 1].iter().for_each(|end| site.number(*end));
    until("they have a session", || {
        [0, 1].iter().all(|end| site.is_confirmed(*end))
    });
    ends.into_iter().for_each(ends_well);
}

#[test]
fn one_peer_without_a_route_does_not_block_the_others() {
    if !can_run("one_peer_without_a_route_does_not_block_the_others") {
        return;
    }
    let site = Site::connected();
    let keys = ["0", "1", "2"].map(|name| {
        let path = site.path(&format!("{name}.key"));
        let public = airlane_live::security::new_key(&path).unwrap();
        (path.display().to_string(), public)
    });
    let peers = format!(
        "[[peers]]\nname = \"near\"\nkey = \"{}\"\naddress = \"192.0.2.2:7007\"\n\
         prefixes = [\"10.7.0.2/32\"]\n\
         [[peers]]\nname = \"far\"\nkey = \"{}\"\naddress = \"198.51.100.9:7007\"\n\
         prefixes = [\"10.7.0.3/32\"]\n",
        keys[1].1, keys[2].1
    );
    let base = format!(
        "underlay = {{ kind = \"udp\", listen = \"0.0.0.0:7007\" }}\n\
         security = {{ private-key = \"{}\" }}\n{peers}",
        keys[0].0
    );
    site.write(0, "", &base);
    let station = format!(
        "underlay = {{ kind = \"udp\", listen = \"0.0.0.0:7007\", peer = \"192.0.2.1:7007\" }}\n\
         security = {{ private-key = \"{}\", peer-key = \"{}\" }}\n",
        keys[1].0, keys[0].1
    );
    site.write(1, "", &station);
    let ends = [0, 1].map(|end| site.up(end, &[]));
    until("the near one has a session", || site.is_confirmed(0));
    ends.into_iter().for_each(ends_well);
}

#[test]
fn a_link_on_ethernet_comes_up_before_its_interface() {
    if !can_run("a_link_on_ethernet_comes_up_before_its_interface") {
        return;
    }
    let site = Site::new();
    for end in [0, 1] {
        let (mine, theirs) = (end + 1, 2 - end);
        let link = format!(
            "underlay = {{ kind = \"ethernet\", interface = \"wire\", peer = \"02:00:00:00:00:0{theirs}\" }}\n\
             security = \"none\"\n"
        );
        site.write(end, "", &link);
        if end == 0 {
            site.join();
        }
        let address = format!("02:00:00:00:00:0{mine}");
        site.hosts[end]
            .ip(&["link", "set", "wire", "down"])
            .unwrap();
        site.hosts[end]
            .ip(&["link", "set", "wire", "address", &address])
            .unwrap();
    }
    let ends = [0, 1].map(|end| site.up(end, &[]));
    until("both answer", || {
        [0, 1].iter().all(|end| site.ask(*end).is_some())
    });
    for host in &site.hosts {
        host.ip(&["link", "set", "wire", "up"]).unwrap();
    }
    until("they have a session", || {
        [0, 1].iter().all(|end| site.is_confirmed(*end))
    });
    ends.into_iter().for_each(ends_well);
}

/// The value of a line of `/proc/PID/status`, or of that of a thread.
fn says(text: &str, key: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.unwrap().trim_start_matches(':').trim().to_owned()
}

/// `CAP_NET_ADMIN` (linux/capability.h).
const KEPT: u64 = 1 << 12;

#[test]
fn a_running_link_has_dropped_privileges_and_can_still_reload() {
    if !can_run("a_running_link_has_dropped_privileges_and_can_still_reload") {
        return;
    }
    for user in [None, Some("nobody")] {
        let site = Site::connected();
        let file = site.udp(0, "");
        let top = "metrics = \"127.0.0.1:9107\"";
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, format!("{top}\n{text}")).unwrap();
        // The user creates its socket there.
        fs::set_permissions(site.folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let arguments: Vec<_> = user.iter().flat_map(|name| ["--user", name]).collect();
        // Permissions as udev sets them; without udev the device may belong to root alone.
        let tun = site.path("tun");
        let script =
            "mknod -m 666 \"$0\" c 10 200 && mount --bind \"$0\" /dev/net/tun && exec \"$@\"";
        let mut command = site.hosts[0].command("sh");
        command.args(["-c", script]).arg(tun).args([AIRLANE, "up"]);
        command.arg(&file).args(&arguments);
        command.stdout(Stdio::null());
        command.stderr(File::create(site.path("0.log")).unwrap());
        let mut up = Process::start(&mut command).unwrap();
        until("it answers", || site.ask(0).is_some());
        let tasks = format!("/proc/{}/task", up.child().id());
        until("each of its threads has given up its rights", || {
            let threads = fs::read_dir(&tasks).unwrap().flatten();
            let threads =
                threads.filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
            let threads: Vec<_> = threads.collect();
            threads.len() > 1
                && threads.iter().all(|text| {
                    let has = |key| u64::from_str_radix(&says(text, key), 16).unwrap();
                    let kept = ["CapPrm", "CapEff", "CapBnd"]
                        .map(has)
                        .iter()
                        .all(|set| set & !KEPT == 0);
                    let uid = says(text, "Uid");
                    let own = uid
                        .split_whitespace()
                        .all(|id| (id == "0") == user.is_none());
                    kept && own && has("CapAmb") == 0 && says(text, "NoNewPrivs") == "1"
                })
        });
        // Adds a route, which needs a privilege, and a service.
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace(NO_SERVICES, GAMES)).unwrap();
        signal(&mut up, Signal::HUP);
        until("it has reloaded", || {
            let status = site.ask(0).unwrap();
            status["peers"][0]["services"].as_array().unwrap().len() == 2
        });
        ends_well(up);
    }
}

/// Runs `airlane` as a user with this uid and gid.
fn as_user(user: u32, group: u32, arguments: &[&str]) -> Output {
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid",
        &user.to_string(),
        "--regid",
        &group.to_string(),
        "--clear-groups",
    ]);
    command.arg(AIRLANE).args(arguments).output().unwrap()
}

#[test]
fn a_group_may_read_status_and_change_nothing() {
    if !can_run("a_group_may_read_status_and_change_nothing") {
        return;
    }
    let site = Site::connected();
    let file = site.udp(0, "");
    let text = fs::read_to_string(&file).unwrap();
    let text = text.replace(".sock\" }", ".sock\", group = \"nogroup\" }");
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let up = site.up(0, &[]);
    until("it answers", || site.ask(0).is_some());
    let (file, socket) = (file.to_str().unwrap(), site.path("0.sock"));
    let socket = socket.to_str().unwrap();
    const NOGROUP: u32 = 65534;
    let read = as_user(1234, NOGROUP, &["status", socket]);
    assert!(read.status.success(), "{read:?}");
    // A watch ends with its reader (`| head`).
    let mut watch = Command::new(AIRLANE)
        .args(["status", socket, "--watch"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(watch.stdout.take());
    until("nobody reads", || watch.try_wait().unwrap().is_some());
    for change in [
        &["reload", file][..],
        &["service", "remove", "games", socket],
        &["record", "/dev/null", socket],
    ] {
        let refused = as_user(1234, NOGROUP, change);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            said.contains("may read its status, and what a flow may send, and nothing else"),
            "{change:?}: {said}"
        );
    }
    // A user outside the group cannot even connect.
    let stranger = as_user(1234, 1234, &["status", socket]);
    let said = String::from_utf8_lossy(&stranger.stderr).into_owned();
    assert!(
        !stranger.status.success() && said.contains("member of the group"),
        "{said}"
    );
    ends_well(up);
}
