//! The two numbers that every congestion control steers.

use crate::tcp::TcpConfig;

/// A congestion window and its slow start threshold.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Cwnd {
    /// Segments. Grows without bound; the advertised window caps its use.
    pub(super) segments: f64,
    /// Segments.
    pub(super) ssthresh: u64,
}

impl Cwnd {
    /// `ssthresh` starts at the advertised window.
    pub(super) fn new(config: &TcpConfig, segment: u32) -> Self {
        Self {
            segments: f64::from(config.initial_window),
            ssthresh: u64::from(config.window_of(segment)),
        }
    }

    /// Whether the window has not reached the threshold.
    #[inline]
    pub(super) const fn in_slow_start(&self) -> bool {
        self.segments < self.ssthresh as f64
    }

    /// Goes on with `ssthresh`.
    pub(super) const fn resume(&mut self) {
        self.segments = self.ssthresh as f64;
    }
}
