//! The kernel's side: two namespaces, the emulator between them, and plain sockets.

use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airlane_emulate::flow::{App, Carried, Flow, Load, Tcp};
use airlane_testkit::live::{EmulatedLink, LiveError};

use super::point::{Application, Congestion, DELAY_MS, FILE, PAGES, Point, REPLY, REQUEST};

/// Timeout that only ends a hang.
const PATIENCE: Duration = Duration::from_secs(120);
const PORT: u16 = 5201;
/// The hosts, left and right.
const HOSTS: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];

/// Two hosts and the emulator between them; dropping it removes everything.
#[derive(Debug)]
pub struct Site {
    link: EmulatedLink,
    file: PathBuf,
    _directory: tempfile::TempDir,
}

/// The congestion controls that this kernel lacks.
///
/// # Errors
/// If they cannot be read.
pub fn missing() -> io::Result<Vec<Congestion>> {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let has = std::fs::read_to_string(path)?;
    let is_missing = |c: &Congestion| !has.split_whitespace().any(|name| name == c.name());
    Ok(Congestion::ALL.into_iter().filter(is_missing).collect())
}

impl Site {
    /// Builds the path; `airlane` is the program.
    ///
    /// # Errors
    /// If namespaces cannot be created, or the emulator does not start.
    pub fn new(airlane: &Path, first: &Point) -> Result<Self, LiveError> {
        let directory = tempfile::tempdir().map_err(LiveError::Traffic)?;
        let file = directory.path().join("air.toml");
        std::fs::write(&file, first.air()).map_err(LiveError::Traffic)?;
        let link = EmulatedLink::new(airlane, &file, 1)?;
        link.silence()?;
        for host in link.hosts() {
            host.ip(&["link", "set", "dev", "wire", "gso_max_segs", "1"])?;
        }
        Ok(Self {
            link,
            file,
            _directory: directory,
        })
    }

    /// Measures the kernel: bit/s of the file, or seconds per page.
    ///
    /// # Errors
    /// If the emulator does not start, or a connection breaks.
    pub fn run(&mut self, point: &Point, seed: u64) -> Result<f64, LiveError> {
        std::fs::write(&self.file, point.air()).map_err(LiveError::Traffic)?;
        self.link.change_air(&self.file, seed)?;
        let tcp = Tcp {
            congestion: point.congestion.name().to_owned(),
            segment: None,
        };
        let app = match point.application {
            Application::File => App::File {
                tcp,
                size: Some(FILE),
                // The simulator's transfer ends when its last acknowledgment has come back.
                back: Duration::from_millis(DELAY_MS),
            },
            Application::Pages => App::Pages {
                tcp,
                request: REQUEST,
                reply: REPLY,
                pause: Duration::ZERO,
                count: Some(PAGES),
            },
        };
        let flow = Flow {
            name: point.label(),
            from: 0,
            start: Duration::ZERO,
            tos: 0,
            port: PORT,
            app,
        };
        let load = Load {
            hosts: self.link.hosts(),
            addresses: HOSTS,
            flows: &[flow],
            lasts: PATIENCE,
            until: Some(0),
        };
        match load.carry()?.pop() {
            Some(Carried::File { bytes: FILE, took }) => Ok(FILE as f64 * 8.0 / took.as_secs_f64()),
            Some(Carried::Pages(times)) if times.len() as u64 == PAGES => {
                Ok(times.iter().sum::<Duration>().as_secs_f64() / PAGES as f64)
            }
            _ => Err(LiveError::Traffic(io::Error::other(
                "the transfer did not end",
            ))),
        }
    }
}
