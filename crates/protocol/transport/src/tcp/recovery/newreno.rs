//! NewReno: fast recovery that lasts until everything is repaired (RFC 6582).
//!
//! An acknowledgment below `recover` is partial: it shows that the segment at its number is lost too. That segment is
//! retransmitted at once, one hole per round trip, and the recovery continues. The acknowledgment of everything sent
//! before the loss ends it with `cwnd` at half of what was in use, and then opens the window like any other: so in
//! ns-2 and BSD, and no RFC says otherwise.
//!
//! The works differ in what a partial acknowledgment does to the inflated window ([`Deflation`]), and in whether
//! every one restarts the timer or only the first ([`TimerRestart`]; RFC 6582 calls these slow-but-steady and
//! impatient).

use airlane_base::Instant;

use super::fast::Fast;
use crate::tcp::control::Control;
use crate::tcp::{Ack, Deflation, TcpConfig, TimerRestart};

#[derive(Clone, Debug)]
pub(in crate::tcp) struct NewReno {
    pub(super) fast: Fast,
    deflation: Deflation,
    restart: TimerRestart,
    /// Whether this recovery has seen a partial acknowledgment.
    partial: bool,
}

impl NewReno {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            fast: Fast::new(config),
            deflation: config.partial_deflation.unwrap_or_default(),
            restart: config.partial_restart.unwrap_or_default(),
            partial: false,
        }
    }

    pub(super) fn on_new_ack(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        if self.fast.in_recovery && ack.ack < self.fast.duplicates.recover {
            self.on_partial(control, now, ack);
        } else {
            self.fast.end(control, now, ack);
            control.open(now);
        }
    }

    fn on_partial(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        let fast = &mut self.fast;
        match self.deflation {
            Deflation::Rfc6582 => {
                let acked = (ack.ack - control.window.una) as i64;
                // Subtract what has left the path, and add one for the next segment. Deflation never closes the
                // window.
                let least = 1 - control.congestion.window() as i64;
                fast.inflation = (fast.inflation - acked + 1).max(least);
            }
            Deflation::FirstAck => {
                if !self.partial {
                    fast.inflation = 0;
                }
            }
            Deflation::EachAck => fast.inflation = 0,
        }
        if self.partial && self.restart == TimerRestart::First {
            control.window.acknowledge(ack.ack);
            control.timer.sample(now, ack);
        } else {
            control.acknowledge(now, ack);
        }
        self.partial = true;
        fast.resend = true;
    }

    pub(super) fn on_duplicate(&mut self, control: &mut Control, now: Instant, _ack: &Ack) {
        if !self.fast.inflates() && self.fast.begins(control, now) {
            control.congestion.resume();
            self.partial = false;
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
