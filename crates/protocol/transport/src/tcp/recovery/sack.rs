//! Recovery with selective acknowledgments (RFC 6675).
//!
//! Three duplicate acknowledgments, or three segments delivered above `snd_una`, indicate a loss. Then `cwnd` becomes
//! half of the window in use and `snd_una` is retransmitted at once. Whenever less than `cwnd` is in flight (the
//! scoreboard's pipe), one more segment is sent: a lost one, else a new one, else a hole that is not lost yet, else
//! once per recovery the highest segment, whose loss nothing else would reveal. Recovery ends with the acknowledgment
//! of everything sent before it.
//!
//! With proportional rate reduction (`prr`), that decides when a segment is sent, not the pipe.
//!
//! A timeout discards what was reported; segments that are reported again are not retransmitted. An acknowledgment
//! that reports only a duplicate (RFC 2883) does not count as a sign of loss.

use airlane_base::Instant;

use super::prr::Prr;
use crate::tcp::control::Control;
use crate::tcp::duplicates::Duplicates;
use crate::tcp::scoreboard::Scoreboard;
use crate::tcp::{Ack, TcpConfig};

#[derive(Clone, Debug)]
pub(in crate::tcp) struct Sack {
    duplicates: Duplicates,
    board: Scoreboard,
    in_recovery: bool,
    /// Decides when a segment may be sent in a recovery, in place of the pipe.
    prr: Option<Prr>,
    /// The highest segment was retransmitted without a known loss up to here (RFC 6675's RescueRxt).
    rescued: u64,
    /// `snd_una` must be retransmitted at once.
    resend: bool,
}

impl Sack {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            duplicates: Duplicates::new(config),
            board: Scoreboard::new(config.dupack_threshold),
            in_recovery: false,
            prr: config.prr.unwrap_or_default().then(Prr::default),
            rescued: 0,
            resend: false,
        }
    }

    pub(super) fn on_new_ack(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        self.duplicates.count = 0;
        self.resend = false;
        let known = self.board.count();
        control.acknowledge(now, ack);
        self.board.update(&control.window, &ack.blocks);
        let delivered = (control.acked + self.board.count()).saturating_sub(known);
        if !self.in_recovery {
            control.open(now);
            self.begin_if_lost(control, now, delivered);
        } else if ack.ack >= self.duplicates.recover {
            self.in_recovery = false;
        } else {
            self.account(control, delivered);
        }
    }

    pub(super) fn on_duplicate(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        let known = self.board.count();
        self.board.update(&control.window, &ack.blocks);
        let delivered = self.board.count().saturating_sub(known);
        let repeats = ack.ack == control.window.una && ack.duplicate().is_none();
        if delivered > 0 || repeats {
            self.duplicates.count += 1;
        }
        if self.in_recovery {
            self.account(control, delivered);
        } else {
            self.begin_if_lost(control, now, delivered);
        }
    }

    fn account(&mut self, control: &Control, delivered: u64) {
        if let Some(prr) = &mut self.prr {
            let pipe = self.board.pipe(&control.window);
            prr.on_ack(delivered, pipe, control.congestion.ssthresh(), true);
        }
    }

    fn begin_if_lost(&mut self, control: &mut Control, now: Instant, delivered: u64) {
        let shown = self.duplicates.count >= self.duplicates.threshold || self.board.shows_loss();
        if !shown || !self.duplicates.is_over(&control.window) {
            return;
        }
        self.duplicates.mark_cut(&control.window);
        control.cut(now);
        control.congestion.resume();
        self.board.begin_recovery();
        self.in_recovery = true;
        self.resend = true;
        if let Some(prr) = &mut self.prr {
            *prr = Prr::begin(control.window.flight_size());
            self.account(control, delivered);
        }
    }

    /// The retransmissions were spurious.
    pub(super) fn undo(&mut self) {
        self.in_recovery = false;
        self.resend = false;
        self.duplicates.forget();
    }

    pub(super) fn on_timeout(&mut self, control: &mut Control, _now: Instant) {
        self.board.clear();
        self.in_recovery = false;
        self.resend = false;
        self.duplicates.count = 0;
        self.duplicates.mark_cut(&control.window);
        control.collapse();
    }

    #[inline]
    pub(super) fn next(&mut self, control: &mut Control, _now: Instant) -> Option<u64> {
        if self.in_recovery {
            let seq = self.next_in_recovery(control)?;
            if let Some(prr) = &mut self.prr {
                prr.on_sent();
            }
            return Some(seq);
        }
        // After a timeout.
        let window = &mut control.window;
        while window.nxt < window.max {
            let next = self.board.skip(window.nxt);
            if next == window.nxt {
                break;
            }
            window.nxt = next;
        }
        let usable = control.usable(self.duplicates.limited());
        control.window.take_next(usable)
    }

    fn next_in_recovery(&mut self, control: &mut Control) -> Option<u64> {
        let window = &mut control.window;
        if std::mem::take(&mut self.resend) {
            self.board.on_resent(window, window.una);
            return Some(window.una);
        }
        let has_room = match &self.prr {
            Some(prr) => prr.allows(),
            None => self.board.pipe(window) < control.congestion.window(),
        };
        if !has_room {
            return None;
        }
        // RFC 6675, NextSeg (1) to (4).
        let hole = self.board.next_hole(window);
        if hole < self.board.loss_edge(window) {
            self.board.on_resent(window, hole);
            return Some(hole);
        }
        window.nxt = window.max;
        if let Some(seq) = window.take_next(window.advertised()) {
            return Some(seq);
        }
        if hole < self.board.high_sacked(window) {
            self.board.on_resent(window, hole);
            return Some(hole);
        }
        if window.una < self.rescued {
            return None;
        }
        self.rescued = self.duplicates.recover;
        self.board.highest_hole(window)
    }
}
