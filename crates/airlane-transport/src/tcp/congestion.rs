//! Congestion control: how many segments may be on their way.
//!
//! Each control has a file of its own; [`Congestion`] is one of them, as the settings say.

mod bsd;
mod reno;

use super::{CongestionKind, TcpConfig};
use bsd::Bsd;
use reno::Reno;

/// The congestion window of one connection.
#[derive(Clone, Debug)]
pub(super) enum Congestion {
    Reno(Reno),
    Bsd(Bsd),
}

macro_rules! each {
    ($congestion:expr, $one:ident => $call:expr) => {
        match $congestion {
            Congestion::Reno($one) => $call,
            Congestion::Bsd($one) => $call,
        }
    };
}

impl Congestion {
    pub(super) fn new(config: &TcpConfig, segment: u32) -> Self {
        match config.congestion() {
            CongestionKind::Reno => Self::Reno(Reno::new(config, segment)),
            CongestionKind::Bsd => Self::Bsd(Bsd::new(config, segment)),
        }
    }

    /// Segments.
    pub(super) fn cwnd(&self) -> f64 {
        each!(self, one => one.cwnd())
    }

    /// Whole segments that may be on their way.
    #[inline]
    pub(super) const fn window(&self) -> u64 {
        each!(self, one => one.window())
    }

    /// Segments.
    pub(super) const fn ssthresh(&self) -> u64 {
        each!(self, one => one.ssthresh())
    }

    /// New data was acknowledged, and no loss is being repaired.
    #[inline]
    pub(super) fn on_ack(&mut self) {
        each!(self, one => one.on_ack());
    }

    /// Duplicate acknowledgments show a loss while `in_use` segments of the window were used.
    pub(super) fn on_loss(&mut self, in_use: u64) {
        each!(self, one => one.on_loss(in_use));
    }

    /// Goes on with `ssthresh`, as RFC 5681 has it behind a loss.
    pub(super) const fn resume(&mut self) {
        each!(self, one => one.resume());
    }

    /// Recovery ends with a window larger by so many segments.
    pub(super) fn keep(&mut self, segments: u64) {
        each!(self, one => one.keep(segments));
    }

    /// The loss was so heavy that nothing tells how much the path takes: slow start.
    pub(super) fn on_collapse(&mut self, in_use: u64) {
        each!(self, one => one.on_collapse(in_use));
    }
}
