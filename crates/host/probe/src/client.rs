//! The near end: fetches the file and the pages, sends and receives voice, and reports.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use crate::clock::{Clocks, LocalClock};
use crate::control::{
    Accepted, ControlConnection, Finish, Go, LoadStarted, Reply, ServerResult, TestOrder, VERSION,
};
use crate::echo::{Echoes, Round};
use crate::plan::{Times, Timetable};
use crate::ports::{CONTROL_PORT, ServerPorts};
use crate::progress::{Counter, Progress};
use crate::report::{ClockReport, FileReport, TrafficReport};
use crate::voice::Arrivals;
use crate::{download, file, pages, voice};

/// The applications, their ends and their duration.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The server's control port.
    pub control: SocketAddr,
    /// Address of the server on the path under test.
    pub server: IpAddr,
    /// Durations of the load.
    pub times: Times,
    /// Congestion control of the server's TCP; none: its kernel's default.
    pub congestion_control: Option<String>,
    /// Carry the file.
    pub file: bool,
    /// Fetch pages.
    pub pages: bool,
    /// Send voice both ways.
    pub voice: bool,
    /// Mark it EF.
    pub marked: bool,
    /// Carry a download over UDP, like QUIC.
    pub download: bool,
    /// Send echoes, which also measure the offset between the clocks of the ends. Otherwise both must use the same
    /// clock, as in namespaces of one machine.
    pub echoes: bool,
    /// Port for voice at this end; none: the server's.
    pub voice_port: Option<u16>,
    /// How long to wait for a server that is still starting.
    pub patience: Duration,
    /// Counters of its progress.
    pub progress: Progress,
    /// Its clock.
    pub watch: LocalClock,
}

impl ClientConfig {
    /// All applications, a minute after five seconds of warm-up, both ends on one machine.
    pub fn new(server: IpAddr) -> Self {
        Self {
            control: SocketAddr::from((server, CONTROL_PORT)),
            server,
            times: Times {
                warmup: Duration::from_secs(5),
                measure: Duration::from_secs(60),
                grace: Duration::from_secs(1),
            },
            congestion_control: Some("cubic".to_owned()),
            file: true,
            pages: true,
            voice: true,
            marked: true,
            download: false,
            echoes: false,
            voice_port: None,
            patience: Duration::from_secs(20),
            progress: Progress::default(),
            watch: LocalClock::default(),
        }
    }
}

