//! Slow start and congestion avoidance as 4.4BSD has them, in bytes (Wright and Stevens 1995, chapter 24).
//!
//! They differ from RFC 5681 in details that show: slow start goes on while `cwnd` is not above `ssthresh`, so the
//! acknowledgment that ends a fast recovery opens the window by a segment; `ssthresh` starts at 65,535 bytes, which
//! is also the largest `cwnd`; divisions truncate. In congestion avoidance 4.4BSD-Lite (1994) adds an eighth of a
//! segment per acknowledgment; its second release (1995) does not.
//!
//! Partial segments are not sent (RFC 1122, section 4.2.3.4), so the rest of the sender may read the window in
//! segments.

use super::cwnd::Cwnd;
use crate::tcp::TcpConfig;

/// The largest window and the initial threshold, bytes.
const LARGEST: u64 = 65_535;

/// BSD's window in bytes; the window in segments is derived from it.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Bsd {
    /// User bytes of a full segment.
    segment: u64,
    /// Bytes.
    cwnd: u64,
    /// Bytes.
    ssthresh: u64,
    /// Whether congestion avoidance adds an eighth of a segment.
    eighth: bool,
}

impl Bsd {
    pub(super) fn new(config: &TcpConfig, segment: u32, cwnd: &mut Cwnd) -> Self {
        let segment = u64::from(segment);
        let bsd = Self {
            segment,
            cwnd: u64::from(config.initial_window) * segment,
            ssthresh: LARGEST,
            eighth: config.eighth.unwrap_or_default(),
        };
        bsd.tell(cwnd);
        bsd
    }

    fn tell(&self, cwnd: &mut Cwnd) {
        cwnd.segments = self.cwnd as f64 / self.segment as f64;
        cwnd.ssthresh = self.ssthresh / self.segment;
    }

    /// The window in segments was set from outside.
    pub(super) fn follow(&mut self, cwnd: &mut Cwnd) {
        self.cwnd = 0;
        self.grow((cwnd.segments * self.segment as f64) as u64);
        self.ssthresh = cwnd.ssthresh * self.segment;
        self.tell(cwnd);
    }

    /// Grows by this many segments.
    pub(super) fn keep(&mut self, cwnd: &mut Cwnd, segments: u64) {
        self.grow(segments * self.segment);
        self.tell(cwnd);
    }

    fn grow(&mut self, bytes: u64) {
        // A single segment may be longer than the largest window.
        self.cwnd = (self.cwnd + bytes).min(LARGEST.max(self.segment));
    }

    /// New data was acknowledged outside of recovery.
    pub(super) fn on_ack(&mut self, cwnd: &mut Cwnd) {
        if self.cwnd <= self.ssthresh {
            self.grow(self.segment);
        } else {
            let eighth = if self.eighth { self.segment / 8 } else { 0 };
            self.grow(self.segment * self.segment / self.cwnd + eighth);
        }
        self.tell(cwnd);
    }

    /// Duplicate acknowledgments indicate a loss while `in_use` segments of the window were used.
    pub(super) fn on_loss(&mut self, cwnd: &mut Cwnd, in_use: u64) {
        self.ssthresh = (in_use / 2).max(2) * self.segment;
        self.cwnd = self.ssthresh;
        self.tell(cwnd);
    }

    /// Slow start.
    pub(super) fn on_collapse(&mut self, cwnd: &mut Cwnd, in_use: u64) {
        self.on_loss(cwnd, in_use);
        self.cwnd = self.segment;
        self.tell(cwnd);
    }
}
