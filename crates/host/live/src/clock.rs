//! The clock of the live node. Protocol time is `CLOCK_BOOTTIME`, which includes suspended time, so that keys
//! age while the machine sleeps.

use std::num::NonZeroU64;

use airlane_base::{Duration, Instant};
use airlane_secure::Wall;
use rustix::event::Timespec;
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since boot, suspended time included.
pub(crate) fn now() -> Instant {
    read(ClockId::Boottime)
}

/// Nanoseconds since boot without suspended time.
pub(crate) fn awake() -> Instant {
    read(ClockId::Monotonic)
}

fn read(clock: ClockId) -> Instant {
    let now = clock_gettime(clock);
    Instant::from_nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// Wall-clock time: for handshakes, which compare the times of two machines, and to interpret timestamps of
/// the kernel.
pub(crate) fn wall() -> Wall {
    Wall::from_unix(Duration::from_nanos(since_1970()))
}

/// Nanoseconds since 1970, by the wall clock.
pub(crate) fn since_1970() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    let ns = (now.tv_sec as u64).saturating_mul(1_000_000_000);
    ns.saturating_add(now.tv_nsec as u64)
}

/// Niceness of a node: before user processes, after essential system services.
pub(crate) const NICENESS: i32 = -10;

/// Asks the kernel to wake this thread without timer slack (50 us by default, a tenth of a frame at 20
/// Mbit/s), and raises its priority: waiting for the processor is jitter on the link.
pub(crate) fn be_punctual(niceness: i32) {
    let _best_effort = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let _best_effort = rustix::process::setpriority_process(None, niceness);
}

/// The time from `now` to `deadline`, for system calls.
pub(crate) fn timeout(now: Instant, deadline: Instant) -> Timespec {
    let ns = deadline.saturating_since(now).as_nanos();
    Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    }
}
