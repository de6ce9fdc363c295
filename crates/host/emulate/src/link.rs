//! Two hosts connected by an emulated lossy link, with and without Airlane.
//!
//! ```text
//!       left                          air                            right
//!  ┌─────────────┐      ┌───────────────────────────────┐      ┌─────────────┐
//!  │ server wire ├─veth─┤ to-left  airlane air  to-right ├─veth─┤ wire client │    raw: over `wire`
//!  │        │    │      └───────────────────────────────┘      │    │        │
//!  │   airlane up│            192.0.2.1 ◄──► 192.0.2.2         │airlane up   │
//!  │        │    │                                             │    │        │
//!  │       air0  │             10.7.0.1 ◄──► 10.7.0.2          │  air0       │    services: over `air0`
//!  └─────────────┘                                             └─────────────┘
//! ```
//!
//! The programs under test are the real ones, run with the files that users read: the emulator's file connects
//! `to-left` and `to-right`, the ends' files use the addresses of `wire`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::Signal;

use airlane_probe::{
    AcceptFrom, ClientConfig, ServerConfig, ServerPorts, TrafficReport, run_client, serve,
};

pub use crate::error::LiveError;
use crate::netns::{self, Folder, Namespace};
use crate::program::Program;

/// The server's address on the wire.
pub const WIRE_SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
/// The server's address in the tunnel of the demo's files.
pub const TUNNEL_SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 7, 0, 1));

/// The three namespaces with a running emulator. Dropping it removes everything.
#[derive(Debug)]
pub struct EmulatedLink {
    // Programs come before namespaces: fields are dropped in this order.
    ends: Vec<Program>,
    air: Program,
    /// How many programs were started.
    starts: u32,
    airlane: PathBuf,
    hosts: [Arc<Namespace>; 2],
    between: Namespace,
    directory: Folder,
}

const NAMES: [&str; 2] = ["left", "right"];
const MACS: [&str; 2] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];

impl EmulatedLink {
    /// Builds the namespaces and starts the emulator.
    ///
    /// # Errors
    /// If one of them fails.
    pub fn new(airlane: &Path, air: &Path, seed: u64) -> Result<Self, LiveError> {
        let directory = Folder::new().map_err(|source| LiveError::File {
            path: std::env::temp_dir(),
            source,
        })?;
        let between = Namespace::new("air")?;
        // A wire sends nothing of its own.
        between.sysctl("net/ipv6/conf/default/disable_ipv6", "1")?;
        between.sysctl("net/ipv6/conf/all/disable_ipv6", "1")?;
        let hosts = [Namespace::new(NAMES[0])?, Namespace::new(NAMES[1])?];
        for (i, host) in hosts.iter().enumerate() {
            host.join("wire", &between, ["to-left", "to-right"][i])?;
            let last = i + 1;
            host.ip(&[
                "address",
                "add",
                &format!("192.0.2.{last}/24"),
                "dev",
                "wire",
            ])?;
            let v6 = format!("2001:db8::{last}/64");
            host.ip(&["address", "add", &v6, "dev", "wire", "nodad"])?;
        }
        let program = start_air(airlane, &between, (air, seed), directory.path(), "air")?;
        Ok(Self {
            ends: Vec::new(),
            air: program,
            starts: 0,
            airlane: airlane.to_owned(),
            hosts: hosts.map(Arc::new),
            between,
            directory,
        })
    }

    /// Leaves the link to what is sent over it on purpose: no address resolution, no IPv6. Connections learn nothing
    /// from earlier ones.
    ///
    /// # Errors
    /// If the hosts refuse it.
    pub fn silence(&self) -> Result<(), LiveError> {
        for (i, host) in self.hosts.iter().enumerate() {
            host.sysctl("net/ipv6/conf/all/disable_ipv6", "1")?;
            host.sysctl("net/ipv4/tcp_no_metrics_save", "1")?;
            host.ip(&["link", "set", "dev", "wire", "address", MACS[i]])?;
        }
        for (i, host) in self.hosts.iter().enumerate() {
            let other = format!("192.0.2.{}", 2 - i);
            let neighbour = ["neigh", "replace", &other, "lladdr", MACS[1 - i]];
            host.ip(&[&neighbour[..], &["dev", "wire", "nud", "permanent"]].concat())?;
        }
        Ok(())
    }

    /// Replaces the emulator; frames in flight are lost.
    ///
    /// # Errors
    /// If the old emulator reports an error or the new one does not start.
    pub fn change_air(&mut self, file: &Path, seed: u64) -> Result<(), LiveError> {
        self.air.finish()?;
        let name = self.next_name("air");
        let folder = self.directory.path();
        self.air = start_air(&self.airlane, &self.between, (file, seed), folder, &name)?;
        Ok(())
    }

