//! Slow start and congestion avoidance as 4.4BSD has them, in bytes (Wright and Stevens 1995, chapter 24).
//!
//! They differ from RFC 5681 in little things that show: slow start goes on while `cwnd` is not above
//! `ssthresh`, so the acknowledgment that ends a fast recovery opens the window by a segment; `ssthresh` starts
//! at 65,535 bytes, which also is the largest `cwnd`; divisions cut. 4.4BSD-Lite (1994) adds an eighth of a segment
//! for each acknowledgment in congestion avoidance, its second release (1995) does not.
//!
//! A part of a segment is not sent (RFC 1122, section 4.2.3.4), so others may know the window in segments.

use super::cwnd::Cwnd;
use crate::tcp::TcpConfig;

/// The largest window, and the first threshold, bytes.
const LARGEST: u64 = 65_535;

/// BSD's window in bytes; the one in segments follows it.
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

    /// Somebody else has set the window in segments.
    pub(super) fn follow(&mut self, cwnd: &mut Cwnd) {
        self.cwnd = 0;
        self.grow((cwnd.segments * self.segment as f64) as u64);
        self.ssthresh = cwnd.ssthresh * self.segment;
        self.tell(cwnd);
    }

    /// This many segments more.
    pub(super) fn keep(&mut self, cwnd: &mut Cwnd, segments: u64) {
        self.grow(segments * self.segment);
        self.tell(cwnd);
    }

    fn grow(&mut self, bytes: u64) {
        // A single segment may be longer than the largest window.
        self.cwnd = (self.cwnd + bytes).min(LARGEST.max(self.segment));
    }

    /// New data was acknowledged, and no loss is being repaired.
    pub(super) fn on_ack(&mut self, cwnd: &mut Cwnd) {
        if self.cwnd <= self.ssthresh {
            self.grow(self.segment);
        } else {
            let eighth = if self.eighth { self.segment / 8 } else { 0 };
            self.grow(self.segment * self.segment / self.cwnd + eighth);
        }
        self.tell(cwnd);
    }

    /// Duplicate acknowledgments show a loss while `in_use` segments of the window were used.
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
