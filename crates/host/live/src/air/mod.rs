//! `airlane air`: a lossy link between two Ethernet interfaces.
//!
//! ```text
//! interface a ──► [ channel "down" ] ──► interface b        each Ethernet frame: queue, rate,
//! interface a ◄── [ channel "up"   ] ◄── interface b        error model, delay (airlane-channel)
//! ```
//!
//! The channel is the simulator's, with the simulator's random streams: with the same seed, a simulated run and a
//! live run have the same losses. The emulator adds what real frames need: super-packets are segmented into the
//! frames that a real link would have carried (`segment`), partial checksums are completed, frames that cannot be
//! carried are refused with a reason, and the report compares the requested properties with the measured ones.
//!
//! One thread, one poll over both sockets and the stop signal, deadlines in nanoseconds from the channels.
//! Left out: frames longer than the MTU, pause frames, and anything that a link does not do.

mod config;
mod direction;
mod offload;
mod packet_socket;
mod report;

use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd};

use airlane_base::{Duration, Instant, Streams};
use rustix::event::{PollFd, PollFlags, Timespec};

pub use config::AirConfig;
pub use report::{AirReport, DirectionReport, Refused};

use crate::clock;
use crate::device::DeviceError;
use crate::netlink::Interface;
use direction::{Direction, FramePool, Refusal};
use offload::OffloadsOff;
use packet_socket::{Batch, EmulatorSocket};

/// Batches read from one interface before the other one, and the frames that are due, get their turn.
const BATCHES_IN_A_ROW: usize = 4;

/// Emulates the link until `stop` is readable or an interface disappears.
///
/// # Errors
/// If an interface cannot be opened: it does not exist, is down, is not Ethernet, or the process lacks the privilege.
///
/// # Panics
/// If the configuration names files that [`AirConfig::load_traces`] has not read.
pub fn run(config: &AirConfig, stop: BorrowedFd<'_>) -> Result<AirReport, DeviceError> {
    let [a, b] = &config.interfaces;
    let ends = [EmulatorSocket::open(a)?, EmulatorSocket::open(b)?];
    let _offloads = [a, b].map(|interface| offloads_off(interface));
    let mut emulator = Emulator::new(config, ends);
    for (from, to, down) in [(a, b, true), (b, a, false)] {
        let (rate, delay) = (config.rate.of(down), config.delay.of(down));
        let queue = config.queue.of(down);
        // As written in the file.
        let errors = toml::Value::try_from(config.errors.of(down))
            .map_or_else(|_| "?".to_owned(), |e| e.to_string());
        tracing::info!(from, to, %rate, %delay, %queue, errors, seed = config.seed, "emulating");
    }
    let lost_interface = emulator.run(stop)?;
    Ok(emulator.report(config, lost_interface))
}

/// Switches offloads off, if the interface supports it. Otherwise super-packets are segmented here, which is
/// slower but correct.
fn offloads_off(interface: &str) -> Option<OffloadsOff> {
    OffloadsOff::new(interface)
        .inspect_err(|error| tracing::warn!(interface, %error, "offloads stay on"))
        .ok()
}

struct Emulator {
    ends: [EmulatorSocket; 2],
    /// `directions[i]` leads from `ends[i]` to `ends[1 - i]`.
    directions: [Direction; 2],
    pool: FramePool,
    batch: Batch,
    scratch: Vec<u8>,
    origin: std::time::Instant,
}

