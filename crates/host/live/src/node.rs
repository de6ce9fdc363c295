//! The live node: one thread that moves packets and frames between a TUN device, a
//! [`Port`](airlane_link::Port) for each peer and an underlay: UDP, or raw Ethernet.
//!
//! ```text
//! kernel ── TUN ─► cut ─► whose? ─► port.handle_packetshared link ─► port.poll_transmit ─► seal ─► batch ─► underlay
//! kernel ◄─ TUN ◄─ join ◄─ from there? ◄─ port.poll_deliver    port.handle_frame ◄─ whose? ◄─ open ◄─ underlay
//! ```
//!
//! What there is once per peer is a link; the shared link gives their ports turns. Invariants: after every
//! batch of inputs the ports are drained; `now` never goes back; the TUN device and the socket are read
//! whenever they have something, so nothing queues in the kernel but for the time of one batch; no error
//! of a single packet or frame ends the loop; whoever is not known allocates and changes nothing.
//!
//! Left out: more than one thread. A port never has more than a part of one core; what several ports need
//! beyond one is for several daemons.

mod about;
mod below;
mod bottlenecks;
pub(crate) mod callers;
mod differences;
pub mod drops;
mod guard;
mod journals;
mod lineage;
mod link;
mod links;
mod lookup;
mod names;
mod own;
mod path;
mod plane;
mod port;
pub(crate) mod quiet;
mod receive;
mod recording;
mod reload;
mod report;
mod rivals;
mod services;
mod share;
mod start;
mod status_plane;
mod supervisor;
mod told;
mod transmit;
mod up_error;
mod ways;

use std::os::fd::{AsFd, BorrowedFd};

use airlane_base::{Duration, Instant, Rate};
use airlane_link::{Below as PortBelow, Bottlenecks, FlowKey, SharedLink};
use airlane_secure::PeerAddress;
use rustix::event::{PollFd, PollFlags};

pub(crate) use guard::Guard;
pub use reload::ReloadError;
pub use services::ServiceError;
pub use up_error::UpError;

use crate::clock;
use crate::config::LiveConfig;
use crate::control::{Served, Server, ServiceChange};
use crate::device::DeviceError;
use crate::metrics::exporter::Exporter;
use crate::offload::join::Joiner;
use crate::packet::{LivePacket, Pool};
use crate::record::Recorded;
use crate::resolver::Resolver;
use crate::status::{FlowOffer, PeerFlows, Status};
use crate::tun::Tun;
use crate::underlay::Received;
use below::Below;
use journals::Journals;
use lineage::Lineage;
use link::{PeerLink, Sizes};
use links::Links;
use plane::StatusPlane;
use quiet::Quiet;
use share::Pressure;
use supervisor::Supervisor;

/// Least time between two turns of the loop that only deadlines ask for. On a fast link several
/// frames then share one turn and one system call; within it the port's shaper makes up for the
/// wait. A frame of 1500 B takes longer than this below 48 Mbit/s.
const QUANTUM: Duration = Duration::from_micros(250);

/// A running end of a link, or of several.
#[derive(Debug)]
pub struct Node {
    name: String,
    /// How it runs: the file, every default filled in, and what commands changed since.
    config: LiveConfig,
    /// The file that was read last, every default filled in.
    file: LiveConfig,
    tun: Tun,
    below: Below,
    links: Links,
    /// Gives the links' ports their turns.
    shared: SharedLink,
    /// Which of them have one bottleneck below, and what each sees of it, by number and weight.
    bottlenecks: Bottlenecks,
    below_ports: Vec<PortBelow>,
    plane: StatusPlane,
    /// When missing addresses and routes are made next, and when the log said that one cannot be.
    restore: Instant,
    restore_said: Quiet,
    /// Since when there is the present port, and when the log spoke of another.
    port_since: Instant,
    port_said: Quiet,
    listen: PeerAddress,
    control: Option<Server>,
    /// Tells whether the machine has slept or is a copy, after which its keys are not used; none without keys.
    lineage: Option<Lineage>,
    /// Asks over the control socket, so it ends after that.
    exporter: Option<Exporter>,
    /// Looks names up, once one of a peer's host is known.
    resolver: Option<Resolver>,
    /// Where ports keep journals, if they do.
    journals: Option<Journals>,
    pool: Pool,
    /// What all packets may take of memory, bytes.
    most_memory: usize,
    /// Taken while its datagrams are at work.
    received: Option<Box<Received>>,
    pressure: Pressure,
    /// Where a packet or super-packet of the kernel is read.
    read: Box<[u8]>,
    joiner: Joiner<LivePacket>,
    /// Sizes of the widest path at the start, and what that takes.
    sizes: Sizes,
    widest: usize,
    started: Instant,

    /// Whether the MTU follows the paths.
    auto_mtu: bool,
    mtu: usize,
    /// The MTU is neither lower, so that IPv6 goes on, nor higher, as the ports' frames end there.
    mtu_range: (usize, usize),

