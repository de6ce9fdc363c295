//! Acknowledgments that wait for company (RFC 5681, section 4.2), and the receiver's own timer.

use airlane_base::{Duration, Instant};

use crate::tcp::{AckClock, DelayedAck, TcpConfig};

/// Acknowledgments that wait for a second segment (RFC 5681, section 4.2).
#[derive(Clone, Debug)]
pub(super) struct Delayed {
    config: DelayedAck,
    /// Where a free-running clock's ticks lie against the driver's origin.
    phase: Duration,
    /// Segments in order that no acknowledgment covers yet.
    unacknowledged: u32,
    /// Segments that are still acknowledged at once.
    quick: u32,
    /// When these are acknowledged at the latest.
    pub(super) due: Option<Instant>,
}

impl Delayed {
    pub(super) fn new(config: &TcpConfig, tick_phase: Duration) -> Option<Self> {
        let delayed = config.delayed_ack?;
        // The same point of this clock's period as of the other's.
        let share = tick_phase.as_secs_f64() / config.tick.as_secs_f64();
        Some(Self {
            config: delayed,
            phase: delayed.within.mul_f64(share),
            unacknowledged: 0,
            quick: delayed.quick,
            due: None,
        })
    }

    /// A segment has come in order; whether it is acknowledged now.
    pub(super) fn on_segment(&mut self, now: Instant) -> bool {
        self.unacknowledged += 1;
        if self.quick > 0 {
            self.quick -= 1;
            return true;
        }
        if self.due.is_none() {
            let within = self.config.within;
            self.due = Some(match self.config.clock {
                AckClock::FromArrival => now + within,
                AckClock::FreeRunning => {
                    let since = (now + self.phase).as_nanos() % within.as_nanos();
                    now + Duration::from_nanos(within.as_nanos() - since)
                }
            });
        }
        self.unacknowledged >= self.config.every
    }

    pub(super) fn on_acknowledged(&mut self) {
        self.unacknowledged = 0;
        self.due = None;
    }
}