    /// A name for the output file of the next program.
    fn next_name(&mut self, what: &str) -> String {
        self.starts += 1;
        format!("{what}-{}", self.starts)
    }

    /// The two hosts, left and right of the emulated link.
    pub fn hosts(&self) -> [&Namespace; 2] {
        self.hosts.each_ref().map(Arc::as_ref)
    }

    /// The two hosts, for threads that outlive a borrow of the link.
    pub fn shared_hosts(&self) -> [Arc<Namespace>; 2] {
        self.hosts.clone()
    }

    /// Starts Airlane at both ends and waits until they have a session.
    ///
    /// # Errors
    /// If an end refuses its file or no session is established.
    pub fn up(&mut self, files: [&Path; 2]) -> Result<(), LiveError> {
        for (end, file) in files.into_iter().enumerate() {
            let program = self.start(end, file, None)?;
            self.ends.push(program);
        }
        (0..files.len()).try_for_each(|end| self.wait_for_session(end))
    }

    fn start(&mut self, end: usize, file: &Path, log: Option<&Path>) -> Result<Program, LiveError> {
        let socket = toml_string(&self.socket(end));
        let mut command = self.hosts[end].command(&self.airlane);
        command.args(["up", "--json"]).arg(file);
        command.args(["--set", &format!("control.socket={socket}")]);
        let name = self.next_name(NAMES[end]);
        match log {
            Some(log) => Program::start_logging(command, self.directory.path(), &name, log),
            None => Program::start(command, self.directory.path(), &name),
        }
    }

    /// Waits until an end has a session that the other end has confirmed.
    ///
    /// # Errors
    /// If it ends, or has no session in time.
    pub fn wait_for_session(&mut self, end: usize) -> Result<(), LiveError> {
        let ask = self.ask(end);
        self.ends[end].wait_until(|| {
            ask().is_ok_and(|status| status["peers"][0]["session"]["state"] == "confirmed")
        })
    }

    /// Stops a running end with SIGTERM, and returns its last status.
    ///
    /// # Errors
    /// If it exits with an error.
    pub fn stop_end(&mut self, end: usize) -> Result<serde_json::Value, LiveError> {
        let said = self.ends[end].finish()?;
        serde_json::from_str(&said)
            .map_err(|error| self.ends[end].failed(format!("gave no last status: {error}")))
    }

    /// Kills a running end, as in a crash.
    ///
    /// # Errors
    /// If it has already ended.
    pub fn kill_end(&mut self, end: usize) -> Result<(), LiveError> {
        self.ends[end].check()?;
        self.ends[end].kill();
        Ok(())
    }

    /// Restarts an end that was stopped or killed, without waiting for anything.
    ///
    /// # Errors
    /// If the program does not start.
    pub fn start_end(&mut self, end: usize, file: &Path) -> Result<(), LiveError> {
        self.ends[end] = self.start(end, file, None)?;
        Ok(())
    }

    /// Restarts an end that was stopped or killed, with its log in a file such as `/dev/full`.
    ///
    /// # Errors
    /// If the program does not start.
    pub fn start_end_logging(
        &mut self,
        end: usize,
        file: &Path,
        log: &Path,
    ) -> Result<(), LiveError> {
        self.ends[end] = self.start(end, file, Some(log))?;
        Ok(())
    }

    /// Sends SIGHUP to a running end.
    ///
    /// # Errors
    /// If it has already ended.
    pub fn hang_up(&mut self, end: usize) -> Result<(), LiveError> {
        self.ends[end].check()?;
        self.ends[end].signal(Signal::HUP)
    }

    /// Reloads a running end with a changed file.
    ///
    /// # Errors
    /// If it refuses the file.
    pub fn reload(&self, end: usize, file: &Path) -> Result<(), LiveError> {
        let mut command = Command::new(&self.airlane);
        command.arg("reload").arg(file);
        let socket = toml_string(&self.socket(end));
        command.args(["--set", &format!("control.socket={socket}")]);
        ask(command).map(drop)
    }

    /// Checks that all programs are still running.
    ///
    /// # Errors
    /// With the end of the output of one that is not.
    pub fn check(&mut self) -> Result<(), LiveError> {
        let mut programs = self.ends.iter_mut().chain([&mut self.air]);
        programs.try_for_each(Program::check)
    }

    /// The folder of the programs' files, which will be kept.
    pub fn keep_files(&mut self) -> &Path {
        self.directory.keep()
    }

    /// Runs the applications, the server on the left and the client on the right.
    ///
    /// # Errors
    /// If the server cannot be reached or does not report, or a program has ended.
    pub fn traffic(&mut self, config: &ClientConfig) -> Result<TrafficReport, LiveError> {
        self.traffic_on(ServerPorts::default(), config)
    }

