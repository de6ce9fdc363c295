//! Reno: fast retransmit and fast recovery (RFC 2001, later RFC 5681 section 3.2).
//!
//! The third duplicate acknowledgment sets `ssthresh` and `cwnd` to half the window in use, retransmits `snd_una`,
//! restarts the timer without backoff and inflates the window by three; each further duplicate inflates it by one.
//! The first new acknowledgment ends recovery, partial or not: a second hole waits for three duplicates of its own or
//! for the timer.

use airlane_base::Instant;

use super::fast::Fast;
use crate::tcp::control::Control;
use crate::tcp::{Ack, TcpConfig};

#[derive(Clone, Debug)]
pub(in crate::tcp) struct Reno {
    pub(super) fast: Fast,
    /// Whether the window is deflated only if the recovery has seen more than its first duplicates.
    late_deflation: bool,
}

impl Reno {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            fast: Fast::new(config),
            late_deflation: config.late_deflation.unwrap_or_default(),
        }
    }

    #[inline]
    pub(super) fn on_new_ack(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        let duplicates = &self.fast.duplicates;
        let kept = self.late_deflation
            && self.fast.in_recovery
            && duplicates.count == duplicates.threshold;
        self.fast.end(control, now, ack);
        if kept {
            let threshold = self.fast.duplicates.threshold;
            control.congestion.keep(threshold.into());
        }
        control.open(now);
    }

    pub(super) fn on_duplicate(&mut self, control: &mut Control, now: Instant, _ack: &Ack) {
        if !self.fast.inflates() {
            self.fast.begins(control, now);
        }
    }

    /// The retransmissions were spurious.
    pub(super) fn undo(&mut self) {
        self.fast.undo();
    }

    pub(super) fn on_timeout(&mut self, control: &mut Control, _now: Instant) {
        self.fast.on_timeout(control);
    }

    #[inline]
    pub(super) fn next(&mut self, control: &mut Control, _now: Instant) -> Option<u64> {
        self.fast.next(control)
    }
}
