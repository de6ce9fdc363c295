//! Experiments on the two hosts of [`airlane_emulate::link`]: the three applications of [`airlane_probe`], without and
//! with Airlane, and floods.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use airlane_emulate::LiveError;
pub use airlane_emulate::link::{
    EmulatedLink, TUNNEL_SERVER, WIRE_SERVER, server, status, toml_string,
};
use airlane_probe::{ClientConfig, Times, TrafficReport};

use crate::traffic::flood;

/// The settings of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct Experiment<'a> {
    /// The program `airlane`.
    pub airlane: &'a Path,
    /// File of the emulator.
    pub air: &'a Path,
    /// Seed of the emulator, overriding that of its file.
    pub seed: u64,
    /// Files of the left and the right end; none for the raw link.
    pub ends: Option<[&'a Path; 2]>,
    /// Duration of the load before the measurement.
    pub warmup: Duration,
    /// Duration of the measurement.
    pub measure: Duration,
    /// Whether pages are fetched, in addition to the file and voice.
    pub pages: bool,
}

impl Experiment<'_> {
    fn times(&self) -> Times {
        Times {
            warmup: self.warmup,
            measure: self.measure,
            grace: GRACE,
        }
    }
}

/// Load after the measurement, in which late packets still count.
pub const GRACE: Duration = Duration::from_secs(1);

/// The results.
#[derive(Clone, Debug)]
pub struct ExperimentOutcome {
    /// The results of the applications.
    pub traffic: TrafficReport,
    /// Status of the left and the right end after the traffic.
    pub status: Option<[serde_json::Value; 2]>,
    /// The emulator's final report: `airlane_live::air::AirReport`.
    pub air: serde_json::Value,
}

/// Builds the link, runs the three applications over it, and removes everything.
///
/// # Errors
/// If a program does not start or ends early, or the server cannot be reached.
pub fn run(experiment: &Experiment<'_>) -> Result<ExperimentOutcome, LiveError> {
    let mut link = EmulatedLink::new(experiment.airlane, experiment.air, experiment.seed)?;
    let server = match experiment.ends {
        Some(ends) => {
            link.up(ends)?;
            TUNNEL_SERVER
        }
        None => WIRE_SERVER,
    };
    let config = ClientConfig {
        times: experiment.times(),
        pages: experiment.pages,
        ..ClientConfig::new(server)
    };
    let traffic = link.traffic(&config)?;
    let status = match experiment.ends {
        Some(_) => Some(settled(&link)?),
        None => None,
    };
    let air = link.finish()?;
    Ok(ExperimentOutcome {
        traffic,
        status,
        air,
    })
}

/// Status of both ends once packets in flight have arrived, or after ten seconds.
fn settled(link: &EmulatedLink) -> Result<[serde_json::Value; 2], LiveError> {
    let services = |status: &serde_json::Value| status["peers"][0]["services"].clone();
    let packets = |status: &serde_json::Value| -> Vec<serde_json::Value> {
        let services = services(status);
        let ledgers = services
            .as_array()
            .into_iter()
            .flatten()
            .map(|s| &s["ledger"]);
        let counts = ["packets_sent", "packets_delivered"];
        ledgers
            .flat_map(|l| counts.map(|count| l[count].clone()))
            .collect()
    };
    let mut before = Vec::new();
    for _ in 0..40 {
        let now = [link.status(0)?, link.status(1)?];
        let counts: Vec<_> = now.iter().flat_map(packets).collect();
        if counts == before {
            return Ok(now);
        }
        before = counts;
        std::thread::sleep(Duration::from_millis(250));
    }
    Ok([link.status(0)?, link.status(1)?])
}

/// Calls `work` while an unknown sender in the namespace of one end sends datagrams to it at this rate. Also
/// returns how many were sent.
///
/// # Errors
/// If the sender gets no socket.
pub fn flooded<T>(
    link: &mut EmulatedLink,
    end: usize,
    per_second: u64,
    work: impl FnOnce(&mut EmulatedLink) -> T,
) -> Result<(T, u64), LiveError> {
    let target = SocketAddr::from(([192, 0, 2, end as u8 + 1], 7007));
    let host = Arc::clone(&link.shared_hosts()[end]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let flooding = scope.spawn(|| host.run(|| flood(target, per_second, &stop)));
        let done = work(link);
        stop.store(true, Ordering::Relaxed);
        let sent = flooding.join();
        let sent = sent.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((done, sent.map_err(LiveError::Traffic)?))
    })
}
