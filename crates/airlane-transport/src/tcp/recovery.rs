//! Loss detection and recovery: which segments are lost, and what leaves next.
//!
//! A recovery acts on the other parts of its sender through [`Control`]. Each has a file of its own;
//! [`Recovery`] is one of them, as the settings say.

mod newreno;
mod reno;
mod sack;
mod tahoe;

use airlane_base::Instant;

use super::congestion::Congestion;
use super::timer::Timer;
use super::window::SendWindow;
use super::{Ack, RecoveryKind, SenderStats, TcpConfig};
use newreno::NewReno;
use reno::Reno;
use sack::Sack;
use tahoe::Tahoe;

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
    fn usable(&self, inflation: u64) -> u64 {
        (self.congestion.window() + inflation).min(self.window.advertised)
    }

    /// Everything below `ack` has arrived.
    #[inline]
    fn acknowledge(&mut self, now: Instant, ack: u64) {
        self.window.acknowledge(ack);
        let outstanding = self.window.flight_size() > 0;
        self.timer.on_acknowledged(now, ack, outstanding);
    }

    /// Duplicate acknowledgments show a loss: the window is cut, and the timer waits for the repair.
    fn cut(&mut self, now: Instant) {
        self.stats.fast_retransmits += 1;
        self.stats.window_cuts += 1;
        self.congestion.on_loss(self.usable(0));
        self.timer.abandon_sample();
        self.timer.restart(now);
    }

    /// Slow start from the oldest segment; what follows it leaves again, as the window allows, except
    /// what acknowledgments skip.
    fn collapse(&mut self) {
        self.stats.window_cuts += 1;
        self.congestion.on_collapse(self.usable(0));
        self.window.go_back();
    }
}

/// Duplicate acknowledgments in a row, and when they stand for a loss.
#[derive(Clone, Debug)]
struct Duplicates {
    threshold: u32,
    count: u32,
    /// The highest number sent when the window was last cut, by any cause. One window of data is cut at
    /// most once (ns-2's `bugFix_`, RFC 6582).
    recover: u64,
}

impl Duplicates {
    fn new(config: &TcpConfig) -> Self {
        Self {
            threshold: config.dupack_threshold,
            count: 0,
            recover: 0,
        }
    }

    /// One more; whether it is the one that shows a loss.
    fn show_loss(&mut self, window: &SendWindow) -> bool {
        self.count += 1;
        self.count == self.threshold && self.is_new(window)
    }

    /// Whether a loss of the oldest segment is none of those that the last cut was for.
    const fn is_new(&self, window: &SendWindow) -> bool {
        window.una > self.recover || self.recover == 0
    }

    /// The window is cut for everything that was sent up to now.
    fn mark_cut(&mut self, window: &SendWindow) {
        self.recover = window.max;
    }
}

/// The recovery of one connection.
#[derive(Clone, Debug)]
pub(super) enum Recovery {
    Tahoe(Tahoe),
    Reno(Reno),
    NewReno(NewReno),
    Sack(Box<Sack>),
}

macro_rules! each {
    ($recovery:expr, $one:ident => $call:expr) => {
        match $recovery {
            Recovery::Tahoe($one) => $call,
            Recovery::Reno($one) => $call,
            Recovery::NewReno($one) => $call,
            Recovery::Sack($one) => $call,
        }
    };
}

impl Recovery {
    pub(super) fn new(config: &TcpConfig) -> Self {
        match config.recovery() {
            RecoveryKind::Tahoe => Self::Tahoe(Tahoe::new(config)),
            RecoveryKind::Reno => Self::Reno(Reno::new(config)),
            RecoveryKind::NewReno => Self::NewReno(NewReno::new(config)),
            RecoveryKind::Sack => Self::Sack(Box::new(Sack::new(config))),
        }
    }

    /// An acknowledgment of new data: `ack.ack` lies between `una` and `max`.
    #[inline]
    pub(super) fn on_new_ack(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        each!(self, recovery => recovery.on_new_ack(control, now, ack));
    }

    /// An acknowledgment that repeats the last one while data is outstanding.
    pub(super) fn on_duplicate(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        each!(self, recovery => recovery.on_duplicate(control, now, ack));
    }

    /// The retransmission timer has expired, backed off and begun anew.
    pub(super) fn on_timeout(&mut self, control: &mut Control) {
        each!(self, recovery => recovery.on_timeout(control));
    }

    /// The segment that may leave now.
    #[inline]
    pub(super) fn next(&mut self, control: &mut Control) -> Option<u64> {
        each!(self, recovery => recovery.next(control))
    }
}
