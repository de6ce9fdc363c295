//! Delayed acknowledgments (RFC 5681, section 4.2), and the receiver's timer.

use airlane_base::{Duration, Instant};

use crate::tcp::{AckClock, DelayedAck, TcpConfig};

/// The state of delayed acknowledgments.
#[derive(Clone, Debug)]
pub(super) struct Delayed {
    config: DelayedAck,
    /// The offset of a free-running clock's ticks from the driver's origin.
    phase: Duration,
    /// In-order segments not covered by an acknowledgment yet.
    unacknowledged: u32,
    /// Segments that will still be acknowledged at once (quick acknowledgments).
    quick: u32,
    /// The latest time to acknowledge them.
    pub(super) due: Option<Instant>,
}

impl Delayed {
    pub(super) fn new(config: &TcpConfig, tick_phase: Duration) -> Option<Self> {
        let delayed = config.delayed_ack?;
        // The same fraction of this clock's period as of the other clock's.
        let share = tick_phase.as_secs_f64() / config.tick.as_secs_f64();
        Some(Self {
            config: delayed,
            phase: delayed.within.mul_f64(share),
            unacknowledged: 0,
            quick: delayed.quick,
            due: None,
        })
    }

    /// An in-order segment has arrived; true if it must be acknowledged now.
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
