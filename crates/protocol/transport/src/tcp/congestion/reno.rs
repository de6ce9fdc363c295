//! Slow start and congestion avoidance (RFC 5681), in segments.
//!
//! In slow start, below `ssthresh`, each acknowledgment opens the window by one segment; in congestion avoidance by
//! `1/cwnd`. With byte counting (RFC 3465) it opens by as many as were acknowledged. A loss halves what was in use,
//! in whole segments (ns-2 halved exactly from 2006 on), and `ssthresh` is at least 2.

use super::cwnd::Cwnd;

/// An acknowledgment of `segments` new segments outside of recovery.
#[inline]
pub(super) fn on_ack(cwnd: &mut Cwnd, segments: f64) {
    if cwnd.in_slow_start() {
        cwnd.segments += segments;
    } else {
        cwnd.segments += segments / cwnd.segments;
    }
}

/// Duplicate acknowledgments indicate a loss while `in_use` segments of the window were used. The window becomes
/// exactly half of that, as in ns-2, until it is set to `ssthresh`.
pub(super) fn on_loss(cwnd: &mut Cwnd, in_use: u64) {
    cwnd.segments = cut(cwnd, in_use) as f64;
}

/// The loss was so heavy that the capacity of the path is unknown: slow start.
pub(super) fn on_collapse(cwnd: &mut Cwnd, in_use: u64) {
    cut(cwnd, in_use);
    cwnd.segments = 1.0;
}

/// Sets the threshold to half of what was in use, and returns that half.
pub(super) fn cut(cwnd: &mut Cwnd, in_use: u64) -> u64 {
    let half = in_use / 2;
    cwnd.ssthresh = half.max(2);
    half
}
