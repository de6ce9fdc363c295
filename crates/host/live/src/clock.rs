//! The clock of the live node: `CLOCK_BOOTTIME` as the protocols' time. It runs on while the machine
//! sleeps, so keys age meanwhile.

use std::num::NonZeroU64;

use airlane_base::{Duration, Instant};
use airlane_secure::Wall;
use rustix::event::Timespec;
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the machine started, those asleep included.
pub(crate) fn now() -> Instant {
    read(ClockId::Boottime)
}

/// Time since the machine was started, without that in which it slept.
pub(crate) fn awake() -> Instant {
    read(ClockId::Monotonic)
}

fn read(clock: ClockId) -> Instant {
    let now = clock_gettime(clock);
    Instant::from_nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// What the clock on the wall says, for handshakes, which compare machines, and for what the kernel says
/// in this time.
pub(crate) fn wall() -> Wall {
    Wall::from_unix(Duration::from_nanos(since_1970()))
}

/// Nanoseconds since 1970, by the wall clock.
pub(crate) fn since_1970() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    let ns = (now.tv_sec as u64).saturating_mul(1_000_000_000);
    ns.saturating_add(now.tv_nsec as u64)
}

/// A node's: ahead of what runs for its own sake, behind what the system itself needs.
pub(crate) const NICENESS: i32 = -10;

/// Wishes to be woken to the nanosecond instead of 50 us late, a tenth of a frame at 20 Mbit/s, and
/// before other processes: a link that waits for the processor is a link with jitter.
pub(crate) fn be_punctual(niceness: i32) {
    let _best_effort = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let _best_effort = rustix::process::setpriority_process(None, niceness);
}

/// How long to wait from `now` for `deadline`, as system calls want it.
pub(crate) fn timeout(now: Instant, deadline: Instant) -> Timespec {
    let ns = deadline.saturating_since(now).as_nanos();
    Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    }
}
