//! The impaired link: a file, pages and voice at once, over the emulated radio link of [`airlane_testkit::live`].

use std::path::PathBuf;
use std::time::{Duration, Instant};

use airlane_link::ServiceConfig;
use airlane_link::config::by_goal;
use airlane_probe::{ClientConfig, Times, TrafficReport};

use airlane_testkit::live::{EmulatedLink, GRACE, LiveError, TUNNEL_SERVER, flooded};
use airlane_testkit::machine::{LostTime, MachineWatch};

use super::ceiling::Ceiling;
use super::channel::{Endpoints, LossChannel};
use super::criteria;
use super::measured::Measured;
use super::site::{Programs, ToolSite};
use super::tool::Tool;
use super::traffic::TrafficKind;
use super::tunnel::Tunnel;
use crate::progress::ProgressLine;

/// Files of both ends with only the required keys.
pub(super) const SMALLEST: [&str; 2] = ["demo/smallest-left.toml", "demo/smallest-right.toml"];

/// What is measured, and for how long.
#[derive(Clone, Debug)]
pub struct ImpairedPlan {
    /// The tools, in this order.
    pub tools: Vec<Tool>,
    /// How the link loses frames.
    pub channels: Vec<LossChannel>,
    /// Congestion control of the server.
    pub endpoints: Vec<Endpoints>,
    /// All applications, before the measurement.
    pub warmup: Duration,
    /// All applications, during the measurement.
    pub measure: Duration,
    /// Seed of the losses.
    pub seed: u64,
    /// Airlane's files, left and right.
    pub ends: [PathBuf; 2],
    /// The rate that Airlane's ends state, instead of that in the files.
    pub rate: Option<String>,
    /// Which ports and marks tell the applications apart.
    pub traffic: TrafficKind,
}

impl ImpairedPlan {
    /// A plan with the smallest files and nothing to measure yet.
    pub(super) fn of_smallest(seed: u64) -> Self {
        Self {
            tools: Vec::new(),
            channels: Vec::new(),
            endpoints: Vec::new(),
            warmup: Duration::ZERO,
            measure: Duration::ZERO,
            seed,
            ends: SMALLEST.map(PathBuf::from),
            rate: None,
            traffic: TrafficKind::KnownPorts,
        }
    }

    /// The number of runs, including the one on the idle link.
    pub fn steps(&self) -> usize {
        let rows = self.tools.len() * self.channels.len() * self.endpoints.len();
        1 + rows + usize::from(self.floods())
    }

    fn floods(&self) -> bool {
        self.tools.contains(&Tool::Airlane) && self.traffic == TrafficKind::KnownPorts
    }
}

/// One run over the impaired link.
#[derive(Clone, Copy, Debug)]
pub struct ImpairedFigures {
    /// The tool.
    pub tool: Tool,
    /// How frames were lost.
    pub channel: LossChannel,
    /// Congestion control of the server.
    pub endpoints: Endpoints,
    /// Throughput of the file.
    pub file_mbps: f64,
    /// Its upper bound.
    pub file_ceiling_mbps: f64,
    /// Throughput of the download over UDP, if there was one.
    pub download_mbps: Option<f64>,
    /// A page, from connecting to its last byte.
    pub page_mean_ms: f64,
    /// Pages that failed or were incomplete at the end.
    pub pages_failed: u64,
    /// Voice packets of both directions that did not arrive.
    pub voice_loss_pct: f64,
    /// 99th percentile of the voice delay, in the worse direction.
    pub voice_p99_ms: f64,
    /// CPU time that other work took from the machine.
    pub lost: LostTime,
}

/// Airlane's file with and without a flood from an unknown sender.
#[derive(Clone, Copy, Debug)]
pub struct FloodFigures {
    /// Throughput of the file without a flood.
    pub quiet_mbps: f64,
    /// Throughput of the file during the flood.
    pub flooded_mbps: f64,
    /// Datagrams per second that the sender of the flood achieved.
    pub sent_per_s: f64,
    /// CPU time that other work took from the machine.
    pub lost: LostTime,
}

/// All runs, and the time of a page without other traffic and losses.
#[derive(Debug, Default)]
pub struct Impaired {
    /// Mean time of a page alone on the plain link without losses, ms.
    pub idle_page_ms: Option<f64>,
    /// One row per run.
    pub measured: Measured<ImpairedFigures>,
    /// Airlane's file while an unknown sender floods the receiving end.
    pub flood: Option<FloodFigures>,
}

