//! Fast retransmit and window inflation by duplicates (RFC 5681, section 3.2): the part that Reno, NewReno and ELN
//! share. Each of them decides when a recovery begins and ends.
//!
//! Limited transmit (RFC 3042) is the same inflation before the threshold: each of the first two duplicates releases
//! a new segment.

use airlane_base::Instant;

use crate::tcp::control::Control;
use crate::tcp::duplicates::Duplicates;
use crate::tcp::{Ack, TcpConfig};

#[derive(Clone, Debug)]
pub(super) struct Fast {
    pub(super) duplicates: Duplicates,
    pub(super) in_recovery: bool,
    /// Segments by which duplicates have inflated the window; negative if a partial acknowledgment has deflated it.
    pub(super) inflation: i64,
    /// `snd_una` must be retransmitted at once.
    pub(super) resend: bool,
    /// Whether duplicates also inflate the window outside of a recovery.
    strays: bool,
}

impl Fast {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            duplicates: Duplicates::new(config),
            in_recovery: false,
            inflation: 0,
            resend: false,
            strays: config.stray_inflation.unwrap_or_default(),
        }
    }

    fn leave(&mut self) {
        self.in_recovery = false;
        self.inflation = 0;
        self.resend = false;
        self.duplicates.count = 0;
    }

    /// An acknowledgment of new data that leaves nothing to repair. If it ends a recovery, it counts for one segment,
    /// the repaired one: the duplicates have already counted those after the hole.
    #[inline]
    pub(super) fn end(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        let repaired = self.in_recovery;
        self.leave();
        control.acknowledge(now, ack);
        if repaired {
            control.acked = 1;
        }
    }

    /// A duplicate has arrived; it inflates the window during a recovery.
    pub(super) fn inflates(&mut self) -> bool {
        if self.in_recovery {
            self.duplicates.count += 1;
            self.inflation += 1;
        }
        self.in_recovery
    }

    /// A duplicate before any recovery; true if it begins one, after the window was cut.
    pub(super) fn begins(&mut self, control: &mut Control, now: Instant) -> bool {
        if !self.duplicates.show_loss(&control.window) {
            let strays = self.strays && self.duplicates.count >= self.duplicates.threshold;
            self.inflation = match strays {
                true => i64::from(self.duplicates.count),
                false => self.duplicates.limited(),
            };
            return false;
        }
        self.duplicates.mark_cut(&control.window);
        control.cut(now);
        self.begin();
        true
    }

    /// A recovery begins, inflated by the duplicates so far.
    pub(super) fn begin(&mut self) {
        self.in_recovery = true;
        self.inflation = i64::from(self.duplicates.count);
        self.resend = true;
    }

    /// The retransmissions were spurious.
    pub(super) fn undo(&mut self) {
        self.leave();
        self.duplicates.forget();
    }

    pub(super) fn on_timeout(&mut self, control: &mut Control) {
        self.leave();
        self.duplicates.mark_timeout(&control.window);
        control.collapse();
    }

    /// Whether the window is full and no retransmission is pending that ignores it.
    #[inline]
    pub(super) fn is_full(&self, control: &Control) -> bool {
        !self.resend && control.window.is_full(control.usable(self.inflation))
    }

    #[inline]
    pub(super) fn next(&mut self, control: &mut Control) -> Option<u64> {
        if std::mem::take(&mut self.resend) {
            return Some(control.window.una);
        }
        let usable = control.usable(self.inflation);
        control.window.take_next(usable)
    }
}
