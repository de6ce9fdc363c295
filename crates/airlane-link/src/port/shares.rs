//! Shares that follow the traffic (Xylomenos 1999, section 6.2.1; section 9.2 of the specification).
//!
//! ```text
//! every T_m = 1 s:  r_i = max(bytes given to service i / bytes given to all, 0.01)
//! ```
//!
//! What counts is what the classifier passes on, so a service's overhead does not change its rate.
//! An interval without traffic changes nothing. Each change goes to the scheduler, for later stamps
//! (XYL-S-13), and to the timers of services that follow their share (heuristic H2).

use airlane_base::Instant;

use super::{Port, SERVICES};
use crate::flow::Packet;
use crate::measure::INTERVAL;
use crate::schedule::Schedule;

/// The least share of a service that is there.
const LEAST: f64 = 0.01;

/// Bytes given to each service in the present interval.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    passed: [u64; SERVICES],
    ends: Instant,
}

impl Shares {
    pub(super) fn new() -> Self {
        Self {
            passed: [0; SERVICES],
            ends: Instant::ORIGIN + INTERVAL,
        }
    }

    pub(super) fn pass(&mut self, service: usize, len: usize) {
        self.passed[service] += len as u64;
    }

    /// The bytes of an interval that is over, if there were any.
    fn roll(&mut self, now: Instant) -> Option<[u64; SERVICES]> {
        if now < self.ends {
            return None;
        }
        self.ends = now + INTERVAL;
        let passed = std::mem::take(&mut self.passed);
        passed.iter().any(|bytes| *bytes > 0).then_some(passed)
    }
}

impl<P: Packet> Port<P> {
    /// Sets the rates from what was measured, at the end of an interval.
    pub(super) fn follow_traffic(&mut self, now: Instant) {
        let Some(passed) = self.shares.as_mut().and_then(|shares| shares.roll(now)) else {
            return;
        };
        let all: u64 = passed.iter().sum();
        for (number, slot) in self.slots.iter_mut().enumerate() {
            if let Some(slot) = slot {
                let rate = (passed[number] as f64 / all as f64).max(LEAST);
                slot.config.rate = rate;
                self.scheduler.set_rate(number as u8, rate);
            }
        }
        self.update_timer_factors();
    }
}