/// Measures all combinations. One that cannot be run is noted, and the others are still measured.
///
/// # Errors
/// If the folder for files cannot be created.
pub fn run(
    plan: &ImpairedPlan,
    programs: &Programs,
    progress: &mut ProgressLine,
) -> Result<Impaired, LiveError> {
    let directory = tempfile::tempdir().map_err(|source| LiveError::File {
        path: std::env::temp_dir(),
        source,
    })?;
    let bench = Bench {
        plan,
        programs,
        directory,
    };
    let mut impaired = Impaired::default();
    progress.step("a page on the idle link");
    match bench.idle_page() {
        Ok(ms) => impaired.idle_page_ms = Some(ms),
        Err(error) => impaired.measured.failed("a page on the idle link", &error),
    }
    for &endpoints in &plan.endpoints {
        for &channel in &plan.channels {
            for &tool in &plan.tools {
                let what = format!("{tool}, {channel}, {endpoints}");
                progress.step(&what);
                let watch = MachineWatch::begin().map_err(LiveError::Traffic)?;
                match bench.row(tool, channel, endpoints) {
                    Ok(row) => {
                        let lost = watch.lost().map_err(LiveError::Traffic)?;
                        impaired.measured.rows.push(ImpairedFigures { lost, ..row });
                    }
                    Err(error) => impaired.measured.failed(what, &error),
                }
            }
        }
    }
    if plan.floods() {
        progress.step("airlane under a flood");
        match bench.flood() {
            Ok(figures) => impaired.flood = Some(figures),
            Err(error) => impaired.measured.failed("airlane under a flood", &error),
        }
    }
    Ok(impaired)
}

/// The emulated link, and the settings of its traffic.
pub(super) struct Bench<'a> {
    pub(super) plan: &'a ImpairedPlan,
    pub(super) programs: &'a Programs,
    pub(super) directory: tempfile::TempDir,
}

