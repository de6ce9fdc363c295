//! The near end: fetches the file and the pages, talks and listens, and reports.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use super::control::{Accepted, Control, Order, ServerResult};
use super::progress::{Counter, Progress};
use super::report::{FileReport, TrafficReport};
use super::{CONTROL_PORT, FILE_PORT, PAGES_PORT, Plan, VOICE_PORT, file, now_ns, pages, voice};

/// What is carried, from where, for how long.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Address of the server.
    pub server: IpAddr,
    /// Load before the measuring period.
    pub warmup: Duration,
    /// The measuring period.
    pub measure: Duration,
    /// Load after it, in which stragglers count.
    pub grace: Duration,
    /// Congestion control of the server's TCP.
    pub congestion_control: String,
    /// Carry the file.
    pub file: bool,
    /// Fetch pages.
    pub pages: bool,
    /// Send voice both ways.
    pub voice: bool,
    /// Where it tells how far it is.
    pub progress: Progress,
}

impl ClientConfig {
    /// Everything at once, a minute after five seconds of warm-up.
    pub fn new(server: IpAddr) -> Self {
        Self {
            server,
            warmup: Duration::from_secs(5),
            measure: Duration::from_secs(60),
            grace: Duration::from_secs(1),
            congestion_control: "cubic".to_owned(),
            file: true,
            pages: true,
            voice: true,
            progress: Progress::default(),
        }
    }
}

/// How long the server may take to answer, besides the plan: many lost segments.
const PATIENCE: Duration = Duration::from_secs(20);

/// Between the order and the start: the order must have reached the server.
const HEAD_START: Duration = Duration::from_millis(300);

/// Runs the applications and reports what they got.
///
/// # Errors
/// If the server cannot be reached, lacks the congestion control, or does not report.
pub fn run_client(config: &ClientConfig) -> io::Result<TrafficReport> {
    let at = |port| SocketAddr::from((config.server, port));
    let stream = connect(at(CONTROL_PORT))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let patient = stream.try_clone()?;
    let mut control = Control::new(stream)?;

    let ns = |d: Duration| d.as_nanos() as u64;
    let start_ns = now_ns() + ns(HEAD_START);
    let from_ns = start_ns + ns(config.warmup);
    let until_ns = from_ns + ns(config.measure);
    let end_ns = until_ns + ns(config.grace);
    let plan = Plan {
        start_ns,
        from_ns,
        until_ns,
        end_ns,
    };
    control.say(&Order {
        plan,
        congestion_control: config.congestion_control.clone(),
        voice: config.voice,
    })?;
    let accepted: Accepted = control.hear()?;
    let congestion_control = accepted.congestion_control.map_err(io::Error::other)?;

    let any: IpAddr = match config.server {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let voice = UdpSocket::bind((any, VOICE_PORT))?;
    voice::mark(&voice)?;
    super::sleep_until(start_ns);
    let progress = &config.progress;
    let (file, pages, voice_sent, voice_arrivals) = std::thread::scope(|scope| {
        let file = scope.spawn(|| {
            config
                .file
                .then(|| file::receive(at(FILE_PORT), &plan, progress))
        });
        let pages = scope.spawn(|| {
            config
                .pages
                .then(|| pages::fetch(at(PAGES_PORT), &plan, progress))
        });
        let sent = scope.spawn(|| {
            let to = at(VOICE_PORT);
            config.voice.then(|| voice::send(&voice, to, &plan))
        });
        let arrived = || progress.add(Counter::VoiceDown, 1);
        let arrivals = config.voice.then(|| voice::receive(&voice, &plan, arrived));
        let broken = |_| io::Error::other("a thread of the client panicked");
        io::Result::Ok((
            file.join().map_err(broken)?,
            pages.join().map_err(broken)?,
            sent.join().map_err(broken)?,
            arrivals.transpose()?,
        ))
    })?;

    patient.set_read_timeout(Some(PATIENCE + config.grace))?;
    let server: ServerResult = control.hear()?;
    Ok(TrafficReport {
        measured_ns: ns(config.measure),
        warmup_ns: ns(config.warmup),
        file: file.map(|(received_bytes, error)| FileReport {
            congestion_control,
            received_bytes,
            goodput_bps: received_bytes as f64 * 8.0 / config.measure.as_secs_f64(),
            error,
        }),
        pages,
        voice_down: voice_arrivals.map(|arrivals| arrivals.report(server.voice_sent)),
        voice_up: voice_sent.map(|sent| server.voice_arrivals.report(sent)),
    })
}

/// Connects within the patience; a server that is only just starting refuses at first.
fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let deadline = now_ns() + PATIENCE.as_nanos() as u64;
    loop {
        let left = Duration::from_nanos(deadline.saturating_sub(now_ns()));
        let outcome = TcpStream::connect_timeout(&to, left.max(Duration::from_millis(1)));
        match outcome {
            Err(_) if now_ns() < deadline => std::thread::sleep(Duration::from_millis(50)),
            outcome => {
                return outcome
                    .map_err(|e| io::Error::new(e.kind(), format!("no server at {to}: {e}")));
            }
        }
    }
}
