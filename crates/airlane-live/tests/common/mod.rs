//! Network namespaces that clean up after themselves, and nodes that run in them.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file is a crate of its own and uses a part of this"
)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

pub mod traffic;

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use airlane_live::config::LiveConfig;
use airlane_live::control;
use airlane_live::node::{Node, UpError};
use airlane_live::status::Status;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Whether namespaces can be made here; says so where they cannot.
pub fn can_make_namespaces(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    let ip = Command::new("ip").arg("-V").output().is_ok();
    if !root || !ip {
        let missing = if root { "iproute2" } else { "root" };
        // Not `println!`: that would be hidden where the test passes.
        let _unseen = writeln!(std::io::stderr(), "SKIPPED {test}: needs {missing}");
    }
    root && ip
}

/// A network namespace; gone when dropped, with all that is in it.
pub struct Namespace {
    name: String,
    /// Not made here, so not deleted here.
    borrowed: bool,
}

impl Namespace {
    pub fn new(label: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("airlane-{}-{count}-{label}", std::process::id());
        run("ip", &["netns", "add", &name]);
        let namespace = Self {
            name,
            borrowed: false,
        };
        namespace.ip("link set lo up");
        namespace
    }

    /// Another handle of a namespace, for another thread.
    pub fn handle(&self) -> Self {
        Self {
            name: self.name.clone(),
            borrowed: true,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// `ip` in this namespace.
    pub fn ip(&self, arguments: &str) -> String {
        let mut all = vec!["-n", &self.name];
        all.extend(arguments.split_whitespace());
        run("ip", &all)
    }

    /// Writes a kernel setting of this namespace.
    pub fn sysctl(&self, path: &str, value: &str) {
        let (path, value) = (path.to_owned(), value.to_owned());
        self.thread(move || std::fs::write(Path::new("/proc/sys").join(path), value).unwrap())
            .join()
            .unwrap();
    }

    /// Runs `work` in a thread inside the namespace.
    pub fn thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let handle = File::open(Path::new("/run/netns").join(&self.name)).unwrap();
        std::thread::spawn(move || {
            move_into_link_name_space(handle.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        })
    }

    /// Runs `work` inside the namespace and waits for it.
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.thread(work).join().unwrap()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if !self.borrowed {
            let delete = ["netns", "del", &self.name];
            let _gone = Command::new("ip").args(delete).output();
        }
    }
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Joins two namespaces by a virtual cable.
pub fn cable(left: &Namespace, left_end: &str, right: &Namespace, right_end: &str) {
    let (l, r) = (left.name(), right.name());
    let arguments =
        format!("link add {left_end} netns {l} type veth peer name {right_end} netns {r}");
    run("ip", &arguments.split_whitespace().collect::<Vec<_>>());
    left.ip(&format!("link set {left_end} up"));
    right.ip(&format!("link set {right_end} up"));
}

/// A node in a thread of its own, stopped when dropped.
pub struct Running {
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<Result<Status, UpError>>>,
    pub socket: PathBuf,
}

impl Running {
    /// Starts a node from the text of its file.
    ///
    /// # Errors
    /// What kept it from starting.
    pub fn start(namespace: &Namespace, file: &str) -> Result<Self, UpError> {
        let config: LiveConfig = airlane_base::config::load(file, "up.toml").unwrap();
        let socket = config.socket();
        let (stop, stopped) = UnixStream::pair().unwrap();
        let (started, has_started) = mpsc::channel();
        let thread = namespace.thread(move || {
            let mut node = match Node::start(&config) {
                Ok(node) => node,
                Err(error) => {
                    started.send(false).unwrap();
                    return Err(error);
                }
            };
            started.send(true).unwrap();
            node.run(stopped.as_fd())?;
            Ok(node.status())
        });
        if !has_started.recv().unwrap() {
            return Err(thread.join().unwrap().unwrap_err());
        }
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
            socket,
        })
    }

    /// Asks over the control socket.
    pub fn status(&self) -> Status {
        control::status(&self.socket).unwrap()
    }

    /// Waits until the node says what is wanted.
    pub fn wait_until(&self, what: &str, wanted: impl Fn(&Status) -> bool) -> Status {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let status = self.status();
            if wanted(&status) {
                return status;
            }
            assert!(Instant::now() < deadline, "not {what}: {status:#?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Stops the node and gives its last words.
    pub fn stop(mut self) -> Status {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _result = thread.join();
        }
    }
}
