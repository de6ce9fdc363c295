//! The parts of a sender that a recovery acts on, and the operations that involve several of them.

use airlane_base::{Duration, Instant};

use super::congestion::Congestion;
use super::congestion::acked::Acked;
use super::ecn::Reaction;
use super::spurious::{Taken, Undo};
use super::stats::SenderStats;
use super::timer::Timer;
use super::window::SendWindow;
use super::{Ack, UndoKind};

/// The parts of a sender that a recovery acts on.
#[derive(Clone, Debug)]
pub(super) struct Control {
    pub(super) window: SendWindow,
    pub(super) congestion: Congestion,
    pub(super) timer: Timer,
    pub(super) undo: Undo,
    pub(super) ecn: Reaction,
    pub(super) stats: SenderStats,
    /// Segments newly acknowledged by the last acknowledgment, and the flight size before it.
    pub(super) acked: u64,
    pub(super) flight_before: u64,
}

impl Control {
    /// Segments that may be in flight, with `inflation` of them known to have left the path.
    #[inline]
    pub(super) fn usable(&self, inflation: i64) -> u64 {
        let window = (self.congestion.window() as i64 + inflation).max(0);
        (window as u64).min(self.window.advertised())
    }

    /// Everything below this number has arrived.
    #[inline]
    pub(super) fn acknowledge(&mut self, now: Instant, ack: &Ack) {
        self.acked = ack.ack - self.window.una;
        self.flight_before = self.window.flight_size();
        self.window.acknowledge(ack.ack);
        let outstanding = self.window.flight_size() > 0;
        self.timer
            .on_acknowledged(now, ack, self.flight_before, outstanding);
    }

    /// The last acknowledgment opens the congestion window.
    #[inline]
    pub(super) fn open(&mut self, now: Instant) {
        let rtt = self.timer.latest();
        self.open_timed(now, rtt);
    }

    /// As above, when the round trip is known from a source other than the timer.
    #[inline]
    pub(super) fn open_timed(&mut self, now: Instant, rtt: Option<Duration>) {
        let Self {
            congestion,
            timer,
            acked,
            flight_before,
            window,
            ..
        } = self;
        congestion.on_ack(|| Acked {
            now,
            segments: *acked,
            flight: *flight_before,
            una: window.una,
            nxt: window.nxt,
            max: window.max,
            srtt: timer.fine_srtt().unwrap_or_default(),
            rtt,
        });
    }

    /// Duplicate acknowledgments indicate a loss: the window is cut, and the timer restarts for the retransmission.
    pub(super) fn cut(&mut self, now: Instant) {
        self.stats.fast_retransmits += 1;
        self.stats.window_cuts += 1;
        self.remember();
        // At most one cut per window (RFC 3168, section 6.1.2).
        let SendWindow { una, max, .. } = self.window;
        if !self.ecn.on_loss(una, max) {
            self.congestion.on_loss(self.usable(0));
        }
        self.timer.abandon_sample();
        // A probe may have repaired the last segment in flight.
        if self.window.flight_size() > 0 {
            self.timer.restart(now);
        }
    }

    /// Slow start from the oldest segment. The segments after it are sent again as the window allows, unless
    /// acknowledgments skip them.
    pub(super) fn collapse(&mut self) {
        self.stats.window_cuts += 1;
        self.remember();
        self.ecn.on_loss(self.window.una, self.window.max);
        self.congestion.on_collapse(self.usable(0));
        self.window.go_back();
    }

    /// An acknowledgment echoes a congestion mark: the window is cut, unless it was already cut for what is in
    /// flight.
    pub(super) fn on_echo(&mut self) {
        let SendWindow { una, max, .. } = self.window;
        if self.ecn.asks_for_cut(una) {
            self.stats.window_cuts += 1;
            self.stats.marked_cuts += 1;
            self.congestion.on_loss(self.usable(0));
            self.congestion.resume();
            self.ecn.on_mark(max);
        }
    }

    fn remember(&mut self) {
        let (cwnd, ssthresh) = (self.congestion.cwnd(), self.congestion.ssthresh());
        self.undo.on_cut(Taken {
            pipe: self.window.flight_size().max(ssthresh),
            cwnd,
            ssthresh,
            curve: self.congestion.curve(),
            end: self.window.max,
        });
    }

    /// An acknowledgment of `ack` shows that the last cut was spurious.
    pub(super) fn take_back(&mut self, ack: u64, taken: Taken, initial_window: u64) {
        self.stats.undone_cuts += 1;
        self.window.nxt = self.window.max;
        if self.undo.kind != UndoKind::Rfc4015 {
            let Taken { cwnd, ssthresh, .. } = taken;
            let keeps_curve = self.undo.kind == UndoKind::Rfc9438;
            let curve = taken.curve.filter(|_| keeps_curve);
            self.congestion.give_back(cwnd, ssthresh, curve);
            return;
        }
        let flight = self.window.max - ack;
        let released = (ack - self.window.una).min(initial_window);
        self.congestion
            .restore((flight + released) as f64, taken.pipe.max(2));
    }

    /// As above, when the acknowledgment may arrive after the window has grown again: it reduces neither the window
    /// nor the threshold.
    pub(super) fn take_back_late(&mut self, mut taken: Taken, initial_window: u64) {
        let (cwnd, ssthresh) = (self.congestion.cwnd(), self.congestion.ssthresh());
        taken.pipe = taken.pipe.max(ssthresh);
        self.take_back(self.window.una, taken, initial_window);
        if self.congestion.cwnd() < cwnd {
            let ssthresh = self.congestion.ssthresh();
            self.congestion.restore(cwnd, ssthresh);
        }
    }
}
