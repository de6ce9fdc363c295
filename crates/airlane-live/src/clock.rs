//! The clock of the live node: `CLOCK_MONOTONIC` as the protocols' time.

use airlane_base::Instant;
use rustix::event::Timespec;
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the machine started.
pub(crate) fn now() -> Instant {
    let now = clock_gettime(ClockId::Monotonic);
    Instant::from_nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// How long to wait from `now` for `deadline`, as system calls want it.
pub(crate) fn timeout(now: Instant, deadline: Instant) -> Timespec {
    let ns = deadline.saturating_since(now).as_nanos();
    Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    }
}