    packets_read: u64,
    read_bytes: u64,
    packets_written: u64,
    written_bytes: u64,
    mss_clamped: u64,
}

/// What woke the loop.
struct Ready {
    stop: bool,
    tun: bool,
    underlay: bool,
    control: bool,
    devices: bool,
    names: bool,
}

impl Node {
    /// Runs until `stop` becomes readable.
    ///
    /// # Errors
    /// If the interface is taken away, or the kernel refuses to wait.
    pub fn run(&mut self, stop: BorrowedFd<'_>) -> Result<(), DeviceError> {
        clock::be_punctual(clock::NICENESS);
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
            self.watch_lineage(now, ready.devices);
            supervisor.handle_timeout(now);
            if ready.names {
                self.take_names(now);
            }
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
        if self.below.transmit.is_blocked() {
            underlay |= PollFlags::OUT;
        }
        // Polled for nothing, a missing control socket stands for itself.
        let (control, control_flags) = match &self.control {
            Some(control) => (control.as_fd(), PollFlags::IN),
            None => (stop, PollFlags::empty()),
        };
        let (devices, devices_flags) = match self.lineage.as_ref().and_then(Lineage::fd) {
            Some(devices) => (devices, PollFlags::IN),
            None => (stop, PollFlags::empty()),
        };
        let (names, names_flags) = match &self.resolver {
            Some(resolver) => (resolver.as_fd(), PollFlags::IN),
            None => (stop, PollFlags::empty()),
        };
        let mut fds = [
            PollFd::from_borrowed_fd(stop, PollFlags::IN),
            PollFd::from_borrowed_fd(self.tun.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.below.underlay.as_fd(), underlay),
            PollFd::from_borrowed_fd(control, control_flags),
            PollFd::from_borrowed_fd(devices, devices_flags),
            PollFd::from_borrowed_fd(names, names_flags),
        ];
        let deadline = self.deadline(turn).min(at_most).max(turn + QUANTUM);
        let timeout = clock::timeout(clock::now(), deadline);
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(DeviceError::new(&self.name, "wait for packets", error)),
        }
        let [stop, tun, underlay, control, devices, names] = fds.map(|fd| !fd.revents().is_empty());
        Ok(Ready {
            stop,
            tun,
            underlay,
            control: control && self.control.is_some(),
            devices,
            names,
        })
    }

    /// Keys that somebody else may have by now go, before anything is sealed with them.
    fn watch_lineage(&mut self, now: Instant, devices: bool) {
        let Some(lineage) = &mut self.lineage else {
            return;
        };
        let slept = lineage.slept(now, clock::awake());
        let copied = devices && lineage.is_copy();
        let Some(guard) = self
            .below
            .guard
            .as_mut()
            .filter(|_| copied || slept.is_some())
        else {
            return;
        };
        let why = match slept {
            Some(_) => "the machine has slept",
            None => "the machine is a copy of another",
        };
        match guard.renew(now) {
            Ok(()) => tracing::info!(slept = slept.map(|s| s.to_string()), why, "keys are gone"),
            // The system gives random bytes from the moment on that it has started.
            Err(error) => tracing::error!(%error, why, "keys stay"),
        }
    }

    /// When the loop must run next without any input.
    fn deadline(&self, turn: Instant) -> Instant {
        let Self {
            below,
            links,
            shared,
            ..
        } = self;
        let guard = below.guard.as_ref().and_then(Guard::poll_timeout);
        // With a full socket a turn is of no use.
        let shared_free = shared.poll_timeout();
        let shared_free = shared_free.filter(|_| !below.transmit.is_blocked());
        let links = links.iter();
        links
            .map(|link| link.poll_timeout(turn, below, shared))
            .chain(guard)
            .chain(shared_free)
            .chain([below.underlay.poll_timeout()])
            .chain(self.links.iter().map(|link| link.path.poll_timeout()))
            .chain(
                self.links
                    .iter()
                    .filter_map(|link| Some(link.lookup.as_ref()?.poll_timeout())),
            )
            .fold(Instant::FAR_FUTURE, Instant::min)
            .min(self.restore)
            .min(below.recorder.poll_timeout())
            .min(self.plane.poll_timeout())
    }

    /// What is due at `now`.
    fn on_time(&mut self, now: Instant) {
        if self.below.underlay.handle_timeout(now) {
            self.on_interface_back(now);
        }
        if self.below.handle_timeout(now) {
            self.links.send_session(now, &mut self.below, None);
        }
        for link in self.links.iter_mut() {
            link.on_time(now, &mut self.below);
        }
        self.share_bottlenecks(now);
        self.drain(now);
        self.watch_status(now);
        self.check_paths(now);
        self.look_up(now);
        self.restore_ways(now);
        self.leave_port(now);
        if self.below.recorder.is_due(now) {
            self.serve();
        }
    }

    /// Takes out of the ports what they have to give, after every batch of inputs.
    fn drain(&mut self, now: Instant) {
        let Self {
            below,
            links,
            shared,
            ..
        } = self;
        for link in links.iter() {
            link.offer(now, below, shared);
        }
        while !below.transmit.is_blocked() {
            if below.transmit.is_full() {
                links.flush(now, below);
                continue;
            }
            let Some(turn) = shared.next(now) else {
                break;
            };
            match links.get_mut(turn) {
                Some(link) => link.take_turn(now, below, shared),
                None => shared.skip(),
            }
        }
        self.deliver(now);
    }

    fn flush(&mut self, now: Instant) {
        self.links.flush(now, &mut self.below);
    }

    /// The interface below was lost and is there again.
    fn on_interface_back(&mut self, now: Instant) {
        // While it was away peers may have got other addresses, and ours be another by now. Those whose
        // place the file does not say are sought as at the start, and seek us.
        let Self { below, links, .. } = self;
        for link in links.iter_mut() {
            if let (Some(guard), Some(session)) = (&mut below.guard, link.to.session)
                && link.config.address.is_none()
            {
                guard.forget_address(session);
                link.to.address = None;
            }
            link.path.ask(now);
        }
    }

    /// Looks at the paths: each by itself, however often another peer moves.
    fn check_paths(&mut self, now: Instant) {
        let Self { below, links, .. } = self;
        let mut any = false;
        for link in links.iter_mut() {
            any |= link.watch_path(now, below);
        }
        if any {
            self.follow_paths(now);
        }
    }

    /// Has the interface follow the widest path, as it has one MTU for all, and the links of narrower ones
    /// cut what is too long for them.
    fn follow_paths(&mut self, now: Instant) {
        let Self { below, links, .. } = self;
        let file = &self.config.link;
        let left = |link: &PeerLink| below.left(file, link.to.address, link.path.mtu());
        if self.auto_mtu && file.fragment.is_none() {
            let widest = links.iter().map(left).max();
            let widest = widest.unwrap_or(self.mtu);
            let mtu = widest.clamp(self.mtu_range.0, self.mtu_range.1);
            if mtu != self.mtu {
                let (was, why) = (self.mtu, "the path MTU changed");
                match self.tun.set_mtu(mtu) {
                    Ok(()) => {
                        tracing::info!(was, mtu, why, "MTU changed");
                        self.mtu = mtu;
                    }
                    Err(error) => tracing::warn!(%error, mtu, "could not follow the path MTU"),
                }
            }
        }
        for link in links.iter_mut() {
            let room = left(link);
            link.to.longest = below.longest(link.to.address, link.path.mtu());
            let narrow = self.auto_mtu && file.fragment.is_none() && room < self.mtu;
            let cuts = file.fragment.is_some() || narrow && file.cuts();
            link.set_room(now, cuts.then_some(room), narrow.then_some(room));
        }
    }

    fn serve(&mut self) {
        if let Some(mut control) = self.control.take() {
            control.serve(self);
            self.control = Some(control);
        }
    }
}

