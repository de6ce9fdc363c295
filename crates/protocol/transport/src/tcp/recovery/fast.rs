//! Fast retransmit and the window that duplicates inflate (RFC 5681, section 3.2): what Reno, NewReno and ELN
//! have in common. When a recovery begins and ends is theirs.
//!
//! Limited transmit (RFC 3042) is the same inflation before the threshold: each of the first two duplicates lets
//! a new segment leave.

use airlane_base::Instant;

use crate::tcp::control::Control;
use crate::tcp::duplicates::Duplicates;
use crate::tcp::{Ack, TcpConfig};

#[derive(Clone, Debug)]
pub(super) struct Fast {
    pub(super) duplicates: Duplicates,
    pub(super) in_recovery: bool,
    /// Segments by which duplicates have opened the window; below zero a partial acknowledgment closes it.
    pub(super) inflation: i64,
    /// `snd_una` has to be sent again at once.
    pub(super) resend: bool,
    /// Whether duplicates inflate the window outside of a recovery, too.
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

    /// An acknowledgment of new data after which nothing is being repaired. If it ends a recovery it counts for the
    /// repair alone: duplicates have told of what came behind the hole.
    #[inline]
    pub(super) fn end(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        let repaired = self.in_recovery;
        self.leave();
        control.acknowledge(now, ack);
        if repaired {
            control.acked = 1;
        }
    }

    /// A duplicate inflates the window, if it comes in a recovery.
    pub(super) fn inflates(&mut self) -> bool {
        if self.in_recovery {
            self.duplicates.count += 1;
            self.inflation += 1;
        }
        self.in_recovery
    }

    /// A duplicate before any recovery; whether it begins one, with the window cut.
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

    /// A recovery begins with what the duplicates so far have let leave.
    pub(super) fn begin(&mut self) {
        self.in_recovery = true;
        self.inflation = i64::from(self.duplicates.count);
        self.resend = true;
    }

    /// What was repaired was not lost.
    pub(super) fn undo(&mut self) {
        self.leave();
        self.duplicates.forget();
    }

    pub(super) fn on_timeout(&mut self, control: &mut Control) {
        self.leave();
        self.duplicates.mark_timeout(&control.window);
        control.collapse();
    }

    /// Whether the window is full, and nothing has to leave in spite of that.
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
