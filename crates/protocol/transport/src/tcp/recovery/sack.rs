//! Recovery with selective acknowledgments (RFC 6675).
//!
//! Three duplicate acknowledgments, or three segments delivered above `snd_una`, indicate a loss. Then `cwnd` becomes
//! half of the window in use and `snd_una` is retransmitted at once. Whenever less than `cwnd` is in flight (the
//! scoreboard's pipe), one more segment is sent: a lost one, else a new one, else a hole that is not lost yet, else
//! once per recovery the highest segment, whose loss nothing else would reveal. Recovery ends with the acknowledgment
//! of everything sent before it.
//!
//! With proportional rate reduction (`prr`), that decides when a segment is sent, not the pipe.
//! With `counted-pipe` the sender is that of Fall and Floyd 1996: what is in flight is counted, one less for each
//! duplicate and two for each partial acknowledgment (its repair and what that repaired), every hole below what was
//! reported is lost, and none is retransmitted twice.
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
    /// Segments in flight by the count of acknowledgments, in place of the scoreboard's pipe.
    counted: Option<u64>,
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
            counted: config.counted_pipe.unwrap_or_default().then_some(0),
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
            self.arrived(2);
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
            if delivered > 0 || repeats {
                self.arrived(1);
            }
            self.account(control, delivered);
        } else {
            self.begin_if_lost(control, now, delivered);
        }
    }

    /// So many are no longer on their way.
    fn arrived(&mut self, count: u64) {
        if let Some(counted) = &mut self.counted {
            *counted = counted.saturating_sub(count);
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
        if let Some(counted) = &mut self.counted {
            let duplicates = u64::from(self.duplicates.count);
            *counted = control.window.flight_size().saturating_sub(duplicates);
        }
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
            if let Some(counted) = &mut self.counted {
                *counted += 1;
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
        let has_room = match (&self.prr, self.counted) {
            (Some(prr), _) => prr.allows(),
            (None, Some(counted)) => counted < control.congestion.window(),
            (None, None) => self.board.pipe(window) < control.congestion.window(),
        };
        if !has_room {
            return None;
        }
        // RFC 6675, NextSeg (1) to (4).
        let hole = self.board.next_hole(window);
        let lost_below = match self.counted {
            Some(_) => self.board.high_sacked(window),
            None => self.board.loss_edge(window),
        };
        if hole < lost_below {
            self.board.on_resent(window, hole);
            return Some(hole);
        }
        window.nxt = window.max;
        if let Some(seq) = window.take_next(window.advertised()) {
            return Some(seq);
        }
        if self.counted.is_some() {
            return None;
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
