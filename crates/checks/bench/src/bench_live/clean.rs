//! The clean link: a tool's throughput, added round trip, and processor time.
//!
//! Two hosts with a virtual cable of the kernel between them. A second cable is for [`Tool::Veth`]: its TCP sends one
//! packet at a time, as it must through a tunnel. The tools take turns, so that other load on the machine affects all
//! of them.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use airlane_testkit::live::LiveError;
use airlane_testkit::machine::{LostTime, MachineWatch};
use airlane_testkit::netns::Namespace;
use airlane_testkit::traffic::{bulk_receive, bulk_send, echo};

use super::measured::Measured;
use super::site::{BARE, Programs, ToolSite, problem};
use super::tool::Tool;
use super::tunnel::Tunnel;
use crate::progress::ProgressLine;

/// What is measured, for how long and how often.
#[derive(Clone, Debug)]
pub struct CleanPlan {
    /// The tools, in this order.
    pub tools: Vec<Tool>,
    /// Runs of each tool.
    pub runs: u32,
    /// TCP at full speed before the measurement.
    pub warmup: Duration,
    /// TCP at full speed.
    pub measure: Duration,
    /// Round trips on the idle link.
    pub echoes: u16,
}

/// Pause between two round trips: the machine idles, as it does on an idle link.
const ECHO_PAUSE: Duration = Duration::from_millis(1);

/// One run of one tool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CleanRun {
    /// Throughput at the receiving application, Mbit/s.
    pub tcp_mbps: f64,
    /// Median round trip, us.
    pub rtt_p50_us: f64,
    /// Processor time of the tool's programs at both ends per 10^9 bytes of that, s.
    pub cpu_s_per_gb: f64,
    /// CPU time that other work took from the machine.
    pub lost: LostTime,
}

/// Airlane's file for one end: what a user writes for a fast cable, and no more.
const AIRLANE: &str = r#"
schema = 1
name = "NAME"
[tun]
addresses = ["10.7.0.OWN/24"]
[link]
rate = "10 Gbit/s" # more than it can do: the machine is to be the limit
delay = "50 us"
underlay = { kind = "udp", listen = "192.0.2.OWN:7007", peer = "192.0.2.PEER:7007" }
security = "none"  # replaced where keys are measured
[[link.services]]
number = 1
name = "files"
rate = 1
scheme = { kind = "sr-m2" }
[[link.classes]]
match = { protocol = "tcp" }
service = "files"
"#;

/// Measures all tools. A tool that cannot be run is noted, and the others are still measured.
///
/// # Errors
/// If the hosts cannot be created.
pub fn run(
    plan: &CleanPlan,
    programs: &Programs,
    progress: &mut ProgressLine,
) -> Result<Measured<(Tool, CleanRun)>, LiveError> {
    let directory = tempfile::tempdir().map_err(|source| LiveError::File {
        path: std::env::temp_dir(),
        source,
    })?;
    let ends = ["left", "right"].map(|name| directory.path().join(format!("{name}.toml")));
    for (end, path) in ends.iter().enumerate() {
        let text = AIRLANE
            .replace("NAME", ["left", "right"][end])
            .replace("OWN", &(end + 1).to_string())
            .replace("PEER", &(2 - end).to_string());
        std::fs::write(path, text).map_err(|source| LiveError::File {
            path: path.clone(),
            source,
        })?;
    }
    let hosts = hosts()?;
    if plan.tools.contains(&Tool::Veth) {
        hosts.iter().try_for_each(without_offloads)?;
    }
    let site = ToolSite {
        rate: None,
        hosts: [&hosts[0], &hosts[1]],
        directory: directory.path(),
        programs,
        ends: [&ends[0], &ends[1]],
    };
    let mut measured = Measured::default();
    for run in 1..=plan.runs {
        for &tool in &plan.tools {
            progress.step(&format!("{tool}, run {run} of {}", plan.runs));
            let watch = MachineWatch::begin().map_err(LiveError::Traffic)?;
            match measure(tool, &site, plan) {
                Ok(figures) => {
                    let lost = watch.lost().map_err(LiveError::Traffic)?;
                    measured.rows.push((tool, CleanRun { lost, ..figures }));
                }
                Err(error) => measured.failed(format!("{tool}, run {run}"), &error),
            }
        }
    }
    Ok(measured)
}

/// Left and right, with both cables.
fn hosts() -> Result<[Namespace; 2], LiveError> {
    let hosts = [Namespace::new("left")?, Namespace::new("right")?];
    for (interface, network) in [("wire", "192.0.2"), (BARE, "198.51.100")] {
        hosts[0].join(interface, &hosts[1], interface)?;
        for (host, last) in hosts.iter().zip(1..) {
            let address = format!("{network}.{last}/24");
            host.ip(&["address", "add", &address, "dev", interface])?;
        }
    }
    for host in &hosts {
        host.sysctl("net/ipv4/ping_group_range", "0 0")?;
    }
    Ok(hosts)
}

/// One packet at a time on the cable of [`Tool::Veth`].
fn without_offloads(host: &Namespace) -> Result<(), LiveError> {
    let mut command = host.command("ethtool");
    command.args(["-K", BARE, "tso", "off", "gso", "off", "gro", "off"]);
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|e| problem("ethtool", e.to_string()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(problem("ethtool", String::from_utf8_lossy(&output.stderr))),
    }
}

fn measure(tool: Tool, site: &ToolSite<'_>, plan: &CleanPlan) -> Result<CleanRun, LiveError> {
    let mut tunnel = Tunnel::start(tool, site)?;
    let server = tunnel.server;
    let patience = Duration::from_secs(1);
    let echoes = site.hosts[1].run(|| echo(server, plan.echoes, ECHO_PAUSE, patience))?;
    let rtt_ns = echoes.map_err(LiveError::Traffic)?.p50_ns();

    let (stop, received) = (AtomicBool::new(false), AtomicU64::new(0));
    let [left, right] = site.hosts;
    let sample = |tunnel: &mut Tunnel| -> Result<(Instant, u64, f64), LiveError> {
        let cpu_s = tunnel.cpu_s()?;
        Ok((Instant::now(), received.load(Ordering::Relaxed), cpu_s))
    };
    let (before, after) = std::thread::scope(|scope| {
        let sending = scope.spawn(|| left.run(|| bulk_send(server, "cubic", &stop)));
        let receiving = scope.spawn(|| right.run(|| bulk_receive(server, &received, &stop)));
        std::thread::sleep(plan.warmup);
        let before = sample(&mut tunnel);
        std::thread::sleep(plan.measure);
        let after = sample(&mut tunnel);
        stop.store(true, Ordering::Relaxed);
        for end in [sending, receiving] {
            let ended = end.join();
            let ended = ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            ended.map_err(LiveError::Traffic)?;
        }
        Ok::<_, LiveError>((before?, after?))
    })?;
    tunnel.check()?;
    let seconds = (after.0 - before.0).as_secs_f64();
    let bytes = (after.1 - before.1) as f64;
    if bytes == 0.0 {
        let stalled = std::io::Error::other("TCP stood still while it was measured");
        return Err(LiveError::Traffic(stalled));
    }
    Ok(CleanRun {
        tcp_mbps: bytes * 8.0 / seconds / 1e6,
        rtt_p50_us: rtt_ns as f64 / 1e3,
        cpu_s_per_gb: (after.2 - before.2) / (bytes / 1e9),
        lost: LostTime::default(),
    })
}
