//! Shares that follow the traffic (Xylomenos 1999, section 6.2.1; section 9.2 of docs/spec/multi-service.md).
//!
//! ```text
//! every T_m = 1 s:  r_i = max(bytes given to service i / bytes given to all, 0.01)
//! ```
//!
//! The bytes that the classifier passes on count, so a service's overhead does not change its rate. An
//! interval without traffic changes nothing. Each change applies to later stamps of the scheduler (XYL-S-13),
//! and to the timers of services that follow their share (heuristic H2).

use airlane_base::Instant;

use crate::measure::INTERVAL;
use crate::wire::SERVICES;

/// Minimum share of an installed service.
pub(crate) const LEAST: f64 = 0.01;

/// Bytes given to each service in the present interval.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    passed: [u64; SERVICES],
    ends: Instant,
}

impl Shares {
    pub(crate) fn new() -> Self {
        Self {
            passed: [0; SERVICES],
            ends: Instant::ORIGIN + INTERVAL,
        }
    }

    pub(crate) fn pass(&mut self, service: usize, len: usize) {
        self.passed[service] += len as u64;
    }

    /// The bytes of a completed interval, if there were any.
    pub(crate) fn roll(&mut self, now: Instant) -> Option<[u64; SERVICES]> {
        if now < self.ends {
            return None;
        }
        self.ends = now + INTERVAL;
        let passed = std::mem::take(&mut self.passed);
        passed.iter().any(|bytes| *bytes > 0).then_some(passed)
    }
}
