//! Reno with explicit loss notification (Balakrishnan et al. 1997): a loss that a link made is no congestion.
//!
//! An acknowledgment is marked if the receiver knows that the segment it asks for was destroyed on a link. At
//! the third duplicate, one of them or the acknowledgment before them marked, `snd_una` leaves again and the
//! window stays as it is; with `eln-rxmt` at the first. Duplicates inflate the window as in Reno, and the next
//! new acknowledgment takes that back. Without a mark all is Reno.
//!
//! Each number is sent again at most once this way; a copy that is lost waits for the timer, which means what it
//! means to Reno. A mark repairs also within a window that was cut: it is about this segment alone.

use airlane_base::Instant;

use super::fast::Fast;
use crate::tcp::control::Control;
use crate::tcp::{Ack, RecoveryKind, TcpConfig};

#[derive(Clone, Debug)]
pub(in crate::tcp) struct Eln {
    pub(super) fast: Fast,
    /// Duplicates that let a marked segment leave again.
    patience: u32,
    /// Whether an acknowledgment of this `snd_una` was marked.
    marked: bool,
    /// Whether the timer has sent `snd_una` again.
    expired: bool,
}

impl Eln {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            fast: Fast::new(config),
            patience: match config.recovery() {
                RecoveryKind::ElnRxmt => 1,
                _ => config.dupack_threshold,
            },
            marked: false,
            expired: false,
        }
    }

    #[inline]
    pub(super) fn on_new_ack(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        self.marked = ack.eln;
        self.expired = false;
        self.fast.end(control, now, ack);
        control.open(now);
    }

    pub(super) fn on_duplicate(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        self.marked |= ack.eln;
        if self.fast.inflates() {
            return;
        }
        let count = self.fast.duplicates.count + 1;
        if self.marked && !self.expired && count >= self.patience {
            self.fast.duplicates.count = count;
            control.stats.fast_retransmits += 1;
            control.timer.abandon_sample();
            control.timer.restart(now);
            self.fast.begin();
        } else {
            self.fast.begins(control, now);
        }
    }

    /// What was repaired was not lost.
    pub(super) fn undo(&mut self) {
        self.fast.undo();
    }

    pub(super) fn on_timeout(&mut self, control: &mut Control, _now: Instant) {
        self.fast.on_timeout(control);
        self.expired = true;
    }

    #[inline]
    pub(super) fn next(&mut self, control: &mut Control, _now: Instant) -> Option<u64> {
        self.fast.next(control)
    }
}