impl Emulator {
    fn new(config: &AirConfig, ends: [EmulatorSocket; 2]) -> Self {
        let streams = Streams::new(config.seed, 0);
        let direction =
            |down: bool, to: &EmulatorSocket| Direction::new(config, down, streams, to.mtu());
        Self {
            directions: [direction(true, &ends[1]), direction(false, &ends[0])],
            ends,
            pool: FramePool::default(),
            batch: Batch::new(),
            scratch: Vec::new(),
            origin: std::time::Instant::now(),
        }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.origin.elapsed().as_nanos() as u64)
    }

    /// Runs until stopped. Returns the name of an interface that disappeared, if that was the reason.
    fn run(&mut self, stop: BorrowedFd<'_>) -> Result<Option<String>, DeviceError> {
        clock::be_punctual(EMULATOR_NICENESS);
        loop {
            let ready = self.wait(stop)?;
            if ready.stop {
                return Ok(None);
            }
            for (end, is_ready) in ready.ends.into_iter().enumerate() {
                if is_ready && self.receive(end).is_err() {
                    return Ok(Some(self.ends[end].interface().to_owned()));
                }
            }
            for end in [0, 1] {
                self.deliver(end);
            }
        }
    }

    fn wait(&self, stop: BorrowedFd<'_>) -> Result<Ready, DeviceError> {
        let due = self
            .directions
            .iter()
            .filter_map(Direction::poll_timeout)
            .min();
        let timeout = due.map(|due| {
            let ns = due.saturating_since(self.now()).as_nanos();
            Timespec {
                tv_sec: (ns / 1_000_000_000) as i64,
                tv_nsec: (ns % 1_000_000_000) as i64,
            }
        });
        let [a, b] = [0, 1]
            .map(|end: usize| PollFd::from_borrowed_fd(self.ends[end].as_fd(), PollFlags::IN));
        let mut fds = [a, b, PollFd::from_borrowed_fd(stop, PollFlags::IN)];
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            // A signal; its handler makes `stop` readable.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                return Err(DeviceError::new(
                    self.ends[0].interface(),
                    "wait for frames",
                    error,
                ));
            }
        }
        let [a, b, stop] = fds.map(|fd| !fd.revents().is_empty());
        Ok(Ready { ends: [a, b], stop })
    }

    /// Reads the frames that arrived at `ends[end]`. Fails if the interface is gone.
    fn receive(&mut self, end: usize) -> io::Result<()> {
        for _ in 0..BATCHES_IN_A_ROW {
            match self.ends[end].receive(&mut self.batch) {
                Ok(()) => {}
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::EINTR) => return Ok(()),
                    // A super-packet of a type that the offload header cannot describe.
                    Some(libc::EINVAL) => {
                        let refusal = self.directions[end].refuse_unknown_offload();
                        self.explain(end, refusal);
                        continue;
                    }
                    // The error is reported once, and frames arrive again when the interface is up.
                    Some(libc::ENETDOWN) if self.is_there(end) => {
                        let interface = self.ends[end].interface();
                        let why = "it was switched off; waiting";
                        tracing::warn!(interface, why, "the interface is down");
                        return Ok(());
                    }
                    _ => return Err(error),
                },
            }
            let (wall, now) = (clock::since_1970(), self.now());
            let mut refusal = Ok(());
            let direction = &mut self.directions[end];
            for received in self.batch.frames() {
                let arrived = now - waited(received.arrived, wall);
                let taken =
                    direction.handle_frame(arrived, received, &mut self.pool, &mut self.scratch);
                refusal = refusal.and(taken);
            }
            self.explain(end, refusal);
        }
        Ok(())
    }

    fn is_there(&self, end: usize) -> bool {
        Interface::ask(self.ends[end].interface()).is_ok()
    }

    /// Sends the frames from `ends[end]` that are due out of the other end.
    fn deliver(&mut self, end: usize) {
        // Read the clock for each frame, because sending takes time.
        while let Some(frame) = self.directions[end].poll_deliver(self.now()) {
            if self.ends[1 - end].send(&frame).is_err() {
                self.directions[end].count_not_sent();
            }
            self.pool.give_back(frame);
        }
    }

    /// Logs the first refusal of each kind, with a remedy.
    fn explain(&self, end: usize, refusal: Result<(), Refusal>) {
        let interface = self.ends[end].interface();
        match refusal {
            Ok(()) => {}
            Err(Refusal::TooLong { len, max }) => tracing::warn!(
                interface,
                "refused a frame of {len} B: the other interface sends at most {max} B; \
                 give both interfaces and both machines the same MTU"
            ),
            Err(Refusal::NotSegmentable) => tracing::warn!(
                interface,
                "refused a super-packet that is neither TCP nor UDP, or inside a tunnel; switch it \
                 off at its sender: `ethtool -K DEVICE gso off tso off`"
            ),
            Err(Refusal::Malformed) => {
                tracing::warn!(interface, "refused a malformed frame");
            }
        }
    }

    fn report(&mut self, config: &AirConfig, lost_interface: Option<String>) -> AirReport {
        let ran = self.now().saturating_since(Instant::ORIGIN);
        let mut report = |end: usize| {
            self.directions[end].count_missed(self.ends[end].missed());
            let [from, to] = [end, 1 - end].map(|i| self.ends[i].interface());
            self.directions[end].report(from, to, ran)
        };
        AirReport {
            name: config.name.clone(),
            seed: config.seed,
            down: report(0),
            up: report(1),
            ran_ns: ran.as_nanos(),
            lost_interface,
        }
    }
}

/// How long a frame has waited for this thread. A longer wait than `AT_MOST` means that the wall clock was set.
fn waited(arrived_ns: Option<NonZeroU64>, wall_ns: u64) -> Duration {
    const AT_MOST: Duration = Duration::from_millis(200);
    let age = arrived_ns.map_or(0, |at| wall_ns.saturating_sub(at.get()));
    let age = Duration::from_nanos(age);
    if age > AT_MOST { Duration::ZERO } else { age }
}

struct Ready {
    ends: [bool; 2],
    stop: bool,
}

/// Emulated propagation must not wait for other processes. If this priority is refused, frames are late, and
/// the report says by how much.
const EMULATOR_NICENESS: i32 = -20;
