//! Congestion control: how many segments may be on their way.
//!
//! Each control has a file of its own; [`Congestion`] is one of them, as the settings say.

pub(super) mod acked;
mod bsd;
mod cubic;
mod reno;
mod vegas;

use super::{CongestionKind, TcpConfig};
use acked::Acked;
use bsd::Bsd;
use cubic::Cubic;
use reno::Reno;
use vegas::Vegas;

/// The congestion window of one connection.
#[derive(Clone, Debug)]
pub(super) enum Congestion {
    Reno(Reno),
    Bsd(Bsd),
    Cubic(Cubic),
    Vegas(Vegas),
}

macro_rules! each {
    ($congestion:expr, $one:ident => $call:expr) => {
        match $congestion {
            Congestion::Reno($one) => $call,
            Congestion::Bsd($one) => $call,
            Congestion::Cubic($one) => $call,
            Congestion::Vegas(Vegas { reno: $one, .. }) => $call,
        }
    };
}

impl Congestion {
    pub(super) fn new(config: &TcpConfig, segment: u32) -> Self {
        match config.congestion() {
            CongestionKind::Reno => Self::Reno(Reno::new(config, segment)),
            CongestionKind::Bsd => Self::Bsd(Bsd::new(config, segment)),
            CongestionKind::Cubic => Self::Cubic(Cubic::new(config, segment)),
            CongestionKind::Vegas => Self::Vegas(Vegas::new(config, segment)),
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

    /// New data was acknowledged, and no loss is being repaired. Few ask what exactly.
    #[inline]
    pub(super) fn on_ack(&mut self, acked: impl FnOnce() -> Acked) {
        match self {
            Self::Reno(reno) => reno.on_ack(),
            Self::Bsd(bsd) => bsd.on_ack(),
            Self::Cubic(cubic) => cubic.on_ack(acked()),
            Self::Vegas(vegas) => vegas.on_ack(acked()),
        }
    }

    /// Duplicate acknowledgments show a loss while `in_use` segments of the window were used.
    pub(super) fn on_loss(&mut self, in_use: u64) {
        each!(self, one => one.on_loss(in_use));
        // Reno's half may be none, which its next acknowledgment makes one. Vegas waits for a round trip.
        if let Self::Vegas(vegas) = self {
            vegas.reno.resume();
        }
    }

    /// Goes on with `ssthresh`, as RFC 5681 has it behind a loss.
    pub(super) const fn resume(&mut self) {
        each!(self, one => one.resume());
    }

    /// Goes on with this window and threshold, segments.
    pub(super) fn restore(&mut self, cwnd: f64, ssthresh: u64) {
        each!(self, one => one.restore(cwnd, ssthresh));
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
