//! Network namespaces for tests and demonstrations, built with `ip` (iproute2).
//!
//! A [`Namespace`] and a [`Process`] clean up when they are dropped, also during a panic. Namespaces left behind by a
//! killed process are recognized by their name, `airlane-<pid>-...`, and removed the next time. Processes are ended
//! by their id, never by name.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use rustix::thread::LinkNameSpaceType;

/// Why namespaces cannot be used here. The message is one line and says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetnsError {
    /// Not root.
    #[error("network namespaces need root; run it as root or with sudo")]
    NotRoot,
    /// The program `ip` is missing.
    #[error("network namespaces need `ip`; install it with: apt-get install iproute2")]
    NoIproute,
    /// `/dev/net/tun` is missing.
    #[error("a TUN device needs /dev/net/tun; load it with: modprobe tun")]
    NoTun,
    /// A command could not be run, or failed.
    #[error("`{command}` failed: {reason}")]
    Command {
        /// The command.
        command: String,
        /// Its output.
        reason: String,
    },
}

/// Checks that namespaces, veth pairs and TUN devices can be created here.
///
/// # Errors
/// What is missing, in one line.
pub fn available() -> Result<(), NetnsError> {
    if !rustix::process::geteuid().is_root() {
        return Err(NetnsError::NotRoot);
    }
    if Command::new("ip").arg("-V").output().is_err() {
        return Err(NetnsError::NoIproute);
    }
    if !Path::new("/dev/net/tun").exists() {
        return Err(NetnsError::NoTun);
    }
    Ok(())
}

/// If set, skipping a live test is a failure, as in continuous integration.
pub const REQUIRE_LIVE: &str = "AIRLANE_REQUIRE_LIVE";

/// Whether a live test can run here; if not, prints the reason in one line that the test runner cannot hide.
///
/// # Panics
/// If it cannot run and `AIRLANE_REQUIRE_LIVE` is set.
pub fn can_run(test: &str) -> bool {
    let Err(missing) = available() else {
        return true;
    };
    assert!(
        std::env::var_os(REQUIRE_LIVE).is_none(),
        "{test} was skipped although {REQUIRE_LIVE} is set: {missing}"
    );
    // Not `eprintln!`: the test runner hides its output if the test passes.
    let _ = writeln!(io::stderr(), "SKIPPED {test}: {missing}");
    false
}

/// What a signal handler has to clean up: namespaces by name, children by process id, folders.
static LIVE: Mutex<Live> = Mutex::new(Live {
    namespaces: BTreeSet::new(),
    children: BTreeSet::new(),
    folders: BTreeSet::new(),
});

struct Live {
    namespaces: BTreeSet<String>,
    children: BTreeSet<i32>,
    folders: BTreeSet<PathBuf>,
}

fn live<T>(change: impl FnOnce(&mut Live) -> T) -> T {
    // A panic in another thread must not prevent the cleanup.
    change(
        &mut LIVE
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner),
    )
}

const PREFIX: &str = "airlane-";

/// A network namespace. Dropping it ends all processes in it and removes it.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Creates a namespace with its loopback up. `label` becomes part of the name.
    ///
    /// # Errors
    /// If `ip` fails.
    pub fn new(label: &str) -> Result<Self, NetnsError> {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        if count == 0 {
            remove_abandoned();
        }
        let name = format!("{PREFIX}{}-{count}-{label}", std::process::id());
        run(Command::new("ip").args(["netns", "add", &name]))?;
        live(|l| l.namespaces.insert(name.clone()));
        let namespace = Self { name };
        namespace.ip(&["link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// The name that `ip netns` shows.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `ip` in the namespace.
    ///
    /// # Errors
    /// With the output of `ip`.
    pub fn ip(&self, args: &[&str]) -> Result<String, NetnsError> {
        run(Command::new("ip").args(["-n", &self.name]).args(args))
    }

    /// Writes a kernel setting such as `net/ipv6/conf/all/disable_ipv6`.
    ///
    /// # Errors
    /// If the setting does not exist.
    pub fn sysctl(&self, key: &str, value: &str) -> Result<(), NetnsError> {
        let script = format!("echo {value} > /proc/sys/{key}");
        run(self.command("sh").args(["-c", &script])).map(drop)
    }

    /// A command that will run inside the namespace.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// Runs `work` on a thread inside the namespace; threads that it starts are inside, too.
    ///
    /// # Errors
    /// If the namespace cannot be entered.
    ///
    /// # Panics
    /// If `work` does.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NetnsError> {
        let enter = || {
            let link = std::fs::File::open(format!("/run/netns/{}", self.name))?;
            let kind = Some(LinkNameSpaceType::Network);
            rustix::thread::move_into_link_name_space(link.as_fd(), kind)?;
            io::Result::Ok(())
        };
        let inside = || enter().map(|()| work());
        let outcome = std::thread::scope(|scope| scope.spawn(inside).join());
        let entered = outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        entered.map_err(|e| NetnsError::Command {
            command: format!("setns {}", self.name),
            reason: e.to_string(),
        })
    }

    /// Connects this namespace to another with a veth pair, both ends up.
    ///
    /// # Errors
    /// If `ip` fails.
    pub fn join(&self, own: &str, other: &Self, others: &str) -> Result<(), NetnsError> {
        run(Command::new("ip")
            .args(["link", "add", own, "netns", &self.name])
            .args(["type", "veth", "peer", "name", others, "netns", &other.name]))?;
        self.ip(&["link", "set", "dev", own, "up"])?;
        other.ip(&["link", "set", "dev", others, "up"])?;
        Ok(())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        remove_namespace(&self.name);
        live(|l| l.namespaces.remove(&self.name));
    }
}

/// A temporary folder, such as for keys. Dropping it removes it.
#[derive(Debug)]
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// Creates a folder that only its owner can read.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn new() -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        live(|l| l.folders.insert(folder.path().to_owned()));
        Ok(Self(folder))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Leaves it where it is when this is dropped.
    pub fn keep(&mut self) -> &Path {
        self.0.disable_cleanup(true);
        live(|l| l.folders.remove(self.0.path()));
        self.0.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        live(|l| l.folders.remove(self.0.path()));
    }
}

