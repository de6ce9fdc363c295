//! Slow start and congestion avoidance (RFC 5681), in segments.
//!
//! Slow start opens the window by one segment for each acknowledgment while it lies below `ssthresh`,
//! congestion avoidance by `1/cwnd`. `ssthresh` starts at the advertised window. A loss halves what
//! was in use, in whole segments (ns-2 halved exactly from 2006 on), and `ssthresh` is at least 2.

use crate::tcp::TcpConfig;

/// Reno's window.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Reno {
    /// Segments. Grows without bound; the advertised window caps its use.
    cwnd: f64,
    ssthresh: u64,
}

impl Reno {
    pub(super) fn new(config: &TcpConfig, segment: u32) -> Self {
        Self {
            cwnd: f64::from(config.initial_window),
            ssthresh: u64::from(config.window_of(segment)),
        }
    }

    /// Segments.
    pub(super) const fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// Whole segments that may be on their way.
    #[inline]
    pub(super) const fn window(&self) -> u64 {
        self.cwnd as u64
    }

    /// Segments.
    pub(super) const fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// This many segments more.
    pub(super) fn keep(&mut self, segments: u64) {
        self.cwnd += segments as f64;
    }

    /// Goes on with this window and threshold, segments.
    pub(super) const fn restore(&mut self, cwnd: f64, ssthresh: u64) {
        self.cwnd = cwnd;
        self.ssthresh = ssthresh;
    }

    /// New data was acknowledged, and no loss is being repaired.
    #[inline]
    pub(super) fn on_ack(&mut self) {
        if self.cwnd < self.ssthresh as f64 {
            self.cwnd += 1.0;
        } else {
            self.cwnd += 1.0 / self.cwnd;
        }
    }

    /// Duplicate acknowledgments show a loss while `in_use` segments of the window were used.
    pub(super) fn on_loss(&mut self, in_use: u64) {
        self.cwnd = self.halve(in_use) as f64;
    }

    /// Goes on with `ssthresh`, as RFC 5681 has it behind a loss; Reno in ns-2 went on with the half itself.
    pub(super) const fn resume(&mut self) {
        self.cwnd = self.ssthresh as f64;
    }

    /// The loss was so heavy that nothing tells how much the path takes: slow start.
    pub(super) fn on_collapse(&mut self, in_use: u64) {
        self.halve(in_use);
        self.cwnd = 1.0;
    }

    fn halve(&mut self, in_use: u64) -> u64 {
        let half = in_use / 2;
        self.ssthresh = half.max(2);
        half
    }
}
