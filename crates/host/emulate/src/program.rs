//! Programs that run during a measurement, with their output in files.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::LiveError;
use crate::netns::Process;

/// How long a program may take to start or to end: only against hanging, even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program with its output in files, so that it never blocks on a pipe.
#[derive(Debug)]
pub struct Program {
    process: Process,
    out: PathBuf,
    err: PathBuf,
}

impl Program {
    /// Starts it, with stdout and stderr in files of this name.
    pub fn start(command: Command, directory: &Path, name: &str) -> Result<Self, LiveError> {
        let log = directory.join(format!("{name}.err"));
        Self::start_logging(command, directory, name, &log)
    }

    /// Starts it, with stdout in a file of this name and stderr in the file `log`.
    pub fn start_logging(
        mut command: Command,
        directory: &Path,
        name: &str,
        log: &Path,
    ) -> Result<Self, LiveError> {
        let create = |path: &PathBuf| {
            File::create(path).map_err(|source| LiveError::File {
                path: path.clone(),
                source,
            })
        };
        let (out, err) = (directory.join(format!("{name}.out")), log.to_owned());
        command
            .stdin(Stdio::null())
            .stdout(create(&out)?)
            .stderr(create(&err)?);
        let process = Process::start(&mut command)?;
        Ok(Self { process, out, err })
    }

    /// An error with this problem and the program's output.
    pub fn failed(&self, problem: impl Into<String>) -> LiveError {
        LiveError::Program {
            what: self.process.to_string(),
            problem: problem.into(),
            said: self.last_words(),
        }
    }

    /// The end of its stderr, or of its stdout, which some programs use for errors.
    fn last_words(&self) -> String {
        // Reading a device may never end.
        let read = |path: &PathBuf| match path.is_file() {
            true => std::fs::read_to_string(path).unwrap_or_default(),
            false => String::new(),
        };
        match read(&self.err) {
            empty if empty.trim().is_empty() => read(&self.out),
            said => said,
        }
    }

    /// Checks that the program is running.
    pub fn check(&mut self) -> Result<(), LiveError> {
        match self.process.ended() {
            Some(status) => Err(self.failed(format!("ended early ({status})"))),
            None => Ok(()),
        }
    }

    /// Waits until the program is up; fails if it ends before.
    pub fn wait_until(&mut self, is_up: impl Fn() -> bool) -> Result<(), LiveError> {
        let deadline = Instant::now() + PATIENCE;
        while !is_up() {
            self.check()?;
            if Instant::now() > deadline {
                return Err(self.failed(format!("is not up after {PATIENCE:?}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Ends the program with SIGTERM, and returns its output.
    pub fn finish(&mut self) -> Result<String, LiveError> {
        match self.process.stop(PATIENCE) {
            Some(status) if status.success() => self.said(),
            Some(status) => Err(self.failed(format!("did not end well ({status})"))),
            None => Err(self.failed(format!("did not end {PATIENCE:?} after SIGTERM"))),
        }
    }

    /// Sends a signal.
    pub fn signal(&mut self, signal: Signal) -> Result<(), LiveError> {
        let sent = kill_process(Pid::from_child(self.process.child()), signal);
        sent.map_err(|error| self.failed(format!("cannot be sent a signal: {error}")))
    }

    /// Ends the program at once.
    pub fn kill(&mut self) {
        // An error means that it has already ended.
        let _ = self.process.child().kill();
        let _ = self.process.child().wait();
    }

    /// Waits until it ends by itself, and returns its output.
    pub fn run(&mut self, patience: Duration) -> Result<String, LiveError> {
        match self.process.wait(patience) {
            Some(status) if status.success() => self.said(),
            Some(status) => Err(self.failed(format!("failed ({status})"))),
            None => Err(self.failed(format!("took longer than {patience:?}"))),
        }
    }

    /// Its output so far.
    pub fn said(&self) -> Result<String, LiveError> {
        std::fs::read_to_string(&self.out).map_err(|source| LiveError::File {
            path: self.out.clone(),
            source,
        })
    }

    /// Its process id.
    pub fn id(&mut self) -> u32 {
        self.process.child().id()
    }
}
