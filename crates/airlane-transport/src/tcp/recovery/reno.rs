//! Reno: fast retransmit and fast recovery (RFC 2001, later RFC 5681 section 3.2).
//!
//! The third duplicate acknowledgment sets `ssthresh` and `cwnd` to half the window in use, resends
//! `snd_una`, restarts the timer without backoff and inflates the window by three; each further
//! duplicate inflates it by one. The first new acknowledgment ends recovery, partial or not: a second
//! hole waits for its own three duplicates or for the timer.

use airlane_base::Instant;

use crate::tcp::control::Control;
use crate::tcp::duplicates::Duplicates;
use crate::tcp::{Ack, TcpConfig};

#[derive(Clone, Debug)]
pub(in crate::tcp) struct Reno {
    duplicates: Duplicates,
    /// Whether recovery has to have seen more than its first duplicates to end with the window deflated.
    late_deflation: bool,
    in_recovery: bool,
    /// Segments by which fast recovery has opened the window.
    inflation: u64,
    /// `snd_una` has to be sent again at once.
    resend: bool,
}

impl Reno {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            duplicates: Duplicates::new(config),
            late_deflation: config.late_deflation.unwrap_or_default(),
            in_recovery: false,
            inflation: 0,
            resend: false,
        }
    }

    fn leave(&mut self) {
        self.in_recovery = false;
        self.inflation = 0;
        self.resend = false;
        self.duplicates.count = 0;
    }

    #[inline]
    pub(super) fn on_new_ack(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        let kept = self.late_deflation
            && self.in_recovery
            && self.duplicates.count == self.duplicates.threshold;
        self.leave();
        control.acknowledge(now, ack.ack);
        if kept {
            control.congestion.keep(self.duplicates.threshold.into());
        }
        control.open(now);
    }

    pub(super) fn on_duplicate(&mut self, control: &mut Control, now: Instant, _ack: &Ack) {
        if self.duplicates.show_loss(&control.window) {
            self.duplicates.mark_cut(&control.window);
            control.cut(now);
            self.in_recovery = true;
            self.inflation = u64::from(self.duplicates.threshold);
            self.resend = true;
        } else if self.in_recovery {
            self.inflation += 1;
        }
    }

    /// What was repaired was not lost.
    pub(super) fn undo(&mut self) {
        self.leave();
        self.duplicates.forget();
    }

    pub(super) fn on_timeout(&mut self, control: &mut Control, _now: Instant) {
        self.leave();
        self.duplicates.mark_cut(&control.window);
        control.collapse();
    }

    #[inline]
    pub(super) fn next(&mut self, control: &mut Control, _now: Instant) -> Option<u64> {
        if std::mem::take(&mut self.resend) {
            return Some(control.window.una);
        }
        let usable = control.usable(self.inflation);
        control.window.take_next(usable)
    }
}