/// A child process. Dropping it sends SIGTERM, and SIGKILL if it does not end within three seconds.
#[derive(Debug)]
pub struct Process {
    child: Child,
    what: String,
}

impl Process {
    /// Starts `command`.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(command: &mut Command) -> Result<Self, NetnsError> {
        let what = describe(command);
        let child = command.spawn().map_err(|e| NetnsError::Command {
            command: what.clone(),
            reason: e.to_string(),
        })?;
        live(|l| l.children.insert(child.id() as i32));
        Ok(Self { child, what })
    }

    /// The running child.
    pub const fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// The exit status, if the process has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Sends SIGTERM and waits. None if the process had to be killed.
    pub fn stop(&mut self, patience: Duration) -> Option<ExitStatus> {
        if let Some(status) = self.ended() {
            return Some(status);
        }
        let pid = Pid::from_child(&self.child);
        // It may end by itself between the two calls; its id is not reused before it is waited for.
        let _ = rustix::process::kill_process(pid, Signal::TERM);
        self.wait(patience)
    }

    /// Waits for the end. None if the process had to be killed.
    pub fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop(Duration::from_secs(3));
        live(|l| l.children.remove(&(self.child.id() as i32)));
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// Cleans up when this process gets SIGINT or SIGTERM, and then exits with 128 + signal.
///
/// # Errors
/// If the signals cannot be handled.
pub fn clean_up_on_signals() -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            // Keeps the lock: nothing new may start.
            let _kept = clean_up();
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

/// Ends all children and removes all namespaces and folders. Nothing new starts while the returned guard exists.
fn clean_up() -> std::sync::MutexGuard<'static, Live> {
    let live = LIVE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    for pid in live.children.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        let _ = rustix::process::kill_process(pid, Signal::TERM);
    }
    // They need a moment for their reports and devices.
    std::thread::sleep(Duration::from_millis(500));
    for name in &live.namespaces {
        remove_namespace(name);
    }
    for folder in &live.folders {
        let _ = std::fs::remove_dir_all(folder);
    }
    live
}

/// Cleans up and exits, whatever the other threads are doing.
pub fn exit(code: i32) -> ! {
    let _kept = clean_up();
    std::process::exit(code)
}

/// Removes namespaces whose creator has ended.
fn remove_abandoned() {
    let Ok(entries) = std::fs::read_dir("/run/netns") else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let maker = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.split('-').next());
        let Some(Ok(maker)) = maker.map(str::parse::<u32>) else {
            continue;
        };
        if !Path::new(&format!("/proc/{maker}")).exists() {
            remove_namespace(&name);
        }
    }
}

/// Ends the processes in the namespace, by id, and removes it. Errors mean that it is gone already.
fn remove_namespace(name: &str) {
    if let Ok(pids) = run(Command::new("ip").args(["netns", "pids", name])) {
        for pid in pids
            .lines()
            .filter_map(|l| Pid::from_raw(l.trim().parse().ok()?))
        {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
    let _ = run(Command::new("ip").args(["netns", "del", name]));
}

pub(crate) fn describe(command: &Command) -> String {
    let parts = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = parts.map(|p| p.to_string_lossy()).collect();
    words.join(" ")
}

/// Runs a command and returns its output.
fn run(command: &mut Command) -> Result<String, NetnsError> {
    let what = describe(command);
    let failed = |reason: String| NetnsError::Command {
        command: what,
        reason,
    };
    let output = match command.stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(e) => return Err(failed(e.to_string())),
    };
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(format!("{} ({})", said.trim(), output.status)))
}
