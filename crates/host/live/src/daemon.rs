//! `airlane up`: one thread that moves packets and datagrams between a TUN device, a [`Node`] and an
//! underlay: UDP, or raw Ethernet.
//!
//! ```text
//! kernel ── TUN ─► segment ─► node.handle_packet ... node.transmit ─► underlay
//! kernel ◄─ TUN ◄─ join ◄─ node.poll_deliver ... node.handle_datagram ◄─ underlay
//! ```
//!
//! The node does the protocol; clocks, sockets, the interface, host names and files are here. Invariants:
//! `now` never goes back; the TUN device and the socket are read whenever they are readable, so that nothing
//! waits in the kernel for longer than one batch; no error of a single packet ends the loop.

mod receive;
mod requests;
mod start;
mod supervisor;
mod suspend;
mod transmit;
mod up_error;
pub(crate) mod ways;

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::rc::Rc;

use airlane_base::{Duration, Instant, Rate};
use airlane_link::FlowKey;
use airlane_node::{Node, Quiet, Reason};
use rustix::event::{PollFd, PollFlags};

pub use airlane_node::{NodeError, PeersError};
pub use up_error::UpError;

use crate::clock;
use crate::config::LiveConfig;
use crate::control::{Served, Server, ServiceChange};
use crate::device::DeviceError;
use crate::journal_file::JournalFiles;
use crate::metrics::exporter::Exporter;
use crate::offload::join::Joiner;
use crate::packet::LivePacket;
use crate::record::{Recorded, Recorder};
use crate::resolver::Resolver;
use crate::security::random;
use crate::status::{FlowOffer, PeerFlows, Status};
use crate::tun::Tun;
use crate::underlay::{Received, Underlay};
use supervisor::Supervisor;
use suspend::SuspendDetector;

/// Least time between two turns of the loop that only timers cause. On a fast link several frames then share
/// a turn and a system call, and the port's shaper makes up for the wait. Below 48 Mbit/s a frame of 1500 B
/// takes longer than this.
const QUANTUM: Duration = Duration::from_micros(250);

/// A turn that is later than this was held up by something outside: a stopped process or a paused virtual machine.
const STOOD_STILL: Duration = Duration::from_secs(5);

/// A running end of one or several links.
#[derive(Debug)]
pub struct Daemon {
    node: Node,
    tun: Tun,
    underlay: Underlay,
    control: Option<Server>,
    /// Detects that the machine was suspended or cloned, after which its keys must not be used; `None` without keys.
    suspend: Option<SuspendDetector>,
    /// A client of the control socket, so it must be dropped after that.
    exporter: Option<Exporter>,
    /// Resolves the peers' host names, if there are any.
    resolver: Option<Resolver>,
    /// Records a link while a client asks for it.
    recorder: Rc<RefCell<Recorder>>,
    /// When missing addresses and routes are restored next. The other fields limit log entries: about a failed
    /// restore, about the kernel's reverse path filter dropping a peer's packets, and about unsent datagrams.
    restore: Instant,
    restore_said: Quiet,
    /// Whether somebody has set the interface down.
    is_down: bool,
    filter_said: Quiet,
    unsent_said: Quiet,
    /// `None` while its datagrams are being handled.
    received: Option<Box<Received>>,
    /// Buffer for a packet or super-packet from the kernel.
    read: Box<[u8]>,
    joiner: Joiner<LivePacket>,
}

/// What woke the loop.
struct Ready {
    stop: bool,
    tun: bool,
    underlay: bool,
    control: bool,
    devices: bool,
    names: bool,
    /// The process did not run when it was due.
    stood_still: bool,
}

