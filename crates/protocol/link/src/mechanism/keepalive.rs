//! Keepalives, which reveal losses at the end of a burst.
//!
//! While nothing leaves, a frame with the highest number sent leaves every T_ka, up to a configured number
//! per burst. The time counts from when the last frame with a packet, or the last keepalive, has left; it
//! does not run while one waits to leave.

use airlane_base::{Duration, Instant};

/// The keepalives of a sender.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Keepalive {
    limit: Option<u32>,
    quiet_since: Option<Instant>,
    sent: u32,
    due: bool,
}

impl Keepalive {
    /// At most `limit` keepalives after each burst; none: unlimited.
    pub(crate) const fn new(limit: Option<u32>) -> Self {
        Self {
            limit,
            quiet_since: None,
            sent: 0,
            due: false,
        }
    }

    /// A new packet is handed over, which starts or continues a burst.
    pub(crate) fn on_new(&mut self) {
        *self = Self::new(self.limit);
    }

    /// The peer has answered: the count starts again.
    pub(crate) fn on_progress(&mut self) {
        self.sent = 0;
    }

    /// Redundancy is handed over.
    pub(crate) fn on_repair(&mut self) {
        self.quiet_since = None;
    }

    /// A frame with a packet or redundancy, or a keepalive, has left.
    pub(crate) fn on_left(&mut self, left: Instant) {
        self.quiet_since = Some(left);
    }

    /// Whether the last keepalive of this burst has left.
    pub(crate) fn is_over(&self) -> bool {
        !self.due && !self.is_wanted() && self.quiet_since.is_some()
    }

    fn is_wanted(&self) -> bool {
        self.limit.is_none_or(|limit| self.sent < limit)
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant, runs: Duration) {
        if self.deadline(runs).is_some_and(|due| due <= now) {
            self.quiet_since = None;
            self.due = true;
        }
    }

    /// Whether a keepalive has to be handed over now.
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// Whether a keepalive has to be handed over now; if so, counts it as handed over.
    pub(crate) fn take(&mut self) -> bool {
        let due = std::mem::take(&mut self.due);
        self.sent += u32::from(due);
        due
    }

    pub(crate) fn deadline(&self, runs: Duration) -> Option<Instant> {
        self.quiet_since
            .filter(|_| self.is_wanted())
            .map(|since| since + runs)
    }

    /// Forgets everything that was sent.
    pub(crate) fn reset(&mut self) {
        self.on_new();
    }
}
