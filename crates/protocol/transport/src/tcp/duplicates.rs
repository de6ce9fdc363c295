//! Duplicate acknowledgments as a sign of loss (RFC 5681, section 3.2), with one cut per window.

use super::window::SendWindow;
use super::{CongestionKind, RecoveryKind, TcpConfig};

/// Counts consecutive duplicate acknowledgments, and decides when they indicate a loss.
#[derive(Clone, Debug)]
pub(super) struct Duplicates {
    pub(super) threshold: u32,
    pub(super) count: u32,
    /// The highest number sent when the window was last cut, for any reason. One window of data causes at most one
    /// cut (ns-2's `bugFix_`, RFC 6582).
    pub(super) recover: u64,
    /// Which windows may be cut more than once.
    repeats: Repeats,
    /// Whether the last cut was caused by a timeout.
    timed_out: bool,
    /// Whether the first two duplicates release new segments (RFC 3042).
    limited_transmit: bool,
}

/// Which windows may be cut more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeats {
    /// None.
    Never,
    /// Windows that no timeout has cut.
    Untimed,
    /// All windows, as in BSD.
    Always,
}

impl Duplicates {
    pub(super) fn new(config: &TcpConfig) -> Self {
        let bsd = config.congestion() == CongestionKind::Bsd
            && matches!(
                config.recovery(),
                RecoveryKind::Tahoe
                    | RecoveryKind::Reno
                    | RecoveryKind::Eln
                    | RecoveryKind::ElnRxmt
            );
        Self {
            threshold: config.dupack_threshold,
            count: 0,
            recover: 0,
            repeats: match config.repeated_cuts.unwrap_or_default() {
                _ if bsd => Repeats::Always,
                true => Repeats::Untimed,
                false => Repeats::Never,
            },
            timed_out: false,
            limited_transmit: config.limited_transmit.unwrap_or_default(),
        }
    }

    /// Counts one more duplicate; true if it indicates a loss.
    pub(super) fn show_loss(&mut self, window: &SendWindow) -> bool {
        self.count += 1;
        self.count == self.threshold && self.is_new(window)
    }

    /// Segments beyond the window that the duplicates so far release: at most two (RFC 3042).
    pub(super) fn limited(&self) -> i64 {
        match self.limited_transmit && self.count < self.threshold {
            true => i64::from(self.count.min(2)),
            false => 0,
        }
    }

    /// Whether a loss of the oldest segment is not covered by the last cut.
    pub(super) const fn is_new(&self, window: &SendWindow) -> bool {
        let again = match self.repeats {
            Repeats::Never => false,
            Repeats::Untimed => !self.timed_out,
            Repeats::Always => true,
        };
        again || window.una > self.recover || self.recover == 0
    }

    /// Whether everything that the last cut covers has arrived (RFC 6675, section 5.1).
    pub(super) const fn is_over(&self, window: &SendWindow) -> bool {
        window.una >= self.recover
    }

    /// The last cut was spurious.
    pub(super) const fn forget(&mut self) {
        self.count = 0;
        self.recover = 0;
    }

    /// The window is cut for everything sent so far.
    pub(super) fn mark_cut(&mut self, window: &SendWindow) {
        self.recover = window.max;
        self.timed_out = false;
    }

    /// As above, because of a timeout.
    pub(super) fn mark_timeout(&mut self, window: &SendWindow) {
        self.mark_cut(window);
        self.timed_out = true;
    }
}
