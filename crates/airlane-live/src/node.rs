//! The live node: one thread that moves packets and frames between a TUN device, one
//! [`Port`](airlane_link::Port) and a UDP underlay.
//!
//! ```text
//! kernel ── TUN ──► cut ──► clamp MSS ──► port.handle_packet     port.poll_transmit ──► seal ──► batch ──► UDP
//! kernel ◄── TUN ◄── join ◄── clamp MSS ◄── port.poll_deliver    port.handle_frame ◄── session ◄── open ◄── UDP
//! ```
//!
//! Invariants: after every batch of inputs the port is drained; `now` never goes back; the TUN
//! device and the socket are read whenever they have something, so nothing queues in the kernel but
//! for the time of one batch; no error of a single packet or frame ends the loop.
//!
//! Left out: more than one thread per port.

pub mod drops;
mod guard;
mod receive;
mod recording;
mod reload;
mod services;
mod start;
mod supervisor;
mod transmit;

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use airlane_base::{Duration, Instant};
use airlane_link::session::{LossReport, Session, SessionEvent};
use airlane_link::wire::{LIVE_HEADER_MAX, LIVE_HEADER_ROOM};
use airlane_link::{Frame, FrameKind, Header, Layout};
use rustix::event::{PollFd, PollFlags};

pub(crate) use guard::Guard;
pub use reload::ReloadError;
pub use services::ServiceError;
pub use start::UpError;

use crate::clock;
use crate::config::LiveConfig;
use crate::control::{Served, Server, ServiceChange};
use crate::device::DeviceError;
use crate::journal::JournaledPort;
use crate::metrics::exporter::Exporter;
use crate::offload::join::Joiner;
use crate::packet::ecn::Outer;
use crate::packet::{LivePacket, Pool};
use crate::record::{Recorded, Recorder};
use crate::status::{
    RefusedTables, ServiceReport, SessionReport, Status, TunReport, UnderlayReport,
};
use crate::tun::Tun;
use crate::underlay::{Received, Underlay};
use drops::{Drops, Reason};
use supervisor::Supervisor;
use transmit::Transmit;

/// Packets or frames read in a row before the other side gets its turn, and some more: as many as
/// one call gives.
const BATCH: usize = 256;
/// Least time between two turns of the loop that only deadlines ask for. On a fast link several
/// frames then share one turn and one system call; within it the port's shaper makes up for the
/// wait. A frame of 1500 B takes longer than this below 48 Mbit/s.
const QUANTUM: Duration = Duration::from_micros(250);
/// How often the path MTU is asked for without a reason.
const MTU_CHECK: Duration = Duration::from_secs(10);

/// A running end of a link.
#[derive(Debug)]
pub struct Node {
    name: String,
    /// The file, every default filled in.
    config: LiveConfig,
    tun: Tun,
    underlay: Underlay,
    listen: SocketAddr,
    control: Option<Server>,
    /// Asks over the control socket, so it ends after that.
    exporter: Option<Exporter>,
    port: JournaledPort,
    /// None without security.
    guard: Option<Guard>,
    session: Session,
    pool: Pool,
    transmit: Transmit,
    received: Received,
    /// Where a packet or super-packet of the kernel is read.
    read: Box<[u8]>,
    joiner: Joiner<LivePacket>,
    drops: Drops,
    recorder: Recorder,
    rate_bps: u64,
    outer: Outer,

    started: Instant,
    session_since: Option<Instant>,
    sessions: u64,
    refused: Option<RefusedTables>,
    disconnections: u64,
    disconnected_since: Option<Instant>,

    /// Whether the MTU follows the path.
    auto_mtu: bool,
    mtu: usize,
    /// Neither lower, so that IPv6 goes on, nor higher, as the port's frames end there.
    mtu_range: (usize, usize),
    path_mtu: usize,
    next_mtu_check: Instant,

    packets_read: u64,
    read_bytes: u64,
    packets_written: u64,
    written_bytes: u64,
    mss_clamped: u64,
    datagrams_received: u64,
    received_bytes: u64,
}