impl Bench<'_> {
    /// Runs the applications through a tool; returns their figures and the tool's MTU.
    pub(super) fn traffic(
        &self,
        tool: Tool,
        air: &str,
        config: &ClientConfig,
    ) -> Result<(TrafficReport, u32), LiveError> {
        let (mut link, mut tunnel) = self.open(tool, air)?;
        let config = ClientConfig {
            server: tunnel.server,
            ..config.clone()
        };
        let report = link.traffic_on(self.plan.traffic.ports(), &config)?;
        tunnel.check()?;
        let mtu = tunnel.mtu;
        drop(tunnel);
        link.finish()?;
        Ok((report, mtu))
    }

    /// A link with the tool at its ends, with the settings of the emulator's file.
    pub(super) fn open(&self, tool: Tool, text: &str) -> Result<(EmulatedLink, Tunnel), LiveError> {
        let air = self.directory.path().join("air.toml");
        std::fs::write(&air, text).map_err(|source| LiveError::File {
            path: air.clone(),
            source,
        })?;
        let link = EmulatedLink::new(&self.programs.airlane, &air, self.plan.seed)?;
        for host in link.hosts() {
            host.sysctl("net/ipv4/ping_group_range", "0 0")?;
        }
        let tunnel = Tunnel::start(
            tool,
            &ToolSite {
                hosts: link.hosts(),
                directory: self.directory.path(),
                programs: self.programs,
                ends: [&self.plan.ends[0], &self.plan.ends[1]],
                rate: self.plan.rate.as_deref(),
            },
        )?;
        Ok((link, tunnel))
    }

    /// The file of Airlane with and without a flood of datagrams that look like the session's.
    fn flood(&self) -> Result<FloodFigures, LiveError> {
        let watch = MachineWatch::begin().map_err(LiveError::Traffic)?;
        let config = ClientConfig {
            pages: false,
            server: TUNNEL_SERVER,
            ..self.config()
        };
        let (mut link, mut tunnel) = self.open(Tool::Airlane, &LossChannel::Uniform5.air())?;
        let mbps = |report: TrafficReport| {
            let file = report.file.ok_or_else(|| missing("the file"))?;
            Ok::<_, LiveError>(file.goodput_bps / 1e6)
        };
        let quiet_mbps = mbps(link.traffic(&config)?)?;
        let (flooded, sent) = flooded(&mut link, 1, criteria::FLOOD, |link| {
            let begun = Instant::now();
            (link.traffic(&config), begun.elapsed())
        })?;
        let (report, time) = flooded;
        let flooded_mbps = mbps(report?)?;
        tunnel.check()?;
        drop(tunnel);
        link.finish()?;
        Ok(FloodFigures {
            quiet_mbps,
            flooded_mbps,
            sent_per_s: sent as f64 / time.as_secs_f64(),
            lost: watch.lost().map_err(LiveError::Traffic)?,
        })
    }

    pub(super) fn config(&self) -> ClientConfig {
        ClientConfig {
            times: Times {
                warmup: self.plan.warmup,
                measure: self.plan.measure,
                grace: GRACE,
            },
            ..ClientConfig::new(airlane_testkit::live::WIRE_SERVER)
        }
    }

    /// Whether the sending end has a service with compressed headers.
    fn compact_headers(&self) -> Result<bool, LiveError> {
        let [_, path] = &self.plan.ends;
        let failed = |source| LiveError::File {
            path: path.clone(),
            source,
        };
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let end: End = toml::from_str(&text)
            .map_err(std::io::Error::other)
            .map_err(failed)?;
        Ok(end
            .link
            .services
            .iter()
            .any(|service| service.compact_headers))
    }

    fn idle_page(&self) -> Result<f64, LiveError> {
        let config = ClientConfig {
            times: Times {
                warmup: Duration::from_secs(1),
                measure: self.plan.measure.min(Duration::from_secs(10)),
                grace: GRACE,
            },
            file: false,
            voice: false,
            ..self.config()
        };
        let (report, _) = self.traffic(Tool::Plain, &LossChannel::Uniform0.air(), &config)?;
        let pages = report.pages.ok_or_else(|| missing("pages"))?;
        Ok(pages.mean_ns / 1e6)
    }

    fn row(
        &self,
        tool: Tool,
        channel: LossChannel,
        endpoints: Endpoints,
    ) -> Result<ImpairedFigures, LiveError> {
        let config = self.plan.traffic.of(ClientConfig {
            congestion_control: Some(endpoints.name().to_owned()),
            ..self.config()
        });
        let (report, mtu) = self.traffic(tool, &channel.air(), &config)?;
        let voice_loss = report.voice_loss().ok_or_else(|| missing("voice"))?;
        let file = report.file.ok_or_else(|| missing("the file"))?;
        if let Some(error) = file.error {
            return Err(LiveError::Traffic(std::io::Error::other(error)));
        }
        let pages = report.pages.ok_or_else(|| missing("pages"))?;
        if pages.completed == 0 {
            return Err(missing("whole pages"));
        }
        let ways = [report.voice_down, report.voice_up];
        let p99_ns = ways.into_iter().flatten().map(|way| way.delay_p99_ns);
        let ceiling = Ceiling {
            rate_bps: channel.rate_bps(),
            survival: 1.0 - channel.loss(),
            mtu,
            overhead: tool.overhead(),
            compact_headers: tool.is_airlane() && self.compact_headers()?,
            pages_per_s: pages.completed as f64 / self.plan.measure.as_secs_f64(),
            voice: 1.0,
        };
        Ok(ImpairedFigures {
            tool,
            channel,
            endpoints,
            file_mbps: file.goodput_bps / 1e6,
            file_ceiling_mbps: ceiling.file_bps() / 1e6,
            download_mbps: report.download.map(|download| download.goodput_bps / 1e6),
            page_mean_ms: pages.mean_ns / 1e6,
            pages_failed: pages.failed,
            voice_loss_pct: voice_loss * 100.0,
            voice_p99_ms: p99_ns.max().unwrap_or(0) as f64 / 1e6,
            lost: LostTime::default(),
        })
    }
}

/// The settings of an end's file that matter here.
#[derive(serde::Deserialize)]
struct End {
    link: Services,
}

#[derive(serde::Deserialize)]
struct Services {
    /// By default, those of the goals.
    #[serde(default = "by_goal")]
    services: Vec<ServiceConfig>,
}

fn missing(what: &str) -> LiveError {
    LiveError::Traffic(std::io::Error::other(format!("nothing came of {what}")))
}