impl Daemon {
    /// Runs until `stop` becomes readable.
    ///
    /// # Errors
    /// If the interface is removed, or polling fails.
    pub fn run(&mut self, stop: BorrowedFd<'_>) -> Result<(), DeviceError> {
        clock::be_punctual(clock::NICENESS);
        let mut now = clock::now();
        let mut supervisor = Supervisor::new(now);
        supervisor.ready();
        loop {
            let ready = self.wait(now, supervisor.poll_timeout(), stop)?;
            if ready.stop {
                tracing::info!(node = self.node.name(), why = "signal", "stopping");
                supervisor.stopping();
                return Ok(());
            }
            now = clock::now();
            if ready.stood_still {
                self.node.handle_standstill(now);
            }
            self.watch_lineage(now, ready.devices);
            supervisor.handle_timeout(now);
            if ready.names {
                self.take_names(now);
            }
            self.on_time(now);
            if ready.underlay {
                now = self.receive_frames(now);
            }
            if ready.tun {
                self.receive_packets(now)?;
            }
            self.transmit(now);
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
        if self.node.is_blocked() {
            underlay |= PollFlags::OUT;
        }
        // `stop`, polled for no events, stands in for a missing control socket.
        let (control, control_flags) = match &self.control {
            Some(control) => (control.as_fd(), PollFlags::IN),
            None => (stop, PollFlags::empty()),
        };
        let (devices, devices_flags) = match self.suspend.as_ref().and_then(SuspendDetector::fd) {
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
            PollFd::from_borrowed_fd(self.underlay.as_fd(), underlay),
            PollFd::from_borrowed_fd(control, control_flags),
            PollFd::from_borrowed_fd(devices, devices_flags),
            PollFd::from_borrowed_fd(names, names_flags),
        ];
        let deadline = self.deadline(turn).min(at_most).max(turn + QUANTUM);
        let timeout = clock::timeout(clock::now(), deadline);
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                return Err(DeviceError::new(
                    self.node.name(),
                    "wait for packets",
                    error,
                ));
            }
        }
        let [stop, tun, underlay, control, devices, names] = fds.map(|fd| !fd.revents().is_empty());
        Ok(Ready {
            stop,
            tun,
            underlay,
            control: control && self.control.is_some(),
            devices,
            names,
            stood_still: clock::now().saturating_since(deadline) > STOOD_STILL,
        })
    }

    /// Discards keys that another host may have as well, before anything is sealed with them.
    fn watch_lineage(&mut self, now: Instant, devices: bool) {
        let Some(suspend) = &mut self.suspend else {
            return;
        };
        let slept = suspend.slept(now, clock::awake());
        let copied = devices && suspend.is_copy();
        if !copied && slept.is_none() {
            return;
        }
        let why = match slept {
            Some(_) => "the machine was suspended",
            None => "the machine is a copy of another",
        };
        match random() {
            Ok(seed) => {
                self.node.renew_keys(now, seed);
                tracing::info!(slept = slept.map(|s| s.to_string()), why, "keys discarded");
            }
            // The system's random source does not fail once it has been initialised.
            Err(error) => tracing::error!(%error, why, "keys kept"),
        }
    }

    /// Latest time of the loop's next turn.
    fn deadline(&self, turn: Instant) -> Instant {
        self.node
            .poll_timeout(turn)
            .min(self.underlay.poll_timeout())
            .min(self.restore)
            .min(self.recorder.borrow().poll_timeout())
    }

    /// Handles what is due at `now`.
    fn on_time(&mut self, now: Instant) {
        if self.underlay.handle_timeout(now) {
            self.node.handle_interface_back(now);
        }
        self.node.handle_timeout(now, clock::wall());
        self.answer(now);
        self.deliver(now);
        self.restore_ways(now);
        if self.recorder.borrow().is_due(now) {
            self.serve();
        }
    }

    fn serve(&mut self) {
        if let Some(mut control) = self.control.take() {
            control.serve(self);
            self.control = Some(control);
        }
    }

    /// The node's status.
    pub fn status(&self) -> Status {
        let mut status = self.node.status(clock::now());
        self.tun.name().clone_into(&mut status.tun.name);
        // An interface may get another address while the node runs.
        if let Ok(listen) = self.underlay.local() {
            status.underlay.listen = listen;
        }
        status.underlay.interface = self.underlay.report();
        status
    }

    /// Drops for this reason outside the services.
    pub fn dropped(&self, reason: Reason) -> u64 {
        self.node.dropped(reason)
    }

    /// Keeps a journal of each port, of at most `most` bytes. With listed peers the peer's name is inserted
    /// before the extension of `path`. Must be called before [`Daemon::run`].
    ///
    /// # Errors
    /// If a file cannot be created, or its thread not started.
    pub fn keep_journals(&mut self, path: &Path, most: u64) -> Result<(), DeviceError> {
        let path = path.to_owned();
        let kept = self
            .node
            .keep_journals(Box::new(JournalFiles { path, most }));
        kept.map_err(|error| DeviceError::new(self.node.name(), "begin the journal", error))
    }
}

impl Served for Daemon {
    fn status(&mut self) -> Status {
        Self::status(self)
    }

    fn flows(&mut self) -> Vec<PeerFlows> {
        self.node.flows(clock::now())
    }

    fn reload(&mut self, file: &LiveConfig, dry_run: bool) -> Result<Vec<String>, String> {
        let now = clock::now();
        let changes = self.take_file(now, file, dry_run);
        self.on_time(now);
        changes
    }

    fn record(&mut self, peer: Option<&str>) -> Result<Recorded, String> {
        if self.recorder.borrow().is_on() {
            return Err("a link is being recorded already; one recording at a time".to_owned());
        }
        let tapped = self.node.tap(peer, self.recorder.clone())?;
        self.recorder.borrow_mut().begin(clock::now());
        Ok(tapped)
    }

    fn recorded(&mut self, out: &mut Vec<u8>) {
        let (now, mut recorder) = (clock::now(), self.recorder.borrow_mut());
        let before = recorder.missed();
        recorder.take(now, out);
        if recorder.missed() > before {
            self.node.note_missed(now);
        }
    }

    fn end_record(&mut self, out: &mut Vec<u8>) {
        self.node.untap();
        if let Some(ended) = self.recorder.borrow_mut().end(clock::now(), out) {
            let (lasted, records, missed) = (ended.lasted, ended.records, ended.missed);
            tracing::info!(node = self.node.name(), %lasted, records, missed, "recording ends");
        }
    }

    fn register(&mut self, client: u64, flow: FlowKey) -> Result<(), String> {
        self.node.register_flow(clock::now(), client, flow)
    }

    fn pull(&mut self, client: u64) -> Result<FlowOffer, String> {
        self.node.pull_offer(clock::now(), client)
    }

    fn keep_registered(&mut self, is_there: &dyn Fn(u64) -> bool) {
        self.node.keep_registered(is_there);
    }

    fn change_services(&mut self, change: &ServiceChange) -> Result<Vec<String>, String> {
        let now = clock::now();
        let changes = self.node.change_services(now, change);
        self.on_time(now);
        changes.map_err(|error| error.to_string())
    }

    fn ask_peers(&mut self) -> usize {
        let now = clock::now();
        let asked = self.node.ask_peers(now);
        self.on_time(now);
        asked
    }

    fn change_rate(&mut self, rate: Rate) -> Result<Vec<String>, String> {
        let now = clock::now();
        let changes = self.node.change_rate(now, rate);
        self.on_time(now);
        changes.map_err(|error| error.to_string())
    }
}