/// What woke the loop.
struct Ready {
    stop: bool,
    tun: bool,
    underlay: bool,
    control: bool,
}

/// Ahead of what runs for its own sake, behind what the system itself needs.
const NICENESS: i32 = -10;

impl Node {
    /// Runs until `stop` becomes readable.
    ///
    /// # Errors
    /// If the interface is taken away, or the kernel refuses to wait.
    pub fn run(&mut self, stop: BorrowedFd<'_>) -> Result<(), DeviceError> {
        clock::be_punctual(NICENESS);
        let mut now = clock::now();
        let mut supervisor = Supervisor::new(now);
        supervisor.ready();
        loop {
            let ready = self.wait(now, supervisor.poll_timeout(), stop)?;
            if ready.stop {
                tracing::info!(node = self.name, why = "it was told to", "stopping");
                supervisor.stopping();
                return Ok(());
            }
            now = clock::now();
            supervisor.handle_timeout(now);
            self.on_time(now);
            if ready.underlay {
                self.receive_frames(now);
            }
            if ready.tun {
                self.receive_packets(now)?;
            }
            self.flush(now);
            if ready.control {
                self.serve();
            }
        }
    }

    fn wait(
        &self,
        turn: Instant,
        at_most: Instant,
        stop: BorrowedFd<'_>,
    ) -> Result<Ready, DeviceError> {
        let mut underlay = PollFlags::IN;
        if self.transmit.is_blocked() {
            underlay |= PollFlags::OUT;
        }
        // Polled for nothing, a missing control socket stands for itself.
        let (control, control_flags) = match &self.control {
            Some(control) => (control.as_fd(), PollFlags::IN),
            None => (stop, PollFlags::empty()),
        };
        let mut fds = [
            PollFd::from_borrowed_fd(stop, PollFlags::IN),
            PollFd::from_borrowed_fd(self.tun.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.underlay.as_fd(), underlay),
            PollFd::from_borrowed_fd(control, control_flags),
        ];
        let deadline = self.deadline(turn).min(at_most).max(turn + QUANTUM);
        let timeout = clock::timeout(clock::now(), deadline);
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(DeviceError::new(&self.name, "wait for packets", error)),
        }
        let [stop, tun, underlay, control] = fds.map(|fd| !fd.revents().is_empty());
        Ok(Ready {
            stop,
            tun,
            underlay,
            control: control && self.control.is_some(),
        })
    }

    /// When the loop must run next without any input.
    fn deadline(&self, turn: Instant) -> Instant {
        let guard = self.guard.as_ref().and_then(Guard::poll_timeout);
        let mut own = self
            .next_mtu_check
            .min(self.recorder.poll_timeout())
            .min(guard.unwrap_or(Instant::FAR_FUTURE));
        // Without keys a hello has nowhere to go.
        if self.is_guarded(turn) {
            own = own.min(self.session.poll_timeout());
        }
        // Without a session or keys, or with a full socket, the port's frames have nowhere to go.
        if self.session.id().is_none() || self.transmit.is_blocked() || !self.is_guarded(turn) {
            return own;
        }
        own.min(self.port.poll_timeout().unwrap_or(Instant::FAR_FUTURE))
    }

    /// What is due at `now`.
    fn on_time(&mut self, now: Instant) {
        if let Some(guard) = &mut self.guard
            && guard.poll_timeout().is_some_and(|due| due <= now)
        {
            guard.handle_timeout(now);
            self.send_session(now);
        }
        self.session.handle_timeout(now);
        self.take_events(now);
        if self.session.poll_timeout() <= now {
            self.say_hello(now);
        }
        if self.session.id().is_some() {
            if self.port.poll_timeout().is_some_and(|due| due <= now) {
                self.port.handle_timeout(now);
            }
            self.drain(now);
        }
        if self.port.services_changed() {
            self.offer_services(now);
        }
        if now >= self.next_mtu_check {
            self.check_mtu(now);
        }
        if self.recorder.is_due(now) {
            self.serve();
        }
    }

    /// Takes out of the port what it has to give, after every batch of inputs.
    fn drain(&mut self, now: Instant) {
        if let Some(session) = self.session.id().filter(|_| self.is_guarded(now)) {
            while !self.transmit.is_blocked() {
                if self.transmit.is_full() {
                    self.flush(now);
                    continue;
                }
                let Some(frame) = self.port.poll_transmit(now) else {
                    break;
                };
                self.stage(now, &frame, session);
            }
        }
        self.deliver(now);
    }

    /// Puts a frame's header before it and both into the batch.
    fn stage(&mut self, now: Instant, frame: &Frame<LivePacket>, session: u32) {
        let mut header = [0; LIVE_HEADER_ROOM];
        let length = self.port.encode_header(frame, session, &mut header);
        // Only a service that was removed in between has no header; its frames go with it.
        if let Some(length) = length {
            let payload = frame.payload.as_ref().map_or(&[][..], LivePacket::bytes);
            let packet = frame.header.kind.is_packet().then_some(payload);
            let mark = self.outer.traffic_class(packet);
            self.push(now, mark, &[&header[..length], payload]);
        }
    }

    /// Puts a frame into the batch, sealed if the link is secured.
    fn push(&mut self, now: Instant, mark: u8, parts: &[&[u8]]) {
        let Self {
            guard,
            transmit,
            recorder,
            port,
            ..
        } = self;
        let pushed = transmit.push(mark, |room| match guard {
            Some(guard) => {
                let length = guard.seal(now, parts, room)?;
                recorder.sent(now, &room[..length], || port.waiting_bytes());
                Ok(length)
            }
            None => write_parts(parts, room).ok_or(Reason::TooBig),
        });
        if let Err(reason) = pushed {
            self.drops.count(now, reason);
        }
    }

    /// Whether frames can leave: there is no security, or there are keys.
    fn is_guarded(&self, now: Instant) -> bool {
        self.guard.as_ref().is_none_or(|guard| guard.is_ready(now))
    }

    /// Sends what the secure session has to say. It bypasses the batch, whose frames need its keys.
    fn send_session(&mut self, now: Instant) {
        while let Some(message) = self.guard.as_mut().and_then(Guard::poll_transmit) {
            self.recorder
                .sent(now, message.bytes(), || self.port.waiting_bytes());
            match self.underlay.send_to(message.to, message.bytes()) {
                Ok(()) => {
                    self.transmit.datagrams_sent += 1;
                    self.transmit.bytes_sent += message.bytes().len() as u64;
                }
                Err(_) => self.drops.count(now, Reason::NotSent),
            }
        }
    }

    fn flush(&mut self, now: Instant) {
        self.transmit.flush(now, &self.underlay, &mut self.drops);
        if self.transmit.path_became_narrow() {
            tracing::info!("a frame no longer fits the path to the peer");
            self.check_mtu(now);
        }
    }

    /// Sends the hello that is due. It bypasses the scheduler: it must get through when the
    /// services are stuck, and there is one a second.
    fn say_hello(&mut self, now: Instant) {
        if !self.is_guarded(now) {
            return;
        }
        let reports = self.loss_reports();
        let Some(hello) = self.session.poll_transmit(now, &reports) else {
            return;
        };
        let mut body = Vec::new();
        hello.encode(&mut body);
        let mut header = [0; LIVE_HEADER_ROOM];
        let fields = Header::new(FrameKind::Hello, 0);
        let codec = self.port.codec();
        if let Some(length) = codec.encode(&fields, Layout::Bare, 0, body.len(), &mut header) {
            let mark = self.outer.traffic_class(None);
            self.push(now, mark, &[&header[..length], &body]);
        }
    }

    fn loss_reports(&self) -> Vec<LossReport> {
        let reports = self.port.services().map(|service| LossReport {
            service: service.number,
            received_packets: service.ledger.packets_delivered,
            lost_packets: service.ledger.residual_lost,
            loss_ppm: service.metrics.loss.map(|loss| (loss * 1e6) as u32),
        });
        reports.collect()
    }

    /// Acts on what happened to the session, and tells.
    fn take_events(&mut self, now: Instant) {
        let peer = start::peer_name(self.underlay.peer());
        while let Some(event) = self.session.poll_event() {
            match event {
                SessionEvent::Established {
                    session, replaced, ..
                } => {
                    self.port.reset(now);
                    self.disconnected_since = None;
                    self.session_since = Some(now);
                    self.sessions += 1;
                    self.refused = None;
                    let why = if replaced {
                        "the peer was restarted"
                    } else {
                        "the peer answered"
                    };
                    tracing::info!(%peer, session = format!("{session:08x}"), why, "session begins");
                }
                SessionEvent::Offered { offers, first } => {
                    self.on_offers(now, &offers, first);
                }
                SessionEvent::Confirmed { .. } => {
                    tracing::info!(%peer, why = "the peer is in it, too", "session confirmed");
                }
                SessionEvent::Refused { ours, theirs } => {
                    self.session_since = None;
                    self.disconnected_since = None;
                    tracing::warn!(
                        %peer,
                        here = one_line(&ours),
                        there = one_line(&theirs),
                        why = "services of one number differ: make them equal in both files; only \
                               base-station is \"here\" at one end and \"peer\" at the other",
                        "session refused"
                    );
                    self.refused = Some(RefusedTables { ours, theirs });
                }
                SessionEvent::VersionMismatch { ours, theirs } => {
                    tracing::warn!(%peer, ours, theirs, "the peer speaks another protocol version");
                }
                SessionEvent::PeerLost { silent_for } => {
                    // Without a session there is nothing to be disconnected from.
                    if self.session.id().is_some() {
                        self.disconnections += 1;
                        self.disconnected_since = Some(now - silent_for);
                        tracing::warn!(%peer, %silent_for, why = "the peer is silent; trying on", "disconnected");
                    } else {
                        tracing::warn!(%peer, %silent_for, "nothing is heard from the peer; trying on");
                    }
                }
                SessionEvent::PeerBack { silent_for } => {
                    self.disconnected_since = None;
                    tracing::info!(%peer, %silent_for, why = "the peer is heard again", "connected");
                }
                SessionEvent::EpochRenewed => {
                    self.session_since = None;
                    self.disconnected_since = None;
                    tracing::info!(%peer, why = "the peer had left our session", "new epoch");
                }
                other => tracing::debug!(?other, "session event"),
            }
        }
    }

    /// Follows the path MTU.
    fn check_mtu(&mut self, now: Instant) {
        self.next_mtu_check = now + MTU_CHECK;
        // No route for a moment is no reason to change anything.
        let Ok(path_mtu) = self.underlay.path_mtu() else {
            return;
        };
        self.path_mtu = path_mtu;
        if !self.auto_mtu {
            return;
        }
        let below = self.underlay.ip_overhead() + self.sealing();
        let room = path_mtu.saturating_sub(below + LIVE_HEADER_MAX);
        let mtu = room.clamp(self.mtu_range.0, self.mtu_range.1);
        if mtu == self.mtu {
            return;
        }
        match self.tun.set_mtu(mtu) {
            Ok(()) => {
                tracing::info!(
                    path_mtu,
                    was = self.mtu,
                    mtu,
                    why = "the path MTU changed",
                    "MTU changed"
                );
                self.mtu = mtu;
            }
            Err(error) => tracing::warn!(%error, mtu, "could not follow the path MTU"),
        }
    }

    /// What sealing adds to a frame.
    fn sealing(&self) -> usize {
        self.guard.as_ref().map_or(0, |_| Guard::OVERHEAD)
    }

    fn serve(&mut self) {
        if let Some(mut control) = self.control.take() {
            control.serve(self);
            self.control = Some(control);
        }
    }

    /// Where everything stands.
    pub fn status(&self) -> Status {
        let now = clock::now();
        let since = |then: Instant| now.saturating_since(then).as_nanos();
        let reports = self.session.peer_reports();
        let services = self.port.services();
        let state = serde_json::to_value(self.session.state());
        let state = state.as_ref().ok().and_then(serde_json::Value::as_str);
        Status {
            schema: 1,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            name: self.name.clone(),
            uptime_ns: since(self.started),
            session: SessionReport {
                state: state.unwrap_or_default().to_owned(),
                id: self.session.id(),
                epoch: format!("{:016x}", self.session.epoch()),
                peer_epoch: self.session.peer_epoch().map(|e| format!("{e:016x}")),
                age_ns: self.session_since.map(since),
                sessions: self.sessions,
                disconnections: self.disconnections,
                disconnected_ns: self.disconnected_since.map(since),
                rtt_ns: self.session.srtt().map(Duration::as_nanos),
                refused: self.refused.clone(),
            },
            tun: TunReport {
                name: self.tun.name().to_owned(),
                mtu_bytes: self.mtu,
                packets_read: self.packets_read,
                read_bytes: self.read_bytes,
                packets_written: self.packets_written,
                written_bytes: self.written_bytes,
                mss_clamped: self.mss_clamped,
            },
            underlay: UnderlayReport {
                listen: self.listen,
                peer: self.underlay.peer(),
                security: self
                    .guard
                    .as_ref()
                    .map_or("none", |_| "noise-ik")
                    .to_owned(),
                secure: self.guard.as_ref().map(|guard| guard.report(now)),
                rate_bps: self.rate_bps,
                path_mtu_bytes: self.path_mtu,
                frame_overhead_bytes: self.underlay.wire_overhead() + self.sealing(),
                datagrams_sent: self.transmit.datagrams_sent,
                sent_bytes: self.transmit.bytes_sent,
                datagrams_received: self.datagrams_received,
                received_bytes: self.received_bytes,
                path_narrowed: self.transmit.narrowed,
            },
            services: services
                .map(|service| ServiceReport::new(service, reports))
                .collect(),
            drops: self
                .drops
                .iter()
                .map(|(reason, count)| (reason.name().to_owned(), count))
                .chain(
                    self.port
                        .has_lost_journal()
                        .then(|| ("journal-ended".to_owned(), 1)),
                )
                .collect(),
        }
    }

    /// How many were dropped for this reason, outside of the services.
    pub fn dropped(&self, reason: Reason) -> u64 {
        self.drops.of(reason)
    }
}

