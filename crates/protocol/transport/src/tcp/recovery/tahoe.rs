//! Tahoe: fast retransmit without fast recovery (Jacobson 1988; Fall and Floyd 1996).
//!
//! The third duplicate acknowledgment has the same effect as a timeout, except for the timer's backoff: `ssthresh`
//! becomes half the window in use, slow start begins, and everything from `snd_una` on is sent again unless an
//! acknowledgment skips it.

use airlane_base::Instant;

use crate::tcp::control::Control;
use crate::tcp::duplicates::Duplicates;
use crate::tcp::{Ack, TcpConfig};

#[derive(Clone, Debug)]
pub(in crate::tcp) struct Tahoe {
    duplicates: Duplicates,
}

impl Tahoe {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            duplicates: Duplicates::new(config),
        }
    }

    #[inline]
    pub(super) fn on_new_ack(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        self.duplicates.count = 0;
        control.acknowledge(now, ack);
        control.open(now);
    }

    pub(super) fn on_duplicate(&mut self, control: &mut Control, now: Instant, _ack: &Ack) {
        if self.duplicates.show_loss(&control.window) {
            self.duplicates.mark_cut(&control.window);
            control.stats.fast_retransmits += 1;
            control.timer.abandon_sample();
            control.timer.restart(now);
            control.collapse();
        }
    }

    /// The retransmissions were spurious.
    pub(super) fn undo(&mut self) {
        self.duplicates.forget();
    }

    pub(super) fn on_timeout(&mut self, control: &mut Control, _now: Instant) {
        self.duplicates.count = 0;
        self.duplicates.mark_cut(&control.window);
        control.collapse();
    }

    #[inline]
    pub(super) fn next(&mut self, control: &mut Control, _now: Instant) -> Option<u64> {
        let usable = control.usable(self.duplicates.limited());
        control.window.take_next(usable)
    }
}
