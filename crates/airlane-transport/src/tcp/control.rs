//! The parts of a sender that a recovery acts on, and what it does with several of them at once.

use airlane_base::Instant;

use super::congestion::Congestion;
use super::stats::SenderStats;
use super::timer::Timer;
use super::window::SendWindow;

/// The parts of a sender that a recovery acts on.
#[derive(Clone, Debug)]
pub(super) struct Control {
    pub(super) window: SendWindow,
    pub(super) congestion: Congestion,
    pub(super) timer: Timer,
    pub(super) stats: SenderStats,
}

impl Control {
    /// Segments that may be on their way, with `inflation` of them known to have left the path.
    #[inline]
    pub(super) fn usable(&self, inflation: u64) -> u64 {
        (self.congestion.window() + inflation).min(self.window.advertised())
    }

    /// Everything below `ack` has arrived.
    #[inline]
    pub(super) fn acknowledge(&mut self, now: Instant, ack: u64) {
        self.window.acknowledge(ack);
        let outstanding = self.window.flight_size() > 0;
        self.timer.on_acknowledged(now, ack, outstanding);
    }

    /// Duplicate acknowledgments show a loss: the window is cut, and the timer waits for the repair.
    pub(super) fn cut(&mut self, now: Instant) {
        self.stats.fast_retransmits += 1;
        self.stats.window_cuts += 1;
        self.congestion.on_loss(self.usable(0));
        self.timer.abandon_sample();
        self.timer.restart(now);
    }

    /// Slow start from the oldest segment; what follows it leaves again, as the window allows, except
    /// what acknowledgments skip.
    pub(super) fn collapse(&mut self) {
        self.stats.window_cuts += 1;
        self.congestion.on_collapse(self.usable(0));
        self.window.go_back();
    }
}
