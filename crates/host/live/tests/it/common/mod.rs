//! Nodes that run in network namespaces.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file is a crate of its own and uses a part of this"
)]

pub mod air;
pub mod cell;
pub mod pair;
pub mod station;
pub mod traffic;

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use airlane_live::config::LiveConfig;
use airlane_live::control::{self, ControlError};
use airlane_live::daemon::{Daemon, UpError};
use airlane_live::status::{PeerStatus, ServiceReport, Status};
use airlane_testkit::netns;

pub use airlane_testkit::netns::can_run;

/// How long a test waits for a required event: only to prevent hanging, however slow the machine is.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A namespace shared by threads. It is removed with its last owner.
#[derive(Clone)]
pub struct Namespace(Arc<netns::Namespace>);

impl Namespace {
    pub fn new(label: &str) -> Self {
        Self(Arc::new(netns::Namespace::new(label).unwrap()))
    }

    /// Runs `ip` in this namespace.
    pub fn ip(&self, arguments: &str) -> String {
        let arguments: Vec<_> = arguments.split_whitespace().collect();
        self.0.ip(&arguments).unwrap()
    }

    pub fn sysctl(&self, key: &str, value: &str) {
        self.0.sysctl(key, value).unwrap();
    }

    /// Runs `work` in a thread inside the namespace.
    pub fn thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let namespace = self.clone();
        std::thread::spawn(move || namespace.run(work))
    }

    /// Runs `work` inside the namespace and waits for it.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.0.run(work).unwrap()
    }
}

/// Joins two namespaces by a veth pair.
pub fn cable(left: &Namespace, left_end: &str, right: &Namespace, right_end: &str) {
    left.0.join(left_end, &right.0, right_end).unwrap();
}

/// The only service of a link: `files`, which repairs everything, for TCP.
pub const FILES: &str = r#"
[[link.services]]
number = 1
name = "files"
rate = 1
scheme = { kind = "sr-m2" }
[[link.classes]]
match = { protocol = "tcp" }
service = "files"
"#;

/// Services of a link: `files`, which repairs everything, for TCP, and `voice` for `matches`.
pub fn files_and_voice(retries: u8, matches: &str) -> String {
    format!(
        r#"
[[link.services]]
number = 1
name = "files"
rate = 0.7
scheme = {{ kind = "sr-m2" }}
[[link.services]]
number = 2
name = "voice"
rate = 0.2
scheme = {{ kind = "rlp-oos", retries = {retries} }}
[[link.classes]]
match = {matches}
service = "voice"
[[link.classes]]
match = {{ protocol = "tcp" }}
service = "files"
"#
    )
}

/// A peer's report about the service of this name.
pub fn service<'a>(peer: &'a PeerStatus, name: &str) -> &'a ServiceReport {
    let mut services = peer.services.iter();
    services.find(|service| service.name == name).unwrap()
}

/// Checks the ledgers of `voice`, over which the left end sent datagrams and the right end echoed them. How many
/// are repaired in time depends on the machine; that none arrives twice and each is accounted for does not.
pub fn check_voice(ends: &[Status; 2], answered: usize) {
    let ledgers = ends
        .each_ref()
        .map(|end| service(&end.peers[0], "voice").ledger);
    let [left, right] = &ledgers;
    assert_eq!(
        right.packets_sent, right.packets_delivered,
        "an answer for each"
    );
    assert!(answered as u64 <= left.packets_delivered, "{ledgers:?}");
    for (from, to) in [(left, right), (right, left)] {
        let known = to.packets_delivered + to.residual_lost;
        // The loss of the very last packets cannot be detected by a later one.
        let unknown = from.packets_sent.checked_sub(known);
        assert!(unknown.is_some_and(|unknown| unknown < 5), "{ledgers:?}");
    }
}

/// Starts a node, with retries while its UDP port is still taken.
///
/// Other tests of this process run `ip` meanwhile. Between fork and exec their child holds a copy of each
/// socket of the process, so that the port of a node that has ended is released a little later. A copy of a
/// control socket, which would cause the error "another node" at once, does no harm.
fn start(config: &LiveConfig) -> Result<Daemon, UpError> {
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        match Daemon::start(config) {
            Err(UpError::Device(error))
                if error.call == "bind"
                    && error.device.starts_with("udp ")
                    && error.source.kind() == ErrorKind::AddrInUse
                    && Instant::now() < deadline =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            started => return started,
        }
    }
}

/// A node in a thread, stopped when dropped.
pub struct Running {
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<Result<Status, UpError>>>,
    pub socket: PathBuf,
}

impl Running {
    /// Starts a node from the text of its file.
    ///
    /// # Errors
    /// Why it did not start.
    pub fn start(namespace: &Namespace, file: &str) -> Result<Self, UpError> {
        Self::start_with(namespace, file, |_| {})
    }

    /// Starts a node; `prepare` gets it before it runs.
    ///
    /// # Errors
    /// Why it did not start.
    pub fn start_with(
        namespace: &Namespace,
        file: &str,
        prepare: impl FnOnce(&mut Daemon) + Send + 'static,
    ) -> Result<Self, UpError> {
        let config: LiveConfig = airlane_base::config::load(file, "up.toml").unwrap();
        let socket = config.socket();
        let (stop, stopped) = UnixStream::pair().unwrap();
        let (started, has_started) = mpsc::channel();
        let thread = namespace.thread(move || {
            let mut node = match start(&config) {
                Ok(node) => node,
                Err(error) => {
                    started.send(false).unwrap();
                    return Err(error);
                }
            };
            prepare(&mut node);
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

    /// Asks for the status over the control socket.
    pub fn status(&self) -> Status {
        control::status(&self.socket).unwrap()
    }

    /// Sends a changed file over the control socket.
    #[allow(dead_code, reason = "not every test does")]
    pub fn reload(&self, file: &str) -> Result<Vec<String>, ControlError> {
        let config: LiveConfig = airlane_base::config::load(file, "up.toml").unwrap();
        control::reload(&self.socket, &config, false)
    }

    /// The changes that a reload would make.
    pub fn dry_run(&self, file: &str) -> Result<Vec<String>, ControlError> {
        let config: LiveConfig = airlane_base::config::load(file, "up.toml").unwrap();
        control::reload(&self.socket, &config, true)
    }

    /// Waits until the node's status satisfies `wanted`.
    pub fn wait_until(&self, what: &str, wanted: impl Fn(&Status) -> bool) -> Status {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let status = self.status();
            if wanted(&status) {
                return status;
            }
            assert!(Instant::now() < deadline, "not {what}: {status:#?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Stops the node and returns its last status.
    pub fn stop(mut self) -> Status {
        drop(self.stop.take());
        self.ended().unwrap()
    }

    /// Waits until the node ends, and returns its result.
    pub fn ended(&mut self) -> Result<Status, UpError> {
        self.thread.take().unwrap().join().unwrap()
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
