//! `airlane air`: a lossy link between two Ethernet interfaces.
//!
//! ```text
//! interface a ──► [ channel "down" ] ──► interface b        each Ethernet frame: queue, rate,
//! interface a ◄── [ channel "up"   ] ◄── interface b        error model, delay (airlane-channel)
//! ```
//!
//! The channel is the simulator's, with the simulator's random streams: a run in virtual time and a
//! live one face the same losses from the same seed. What the live side adds is honesty about
//! frames: super-packets are cut into the frames a real link would have carried (`segment`),
//! unfinished checksums are completed, what cannot be carried is refused with a reason, and the
//! report says what was asked next to what was delivered.
//!
//! One thread, one poll over both sockets and the stop signal, deadlines in nanoseconds from the
//! channels. Left out: frames of more than the MTU, pause frames, and anything a link does not do.

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

/// Batches read from one interface before the other one, and what is due, get their turn.
const BATCHES_IN_A_ROW: usize = 4;

/// Emulates the link until `stop` is readable or an interface disappears.
///
/// # Errors
/// If an interface cannot be opened: it does not exist, is down, is not Ethernet, or the process
/// lacks the right to do so.
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
        // As they stand in the file.
        let errors = toml::Value::try_from(config.errors.of(down))
            .map_or_else(|_| "?".to_owned(), |e| e.to_string());
        tracing::info!(from, to, %rate, %delay, %queue, errors, seed = config.seed, "emulating");
    }
    let lost_interface = emulator.run(stop)?;
    Ok(emulator.report(config, lost_interface))
}

/// Switches offloads off, if the interface lets itself be asked. Otherwise super-packets are cut here
/// instead: slower, but right.
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

    /// Runs until it is stopped, or gives the name of the interface that is gone.
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
            // A signal: whoever handles it makes `stop` readable.
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

    /// Reads what has come in at `ends[end]`. An error if the interface is gone.
    fn receive(&mut self, end: usize) -> io::Result<()> {
        for _ in 0..BATCHES_IN_A_ROW {
            match self.ends[end].receive(&mut self.batch) {
                Ok(()) => {}
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::EINTR) => return Ok(()),
                    // A super-packet whose kind has no place in the offload header.
                    Some(libc::EINVAL) => {
                        let refusal = self.directions[end].refuse_unknown_offload();
                        self.explain(end, refusal);
                        continue;
                    }
                    // It says so once, and frames come again when it is switched on.
                    Some(libc::ENETDOWN) if self.is_there(end) => {
                        let interface = self.ends[end].interface();
                        let why = "somebody switched it off; waiting";
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

    /// Sends out at the other end what is due from `ends[end]`.
    fn deliver(&mut self, end: usize) {
        // The clock is read for each frame, because sending one takes time.
        while let Some(frame) = self.directions[end].poll_deliver(self.now()) {
            if self.ends[1 - end].send(&frame).is_err() {
                self.directions[end].count_not_sent();
            }
            self.pool.give_back(frame);
        }
    }

    /// Says once for each kind of refusal what to do about it.
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

/// How long a frame has waited for this thread. Wall clocks may be set: longer than this is none.
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

/// Propagation waits for no process at all. Where the wish is not granted, frames are late, and the
/// report says by how much.
const EMULATOR_NICENESS: i32 = -20;