/// Writes `parts` one behind the other: their length together, if `room` is long enough.
fn write_parts(parts: &[&[u8]], room: &mut [u8]) -> Option<usize> {
    let mut at = 0;
    for part in parts {
        room.get_mut(at..at + part.len())?.copy_from_slice(part);
        at += part.len();
    }
    Some(at)
}

/// A table of services as the log shows it.
fn one_line(table: &str) -> String {
    table.trim_end().replace('\n', ", ")
}

impl Served for Node {
    fn status(&mut self) -> Status {
        Self::status(self)
    }

    fn reload(&mut self, file: &LiveConfig) -> Result<Vec<String>, String> {
        let now = clock::now();
        let changes = Self::reload(self, now, file).map_err(|error| error.to_string());
        self.on_time(now);
        changes
    }

    fn record(&mut self) -> Result<Recorded, String> {
        self.begin_recording(clock::now())
    }

    fn recorded(&mut self, out: &mut Vec<u8>) {
        self.take_recording(clock::now(), out);
    }

    fn end_record(&mut self, out: &mut Vec<u8>) {
        self.end_recording(clock::now(), out);
    }

    fn change_services(&mut self, change: &ServiceChange) -> Result<Vec<String>, String> {
        let now = clock::now();
        let changes = Self::change_services(self, now, change).map_err(|error| error.to_string());
        self.on_time(now);
        changes
    }
}