/// Why a path could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The control port does not respond.
    #[error("no server answers at {at}: {source}")]
    NoServer {
        /// The control port.
        at: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The server refused the test.
    #[error("the server at {at} refuses: {why}")]
    Refused {
        /// The control port.
        at: SocketAddr,
        /// Its reason.
        why: String,
    },
    /// The control connection broke.
    #[error("lost the server at {at}: {source}")]
    LostServer {
        /// The control port.
        at: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The server is up, but not reachable on this path.
    #[error("no valid answer comes back from UDP port {} of {}", at.port(), at.ip())]
    NoPath {
        /// The port of echoes.
        at: SocketAddr,
    },
    /// A port of this end cannot be opened.
    #[error("cannot use UDP port {port} of this machine: {source}")]
    Port {
        /// Its number.
        port: u16,
        /// The error of the operating system.
        source: io::Error,
    },
    /// An error of the operating system.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// How long the server may take to respond: allows for many lost segments.
const ANSWER: Duration = Duration::from_secs(20);

/// Runs the applications and returns their results.
///
/// # Errors
/// If the server cannot be reached, refuses, or does not report.
pub fn run_client(config: &ClientConfig) -> Result<TrafficReport, ProbeError> {
    let watch = config.watch;
    let server = config.control;
    let lost = |source| ProbeError::LostServer { at: server, source };
    let mut control = connect(config)?;
    control
        .say(&TestOrder {
            version: VERSION,
            times: config.times,
            congestion_control: config.congestion_control.clone(),
            voice: config.voice,
            marked: config.marked,
        })
        .map_err(lost)?;
    let reply: Reply = control.hear(ANSWER, || false).map_err(lost)?;
    let accepted = reply.map_err(|why| ProbeError::Refused { at: server, why })?;
    let load = Load::new(config, &accepted)?;
    let at = SocketAddr::from((config.server, accepted.echo_port));
    let echoes = || Echoes::new(at, accepted.token, watch);
    let mut echoes = config.echoes.then(echoes).transpose()?;
    let idle = echoes.as_mut().map(Echoes::idle).transpose()?;
    let before = idle.as_ref().map(Round::exchanges);
    let known = |exchanges: &Vec<_>| Clocks::new(exchanges, &[]).is_some();
    if before.as_ref().is_some_and(|before| !known(before)) {
        return Err(ProbeError::NoPath { at });
    }

    control.say(&Go).map_err(lost)?;
    let _: LoadStarted = control.hear(ANSWER, || false).map_err(lost)?;
    let plan = Timetable::starting_now(watch, &config.times);
    let carried = load.carry(&plan, echoes.as_mut())?;

    let (mut clocks, mut clock) = (Clocks::default(), None);
    if let (Some(before), Some(echoes)) = (before, &mut echoes) {
        let after = echoes.idle()?.exchanges();
        clocks = Clocks::new(&before, &after).expect("those before were of use");
        clock = Some(ClockReport {
            server_ahead_ns: clocks.ahead_ns(plan.start_ns),
            uncertainty_ns: clocks.uncertainty_ns(),
        });
    }
    control.say(&Finish { clocks }).map_err(lost)?;
    let patience = ANSWER + config.times.grace;
    let result: ServerResult = control.hear(patience, || false).map_err(lost)?;
    let measure = config.times.measure;
    let delay = |sent, received| clocks.down_ns(sent, received);
    let voice_down = carried.heard.map(|heard| Arrivals::count(&heard, delay));
    Ok(TrafficReport {
        measured_ns: measure.as_nanos() as u64,
        warmup_ns: config.times.warmup.as_nanos() as u64,
        ports: ServerPorts {
            control: server.port(),
            file: accepted.file_port,
            pages: accepted.pages_port,
            voice: accepted.voice_port,
        },
        file: carried.file.map(|(received_bytes, error)| FileReport {
            congestion_control: accepted.congestion_control,
            received_bytes,
            goodput_bps: received_bytes as f64 * 8.0 / measure.as_secs_f64(),
            error: match result.bytes_used_up {
                true => Some("the server has sent as many bytes as it may".to_owned()),
                false => error,
            },
        }),
        download: carried.download,
        pages: carried.pages,
        voice_down: voice_down.map(|arrivals| arrivals.report(result.voice_sent)),
        voice_up: carried.said.map(|sent| result.voice_arrivals.report(sent)),
        idle: idle.map(|round| round.report()),
        loaded: carried.loaded.map(|round| round.report()),
        clock,
    })
}

/// The applications, ready to start.
struct Load<'a> {
    config: &'a ClientConfig,
    accepted: &'a Accepted,
    voice: Option<UdpSocket>,
}

/// Their results.
struct Carried {
    file: Option<(u64, Option<String>)>,
    pages: Option<crate::PagesReport>,
    download: Option<crate::DownloadReport>,
    said: Option<u64>,
    heard: Option<Vec<voice::VoiceArrival>>,
    loaded: Option<Round>,
}

impl<'a> Load<'a> {
    fn new(config: &'a ClientConfig, accepted: &'a Accepted) -> Result<Self, ProbeError> {
        let any: IpAddr = match config.server {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let port = config.voice_port.unwrap_or(accepted.voice_port);
        let open = || {
            let socket = UdpSocket::bind((any, port))?;
            voice::mark(&socket, config.marked)?;
            Ok(socket)
        };
        let voice = config.voice.then(open).transpose();
        Ok(Self {
            config,
            accepted,
            voice: voice.map_err(|source| ProbeError::Port { port, source })?,
        })
    }

    fn carry(&self, plan: &Timetable, echoes: Option<&mut Echoes>) -> io::Result<Carried> {
        let Self {
            config, accepted, ..
        } = self;
        let at = |port| SocketAddr::from((config.server, port));
        let (token, progress) = (accepted.token, &config.progress);
        let is_over = || plan.is_over();
        // On another path than the order's, this host has another address, which only TCP can prove.
        let other = config.control.ip() != config.server && (config.voice || config.download);
        if other && !config.file && !config.pages {
            pages::introduce(at(accepted.pages_port), token, plan)?;
        }
        std::thread::scope(|scope| {
            let file = config.file.then(|| {
                let from = at(accepted.file_port);
                scope.spawn(move || file::receive(from, token, plan, progress))
            });
            let pages = config.pages.then(|| {
                let from = at(accepted.pages_port);
                scope.spawn(move || pages::fetch(from, token, plan, progress))
            });
            let download = config.download.then(|| {
                let from = at(accepted.download_port);
                scope.spawn(move || download::receive(from, token, plan))
            });
            let voice = self.voice.as_ref();
            let said = voice.map(|socket| {
                let to = Some(at(accepted.voice_port));
                scope.spawn(move || voice::send(socket, || to, token, plan, is_over))
            });
            let heard = voice.map(|socket| {
                let bounds = (plan.watch, voice::most_arrivals(&config.times));
                let arrived = |_| {
                    progress.add(Counter::VoiceDown, 1);
                    true
                };
                scope.spawn(move || voice::receive(socket, token, bounds, is_over, arrived))
            });
            let loaded = echoes.map(|echoes| scope.spawn(|| echoes.loaded(plan)));
            let broken = |_| io::Error::other("a thread of the client panicked");
            let file = file.map(|thread| thread.join()).transpose();
            let pages = pages.map(|thread| thread.join()).transpose();
            let download = download.map(|thread| thread.join()).transpose();
            let said = said.map(|thread| thread.join()).transpose();
            let heard = heard.map(|thread| thread.join()).transpose();
            let loaded = loaded.map(|thread| thread.join()).transpose();
            Ok(Carried {
                file: file.map_err(broken)?,
                pages: pages.map_err(broken)?,
                download: download.map_err(broken)?.transpose()?,
                said: said.map_err(broken)?,
                heard: heard.map_err(broken)?.transpose()?,
                loaded: loaded.map_err(broken)?.transpose()?,
            })
        })
    }
}

/// Connects within the patience; a server that is still starting refuses at first.
fn connect(config: &ClientConfig) -> Result<ControlConnection, ProbeError> {
    const PAUSE: Duration = Duration::from_millis(50);
    let at = config.control;
    let deadline = Instant::now() + config.patience;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let outcome = TcpStream::connect_timeout(&at, left.max(PAUSE));
        match outcome.and_then(ControlConnection::new) {
            Ok(control) => return Ok(control),
            Err(source) if Instant::now() >= deadline => {
                return Err(ProbeError::NoServer { at, source });
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}