    /// Runs the applications with the server on these ports.
    ///
    /// # Errors
    /// If the server cannot be reached or does not report, or a program has ended.
    pub fn traffic_on(
        &mut self,
        ports: ServerPorts,
        config: &ClientConfig,
    ) -> Result<TrafficReport, LiveError> {
        let stop = AtomicBool::new(false);
        let server = ServerConfig { ports, ..server() };
        let [left, right] = &self.hosts;
        let report = std::thread::scope(|scope| {
            let serving = scope.spawn(|| left.run(|| serve(&server, &stop, &|_| ())));
            let report = right.run(|| run_client(config));
            stop.store(true, Ordering::Relaxed);
            let served = serving.join();
            match served.unwrap_or_else(|panic| std::panic::resume_unwind(panic))? {
                Ok(()) => report?.map_err(LiveError::Probe),
                Err(e) => Err(LiveError::Serve(e)),
            }
        });
        self.check()?;
        report
    }

    /// Resident memory of one end, bytes.
    ///
    /// # Errors
    /// If the end has ended.
    pub fn resident(&mut self, end: usize) -> Result<u64, LiveError> {
        let path = PathBuf::from(format!("/proc/{}/status", self.ends[end].id()));
        let text = std::fs::read_to_string(&path);
        let text = text.map_err(|source| LiveError::File { path, source })?;
        let kb = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kb = kb.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        Ok(kb.unwrap_or_default() * 1024)
    }

    /// Status of one end, as `airlane status --json` prints it.
    ///
    /// # Errors
    /// If the end does not respond.
    pub fn status(&self, end: usize) -> Result<serde_json::Value, LiveError> {
        self.ask(end)()
    }

    /// Stops all programs as a user would, and returns the emulator's report.
    ///
    /// # Errors
    /// If one of them exits with an error.
    pub fn finish(mut self) -> Result<serde_json::Value, LiveError> {
        for mut end in std::mem::take(&mut self.ends) {
            end.finish()?;
        }
        let said = self.air.finish()?;
        serde_json::from_str(&said)
            .map_err(|error| self.air.failed(format!("gave no report: {error}")))
    }

    /// The control socket of one end.
    pub fn socket(&self, end: usize) -> PathBuf {
        self.directory.path().join(format!("{}.sock", NAMES[end]))
    }

    fn ask(&self, end: usize) -> impl Fn() -> Result<serde_json::Value, LiveError> + use<> {
        let (airlane, socket) = (self.airlane.clone(), self.socket(end));
        move || status(&airlane, &socket)
    }
}

/// Status of the node with this control socket.
pub fn status(airlane: &Path, socket: &Path) -> Result<serde_json::Value, LiveError> {
    let mut command = Command::new(airlane);
    command.args(["status", "--json"]).arg(socket);
    let (what, output) = ask(command)?;
    serde_json::from_slice(&output).map_err(|error| LiveError::Program {
        what,
        problem: format!("did not print a status: {error}"),
        said: String::from_utf8_lossy(&output).into_owned(),
    })
}

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A server that every client in the same namespaces may use, for any time.
pub fn server() -> ServerConfig {
    ServerConfig {
        lifetime: DAY,
        longest: DAY,
        most_bytes: u64::MAX,
        ..ServerConfig::new(AcceptFrom::Address(Ipv6Addr::UNSPECIFIED.into()))
    }
}

/// Runs a short command; returns its words and its output.
fn ask(mut command: Command) -> Result<(String, Vec<u8>), LiveError> {
    let what = netns::describe(&command);
    let failed = |what: String, problem: String, said: &[u8]| LiveError::Program {
        what,
        problem,
        said: String::from_utf8_lossy(said).into_owned(),
    };
    match command.stdin(Stdio::null()).output() {
        Err(error) => Err(failed(what, error.to_string(), &[])),
        Ok(output) if output.status.success() => Ok((what, output.stdout)),
        Ok(output) => Err(failed(
            what,
            format!("failed ({})", output.status),
            &output.stderr,
        )),
    }
}

/// Starts the emulator with a file and a seed, and waits until it carries frames.
fn start_air(
    airlane: &Path,
    between: &Namespace,
    (file, seed): (&Path, u64),
    folder: &Path,
    name: &str,
) -> Result<Program, LiveError> {
    let mut command = between.command(airlane);
    command.args(["air", "--json"]).arg(file);
    command.args(["--set", &format!("seed={seed}")]);
    let mut program = Program::start(command, folder, name)?;
    // Its sockets are promiscuous from the moment when it can carry frames.
    program.wait_until(|| {
        let promiscuous = |interface: &&str| {
            between
                .ip(&["-d", "link", "show", interface])
                .is_ok_and(|text| text.contains("promiscuity 1"))
        };
        ["to-left", "to-right"].iter().all(promiscuous)
    })?;
    Ok(program)
}

/// The path as a TOML string.
pub fn toml_string(path: &Path) -> String {
    format!("'{}'", path.display())
}
