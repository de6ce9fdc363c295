//! Reno with explicit loss notification (Balakrishnan et al. 1997): a loss on a link is not congestion.
//!
//! The receiver marks an acknowledgment if it knows that the next expected segment was destroyed on a link. At the
//! third duplicate, if one of them or the acknowledgment before them is marked, `snd_una` is retransmitted and the
//! window is not cut; `eln-rxmt` does so at the first. Duplicates inflate the window as in Reno, and the next new
//! acknowledgment deflates it. Without a mark the sender is plain Reno.
//!
//! This way each segment is retransmitted at most once. If that copy is lost, the timer expires with the same effect
//! as in Reno. A mark causes a repair even in a window that was already cut: it concerns only this segment.

use airlane_base::Instant;

use super::fast::Fast;
use crate::tcp::control::Control;
use crate::tcp::{Ack, RecoveryKind, TcpConfig};

#[derive(Clone, Debug)]
pub(in crate::tcp) struct Eln {
    pub(super) fast: Fast,
    /// Duplicates after which a marked segment is retransmitted.
    patience: u32,
    /// Whether an acknowledgment with this `snd_una` was marked.
    marked: bool,
    /// Whether a timeout has retransmitted `snd_una`.
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

    /// The retransmissions were spurious.
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
