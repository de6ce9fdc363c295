//! What a TCP sender's windows were over its time, and how long it stood still in front of timeouts.
//!
//! Both are taken where the sender changes: windows before each input, since they have stood since the last one,
//! and standing still when a timer runs out. What duplicate acknowledgments let leave beyond the congestion
//! window in a fast recovery is no part of it.

use airlane_base::{Duration, Instant};
use airlane_transport::tcp::Sender;

/// The windows of one sender, from its first segment to its last new acknowledgment.
#[derive(Clone, Debug)]
pub(crate) struct WindowProbe {
    /// User bytes of a full segment.
    segment: f64,
    /// Up to here the sums go.
    until: Instant,
    /// Segment nanoseconds: of the congestion window, and of what the advertised one lets use of it.
    cwnd: f64,
    usable: f64,
    /// When it last sent a segment or got an acknowledgment.
    active: Instant,
    timeouts: u64,
    waited: Duration,
}

impl WindowProbe {
    pub(super) fn new(segment: u32) -> Self {
        Self {
            segment: f64::from(segment),
            until: Instant::ORIGIN,
            cwnd: 0.0,
            usable: 0.0,
            active: Instant::ORIGIN,
            timeouts: 0,
            waited: Duration::ZERO,
        }
    }

    /// The windows of `sender` have stood until now.
    pub(super) fn advance(&mut self, now: Instant, sender: &Sender) {
        let Some(first) = sender.first_sent().filter(|_| !sender.is_acknowledged()) else {
            return;
        };
        let stood = now.saturating_since(self.until.max(first)).as_nanos() as f64;
        let cwnd = sender.cwnd();
        self.cwnd += cwnd * stood;
        self.usable += cwnd.min(sender.window() as f64) * stood;
        self.until = now;
    }

    /// A segment leaves, or an acknowledgment has come.
    pub(super) const fn on_activity(&mut self, now: Instant) {
        self.active = now;
    }

    /// Its timers have been asked: if the one of retransmissions ran out, the sender has waited for it since it
    /// last did something.
    pub(super) fn on_timers(&mut self, now: Instant, sender: &Sender) {
        let timeouts = sender.stats().timeouts;
        if timeouts > self.timeouts {
            self.timeouts = timeouts;
            self.waited = self.waited + now.saturating_since(self.active);
        }
    }

    /// Mean congestion window in bytes, and the mean of what the advertised one lets use of it.
    pub(crate) fn means(&self, sender: &Sender) -> Option<[f64; 2]> {
        let time = self.until.saturating_since(sender.first_sent()?).as_nanos();
        let mean = |sum: f64| sum / time as f64 * self.segment;
        (time > 0).then(|| [mean(self.cwnd), mean(self.usable)])
    }

    /// Time that it waited for timeouts, having nothing else to do.
    pub(crate) const fn waited(&self) -> Duration {
        self.waited
    }
}
