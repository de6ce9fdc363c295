//! Time averages of a TCP sender's windows, how often its congestion window falls below a level, and how long it was
//! idle before timeouts.
//!
//! All are sampled where the sender changes: windows before each input, because they have been constant since the
//! previous one; idle time when a timer expires. Segments beyond the congestion window that duplicate acknowledgments
//! release in fast recovery are not included.

use airlane_base::{Duration, Instant};
use airlane_transport::tcp::Sender;

/// The windows of one sender, from its first segment to its last new acknowledgment.
#[derive(Clone, Debug)]
pub(crate) struct WindowProbe {
    /// User bytes of a full segment.
    segment: f64,
    /// The sums reach up to this time.
    until: Instant,
    /// Segment-nanoseconds: of the congestion window, and of its part that the advertised window allows.
    cwnd: f64,
    usable: f64,
    /// Bytes of the congestion window below which it falls, and how often it has.
    level: Option<f64>,
    above: bool,
    falls: u64,
    /// When it last sent a segment or received an acknowledgment.
    active: Instant,
    timeouts: u64,
    waited: Duration,
}

impl WindowProbe {
    pub(super) fn new(segment: u32, level: Option<f64>) -> Self {
        Self {
            segment: f64::from(segment),
            until: Instant::ORIGIN,
            cwnd: 0.0,
            usable: 0.0,
            level,
            above: false,
            falls: 0,
            active: Instant::ORIGIN,
            timeouts: 0,
            waited: Duration::ZERO,
        }
    }

    /// Adds the time since the last call: the windows of `sender` were constant in it.
    pub(super) fn advance(&mut self, now: Instant, sender: &Sender) {
        let Some(first) = sender.first_sent().filter(|_| !sender.is_acknowledged()) else {
            return;
        };
        let stood = now.saturating_since(self.until.max(first)).as_nanos() as f64;
        let cwnd = sender.cwnd();
        self.cwnd += cwnd * stood;
        self.usable += cwnd.min(sender.window() as f64) * stood;
        self.until = now;
        if let Some(level) = self.level {
            let above = cwnd * self.segment >= level;
            self.falls += u64::from(self.above && !above);
            self.above = above;
        }
    }

    /// A segment leaves, or an acknowledgment has arrived.
    pub(super) const fn on_activity(&mut self, now: Instant) {
        self.active = now;
    }

    /// The timers have been handled: if the retransmission timer expired, the sender has been idle since its last
    /// activity.
    pub(super) fn on_timers(&mut self, now: Instant, sender: &Sender) {
        let timeouts = sender.stats().timeouts;
        if timeouts > self.timeouts {
            self.timeouts = timeouts;
            self.waited = self.waited + now.saturating_since(self.active);
        }
    }

    /// Mean congestion window in bytes, and the mean of its part that the advertised window allows.
    pub(crate) fn means(&self, sender: &Sender) -> Option<[f64; 2]> {
        let time = self.until.saturating_since(sender.first_sent()?).as_nanos();
        let mean = |sum: f64| sum / time as f64 * self.segment;
        (time > 0).then(|| [mean(self.cwnd), mean(self.usable)])
    }

    /// How often the congestion window has fallen below its level, if it has one.
    pub(crate) fn falls(&self) -> Option<u64> {
        self.level.map(|_| self.falls)
    }

    /// Total idle time before timeouts.
    pub(crate) const fn waited(&self) -> Duration {
        self.waited
    }
}