impl Served for Node {
    fn status(&mut self) -> Status {
        Self::status(self)
    }

    fn flows(&mut self) -> Vec<PeerFlows> {
        Self::flows(self)
    }

    fn reload(&mut self, file: &LiveConfig, dry_run: bool) -> Result<Vec<String>, String> {
        let now = clock::now();
        let changes = Self::reload(self, now, file, dry_run).map_err(|error| error.to_string());
        self.on_time(now);
        changes
    }

    fn record(&mut self, peer: Option<&str>) -> Result<Recorded, String> {
        self.begin_recording(clock::now(), peer)
    }

    fn recorded(&mut self, out: &mut Vec<u8>) {
        self.take_recording(clock::now(), out);
    }

    fn end_record(&mut self, out: &mut Vec<u8>) {
        self.end_recording(clock::now(), out);
    }

    fn register(&mut self, client: u64, flow: FlowKey) -> Result<(), String> {
        self.register_flow(client, flow)
    }

    fn pull(&mut self, client: u64) -> Result<FlowOffer, String> {
        self.pull_offer(client)
    }

    fn keep_registered(&mut self, is_there: &dyn Fn(u64) -> bool) {
        self.plane.keep(is_there);
    }

    fn change_services(&mut self, change: &ServiceChange) -> Result<Vec<String>, String> {
        let now = clock::now();
        let changes = Self::change_services(self, now, change).map_err(|error| error.to_string());
        self.on_time(now);
        changes
    }

    fn change_rate(&mut self, rate: Rate) -> Result<Vec<String>, String> {
        let now = clock::now();
        let changes = Self::change_rate(self, now, rate).map_err(|error| error.to_string());
        self.on_time(now);
        changes
    }
}
