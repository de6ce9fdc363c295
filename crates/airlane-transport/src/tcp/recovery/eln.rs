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

use crate::tcp::control::Control;
use crate::tcp::duplicates::Duplicates;
use crate::tcp::{Ack, RecoveryKind, TcpConfig};

#[derive(Clone, Debug)]
pub(in crate::tcp) struct Eln {
    duplicates: Duplicates,
    /// Duplicates that let a marked segment leave again.
    patience: u32,
    /// Whether an acknowledgment of this `snd_una` was marked.
    marked: bool,
    /// Whether the timer has sent `snd_una` again.
    expired: bool,
    in_recovery: bool,
    /// Segments by which duplicates have opened the window.
    inflation: u64,
    /// `snd_una` has to be sent again at once.
    resend: bool,
}

impl Eln {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            duplicates: Duplicates::new(config),
            patience: match config.recovery() {
                RecoveryKind::ElnRxmt => 1,
                _ => config.dupack_threshold,
            },
            marked: false,
            expired: false,
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
        self.leave();
        self.marked = ack.eln;
        self.expired = false;
        control.acknowledge(now, ack.ack);
        control.open(now);
    }

    pub(super) fn on_duplicate(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        self.marked |= ack.eln;
        let shows_loss = self.duplicates.show_loss(&control.window);
        if self.in_recovery {
            self.inflation += 1;
            return;
        }
        if self.marked && !self.expired && self.duplicates.count >= self.patience {
            control.stats.fast_retransmits += 1;
            control.timer.abandon_sample();
            control.timer.restart(now);
        } else if shows_loss {
            self.duplicates.mark_cut(&control.window);
            control.cut(now);
        } else {
            return;
        }
        self.in_recovery = true;
        self.inflation = u64::from(self.duplicates.count);
        self.resend = true;
    }

    /// What was repaired was not lost.
    pub(super) fn undo(&mut self) {
        self.leave();
        self.duplicates.forget();
    }

    pub(super) fn on_timeout(&mut self, control: &mut Control, _now: Instant) {
        self.leave();
        self.expired = true;
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
