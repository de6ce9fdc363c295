//! NewReno: fast recovery that lasts until everything is repaired (RFC 6582).
//!
//! An acknowledgment below `recover` is partial: it shows that the segment at its number is lost too. That
//! segment leaves at once, one hole each round trip, and recovery goes on. The acknowledgment of all that
//! was sent before the loss ends it with `cwnd` at half of what was in use.
//!
//! Where works differ: what a partial acknowledgment does to the inflated window
//! ([`Deflation`]), and whether each of them restarts the timer or only the first
//! ([`TimerRestart`]; RFC 6582 calls these slow-but-steady and impatient).

use airlane_base::Instant;

use crate::tcp::control::Control;
use crate::tcp::duplicates::Duplicates;
use crate::tcp::{Ack, Deflation, TcpConfig, TimerRestart};

#[derive(Clone, Debug)]
pub(in crate::tcp) struct NewReno {
    duplicates: Duplicates,
    deflation: Deflation,
    restart: TimerRestart,
    in_recovery: bool,
    /// Whether this recovery has seen a partial acknowledgment.
    partial: bool,
    /// Segments by which fast recovery has opened the window; below zero it closes it.
    inflation: i64,
    /// `snd_una` has to be sent again at once.
    resend: bool,
}

impl NewReno {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            duplicates: Duplicates::new(config),
            deflation: config.partial_deflation.unwrap_or_default(),
            restart: config.partial_restart.unwrap_or_default(),
            in_recovery: false,
            partial: false,
            inflation: 0,
            resend: false,
        }
    }

    fn leave(&mut self) {
        self.in_recovery = false;
        self.partial = false;
        self.inflation = 0;
        self.resend = false;
    }

    pub(super) fn on_new_ack(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        self.duplicates.count = 0;
        if !self.in_recovery {
            control.acknowledge(now, ack.ack);
            control.open(now);
        } else if ack.ack >= self.duplicates.recover {
            self.leave();
            control.acknowledge(now, ack.ack);
        } else {
            self.on_partial(control, now, ack.ack);
        }
    }

    fn on_partial(&mut self, control: &mut Control, now: Instant, ack: u64) {
        match self.deflation {
            Deflation::Rfc6582 => {
                let acked = (ack - control.window.una) as i64;
                // Less what has left the path, plus one for the segment that follows. The window does
                // not close for it.
                let least = 1 - control.congestion.window() as i64;
                self.inflation = (self.inflation - acked + 1).max(least);
            }
            Deflation::FirstAck => {
                if !self.partial {
                    self.inflation = 0;
                }
            }
        }
        if self.partial && self.restart == TimerRestart::First {
            control.window.acknowledge(ack);
            control.timer.sample(now, ack);
        } else {
            control.acknowledge(now, ack);
        }
        self.partial = true;
        self.resend = true;
    }

    pub(super) fn on_duplicate(&mut self, control: &mut Control, now: Instant, _ack: &Ack) {
        if self.in_recovery {
            self.inflation += 1;
        } else if self.duplicates.show_loss(&control.window) {
            self.duplicates.mark_cut(&control.window);
            control.cut(now);
            control.congestion.resume();
            self.in_recovery = true;
            self.inflation = i64::from(self.duplicates.threshold);
            self.resend = true;
        }
    }

    /// What was repaired was not lost.
    pub(super) fn undo(&mut self) {
        self.leave();
        self.duplicates.forget();
    }

    pub(super) fn on_timeout(&mut self, control: &mut Control, _now: Instant) {
        self.leave();
        self.duplicates.count = 0;
        self.duplicates.mark_cut(&control.window);
        control.collapse();
    }

    #[inline]
    pub(super) fn next(&mut self, control: &mut Control, _now: Instant) -> Option<u64> {
        if std::mem::take(&mut self.resend) {
            return Some(control.window.una);
        }
        let window = control
            .congestion
            .window()
            .saturating_add_signed(self.inflation);
        let usable = window.min(control.window.advertised());
        control.window.take_next(usable)
    }
}
